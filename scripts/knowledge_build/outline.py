"""index.json: every page with what it is about, its size and sum."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from kernelpilot_helpers import records
from kernelpilot_helpers.knowledge import page_parts
from knowledge_build.tree import Tree


def outline(tree: Tree, pages: Mapping[str, bytes]) -> bytes:
    """The document; ``pages`` by path, written by hand or generated."""
    rows = [_page(path, data) for path, data in sorted(pages.items())]
    kinds = Counter(str(row["kind"]) for row in rows)
    return records.dump(
        {
            "format": "kernelpilot.knowledge-index",
            "version": 1,
            "corpus": {
                "records": len(tree.rows),
                "lessons": tree.lessons,
                "heads": {repo: dict(sorted(told.heads.items())) for repo, told in sorted(tree.repos.items())},
            },
            "counts": {kind: kinds[kind] for kind in sorted(kinds)},
            "pages": rows,
        }
    )


def _page(path: str, data: bytes) -> dict[str, object]:
    page = page_parts.parse(path, data.decode("utf-8"))
    return {
        "path": path,
        "kind": page.kind,
        "title": page.title,
        "mechanisms": list(page.names("Mechanisms")),
        "families": list(page.names("Families")),
        "archs": [f"sm{number}" for number in re.findall(r"\bsm_?(\d+)", page.lead.get("Architectures", ""))],
        "types": list(page.names("Types")),
        "classes": list(page.names("Classes")),
        "evidence": list(page.evidence),
        "bytes": len(data),
        "sha256": records.sha256(data),
    }
