"""Every other form of ncu's output is refused by name with the way to the right one; bounds hold; disguises do not."""

from __future__ import annotations

import dataclasses
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpilot_helpers import ncu
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ncu import quantity, separators, sniff
from kernelpilot_helpers.ncu.model import RefusedInput
from tests import ncu_files as files

RAW = "copy_vec4.raw.csv"
REFUSED = {
    "text-not-csv.txt": "page.text",
    "empty.log": "log.no_kernels",
    "range.log": "log.error",
    "text-graph.log": "log.report",
}
TEXTS = {
    "file.empty": b"\n \n",
    "log.permission": b"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n",
    "log.unsupported_gpu": b"==PROF== Connected\n==ERROR== Profiling is not supported on device 0.\n",
    "log.no_table": b"==PROF== Connected to process 1 (/bin/x)\n==PROF== Disconnected from process 1\n",
    "file.not_text": b"\x7fELF\x02\x01\x01\0\0\0\0\0\x03\0",
    "not_ncu": b"Benchmark Type,Kernel ID,Achieved occupancy,Grid\nx,1,50,2\n",
}
FIXED = {
    "report.binary": "kernelpilot ncu digest 'd/a b'",
    "report.version": "kernelpilot ncu digest 'd/a b' --force",
    "merge.differ": "kernelpilot ncu digest REPORT.ncu-rep",
    "file.too_large": "ncu --import REPORT.ncu-rep -c 100 --page raw --csv > REPORT.raw.csv",
    "raw.truncated": "kernelpilot ncu digest REPORT.ncu-rep",
    "report.zstd_missing": "python -m pip install zstandard",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_log_or_printed_text_is_refused_by_name(name: str) -> None:
    """Breaks when what cannot be read is half read, or refused under a name that does not help."""
    assert files.code(files.capture(name)) == REFUSED[name]


@pytest.mark.parametrize("want", TEXTS)
def test_what_is_no_table_is_refused_by_what_it_is(want: str) -> None:
    """Breaks when two causes share one code or a foreign file is taken for a report."""
    assert files.code(TEXTS[want]) == want


@pytest.mark.parametrize("code", [*REFUSED.values(), *TEXTS])
def test_every_refusal_is_a_line_for_a_shell_that_writes_into_nobodys_folder(code: str) -> None:
    """Breaks when prose stands in the command, or an export is proposed beside a file that is no report."""
    fix = sniff.refusal(RefusedInput(code, "x"), path="/bin/ls").fix
    command, _, note = fix.partition("  # ")
    assert "/bin" not in fix
    assert "(" not in command and ", then" not in fix
    assert command.startswith(("ncu ", "kernelpilot ncu digest "))
    assert command.endswith("kernelpilot ncu digest REPORT.ncu-rep")
    assert note or "PROGRAM" in command


@pytest.mark.parametrize("code", FIXED)
def test_the_fix_fits_the_refusal_and_quotes_the_path(code: str) -> None:
    """Breaks when a space in a name breaks the shell line, or a fix mends something else."""
    fix = sniff.refusal(RefusedInput(code, "x"), path="d/a b").fix
    assert fix.partition("  # ")[0] == FIXED[code]


def test_a_cut_file_is_refused_wherever_it_is_cut() -> None:
    """Breaks when a truncated export gives a digest of what is left of it."""
    data = files.capture(RAW)
    rows = data.splitlines(keepends=True)
    for at in (len(rows[0]) // 2, len(rows[0]) + len(rows[1]) + 900, len(data) - 500, len(data) - 4):
        assert files.code(data[:at]) in ("raw.truncated", "raw.no_launches", "file.truncated", "not_ncu"), at
    assert files.code(rows[0]) == "raw.truncated"
    assert files.code(rows[0] + rows[1]) == "raw.no_launches"


def test_a_page_without_units_or_with_two_locales_is_refused() -> None:
    """Breaks when scaled values are guessed."""
    head, units, row = files.rows_of(files.capture(RAW))
    assert files.code(files.page([head, row])) == "raw.no_units"
    first = head.index("gpu__time_duration.sum")
    comma = [v.replace(",", "").replace(".", ",") if ix % 3 == 0 and ix > 11 else v for ix, v in enumerate(row)]
    assert first > 11
    assert files.code(files.page([head, units, comma])) == "raw.mixed_locale"


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("bom", b"\xef\xbb\xbf" + files.capture(RAW)),
        ("utf-16", files.capture(RAW).decode().encode("utf-16")),
        ("utf-16-le without mark", files.capture(RAW).decode().encode("utf-16-le")),
        ("crlf", files.capture(RAW).replace(b"\n", b"\r\n")),
        ("no final newline", files.capture(RAW).rstrip(b"\n")),
        ("banner", b"==PROF== Connected to process 1\n" + files.capture(RAW) + b"==PROF== Disconnected\n"),
        ("program output", b'hello, "world\n' + files.capture(RAW) + b"max error 0.0\n"),
        ("semicolons", files.capture(RAW).replace(b'","', b'";"')),
    ],
)
def test_a_disguise_changes_nothing(form: str, data: bytes) -> None:
    """Breaks when an encoding, a line end or a line of the program hides the table or changes a number."""
    (plain,), (found,) = files.read(files.capture(RAW)).launches, files.read(data).launches
    assert files.numbers(found) == files.numbers(plain), form
    assert dataclasses.replace(found, metrics={}, series={}, place="") == dataclasses.replace(
        plain, metrics={}, series={}, place=""
    )


def test_banner_lines_between_launches_are_passed_over() -> None:
    """Breaks when a progress line between rows ends the table or becomes a launch."""
    lines = files.capture("two-processes.raw.csv").splitlines(keepends=True)
    noisy = b"".join([*lines[:3], b'==PROF== Profiling "k" - 1: 0%....100%\n', b"step 2 done\n", *lines[3:]])
    plain = files.read(files.capture("two-processes.raw.csv")).launches
    assert [files.numbers(found) for found in files.read(noisy).launches] == [files.numbers(one) for one in plain]


def test_a_live_capture_with_banners_is_read() -> None:
    """Breaks when the output of ncu to the terminal cannot be digested."""
    found = files.digest(files.capture("live-with-banner.raw.csv"))
    assert (len(found.groups), found.refused) == (5, None)


def test_a_huge_line_is_refused_quickly_and_in_little_memory(tmp_path: Path) -> None:
    """Breaks when one line of 50 MB is read, split or searched before it is refused."""
    path = tmp_path / "huge.csv"
    path.write_bytes(b'"ID","Kernel Name","' + b"x__" * 17_000_000 + b'"\n')
    script = (
        "import sys, pathlib, resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))\n"
        "from kernelpilot_helpers import ncu\n"
        "print(ncu.read(pathlib.Path(sys.argv[1])).refused.code)\n"
    )
    start = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout.strip() == "file.line_too_long", ran.stderr
    assert time.monotonic() - start < 20
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 400 * 1024


def test_an_unclosed_quote_does_not_take_quadratic_time() -> None:
    """Breaks when every line of an unclosed cell is joined and counted again."""
    data = files.capture(RAW).splitlines(keepends=True)[0] + b'"0","' + b"\n" * 3_000_000
    start = time.monotonic()
    assert files.code(data) == "file.truncated"
    assert time.monotonic() - start < 20


def test_an_unreadable_path_is_the_users_to_mend(tmp_path: Path) -> None:
    """Breaks when a missing file or a folder becomes a traceback."""
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(BadRecord):
            ncu.read(path)


def test_the_package_loads_no_heavy_module() -> None:
    """Breaks when importing the digest pulls in what only other commands need."""
    script = (
        "import sys, kernelpilot_helpers.ncu\n"
        "print([m for m in ('numpy', 'pandas', 'jinja2', 'rich', 'click', 'markdown_it', 'git') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stdout.strip() == "[]", ran.stderr


def test_numbers_of_both_locales_and_of_none() -> None:
    """Breaks when a separator is read the wrong way or a word for absent becomes 0."""
    assert separators.decide([("m", "ns", t) for t in ("117.344", "65,77", "27.595.520")]) == "comma"
    assert quantity.number("117.344", "comma") == 117344.0
    assert separators.decide([("m", "", "1,234"), ("m", "", "82.60")]) == "C"
    assert separators.decide([("m", "", "1,234")]) == "C assumed"
    assert separators.decide([("m", "", "82.60"), ("m", "", "65,77")]) == "mixed"
    assert [quantity.number(t, "C") for t in ("n/a", "(!) n/a", "nan", "", "no data", "(0; 1)", "1e99")] == [None] * 7
    assert quantity.number("5.1 (4; 6)", "C") == 5.1
    assert quantity.number("1\u202f234,5", "comma") == 1234.5


def test_the_refusal_of_a_log_quotes_what_ncu_says_went_wrong() -> None:
    """Breaks when somebody has to open the log again to learn which error it is, or a folder of theirs is printed."""
    with pytest.raises(RefusedInput) as refused:
        raise sniff.no_table("==PROF== x\n==ERROR== Failed to start /home/me/app:\n==ERROR== no such file\n")
    assert refused.value.what.endswith("and no table: Failed to start no such file")
