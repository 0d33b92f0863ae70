"""The committed corpus under judged questions: what `scripts/retrieval_benchmark.py` scores, with its bars."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from kernelpilot_helpers import knowledge

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = (
    ("knowledge_queries.jsonl", 38, {"ndcg10": 0.62, "hit5": 0.92, "symptom_ndcg10": 0.55}),
    ("knowledge_queries_pooled.jsonl", 36, {"ndcg10": 0.68, "hit5": 0.92, "symptom_ndcg10": 0.62}),
    ("knowledge_queries_fresh.jsonl", 32, {"ndcg10": 0.55, "hit5": 0.90, "symptom_ndcg10": 0.48}),
    ("knowledge_queries_unseen.jsonl", 26, {"ndcg10": 0.51, "hit5": 0.84, "symptom_ndcg10": 0.42}),
    ("knowledge_queries_late.jsonl", 36, {"ndcg10": 0.46, "hit5": 0.88, "symptom_ndcg10": 0.35}),
)
"""Questions, how many, and figures that the committed tree keeps with a margin of about a twelfth.

The unseen ones were never looked at while ranking and vocabulary were made: look at none of them when you change these.
"""


def test_the_committed_tree_is_sound() -> None:
    """Breaks when facts, lessons or pages hold what `kernelpilot knowledge check` promises to refuse."""
    source = knowledge.read(ROOT / "knowledge")
    assert knowledge.check(source) == []
    assert knowledge.check_pages(source) == []


@pytest.mark.parametrize(("name", "count", "least"), QUESTIONS)
def test_judged_questions_stay_above_their_bars(
    name: str, count: int, least: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when a change of corpus, vocabulary or ranking loses what people ask for."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    benchmark = importlib.import_module("retrieval_benchmark")
    found = benchmark.judged(knowledge.read(ROOT / "knowledge"), ROOT / "tests" / name, table=False)
    assert found["questions"] == count
    for figure, bar in least.items():
        assert found[figure] >= bar, (figure, found)


def test_measured_rows_of_the_symptom_pages_are_those_of_the_file() -> None:
    """Breaks when the micro-kernels were measured anew and a page still prints the old times."""
    times = json.loads((ROOT / "docs/measurements/digest-benchmark.json").read_text())["times"]
    row = re.compile(r"^\| `tests/gpu/microkernels/(\w+)\.cu`[^|]*\|[^|]*\| ([\d.]+) \| ([\d.]+|-) \|", re.M)
    seen = 0
    for page in sorted((ROOT / "knowledge" / "symptoms").glob("*.md")):
        for name, before, after in row.findall(page.read_text()):
            measured = {f"{arm['us']:.1f}" for arm in times[name]["arms"].values()}
            assert {before, after} - {"-"} <= measured, (page.name, name, measured)
            seen += 1
    assert seen >= 20
