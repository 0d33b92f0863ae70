"""Two reports: what is called faster, slower, the same, or not comparable, and where the time went."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from kernelpilot_helpers.ncu import canonical, diff, examine, facts_file, render_diff
from kernelpilot_helpers.ncu.change import OWNER, Change, Diff, Pair
from kernelpilot_helpers.ncu.report import Code, Report, Series, Session
from kernelpilot_helpers.records import parse
from tests import ncu_made as made

STALL = f"{made.STALLED}long_scoreboard_per_issue_active.ratio"


def change(found: Diff | Pair, role: str) -> Change:
    changes = (found.time,) if isinstance(found, Diff) else (*found.changes, *found.stalls)
    return next(c for c in changes if c.role == role)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "delta"),
    [
        ((100_000.0,), (90_000.0,), "improved", -0.1),
        ((100_000.0,), (110_000.0,), "regressed", 0.1),
        ((100_000.0,), (98_500.0,), "within_noise", -0.015),
        ((100_000.0,), (101_900.0,), "within_noise", 0.019),
        # three launches that differ by 12 % around their median say that 5 % is nothing
        ((95_000.0, 100_000.0, 107_000.0), (90_000.0, 95_000.0, 101_000.0), "within_noise", -0.05),
        # and three that differ by 0.2 % that 1 % is something
        ((99_900.0, 100_000.0, 100_100.0), (98_900.0, 99_000.0, 99_100.0), "improved", -0.01),
        # a tick of the clock is 3.2 % of 1 us
        ((1_000.0,), (1_030.0,), "within_noise", 0.03),
    ],
)
def test_time_is_the_truth_and_noise_is_measured_where_it_can_be(
    before: tuple[float, ...], after: tuple[float, ...], verdict: str, delta: float
) -> None:
    """Breaks when a change inside the noise is a gain, or one beyond it is not."""
    found = diff.compare(made.times(*before), made.times(*after))
    assert found.verdict == verdict
    assert found.time.delta == pytest.approx(delta)


def test_noise_that_is_given_wins() -> None:
    """Breaks when --noise is read as percent, or ignored beside three launches."""
    before, after = made.times(100_000.0, 100_000.0, 100_000.0), made.times(97_000.0, 97_000.0, 97_000.0)
    assert diff.compare(before, after).verdict == "improved"
    found = diff.compare(before, after, noise=0.05)
    assert (found.verdict, found.noise.source, found.noise.share) == ("within_noise", "given", 0.05)


def test_the_same_class_and_no_gain_is_a_plateau() -> None:
    """Breaks when a step that won nothing is not told from one that moved the limiter or won."""
    before = made.times(100_000.0)
    assert diff.compare(before, made.times(99_500.0)).plateau
    assert not diff.compare(before, made.times(90_000.0)).plateau
    tensor = {f"sm__pipe_tensor_cycles_active{made.PCT}": 80.0, f"sm__throughput{made.PCT}": 85.0}
    shifted = diff.compare(before, made.times(99_500.0, metrics=tensor))
    assert (shifted.pairs[0].shifted, shifted.plateau) == (True, False)


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("gpu", "GPU B", "GPU: GPU A against GPU B"),
        ("clocks", "base", "clock control: none against base"),
        ("ncu", "2024.1.0.0", "major version of ncu: 2025 against 2024"),
        ("cache", "none", "cache control: all against none"),
        ("replay", "application", "replay mode: kernel against application"),
    ],
)
def test_other_conditions_are_not_compared(field: str, value: str, reason: str) -> None:
    """Breaks when a profile of another GPU, clock, profiler, cache or replay is called a gain."""
    before = made.times(100_000.0)
    after = dataclasses.replace(made.times(50_000.0), session=dataclasses.replace(before.session, **{field: value}))
    found = diff.compare(before, after)
    assert (found.verdict, found.plateau) == ("not_comparable", False)
    assert reason in found.reasons


def test_what_a_report_does_not_say_forbids_nothing_and_is_said() -> None:
    """Breaks when an export without a session page can never be compared, or the gap is not told."""
    silent = dataclasses.replace(made.times(50_000.0), session=Session())
    found = diff.compare(made.times(100_000.0), silent)
    assert found.verdict == "improved"
    assert found.flags == (
        "not seen in both reports: GPU, clock control, major version of ncu, cache control, replay mode",
    )


def test_another_size_is_not_a_faster_kernel() -> None:
    """Breaks when a smaller problem passes as a gain, or a coarser grid of the same work is refused."""
    before = made.times(100_000.0)
    half = {
        "smsp__inst_executed.sum": 500_000,
        "dram__bytes_read.sum": 250_000_000,
        "dram__bytes_write.sum": 250_000_000,
    }
    smaller = diff.compare(before, made.times(50_000.0, grid="(500, 1, 1)", metrics=half))
    assert smaller.verdict == "not_comparable"
    assert smaller.reasons[0].startswith("sizes: grid (1000, 1, 1) against (500, 1, 1)")
    coarser = diff.compare(before, made.times(90_000.0, grid="(500, 1, 1)"))
    assert (coarser.verdict, coarser.pairs[0].matched) == ("improved", "name")


def test_missing_durations_are_not_comparable() -> None:
    """Breaks when a missing time is 0 or the same."""
    found = diff.compare(made.times(100_000.0), made.report([made.launch(None)]))
    assert (found.verdict, found.time.candidate) == ("not_comparable", None)
    assert found.reasons == ("a duration is missing: without it nothing can be called faster",)
    neither = made.report([made.launch(None)])
    assert diff.compare(neither, neither).verdict == "not_comparable"


def test_clock_and_cycles_are_told_apart() -> None:
    """Breaks when a faster clock is taken for a faster kernel without a word."""
    cycles, clock = "gpc__cycles_elapsed.max", "gpc__cycles_elapsed.avg.per_second"
    before = made.times(100_000.0, metrics={cycles: 150_000, clock: 1.5e9})
    found = diff.compare(before, made.times(83_333.0, metrics={cycles: 150_000, clock: 1.8e9})).pairs[0]
    assert change(found, "cycles").delta == 0.0
    assert change(found, "clock").delta == pytest.approx(0.2, rel=1e-3)
    assert "the clock changed more than the cycles" in change(found, "clock").says


def test_stalls_are_compared_in_cycles_not_in_shares() -> None:
    """Breaks when the ratio per instruction alone is compared: half the instructions are half the wait."""
    issued = "smsp__inst_issued.sum"
    before = made.times(100_000.0, metrics={STALL: 4.0, issued: 1_000_000})
    found = diff.compare(before, made.times(60_000.0, metrics={STALL: 4.0, issued: 500_000})).pairs[0]
    stall = change(found, "long_scoreboard")
    assert (stall.baseline, stall.candidate, stall.delta) == (4_000_000.0, 2_000_000.0, -0.5)


def test_kernels_are_paired_by_key_then_name_then_place() -> None:
    """Breaks when a renamed, regridded or lone kernel is lost, or a kernel of one report is not listed."""
    names = ("a(int)", "b(int)", "gone(int)", "x_v1(int)")
    before = made.report([made.launch(1e5, ix=ix, kernel=name) for ix, name in enumerate(names)])
    after = made.report([
        made.launch(1e5, ix=0, kernel="b(int)", grid="(2000, 1, 1)"), made.launch(1e5, ix=1, kernel="a(int)"),
        made.launch(1e5, ix=2, kernel="x_v2(int)"), made.launch(1e5, ix=3, kernel="new(int)"),
        made.launch(1e5, ix=4, kernel="also_new(int)"),
    ])  # fmt: skip
    found = diff.compare(before, after)
    assert {(p.baseline.kernel, p.candidate.kernel, p.matched) for p in found.pairs} == {
        ("a(int)", "a(int)", "key"), ("b(int)", "b(int)", "name"), ("x_v1(int)", "x_v2(int)", "name"),
    }  # fmt: skip
    assert [s.kernel for s in found.only_baseline] == ["gone(int)"]
    assert [s.kernel for s in found.only_candidate] == ["also_new(int)", "new(int)"]
    assert found.time.baseline == 4e5  # what only one report runs is part of its time
    lone = diff.compare(made.times(1e5, kernel="naive(int)"), made.times(8e4, kernel="tiled<64>(int)"))
    assert (lone.pairs[0].matched, lone.verdict) == ("order", "improved")


def _built(text: bytes, opcodes: tuple[str, ...]) -> Report:
    """A report whose kernel has these instructions: a 64-bit ELF with one text section."""
    series = {"sass__inst_executed_per_opcode": Series(keys=opcodes, values=tuple(1 for _ in opcodes))}
    launch = made.launch(1e5, mangled="k", code="c", series=series)
    return made.report([launch], code={"c": Code(cubin=elf(text))})


def elf(text: bytes) -> bytes:
    """A minimal 64-bit ELF file: null, .text.k and the names of sections."""
    names = b"\0.text.k\0.shstrtab\0"
    body = 64 + len(text) + len(names)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + (190).to_bytes(2, "little")
    head += (1).to_bytes(4, "little") + bytes(16) + body.to_bytes(8, "little") + bytes(4) + (64).to_bytes(2, "little")
    head += bytes(4) + (64).to_bytes(2, "little") + (3).to_bytes(2, "little") + (2).to_bytes(2, "little")

    def section(name: int, kind: int, at: int, size: int) -> bytes:
        sizes = at.to_bytes(8, "little") + size.to_bytes(8, "little")
        return name.to_bytes(4, "little") + kind.to_bytes(4, "little") + bytes(16) + sizes + bytes(24)

    table = bytes(64) + section(1, 1, 64, len(text)) + section(9, 3, 64 + len(text), len(names))
    return head + text + names + table


def test_an_edit_that_did_not_reach_the_machine_code_is_said() -> None:
    """Breaks when the same instructions pass as an edit, or new opcodes are not told."""
    before = _built(b"\x01" * 32, ("FFMA", "LDG"))
    same = diff.compare(before, _built(b"\x01" * 32, ("FFMA", "LDG"))).pairs[0].reach
    other = diff.compare(before, _built(b"\x02" * 32, ("HMMA", "LDG"))).pairs[0].reach
    assert same is not None
    assert other is not None
    assert (same.same_code, same.new_opcodes) == (True, ())
    assert (other.same_code, other.new_opcodes, other.gone_opcodes) == (False, ("HMMA",), ("FFMA",))
    unseen = diff.compare(made.times(1e5), made.times(1e5)).pairs[0].reach
    assert unseen is not None
    assert unseen.same_code is None


def test_facts_stand_for_their_report() -> None:
    """Breaks when a diff against a committed facts.json says something else than one against the report."""
    before, after = _built(b"\x01" * 32, ("FFMA", "LDG")), _built(b"\x02" * 32, ("HMMA", "LDG"))
    found = examine.digest_of(before)
    facts = facts_file.record(before, found.derived, redactor=found.redactor)
    kept = facts_file.parse(canonical.dump(msgspec.to_builtins(facts)))
    assert diff.compare(kept, after) == diff.compare(before, after)
    assert diff.compare(kept, before).pairs[0].reach == diff.compare(before, before).pairs[0].reach


def test_the_same_reports_give_the_same_bytes_and_a_page() -> None:
    """Breaks when a diff depends on anything but its input, or its record cannot be read back."""
    before, after = made.times(1e5, 1.1e5, kernel="f<[x](http://a)>(int)"), made.times(9e4)
    one, two = (canonical.dump(msgspec.to_builtins(diff.compare(before, after))) for _ in range(2))
    assert one == two
    assert parse(one, OWNER, at="diff.json") == diff.compare(before, after)
    found = diff.compare(before, before)
    page = render_diff.markdown(found)
    assert "`f<[x](http://a)>(int)`" in page  # inside a code span only
    assert "within noise" in render_diff.text(found)
