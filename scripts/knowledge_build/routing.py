"""Tables of pages, from their lead tables: what to open first."""

from __future__ import annotations

import re

from kernelpilot_helpers.errors import Refused
from kernelpilot_helpers.knowledge.page_parts import Parts
from knowledge_build import prs, text
from knowledge_build.topics import TOPICS
from knowledge_build.tree import Tree

LINE = 110
FOLDERS = (
    ("symptoms", "symptoms", "what a profile shows, and where to go from there"),
    ("techniques", "techniques", "what to do about it: when, how, limits, counter-signs, code to read"),
    ("hardware", "hardware", "limits of an architecture"),
    ("cards", "cards", "tables of half a page: production dispatch, bugs, reverted ideas, instructions, constants"),
    ("routing", "routing", "what to read first for a kind of kernel, or in a framework"),
    ("references", "references", "source guides, lists of records, blogs"),
)
"""Folder of the README's map, its heading, and what stands there."""
BEGIN, END = "<!-- map: python scripts/build_knowledge.py writes from here -->", "<!-- map: to here -->"


def under(tree: Tree, folder: str) -> list[Parts]:
    """Hand-written pages below a folder; indexes left out."""
    return [page for page in tree.pages if page.path.startswith(f"{folder}/") and page.slug != "index"]


def line_of(page: Parts) -> str:
    """One line about a page: its first sentence of prose, else its title."""
    for paragraph in re.split(r"\n\s*\n", page.prose):
        bare = " ".join(paragraph.split())
        if bare and not bare.startswith(("#", "|", "<!--", "-", "*", ">")):
            sentence = re.split(r"(?<=[.:]) ", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", bare))[0].rstrip(".:")
            return sentence if len(sentence) <= LINE else sentence[:LINE].rsplit(" ", 1)[0] + " ..."
    return page.title


def _relative(page: Parts, folder: str) -> str:
    return page.path.removeprefix(f"{folder}/")


def topics(tree: Tree) -> str:
    """Topic pages, then techniques by the class that a digest names."""
    page = text.head(
        "Topics",
        "Open one topic page, then the technique of the class that your digest names, then code. The rest:",
        "`kernelpilot knowledge search WORDS --family NAME`; from a digest: `kernelpilot knowledge route DIGEST.json`.",
    )
    lines = []
    for topic in under(tree, "routing/topics"):
        records = f"[records](../../references/prs/by-topic/{topic.slug}.md)" if topic.slug in TOPICS else ""
        lines.append(text.row((f"[{topic.slug}]({topic.slug}.md)", records, line_of(topic))))
    head = page + text.table(("Topic", "Records", "About"))
    techniques = under(tree, "techniques")
    by_class: dict[str, list[str]] = {}
    for technique in techniques:
        for name in technique.names("Classes"):
            by_class.setdefault(name, []).append(f"[{technique.slug}]")
    classes = "\n## Techniques by bottleneck class\n" + text.table(("Class", "Techniques"))
    classes += "".join(text.row((f"`{name}`", ", ".join(links))) for name, links in sorted(by_class.items()))
    targets = "".join(f"[{technique.slug}]: ../../techniques/{technique.slug}.md\n" for technique in techniques)
    return text.whole(head, lines, f"{classes}\n{targets}")


def frameworks(tree: Tree) -> str:
    """Framework pages, each with its source guide and its records."""
    guides = {page.slug: page for page in under(tree, "references/source-guides")}
    lists = set(prs.pr_driven(tree).values())
    page = text.head(
        "Frameworks",
        "Where a framework keeps its kernels, and which of them are worth opening. Records of one repository:",
        "`kernelpilot knowledge search WORDS --repo NAME`.",
    )
    lines = []
    for framework in under(tree, "routing/frameworks"):
        slug = framework.slug
        guide = f"[guide](../../references/source-guides/{slug}.md)" if slug in guides else ""
        records = f"[records](../../references/prs/{slug}.md)" if slug in lists else ""
        lines.append(text.row((f"[{slug}]({slug}.md)", guide, records, line_of(framework))))
    return text.whole(page + text.table(("Framework", "Source guide", "Records", "About")), lines)


def references(tree: Tree) -> str:
    """Source guides and other pages below references, and the lists of records."""
    page = text.head(
        "References",
        f"{len(tree.rows)} changes, {tree.lessons} of them read: [lists by repository and by kind](prs/index.md), and",
        "[open candidates](prs/open-watchlist.md). Everything: `kernelpilot knowledge search WORDS [--repo NAME]`.",
    )
    lines = []
    for other in sorted(under(tree, "references"), key=lambda page: (page.kind != "source-guide", page.path)):
        when = other.lead.get("Read at", "")
        link = f"[{_relative(other, 'references').removesuffix('.md')}]({_relative(other, 'references')})"
        lines.append(text.row((link, other.kind, when, line_of(other))))
    lines += [
        text.row((f"[{_relative(page, 'references')}]({_relative(page, 'references')})", page.kind, "", line_of(page)))
        for page in tree.pages
        if page.path.startswith("references/") and page.slug == "index"
    ]
    return text.whole(page + text.table(("Page", "Kind", "Read at", "About")), lines)


def readme(tree: Tree, old: str, *, where: str) -> str:
    """The hand-written README with its map written anew. Raises Refused where its marks do not stand once each."""
    marks = [line.strip() for line in old.split("\n") if line.strip() in (BEGIN, END)]
    if marks != [BEGIN, END]:
        fix = f"put these two lines where the map belongs, and nothing of it elsewhere: {BEGIN} and {END}"
        raise Refused(f"want the two marks of the map once each, got {len(marks)}", where=where, fix=fix)
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    body = "".join(_folder(tree, *folder) for folder in FOLDERS)
    repos = len({row.repo for row in tree.rows})
    facts = (
        f"{len(tree.rows)} records of {repos} repositories, {tree.lessons} lessons, {len(tree.pages)} pages by hand."
    )
    return f"{before.rstrip()}\n\n{BEGIN}\n{facts}\n{body}\n{END}\n{after.lstrip()}".rstrip() + "\n"


def _folder(tree: Tree, folder: str, name: str, about: str) -> str:
    pages = under(tree, folder)
    if folder == "routing":
        links = ["[topics](routing/topics/index.md)", "[frameworks](routing/frameworks/index.md)"]
    elif folder == "references":
        links = ["[all](references/index.md)", "[records](references/prs/index.md)"]
    else:
        links = [f"[{_relative(page, folder).removesuffix('.md')}]({page.path})" for page in pages]
    return f"\n**{name}/**: {about}.\n\n{_wrapped(links)}\n" if links else ""


def _wrapped(links: list[str]) -> str:
    """Links on lines of at most text.WIDTH characters."""
    lines = [""]
    for number, link in enumerate(links, start=1):
        part = link + ("" if number == len(links) else ",")
        if lines[-1] and len(lines[-1]) + len(part) >= text.WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".strip()
    return "\n".join(lines)
