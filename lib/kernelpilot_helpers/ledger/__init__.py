"""The history of a task: lineage rows are the truth, the Markdown ledgers are views of them.

``check`` says where a view, a row or the chain is not what the rows say; nothing is ever repaired by guessing.
"""

from kernelpilot_helpers.ledger.check import check
from kernelpilot_helpers.ledger.ideas import (
    IDEAS,
    IDEAS_PATH,
    Idea,
    add,
    append_idea,
    idea_key,
    load_ideas,
    parse_ideas,
)
from kernelpilot_helpers.ledger.model import Interval, Kind, Motivation, Provenance, Row, Status, Verdict
from kernelpilot_helpers.ledger.older import IMPORTED, import_old
from kernelpilot_helpers.ledger.provenance import provenance_faults
from kernelpilot_helpers.ledger.rows import (
    BASELINE,
    DISPATCH,
    LINEAGE,
    LINEAGE_PATH,
    TUNE,
    append,
    best,
    by_tree,
    find,
    load,
    next_version,
    number_of,
)
from kernelpilot_helpers.ledger.views import (
    ATTEMPTS_PATH,
    OPTIMIZATIONS_PATH,
    SOURCE_IDEAS_PATH,
    BenchFacts,
    baseline_us,
    confidence,
    facts_of,
    interval,
    row_facts,
    views,
)

__all__ = [
    "ATTEMPTS_PATH",
    "BASELINE",
    "DISPATCH",
    "IDEAS",
    "IDEAS_PATH",
    "IMPORTED",
    "LINEAGE",
    "LINEAGE_PATH",
    "OPTIMIZATIONS_PATH",
    "SOURCE_IDEAS_PATH",
    "TUNE",
    "BenchFacts",
    "Idea",
    "Interval",
    "Kind",
    "Motivation",
    "Provenance",
    "Row",
    "Status",
    "Verdict",
    "add",
    "append",
    "append_idea",
    "baseline_us",
    "best",
    "by_tree",
    "check",
    "confidence",
    "facts_of",
    "find",
    "idea_key",
    "import_old",
    "interval",
    "load",
    "load_ideas",
    "next_version",
    "number_of",
    "parse_ideas",
    "provenance_faults",
    "row_facts",
    "views",
]
