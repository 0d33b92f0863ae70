"""K, R and W: what must be computed, what is correct, on which cases, and how fast is fast enough. Pure.

``contract.toml`` and ``workloads/cases.jsonl`` are parsed strictly: every fault at once, each with its dotted path
and value; what the format knows and this version does not run is refused by name.
"""

from kernelpilot_helpers.contract import cases, lock
from kernelpilot_helpers.contract.cases import dump as dump_cases
from kernelpilot_helpers.contract.cases import parse as parse_cases
from kernelpilot_helpers.contract.cases import timed
from kernelpilot_helpers.contract.document import dump, from_document, parse, read_toml
from kernelpilot_helpers.contract.edge_cases import edges
from kernelpilot_helpers.contract.lock import locked_paths
from kernelpilot_helpers.contract.model import Case, Contract, Lock
from kernelpilot_helpers.contract.owners import CASES, CASES_PATH, CONTRACT, CONTRACT_PATH, LOCK, LOCK_PATH
from kernelpilot_helpers.contract.rules import device
from kernelpilot_helpers.contract.sizes import sizes_of

__all__ = [
    "CASES",
    "CASES_PATH",
    "CONTRACT",
    "CONTRACT_PATH",
    "LOCK",
    "LOCK_PATH",
    "Case",
    "Contract",
    "Lock",
    "cases",
    "device",
    "dump",
    "dump_cases",
    "edges",
    "from_document",
    "lock",
    "locked_paths",
    "parse",
    "parse_cases",
    "read_toml",
    "sizes_of",
    "timed",
]
