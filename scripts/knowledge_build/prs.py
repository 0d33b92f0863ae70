"""Lists of records: one page a repository, one a topic, and one of open candidates."""

from __future__ import annotations

from collections import Counter

from knowledge_build import text
from knowledge_build.topics import TOPICS, Topic, belongs, spread
from knowledge_build.tree import SELECTED, Row, Tree

FEWEST = 10
"""Selected pull requests below which a repository is a source to read and gets no list."""
MOST_OPEN = 60
TIERS = """Tiers: A the title speaks of speed and a kernel changes, B it names a mechanism, C new kernel or path, D a
figure is claimed, E many mechanisms in the diff, P a fix in device code. Labels are ours; L: we read the diff and wrote
a lesson (`kernelpilot knowledge show ID`). ? means that the diff does not say it."""


def pr_driven(tree: Tree) -> dict[str, str]:
    """Repository -> name of its page in lower case, of those that land work by pull requests."""
    found = sorted(repo for repo, told in tree.repos.items() if not told.source_only and told.selected_prs >= FEWEST)
    short = Counter(repo.split("/")[1].lower() for repo in found)
    names = {repo: repo.lower().split("/")[1] for repo in found}
    return {repo: name if short[name] == 1 else repo.lower().replace("/", "+") for repo, name in names.items()}


def of_repo(tree: Tree, repo: str, name: str) -> dict[str, str]:
    """File name -> page of one repository: its strongest records; more pages only where lessons would be left out."""
    rows = tree.of(repo)
    shown = [row for row in rows if row.lesson or (row.tier and row.tier in SELECTED)]
    out: dict[str, str] = {}
    while shown if not out else any(row.lesson for row in shown):
        number = f"-{len(out) + 1}" if out else ""
        page = text.head(f"Records of {repo}", *_about(tree, repo, rows), TIERS, "", _rest(repo))
        filled, count = text.fill(page + text.table(text.RECORD), (text.record(row) for row in shown))
        out[f"{name}{number}.md"] = filled
        shown = shown[count:]
    return out


def _about(tree: Tree, repo: str, rows: list[Row]) -> tuple[str, ...]:
    tiers = Counter(row.tier or "none" for row in rows)
    counts = ", ".join(f"{tier} {tiers[tier]}" for tier in (*SELECTED, "P", "none") if tiers[tier])
    known = sorted(tree.repos[repo].heads.items())
    heads = ", ".join(f"{name} `{sha[:12]}`" for name, sha in known[:3])
    more = f" and {len(known) - 3} more branches." if len(known) > 3 else "."
    return f"{len(rows)} changes that touch kernels; by tier: {counts}.", f"Read at {heads}{more}"


def _rest(repo: str) -> str:
    return f"The rest: `kernelpilot knowledge search WORDS --repo {repo}`; fixes: `... --tier P`."


def of_topic(tree: Tree, slug: str, topic: Topic) -> str:
    """The strongest records of one topic, spread over repositories."""
    rows = [row for row in tree.rows if row.how != "open" and belongs(row, topic)]
    chosen = spread(rows, 80, topic)
    said = [f"{kind} {', '.join(names)}" for kind, names in _conditions(topic) if names]
    page = text.head(
        f"Records by topic: {topic.title}",
        f"{len(rows)} landed changes belong here ({'; '.join(said)}), strongest first, spread over repositories.",
        TIERS,
        "",
        f"Read first: [the topic page](../../../routing/topics/{slug}.md). The rest: {_search(topic)}.",
    )
    out, _ = text.fill(page + text.table(text.RECORD), (text.record(row, named=True) for row in chosen))
    return out


def _conditions(topic: Topic) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return ("families", topic.families), ("types", topic.dtypes), ("or mechanisms", topic.mechanisms)


def _search(topic: Topic) -> str:
    option = f"--family {topic.families[0]}" if topic.families else f"--token {topic.mechanisms[0]}"
    dtype = f" --dtype {topic.dtypes[0]}" if topic.dtypes else ""
    return f"`kernelpilot knowledge search WORDS {option}{dtype}`"


def open_watchlist(tree: Tree) -> str:
    """Candidates that were open when their repository was read."""
    newest: dict[str, str] = {}
    for row in tree.rows:
        if row.how != "open":
            newest[row.repo] = max(newest.get(row.repo, ""), row.day)
    found = [row for row in tree.rows if row.how == "open"]
    page = text.head(
        "Open candidates",
        f"The best of {len(found)} pull requests that were open when their repository was read. They may have landed,",
        "changed or been closed since: re-check before use, and read them at the head that you then see.",
        "",
        "```console",
        'kernelpilot knowledge show "OWNER/NAME#NUMBER"',
        "git ls-remote https://github.com/OWNER/NAME refs/pull/NUMBER/head",
        "```",
        "",
        "Seen: the newest landed change that was known then. Head: look again when it is another one now. Files: the",
        "kernel with the most added lines, and how many files change. The rest:",
        "`kernelpilot knowledge search WORDS --state open`.",
    )
    names = ("Record", "Seen", "Head", "Of", "Tier", "Files", "What")
    lines = (_open(row, newest.get(row.repo, "?")) for row in spread(found, MOST_OPEN))
    out, _ = text.fill(page + text.table(names), lines, most=MOST_OPEN)
    return out


def _open(row: Row, seen: str) -> str:
    first = row.kernel_files[0].rsplit("/", 1)[-1] if row.kernel_files else "?"
    files = f"{first} of {row.n_files}"
    name = f"{row.repo.split('/')[1]} {row.link}"
    return text.row((name, seen, row.sha[:12], row.day, row.tier, files, _brief(row)))


def _brief(row: Row) -> str:
    """Families and mechanisms; a whole label would leave no room for sixty lines."""
    mechanisms = [name for name, _ in sorted(row.diff_terms.items(), key=lambda item: (-item[1], item[0]))]
    return f"{text.names(row.families, 2) or '?'}: {text.names(mechanisms, 3) or '?'}"


def index(tree: Tree) -> str:
    """The lists, and what has none."""
    named = pr_driven(tree)
    page = text.head(
        "Records: pull requests and commits",
        f"{len(tree.rows)} changes that touch kernels, {tree.lessons} with a lesson of ours. Pages show the strongest;",
        "`kernelpilot knowledge search` finds all of them, `kernelpilot knowledge show ID` prints one.",
        "",
        "- By kind of kernel: " + ", ".join(f"[{slug}](by-topic/{slug}.md)" for slug in sorted(TOPICS)) + ".",
        "- Still open when they were seen: [open-watchlist](open-watchlist.md); look again before use.",
    )
    names = ("Repository", "Changes", "Pull requests of tiers A to E", "Direct commits", "Fixes", "Lessons", "Read at")
    lines = []
    for repo, told in sorted(tree.repos.items()):
        rows = tree.of(repo)
        direct = sum(row.how == "direct" for row in rows)
        fixes, lessons = sum(row.tier == "P" for row in rows), sum(row.lesson for row in rows)
        link = f"[{repo}]({named[repo]}.md)" if repo in named else f"{repo} (source only)"
        head = told.heads.get("HEAD") or next(iter(sorted(told.heads.values())), "?")
        counts = map(str, (len(rows), told.selected_prs, direct, fixes, lessons))
        lines.append(text.row((link, *counts, f"`{head[:12]}`")))
    tail = f"\nSource only: fewer than {FEWEST} selected pull requests; read its source guide instead of a list.\n"
    return text.whole(page + text.table(names), lines, tail)
