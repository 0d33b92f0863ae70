"""Every text form under change and damage: the same numbers or a named refusal, never a traceback or a wrong number."""

from __future__ import annotations

import csv
import io
import random
import time
from collections.abc import Callable

import pytest

from kernelpilot_helpers.ncu import merge, quantity
from kernelpilot_helpers.ncu.model import RefusedInput
from kernelpilot_helpers.ncu.report import Report, Value
from tests import ncu_files as files

LONG = ("text-smem_conflict.details.csv", "smem.details-utf16.csv", "text-live.details.csv", "metrics-only.csv")
TABLES = (*LONG, "two-processes.raw.csv", "text-smem.raw-instances.csv")
ALL = (
    *TABLES, "text-smem.source-cuda-sass.csv", "text-smem.source-cuda.csv", "text-smem.source-ptx.csv",
    "smem.source-sass.csv", "text-smem.session.csv", "range.log", "text-not-csv.txt",
)  # fmt: skip
MUTATIONS = 300
TOKENS = (
    b'"', b'""', b",", b";", b'","', b"\n", b"\r", b"\0", b"==PROF== ", b"(", b")", b" (1; 2)", b"1e999", b"-", b"nan",
    b"9" * 400, b"\xff", b"\xe2\x80\xa8", b"NVR\0", b"Kernel Name", b"Metric Value", b'"Address","Source"\n',
    b"<[({" * 50,
    b'"ID","Kernel Name","a__b"\n', b'"Kernel Name","x"\n', b'"Device Attribute","Device 0"\n',
)  # fmt: skip


def text(name: str) -> str:
    """A capture as text."""
    data = files.capture(name)
    return data.decode("utf-16") if data[:2] == b"\xff\xfe" else data.decode()


def table(name: str) -> list[list[str]]:
    """Head and rows of a capture without its banner lines."""
    lines = [line for line in text(name).splitlines(keepends=True) if not line.startswith("==")]
    return [row for row in csv.reader(io.StringIO("".join(lines))) if row]


def said(report: Report) -> list[tuple[str, str, dict[str, float | int | str]]]:
    """What a report says of its launches, whatever their order."""
    found = ((launch.id, launch.kernel, files.numbers(launch)) for launch in report.launches)
    return sorted(found, key=lambda one: (one[0], one[1]))


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_columns_and_launches_says_nothing(name: str) -> None:
    """Breaks when a cell is found by its place."""
    rows = table(name)
    rng = random.Random(5)
    order = rng.sample(range(len(rows[0])), len(rows[0]))
    body = rows[1:] if name in LONG else rows[2:]
    rng.shuffle(body)
    padded = [row + [""] * (len(rows[0]) - len(row)) for row in (*rows[: len(rows) - len(body)], *body)]
    shuffled = files.page([[row[at] for at in order] for row in padded])
    assert said(files.read(shuffled)) == said(files.read(files.capture(name)))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "dress",
    [
        lambda t: b"\xef\xbb\xbf" + t.encode(),
        lambda t: t.encode("utf-16"),
        lambda t: t.replace("\n", "\r\n").encode(),
        lambda t: b"==PROF== Connected to process 1 (/bin/x)\n\nstep 1, done\n" + t.encode() + b"==PROF== Bye\nok\n",
    ],
    ids=["mark", "utf-16", "crlf", "banner"],
)
def test_a_disguise_changes_no_number(name: str, dress: Callable[[str], bytes]) -> None:
    """Breaks when an encoding, a line end or lines around the table hide it or change a number."""
    data = dress(text(name))
    want = files.code(files.capture(name))
    assert files.code(data) == want
    if not want:
        plain, found = files.read(files.capture(name)), files.read(data)
        assert said(found) == said(plain)
        assert [(a.text, dict(a.metrics)) for a in found.lines] == [(b.text, dict(b.metrics)) for b in plain.lines]
        assert found.session == plain.session


def changed(name: str, change: Callable[[str, str], tuple[str, str]]) -> bytes:
    """A long page with ``change(unit, value)`` applied to every metric row."""
    head, *rows = table(name)
    unit, value = head.index("Metric Unit"), head.index("Metric Value")
    for row in rows:
        if row[head.index("Metric Name")]:
            row[unit], row[value] = change(row[unit], row[value])
    return files.page([head, *rows])


@pytest.mark.parametrize("name", LONG[:3])
def test_a_decimal_comma_changes_no_number_of_a_long_page(name: str) -> None:
    """Breaks when the separators of a details page are not those of the whole file."""
    swap = str.maketrans(",.", ".,")
    found = files.read(changed(name, lambda unit, value: (unit, value.translate(swap))))
    assert found.locale == "comma"
    assert said(found) == said(files.read(files.capture(name)))


@pytest.mark.parametrize("name", LONG)
def test_another_prefix_changes_no_number_of_a_long_page(name: str) -> None:
    """Breaks when a value is used without the factor of its unit."""
    larger = {"ns": "us", "us": "ms", "byte": "Kbyte", "hz": "Khz", "Ghz": "Thz", "byte/s": "Kbyte/s", "inst": "Kinst"}

    def scaled(unit: str, value: str) -> tuple[str, str]:
        number = quantity.number(value, "C")
        return (unit, value) if unit not in larger or number is None else (larger[unit], f"{number / 1e3:.15f}")

    for one, other in zip(
        files.read(files.capture(name)).launches, files.read(changed(name, scaled)).launches, strict=True
    ):
        assert one.metrics.keys() == other.metrics.keys()
        assert all(merge.agree(value, other.metrics[metric]) for metric, value in one.metrics.items())


@pytest.mark.parametrize("word", ["", "n/a", "(!) n/a", "nan", "no data"])
def test_what_is_not_there_is_no_number(word: str) -> None:
    """Breaks when a word for absent becomes 0 or a text."""
    report = files.read(changed(LONG[0], lambda unit, value: (unit, word)))
    assert [dict(launch.metrics) for launch in report.launches] == [{}]


@pytest.mark.parametrize("name", ALL)
def test_a_cut_at_any_line_or_byte_refuses_or_keeps_every_number(name: str) -> None:
    """Breaks when a cut row gives a number that the whole file does not hold."""
    data = text(name).encode()
    rng = random.Random(2)
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    whole = {} if files.code(data) else held(files.read(data))
    refused = 0
    for at in [*rng.sample(ends, min(len(ends), 30)), *rng.sample(range(len(data)), 30)]:
        try:
            found = held(files.read(data[:at]))
        except RefusedInput:
            refused += 1
            continue
        # A label whose metric the lost part would have named stays a label: no diagnosis rests on it.
        wrong = {
            key: v for key, v in found.items() if whole.get(key) != v and not ("/" in key[2] and "__" not in key[2])
        }
        assert not wrong, (at, list(wrong.items())[:3])
    assert refused


def held(report: Report) -> dict[tuple[str, ...], float | int | str | Value]:
    """All numbers of a report, by launch and metric, or by line and metric."""
    out: dict[tuple[str, ...], float | int | str | Value] = {}
    for launch in report.launches:
        out |= {(launch.id, launch.process, k): v for k, v in files.numbers(launch).items()}
        out |= {(launch.id, launch.process, k, "instances"): str(v.values) for k, v in launch.series.items()}
    for line in report.lines:
        out |= {(str(line.address), str(line.line), line.view, k): v for k, v in line.metrics.items()}
    return out


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The data with one to four faults."""
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, width = rng.randrange(len(out) + 1), rng.choice((1, 2, 10, 200, 5000))
        kind = rng.randrange(6)
        if kind == 0 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at : at + width]
        elif kind == 2:
            out[at:at] = rng.choice(TOKENS)
        elif kind == 3:
            out[at:at] = out[at : at + width] * rng.randint(1, 3)
        elif kind == 4:
            out[at : at + width] = rng.randbytes(min(width, 50))
        else:
            lines = bytes(out).split(b"\n")
            lines.insert(rng.randrange(len(lines) + 1), lines.pop(rng.randrange(len(lines))))
            out = bytearray(b"\n".join(lines))
    return bytes(out)


def fuzz(count: int, seed: int) -> dict[str, int]:
    """How often each outcome came; whatever else than a refusal is raised ends it."""
    rng = random.Random(seed)
    sources = [text(name).encode() for name in ALL]
    sources = [data if len(data) < 30_000 else data[:12_000] + data[-12_000:] for data in sources] + [
        files.capture("smem.details-utf16.csv")[:20_000]
    ]
    seen: dict[str, int] = {}
    for _ in range(count):
        data = damaged(rng.choice(sources), rng)
        start = time.process_time()
        try:
            held(files.read(data))
            outcome = "report"
        except RefusedInput as fault:
            outcome = fault.code
            assert len(fault.what) < 1000
        assert time.process_time() - start < 5
        seen[outcome] = seen.get(outcome, 0) + 1
    return seen


def test_damage_ends_in_a_report_or_a_named_refusal() -> None:
    """Breaks when some damage ends in a traceback, or takes unbounded time."""
    seen = fuzz(MUTATIONS, 17)
    assert seen["report"] > 20
    assert len(seen) > 5
