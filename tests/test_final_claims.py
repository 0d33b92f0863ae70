"""What counts as a claim in a text that people write."""

from __future__ import annotations

import pytest

from kernelpilot_helpers.gate.claims import claims


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("12.3 % faster than before", ["12.3 %"]),
        ("went from 10.5 us to 9us, 1,200 \u00b5s in all", ["10.5 us", "9us", "1,200 \u00b5s"]),
        ("5 ms/call and 1.5e-3 ms", ["5 ms", "1.5e-3 ms"]),
        ("\u03bcs: 7 \u03bcs; nbsp: 8\u00a0%", ["7 \u03bcs", "8\u00a0%"]),
        ("1.5\u00d7 quicker, 2x, 3 times faster", ["1.5\u00d7", "2x", "3 times"]),
        ("reads 812 GB/s, 3.2 TFLOP/s", ["812 GB/s", "3.2 TFLOP/s"]),
        ("between 5-6 % and -3.1%", ["6 %", "-3.1%"]),
        ("the **+4.0 %** of it, (0.5 s)", ["+4.0 %", "0.5 s"]),
        ("a 4096x4096 matrix in 2x4 tiles, x4 unrolled", []),
        ("the 1990s, 2026-11-30T08:00:00Z, commit 12ab34cd, m1_k4096", []),
        ("`12 %` and ``5 us`` in code, v003_2x.1 is a run", []),
        ("an open ` takes 5 us", ["5 us"]),
        ("32 threads, 48 KB of shared memory, 5 sheep, ran 3 times", []),
        ("<!-- expected 5 % --> nothing", []),
        ("see https://example.invalid/a?gain=5%&b=2x", []),
    ],
)
def test_a_claim_is_a_number_with_a_unit_of_measurement(line: str, want: list[str]) -> None:
    """Breaks if prose, shapes, labels, dates, hashes or code count as claims, or a spelling of a unit is missed."""
    assert [claim.text for claim in claims(line)] == want


def test_fenced_blocks_and_comments_hold_no_claim_and_the_line_number_is_the_files() -> None:
    """Breaks if a block is not closed by its own fence, or lines are counted without what was left out."""
    text = "a 1 %\n```\n2 %\n~~~\n3 %\n```\n<!-- 4 %\n5 % -->\n6 %\n"
    assert [(claim.line, claim.text) for claim in claims(text)] == [(1, "1 %"), (9, "6 %")]
