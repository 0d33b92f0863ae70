"""How criteria are found in a plan and named in the tables: every ordinary spelling counts, prose does not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlcr import criteria, forms, tracker
from rlcr.criteria import Ids
from rlcr.forms import criteria_of

PLAN = "# P\n\n## Goal\n\nx\n\n## Acceptance Criteria\n\n{}\n"
DONE = "### Completed and Verified\n\n| AC | Task | Evidence |\n|---|---|---|\n"
FIVE = ("AC-1", "AC-2", "AC-3", "AC-4", "AC-5")


# --- in a plan -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mark",
    [
        "- AC-{}: a", "* **AC-{}**: a", "+ AC-{}: a", "\u2022 AC-{}: a", "\u2013 AC-{}: a", "(AC-{}) a",
        "\u2705 AC-{}",
        "<li>AC-{}: a</li>", "<td>AC-{}</td>", "| AC-{} | a |", "| {} | AC-{} | a |", "| {} | **AC-{}** |", "AC.{}: a",
        "- AC\u2011{}: a", "- AC\u2013{}: a", "{}. AC-{}: a", "{}) AC-{}: a", "({}) AC-{}", "- [ ] AC-{}",
        "- [x] AC-{}",
        "### AC-{}: a", "#### `AC-{}`", "> AC-{} a", "    - AC-{}: a", "- __AC-{}__: a", "- [AC-{}](#a)", "ac {}: a",
        "AC0{}: a", "AC-{}\u2028more", "- AC-{}: a\r",
    ],
)  # fmt: skip
def test_a_criterion_opens_its_line_behind_any_ordinary_mark(mark: str) -> None:
    # Breaks when a plan in an ordinary style loses its criteria, and with them the tracker rule and the review.
    lines = (mark.replace("{}", str(n)) for n in (1, 2, 3))
    assert criteria_of(PLAN.format("\n".join(lines))) == ("AC-1", "AC-2", "AC-3")


@pytest.mark.parametrize(
    "line",
    [
        "as AC-3 says", "- unlike AC-3, this", "the rest (AC-3) too", "5 AC-3 runs", "| fast | AC-3 |", "x AC-3",
        "- MAC-3 address", "AC-3x2 cores", "AC-", "AC-III", "- AC-123456789012: no number", "<!-- AC-3 is gone -->",
    ],
)  # fmt: skip
def test_prose_that_mentions_an_id_is_no_criterion(line: str) -> None:
    assert criteria_of(PLAN.format(f"- AC-1: a\n{line}\n- AC-2: b")) == ("AC-1", "AC-2")


def test_parts_have_numbers_or_a_letter() -> None:
    text = "- AC-1a: x\n- AC-1b: y\n- AC-02.01: z\n- AC-2.1: z\n- AC-3"
    assert criteria_of(PLAN.format(text)) == ("AC-1a", "AC-1b", "AC-2.1", "AC-3")
    by = Ids(map(criteria.place_of, ("AC-1", "AC-2.1", "AC-7b")))
    told = {
        one: criteria.covered(one, by) for one in ("AC-1a", "AC-01.4", "AC-2.1c", "AC-2", "AC-2.10", "AC-7", "AC-10")
    }
    assert told == {
        "AC-1a": True, "AC-01.4": True, "AC-2.1c": True, "AC-2": False, "AC-2.10": False, "AC-7": False, "AC-10": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ("```x``` is code", ""),
        ("```\n~~~\n```", ""),
        ("~~~ a `b`\n```\n- AC-9: no\n~~~", "AC-9"),
        ("````\n```\n- AC-9: no\n````", "AC-9"),
        ("- ```\n  - AC-9: no\n  ```", "AC-9"),
        ("```py\n- AC-9: no\n``` py\n- AC-8: no\n```  ", "AC-9"),
        ("```", ""),  # a stray fence
        ("~~~\n~~", ""),
    ],
)
def test_fences_end_where_commonmark_ends_them(before: str, inside: str) -> None:
    # Breaks when a sign more or less turns all that follows inside out.
    text = PLAN.format(f"{before}\n- AC-1: a\n- AC-2: b")
    assert criteria_of(text) == ("AC-1", "AC-2")
    assert (inside in criteria.loose(text, ("AC-1", "AC-2"))) == bool(inside), "a fenced criterion is said aloud"
    assert criteria_of(f"# P\n\n{before}\n\n## Acceptance Criteria\n\n- AC-1: a\n") == ("AC-1",)


def test_every_section_on_criteria_counts_and_one_without_ids_hides_none() -> None:
    first = "# P\n\n## Requirements\n\nPython 3.\n\n## Acceptance Criteria\n\n- AC-1: a\n\n## Notes\n\nAC-8 no\n"
    assert criteria_of(first) == ("AC-1",)
    assert "Python 3.\n\n- AC-1: a\n\n---" in tracker.fixed(first)
    two = "## Acceptance Criteria: speed\n\n- AC-1: a\n\n## 4. Acceptance Criteria: safety\n\n+ AC-2a: b\n"
    assert criteria_of(two) == ("AC-1", "AC-2a") and "+ AC-2a: b" in tracker.fixed(two)
    apart = "## Requirements\n\nPython 3.\n\n## What must hold\n\n- AC-1: a\n"
    assert criteria_of(apart) == ("AC-1",) and "> - AC-1: a\n" in tracker.fixed(apart)
    bare = "## Acceptance Criteria\n\n- twice as fast\n\n## Other\n\nsee AC-4\n"
    assert criteria_of(bare) == () and "### Acceptance Criteria\n\n- twice as fast\n\n---" in tracker.fixed(bare)
    assert forms.section("##  **Goal**\n\nx\n\n## Goal\n\ny\n", "Goal") == "x"


def test_what_is_named_and_is_no_criterion_is_said() -> None:
    # Breaks when a plan loses a criterion without a word, or when every mention of one is called out.
    text = PLAN.format("- AC-1: a, see AC-1.2\n- AC-2.1: b (of AC-2)\n- needs AC-7 and AC9\n\n```\nsee AC-5\n```")
    assert list(tracker.told(text)) == [
        "Criteria: 2 (AC-1, AC-2.1)",
        "Note: AC-7, AC-9 are named and are no criterion line",
        "      a criterion opens a line below '## Acceptance Criteria', outside fences: - AC-7: ...",
    ]
    assert list(tracker.told(PLAN.format("\n".join(f"- {ac}" for ac in FIVE)))) == ["Criteria: 5 (AC-1 to AC-5)"]
    assert next(tracker.told("# P\n\nfast\n")).startswith("Criteria: none")
    many = tracker.told(PLAN.format(" ".join(f"AC-{n}" for n in range(2, 90, 2))))
    assert "AC-42 and 23 more are named" in list(many)[1]


# --- in a cell -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "AC-1 to AC-5", "AC-1\u2013AC-5", "AC-1\u2014AC-5", "AC-1 through AC-5", "AC-1...AC-5", "AC-1\u2026AC-5",
        "AC-1..5",
        "AC-1/2/3/4/5", "AC-1, 2, 3, 4, 5", "AC-1, 2, 3-5", "ACs 1-5", "ACs: 1 to 5", "AC 1-5", "ac-1 TO ac-5",
        "AC\u20111 to AC\u20115", "AC-01 to AC-005", "AC-1 \u2192 AC-5", "AC-1 -> AC-5", "AC-1 - AC-5 (all)", "AC1-AC5",
        "`AC-1` to `AC-5`", "**AC-1** to **AC-5**", "_AC-1_ to _AC-5_", "[AC-1](#x) - [AC-5](#y)", "AC-1 to 5",
        "AC-1 &ndash; AC-5", "AC-1&nbsp;to&nbsp;AC-5", "AC-1 and 2, AC-3 & 4 and AC-5", "AC-1 to AC-3; AC-4<br>AC-5",
        "AC-1 to 5, all of them",
    ],
)  # fmt: skip
def test_an_honest_spelling_of_five_ids_names_five(cell: str) -> None:
    assert tracker.unnamed(f"{DONE}| {cell} | t | gate |\n", (*FIVE, "AC-6")) == ("AC-6",)


@pytest.mark.parametrize(
    ("cell", "absent"),
    [
        ("AC-1 - 5 tests", "AC-2 AC-3 AC-4 AC-5"),
        ("AC-1 \u2013 5 tests", "AC-2 AC-3 AC-4 AC-5"),
        ("AC-1, 2 cases", "AC-2 AC-3 AC-4 AC-5"),
        ("AC-1 to 5 %", "AC-2 AC-3 AC-4 AC-5"),
        ("AC-5 to AC-1", "AC-2 AC-3 AC-4"),
        ("AC-1 to AC-502", "AC-2 AC-3 AC-4 AC-5"),  # nobody lists so many: the ends alone
        ("1 to 5", "AC-1 AC-2 AC-3 AC-4 AC-5"),
        ("all", "AC-1 AC-2 AC-3 AC-4 AC-5"),
        ("MAC-1 to MAC-5", "AC-1 AC-2 AC-3 AC-4 AC-5"),
        ("AC-1.1 to AC-5.1", "AC-1 AC-2 AC-3 AC-4 AC-5"),
    ],
)
def test_what_only_looks_like_a_range_names_what_it_says(cell: str, absent: str) -> None:
    assert tracker.unnamed(f"{DONE}| {cell} | t | gate |\n", FIVE) == tuple(absent.split())


def test_parts_and_padded_numbers_are_compared_as_numbers() -> None:
    parts = ("AC-1.1", "AC-1.2", "AC-1.3")
    for cell in ("AC-1.1 to AC-1.3", "AC-1", "AC-1.1-1.3", "AC-1.1..AC-1.3", "AC-1.1 to 3", "AC-01.01 - AC-01.03"):
        assert tracker.unnamed(f"{DONE}| {cell} | t | gate |\n", (*parts, "AC-2")) == ("AC-2",), cell
    assert tracker.unnamed(f"{DONE}| AC-1a to AC-1c | t | gate |\n", ("AC-1b", "AC-1d")) == ("AC-1d",)
    assert tracker.unnamed(f"{DONE}| AC-1, AC-02 | t | gate |\n", ("AC-01", "AC-2", "AC-003")) == ("AC-003",)


# --- tables ----------------------------------------------------------------------------------------------------------

ROW = "| AC-1 to AC-5 | t | gate |\n"


@pytest.mark.parametrize(
    "tables",
    [
        DONE.replace("and", "&") + ROW,
        DONE.replace("and", "&amp;") + ROW,
        DONE.replace("### C", "### 3. C") + ROW,
        DONE.replace("### Completed and Verified", "## **COMPLETED and verified** (all)") + ROW,
        "### Completed and Verified\n| Criteria | AC | Evidence |\n|---|---|---|\n| AC-9 | AC-1 to AC-5 | gate |\n",
        "### Completed and Verified\n\n| AC text | AC | Evidence |\n|---|---|---|\n| fast | AC-1 to AC-5 | gate |\n",
        DONE + ROW.replace("| t |", "| a\u2028b\x0bc\x0cd |"),
        "\ufeff" + (DONE + ROW).replace("\n", "\r\n"),
        DONE.replace("### C", "```x``` is code\n\n### C") + ROW,
        "```\nnever closed\n\n" + DONE + ROW,
    ],
)
def test_an_honest_table_is_read(tables: str) -> None:
    assert tracker.unproved(tables, FIVE) == ((), ())


def test_a_table_without_a_header_is_none() -> None:
    # Breaks when rows below other words are read under the header of another table.
    second = f"{DONE}| AC-1 to AC-3 | t | gate |\n\n| AC-4 | t | gate |\n\nAnd more:\n\n| AC-5 | t | gate |\n"
    assert tracker.unproved(second, FIVE) == (("AC-5",), ())


def test_the_remedy_names_the_heading_and_the_column_that_were_not_found() -> None:
    # Breaks when a worker reads "no row names AC-1" beside a table full of rows.
    what, fix = tracker.held(
        "### Done\n\n| AC | Evidence |\n|---|---|\n| AC-1 | run 4 |\n", ("AC-1",), final=False
    ) or ("", "")
    assert what == "no row names AC-1" and fix.endswith(
        "for each; no heading Active Tasks was found; no heading Completed and Verified was found; "
        "no heading Explicitly Deferred was found"
    )
    wrong = "### Completed and Verified\n\n| What | Shown by |\n|---|---|\n| AC-1 | run 4 |\n### Explicitly Deferred\n"
    what, fix = tracker.held(wrong, ("AC-1",), final=True) or ("", "")
    assert what == "neither completed nor deferred: AC-1" and fix.endswith(
        "; Completed and Verified has no column whose heading says AC; Completed and Verified has no column Evidence"
    )
    what, fix = tracker.held(f"{DONE}| AC-1 | t | done |\n### Explicitly Deferred\n", ("AC-1",), final=True) or ("", "")
    assert what == "no evidence or justification: AC-1" and "evidence names a path, version, run, command" in fix
    assert tracker.held(f"{DONE}| AC-1 | t | run 4 |\n", ("AC-1",), final=True) is None


def test_rows_beyond_the_cap_are_named_as_such() -> None:
    long = DONE + "| AC-1 | t | gate |\n" * 4000 + "| AC-2 | t | gate |\n"
    what, fix = tracker.held(long, ("AC-1", "AC-2"), final=True) or ("", "")
    assert what == "neither completed nor deferred: AC-2"
    assert "Completed and Verified is too long: nothing after its row 4000 is looked at" in fix
    wide = DONE + f"| {'AC-1, ' * 300} | t | gate |\n" * 100 + "| AC-2 | t | gate |\n"
    assert "too long" in (tracker.held(wide, ("AC-2",), final=False) or ("", ""))[1]


# --- time ------------------------------------------------------------------------------------------------------------

RANGES = " ".join("AC-1 to AC-501" for _ in range(130))[:1990]
DISTINCT = "".join(
    f"| {' '.join(f'AC-{k * 997 + n} to AC-{k * 997 + n + 499}' for k in range(70))} | t | e |\n" for n in range(2500)
)
SLOW: dict[str, Callable[[], object]] = {
    "stars": lambda: criteria_of(PLAN.format("*" * 40_000)),
    "brackets": lambda: criteria_of(PLAN.format("[" * 40_000 + "\n" + "`" * 40_000 + "\n" + "<" * 40_000)),
    "numbers": lambda: criteria_of(PLAN.format("1. " * 40_000 + "\n" + "AC-1." * 40_000)),
    "fences": lambda: criteria_of(PLAN.format("".join("`" * (3 + n % 300) + "x\n" for n in range(1500)))),
    "mentions": lambda: list(tracker.told(PLAN.format("AC-7 " * 50_000))),
    "headings": lambda: forms.sections("## " + "*" * 200_000 + "\n## x\n" * 20_000, forms.CRITERIA),
    "lines": lambda: tracker.held(DONE + "| AC-1 to AC-5 | t | - |\n" * 100_000, FIVE, final=True),
    "ranges": lambda: tracker.held(DONE + f"| {RANGES} | t | - |\n" * 2000, ("AC-900",), final=True),
    "spans": lambda: tracker.held(DONE + DISTINCT[: 1 << 22], ("AC-900",), final=False),
    "pipes": lambda: tracker.held(DONE + "|" * (1 << 22), FIVE, final=False),
    "cells": lambda: tracker.held(DONE + ("|" * 19_000 + "\n") * 200, FIVE, final=False),
    "ligatures": lambda: tracker.held(DONE + f"| AC-1 | t | {chr(0xFDFA) * 2000} |\n" * 600, FIVE, final=True),
    "comments": lambda: tracker.held(DONE + "<!--" * (1 << 20), FIVE, final=False),
    "mutable": lambda: tracker.renewed("## MUTABLE SECTION\n" * 200_000, [PLAN, PLAN + "x"]),
}


@pytest.mark.parametrize("name", SLOW)
def test_no_page_is_slow(name: str) -> None:
    # Breaks when a pattern goes back over a long line, or when a tracker of 4 MiB is read row by row to its end.
    begun = time.process_time()
    SLOW[name]()
    assert time.process_time() - begun < 2.5, "a second, and room for a slow machine"


# --- all of it together ----------------------------------------------------------------------------------------------

MARKS = (
    "- AC-{}: a",
    "+ **AC-{}**",
    "\u2022 AC-{} a",
    "| {} | AC-{} | a |",
    "1. AC-{}",
    "<li>AC-{}</li>",
    "(AC-0{}) a",
)
LISTS = ("AC-{}", "`AC-{}`", "**AC-0{}**", "ac {}", "[AC-{}](#a)", "AC\u2011{}")
TO = (" to ", "-", "\u2013", " \u2014 ", "..", "...", " \u2192 ", " through ")


@st.composite
def trackers(draw: st.DrawFn) -> tuple[str, tuple[str, ...], list[tuple[str, list[int]]]]:
    """A plan, its ids, and cells that name all of them: alone, listed or as ranges."""
    numbers = sorted(draw(st.sets(st.integers(1, 60), min_size=1, max_size=25)))
    lines = [draw(st.sampled_from(MARKS)).replace("{}", str(n)) for n in numbers]
    cells: list[tuple[str, list[int]]] = []
    rest = list(numbers)
    while rest:
        size = draw(st.integers(1, 6))
        part, rest = rest[:size], rest[size:]
        spell = draw(st.sampled_from(LISTS))
        if len(part) > 1 and part[-1] - part[0] == len(part) - 1 and draw(st.booleans()):
            second = draw(st.sampled_from((spell, "{}")))
            cell = spell.format(part[0]) + draw(st.sampled_from(TO)) + second.format(part[-1])
        else:
            comma = draw(st.sampled_from((", ", ",", " / ", "; ", " and ")))
            words = [spell.format(n) if k == 0 or draw(st.booleans()) else str(n) for k, n in enumerate(part)]
            cell = comma.join(words)
        cells.append((cell, part))
    return PLAN.format("\n".join(lines)), tuple(f"AC-{n}" for n in numbers), cells


@given(trackers(), st.randoms(use_true_random=False))
def test_a_filled_page_names_all_and_a_lost_row_exactly_its_ids(
    made: tuple[str, tuple[str, ...], list[tuple[str, list[int]]]], chance: random.Random
) -> None:
    plan, ids, cells = made
    assert criteria_of(plan) == ids
    spots = [("Active Tasks", "| t | {} | open | | | |"), ("Completed and Verified", "| {} | t | 0 | 0 | |"),
             ("Explicitly Deferred", "| t | {} | 0 | | |")]  # fmt: skip

    def page(rows: list[tuple[str, list[int]]]) -> str:
        text = tracker.page(plan)
        for cell, _ in rows:
            title, row = chance.choice(spots)
            head, mark, rest = text.partition(f"# {title}\n")
            top, rule, tail = rest.partition("---|\n")
            text = head + mark + top + rule + row.format(cell) + "\n" + tail
        return tracker.below(text, plan)

    assert tracker.unnamed(page(cells), ids) == ()
    lost = chance.randrange(len(cells))
    assert tracker.unnamed(page(cells[:lost] + cells[lost + 1 :]), ids) == tuple(f"AC-{n}" for n in cells[lost][1])
