"""``artifacts/FINAL.md``, the report's second page: rendered from the evidence, checked against it by rule 31.

The text itself is made in ``gate``, which must be able to make it again and may not import this package.
"""

from kernelpilot_helpers.gate.final_facts import FINAL_PATH, JOURNAL_PATH, FinalFacts
from kernelpilot_helpers.gate.final_rules import final_facts
from kernelpilot_helpers.gate.final_text import HEADINGS, check_final, final_text

__all__ = ["FINAL_PATH", "HEADINGS", "JOURNAL_PATH", "FinalFacts", "check_final", "final_facts", "final_text"]
