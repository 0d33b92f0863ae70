"""Reports that are cut, damaged, compressed or hostile: a named refusal, or what was whole with a note."""

from __future__ import annotations

import random
import struct
import time

import pytest
import zstandard

from kernelpilot_helpers.ncu import rep, rep_file
from kernelpilot_helpers.ncu.model import RefusedInput
from tests import ncu_rep_build as build
from tests.ncu_rep_build import block, metric, number, report, result, run

SMALL = ("two-processes", "app-range")


def refused(data: bytes, *, force: bool = False) -> str:
    with pytest.raises(RefusedInput) as caught:
        build.parse(data, force=force)
    return f"{caught.value.code}: {caught.value.what}"


def test_a_report_cut_in_its_only_result_is_refused() -> None:
    """Breaks when a half result is digested as if it were whole."""
    data = build.capture("app-range")
    assert refused(data[: len(data) // 2]) == "report.truncated: block 1 truncated, 0 of 1 results read"
    assert refused(data[: len(data) - 1]) == "report.truncated: block 1 truncated, 0 of 1 results read"


def test_a_report_cut_later_gives_what_was_whole_and_says_so() -> None:
    """Breaks when the whole first result is thrown away, or the cut is not mentioned."""
    data = build.capture("two-processes")
    found = build.parse(data[:-1])
    assert [x.function for x in found.launches] == ["copy_strided"]
    assert found.notes == ("block 11 truncated, 1 of 2 results read",)


@pytest.mark.parametrize("name", SMALL)
def test_a_cut_at_every_edge(name: str) -> None:
    """Breaks when a cut within four bytes of a length escapes as another exception or passes without a word."""
    data = build.capture(name)
    heads = build.edges(data)
    clean = set(heads[::2])  # Between two blocks nothing in the file tells that more was to come.
    for edge in heads:
        for cut in range(max(4, edge - 4), min(len(data), edge + 6)):
            try:
                found = build.parse(data[:cut])
            except RefusedInput as fault:
                assert fault.code in ("report.truncated", "report.no_results"), cut
            else:
                assert found.launches
                assert cut in clean or "truncated" in found.notes[0], cut


def test_one_damaged_result_does_not_hide_the_others() -> None:
    """Breaks when a name that is not in the table, or a length lie inside one result, loses its neighbours."""
    good = result(metric(0, number(5, 1)))
    found = build.parse(report(block(names=["a"], results=[good, result(metric(9, number(5, 1))), good])))
    assert [x.place for x in found.launches] == ["result 1", "result 3"]
    assert found.notes == ("result 2 in block 0 damaged: metric 1 has name 9 of 1",)
    lie = result(name="x", extra=b"\x6a\xff\xff\x03")
    assert "field 13 runs past its message" in refused(report(block(names=["a"], results=[lie])))


def test_versions_and_other_files() -> None:
    """Breaks when an unknown version is read without being told to, or another file's bytes are taken for a report."""
    data = report(block(results=[result()]), version=8)
    assert refused(data) == "report.version: file version 8; this reader knows version 7"
    assert len(build.parse(data, force=True).launches) == 1
    assert refused(report(block(results=[result()]), version=0), force=False).startswith("report.version")
    assert refused(b"").startswith("report.not_report")
    assert refused(b"SQLite format 3\0").startswith("report.not_report")
    assert refused(b"NVR\0").startswith("report.truncated")
    assert refused(report()).startswith("report.no_results")


def test_a_compressed_report_is_the_same_report() -> None:
    """Breaks when the frame is not recognised by its magic, or its size is given as the unpacked one."""
    data = build.capture("two-processes")
    packed = zstandard.ZstdCompressor().compress(data)
    plain, found = build.parse(data), build.parse(memoryview(packed))
    assert [dict(x.metrics) for x in found.launches] == [dict(x.metrics) for x in plain.launches]
    assert (found.files[0].bytes, found.session) == (len(packed), plain.session)
    assert "truncated" in build.parse(packed[: len(packed) - 30]).notes[0]
    assert refused(rep_file.ZSTD + b"garbage").startswith("report.damaged")
    assert refused(zstandard.ZstdCompressor().compress(b"x" * 1000)).startswith("report.not_report")


def test_a_zstd_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a few bytes can fill the memory."""
    monkeypatch.setattr(rep_file, "SMALL_BYTES", 4 << 20)
    bomb = zstandard.ZstdCompressor().compress(b"NVR\0" + bytes(64 << 20))
    assert len(bomb) < 10_000
    assert refused(bomb) == "report.too_large: a compressed report of more than 4194304 bytes unpacked"


def test_counts_that_lie_cost_nothing() -> None:
    """Breaks when a count in a header is believed: it can ask for any number of entries."""
    for field in (1, 2, 7, 8, 9):
        head = number(field, 2**31) + number(5, 8)
        started = time.monotonic()
        assert refused(report(struct.pack("<I", len(head)) + head + bytes(8))).startswith("report.damaged")
        assert time.monotonic() - started < 1
    empty = report(bytes(4_000_000))
    assert refused(empty).startswith("report.damaged")


def test_deep_nesting_is_not_followed() -> None:
    """Breaks when a message can make the reader call itself once for each level that it claims."""
    nested = b""
    for _ in range(3000):
        nested = run(3, nested)
    found = build.parse(report(block(results=[result(extra=run(19, nested) + run(21, nested) + run(17, nested))])))
    assert found.launches[0].rules == ()


def test_damaged_instances_and_code_are_empty_not_an_error() -> None:
    """Breaks when bytes that are first looked at long after reading raise where nobody expects it."""
    bad = run(13, number(1, 0) + run(2, number(5, 4)) + run(3, b"\x0a\x7f"))
    cubin = number(1, 5) + run(4, b"ELF") + run(8, b"\x0a\x7f")
    found = build.parse(report(block(sources=[cubin], names=["a"], results=[result(bad)])))
    assert found.launches[0].metrics["a"].number == 4
    assert found.launches[0].series["a"].values == ()
    assert found.code["7/5"].cubin == b""


def test_three_hundred_mutations() -> None:
    """Breaks when damaged bytes escape as anything but RefusedInput, or cost more than two seconds."""
    captures = {name: build.capture(name) for name in SMALL}
    heads = {name: build.edges(data)[:-1] for name, data in captures.items()}
    codes = set()
    for seed in range(300):
        rng = random.Random(seed)
        name = rng.choice(SMALL)
        data = build.damage(rng, captures[name], heads[name])
        if seed % 10 == 0:
            data = zstandard.ZstdCompressor(level=1).compress(data)
        started = time.monotonic()
        try:
            found = build.parse(data)
            codes.add("read")
            if seed % 4 == 0:
                build.touch(found)
        except RefusedInput as fault:
            codes.add(fault.code)
        assert time.monotonic() - started < 2, seed
    assert codes >= {"read", "report.truncated", "report.damaged"}


def test_only_metrics_of_interest_are_kept() -> None:
    """Breaks when ``keep`` hides the identity of a launch, or keeps what nobody wants."""
    found = rep.parse(
        build.capture("two-processes"), name="x", sha256="", keep="gpu__time_duration.sum".__eq__
    ).launches[0]
    assert list(found.metrics) == ["gpu__time_duration.sum"]
    assert (found.device, found.cc) == ("0", "9.0")
