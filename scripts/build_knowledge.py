"""Write the generated pages of the knowledge tree: lists of records, indexes, the README's map, index.json.

python scripts/build_knowledge.py [--knowledge DIR] [--check]

Reads data/facts, data/lessons and the lead tables of the pages below DIR; needs no network. The same tree gives the
same bytes. --check writes nothing and names what is out of step. Exit codes: 0 done, 1 out of step or a fault, 2 wrong
usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernelpilot_helpers import records
from kernelpilot_helpers.errors import KernelPilotError, Refused
from kernelpilot_helpers.knowledge import page_parts
from knowledge_build import outline, prs, routing, tree
from knowledge_build.topics import TOPICS

ROOT = Path(__file__).resolve().parents[1]
README = "README.md"
EMPTY = f"# Knowledge\n\n| Field | Value |\n| --- | --- |\n| Kind | index |\n\n{routing.BEGIN}\n{routing.END}\n"


def made(folder: Path) -> dict[str, bytes]:
    """Path below the folder -> bytes of every generated file. Raises KernelPilotError."""
    found = tree.read(folder)
    out: dict[str, str] = {}
    for repo, name in prs.pr_driven(found).items():
        out |= {f"references/prs/{file}": page for file, page in prs.of_repo(found, repo, name).items()}
    out |= {f"references/prs/by-topic/{slug}.md": prs.of_topic(found, slug, topic) for slug, topic in TOPICS.items()}
    out["references/prs/open-watchlist.md"] = prs.open_watchlist(found)
    out["references/prs/index.md"] = prs.index(found)
    out["references/index.md"] = routing.references(found)
    out["routing/topics/index.md"] = routing.topics(found)
    out["routing/frameworks/index.md"] = routing.frameworks(found)
    readme = folder / README
    old = tree.text_of(readme) if readme.is_file() else EMPTY
    out[README] = routing.readme(found, old, where=str(readme))
    files = {path: text.encode() for path, text in out.items()}
    by_hand = {page.path: page.text.encode() for page in found.pages}
    return {**files, "index.json": outline.outline(found, {**by_hand, **files})}


def left_over(folder: Path, files: dict[str, bytes]) -> list[str]:
    """Pages that an earlier run wrote and this one does not: marked as such, at a path that only this script writes.

    Raises BadRecord for a page that cannot be read.
    """
    return [page.path for page in tree.pages(folder) if page.generated and page.path not in files]


def refuse_by_hand(folder: Path, stale: list[str]) -> None:
    """Nothing that somebody wrote is written over. Raises Refused."""
    for name in stale:
        path = folder / name
        if name in (README, "index.json") or not path.is_file():
            continue
        if not page_parts.parse(name, tree.text_of(path)).marked:
            what = "written by hand, where this script writes: without its mark below the lead table"
            raise Refused(what, where=str(path), fix=f"mv {path} elsewhere, or rm {path}")


def run(folder: Path, *, check: bool) -> int:
    """Write, or say what would be written. Raises KernelPilotError."""
    files = made(folder)
    stale = [name for name, data in sorted(files.items()) if not _same(folder / name, data)]
    gone = left_over(folder, files)
    if check:
        for name in stale:
            print(f"{folder / name}: out of step")
        for name in gone:
            print(f"{folder / name}: nothing makes it any more")
        if stale or gone:
            print(f"  fix: python scripts/build_knowledge.py --knowledge {folder}")
        return 1 if stale or gone else 0
    refuse_by_hand(folder, stale)
    for name in stale:
        records.write_bytes(folder / name, files[name])
    for name in gone:
        (folder / name).unlink()
    print(f"{len(files)} files, {len(stale)} written, {len(gone)} removed")
    return 0


def _same(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def main(arguments: list[str] | None = None) -> int:
    """Exit code of one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--knowledge", type=Path, default=ROOT / "knowledge", metavar="DIR")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when something is out of step")
    options = parser.parse_args(arguments)
    try:
        return run(options.knowledge, check=options.check)
    except KernelPilotError as error:
        print(error, file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
