"""Mine facts about kernel changes: from clones first, from GitHub's interface for what git lacks.

python scripts/refresh_pr_knowledge.py --repo deepseek-ai/DeepGEMM --clone DeepGEMM.git --since 2024-05-15 --out facts

Without --clone a repository is read over the interface, which needs a token in GITHUB_TOKEN or GH_TOKEN; the token is
never written. A run may be interrupted at any point: the same command goes on, and ends with the same bytes. Exit
codes: 0 done, 1 a fault with its fix, 2 wrong usage, 75 the rate limit or --max-requests was reached (cursor saved).
Needs GitPython and requests (python -m pip install GitPython requests).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from kernelpilot_helpers.errors import KernelPilotError
from mining import api, api_source, emit, mine, repos
from mining.cursor import Cursor
from mining.git_history import Clone

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "knowledge" / "data" / "facts"


def parser() -> argparse.ArgumentParser:
    """The options."""
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--since", type=mine.utc_date, default="2024-05-15", help="UTC date (2024-05-15)")
    out.add_argument("--repo", action="append", metavar="OWNER/NAME", help="again for more; all known ones by default")
    out.add_argument("--clone", type=Path, metavar="DIR", help="local clone of the one --repo, or of a fork of it")
    out.add_argument("--clones", type=Path, metavar="DIR", help="folder of clones called OWNER+NAME or NAME[.git]")
    out.add_argument("--fetch", action="store_true", help="fetch origin first")
    out.add_argument("--open", action="store_true", help="candidates that are still open, too")
    out.add_argument("--direct", action="store_true", help="commits pushed without a pull request, too")
    out.add_argument(
        "--numbers", type=numbers, metavar="LOW-HIGH", help="pull request numbers that count (a clone of a fork)"
    )
    out.add_argument("--dry-run", action="store_true", help="say what would be read; write nothing")
    out.add_argument("--max-requests", type=int, default=4000, help="stop with 75 after so many (4000)")
    out.add_argument("--max-wait", type=float, default=60.0, help="longest sleep for a rate limit, seconds (60)")
    out.add_argument("--api", default="https://api.github.com", help=argparse.SUPPRESS)
    out.add_argument("--out", type=Path, default=OUT, help="folder of the facts (knowledge/data/facts)")
    out.add_argument("--state", type=Path, help="cursor file (OUT/.cursor.sqlite)")
    out.add_argument("--quiet", action="store_true", help="no progress")
    return out


def numbers(text: str) -> tuple[int, int]:
    """``LOW-HIGH``; an empty HIGH is no bound. Raises ValueError for anything else."""
    low, _, high = text.partition("-")
    return int(low), int(high or 0)


def wish_of(options: argparse.Namespace, repo: str) -> mine.Wish:
    """What to mine of one repository."""
    source, most = repos.source_of(repo), 0
    if options.numbers:
        low, most = options.numbers
        source = msgspec.structs.replace(source, least=low, forked="")
    return mine.Wish(source=source, since=options.since, direct=options.direct, open_too=options.open, most=most)


def clone_of(options: argparse.Namespace, source: repos.Source) -> Path | None:
    """The folder of a repository's clone, or of a known fork's."""
    if options.clone:
        return Path(options.clone)
    for name in (source.repo, *source.clones) if options.clones else ():
        plain = name.split("/")[1]
        for folder in (name.replace("/", "+"), f"{plain}.git", plain):
            for found in (options.clones / folder / "repo", options.clones / folder):
                if (found / "HEAD").exists() or (found / ".git").exists():
                    return Path(found)
    return None


def from_clone(folder: Path, wish: mine.Wish, cursor: Cursor, options: argparse.Namespace) -> None:
    """Mine one clone and note its tips."""
    tell = _teller(options)
    clone = Clone(folder)
    try:
        if options.fetch and not options.dry_run:
            clone.fetch(wish.source.branches, pulls=wish.open_too)
        todo = mine.plan(clone, wish, cursor)
        tell(f"{wish.source.repo}: {len(todo.commits)} commits to read, {todo.known} known")
        if not options.dry_run:
            mine.mine(clone, wish, cursor, todo, tell)
            if wish.open_too:
                mine.mine_open(clone, wish, cursor, tell)
            suffix = f" #{wish.source.least}-{wish.most or ''}" if options.numbers else ""
            tips = {f"{name}{suffix}": sha for name, sha in todo.tips}
            known = cursor.place(wish.source.repo, "heads") or {}
            cursor.settle(wish.source.repo, (), (), [("heads", {**known, **tips})])
    finally:
        clone.close()


def _teller(options: argparse.Namespace) -> mine.Tell:
    started = time.monotonic()

    def tell(line: str) -> None:
        if not options.quiet:
            print(f"[{time.monotonic() - started:6.1f} s] {line}", file=sys.stderr, flush=True)

    return tell


def run(options: argparse.Namespace) -> int:
    """Every repository in turn; a rate limit ends the run with what was reached on disk."""
    named = options.repo or [source.repo for source in repos.SOURCES]
    state = None if options.dry_run else options.state or options.out / ".cursor.sqlite"
    github = api.GitHub(base=options.api, max_requests=options.max_requests, max_wait=options.max_wait)
    with Cursor(state) as cursor:
        for repo in named:
            code = one(repo, github, cursor, options)
            if code:
                return code
    return 0


def one(repo: str, github: api.GitHub, cursor: Cursor, options: argparse.Namespace) -> int:
    """One repository, from its clone or over the interface; 75 where a limit cut it short."""
    wish, tell, code = wish_of(options, repo), _teller(options), 0
    folder = clone_of(options, wish.source)
    try:
        if folder:
            from_clone(folder, wish, cursor, options)
        elif not github.token:
            print(f"{repo}: no clone and no GITHUB_TOKEN, skipped", file=sys.stderr)
            return 0
        elif options.dry_run:
            tell(f"{repo}: pull requests since {wish.since} over {options.api}")
        else:
            api_source.mine(github, wish, cursor, tell)
    except api.OutOfBudget as limit:
        print(f"{repo}: {limit}", file=sys.stderr)
        code = limit.exit_code
    if not options.dry_run:
        told = emit.write(options.out, repo, cursor.rows(repo, options.since), cursor.place(repo, "heads") or {})
        print(f"{repo}: {told['records']} records, {told['selected_prs']} selected, tiers {told['tiers']}")
    return code


def main(arguments: list[str] | None = None) -> int:
    """Exit code of one run."""
    options = parser().parse_args(arguments)
    if options.clone and len(options.repo or ()) != 1:
        parser().error("--clone needs exactly one --repo")
    try:
        return run(options)
    except KernelPilotError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the same command goes on", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
