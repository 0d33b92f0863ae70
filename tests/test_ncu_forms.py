"""Every other form of ncu's output is refused by name with the way to the right one; bounds hold; disguises do not."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelpilot_helpers import ncu
from kernelpilot_helpers.errors import BadRecord
from kernelpilot_helpers.ncu import quantity
from tests import ncu_files as files

RAW = "copy_vec4.raw.csv"
REFUSED = {
    "copy_vec4.details.csv": "page.details",
    "metrics-only.csv": "page.details",
    "smem.details-utf16.csv": "page.details",
    "smem.source-sass.csv": "page.source",
    "text-not-csv.txt": "page.text",
    "empty.log": "log.no_kernels",
    "range.log": "log.error",
}
TEXTS = {
    "file.empty": b"\n \n",
    "log.permission": b"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters\n",
    "log.no_table": b"==PROF== Connected to process 1 (/bin/x)\n==PROF== Disconnected from process 1\n",
    "page.session": b'Launch Settings\n"Launch Attribute","Value"\n"a","b"\n',
    "report.binary": b"NVR\0\x08\0\0\0",
    "report.compressed": b"\x28\xb5\x2f\xfd\0\0",
    "file.not_text": b"\x7fELF\x02\x01\x01\0\0\0\0\0\x03\0",
    "not_ncu": b"Benchmark Type,Kernel ID,Achieved occupancy\nx,1,50\n",
}


def code(data: bytes) -> str:
    """Refusal code of some bytes; empty when they gave a digest."""
    refused = files.digest(data).refused
    return "" if refused is None else refused.code


@pytest.mark.parametrize("name", REFUSED)
def test_another_page_or_log_is_refused_by_name(name: str) -> None:
    """Breaks when a page of another kind is half read, or refused without the export that helps."""
    found = files.digest(files.capture(name))
    assert found.refused is not None
    assert (found.refused.code, found.name, found.confidence) == (REFUSED[name], "none.refused", "none")
    assert found.next_step.kind == "capture"
    assert found.groups == ()
    assert "--page raw --csv" in found.refused.fix


@pytest.mark.parametrize("want", TEXTS)
def test_what_is_no_table_is_refused_by_what_it_is(want: str) -> None:
    """Breaks when two causes share one code or a foreign file is taken for a report."""
    assert code(TEXTS[want]) == want


def test_a_binary_report_is_answered_with_its_own_export_command() -> None:
    """Breaks when the command does not name the file, or a space in its name breaks the shell line."""
    found = ncu.digest(b"NVR\0", source=ncu.Input(name="a b.ncu-rep", bytes=4, sha256=""), path="d/a b.ncu-rep")
    assert found.refused is not None
    assert found.refused.fix == "ncu --import 'd/a b.ncu-rep' --page raw --csv > 'd/a b.raw.csv'"


def test_a_cut_file_is_refused_wherever_it_is_cut() -> None:
    """Breaks when a truncated export gives a digest of what is left of it."""
    data = files.capture(RAW)
    rows = data.splitlines(keepends=True)
    for at in (len(rows[0]) // 2, len(rows[0]) + len(rows[1]) + 900, len(data) - 500, len(data) - 4):
        assert code(data[:at]) in ("raw.truncated", "raw.no_launches", "not_ncu"), at
    assert code(rows[0]) == "raw.truncated"
    assert code(rows[0] + rows[1]) == "raw.no_launches"


def test_a_page_without_units_or_with_two_locales_is_refused() -> None:
    """Breaks when scaled values are guessed."""
    head, units, row = files.rows_of(files.capture(RAW))
    assert code(files.page([head, row])) == "raw.no_units"
    first = head.index("gpu__time_duration.sum")
    comma = [v.replace(",", "").replace(".", ",") if ix % 3 == 0 and ix > 11 else v for ix, v in enumerate(row)]
    assert first > 11
    assert code(files.page([head, units, comma])) == "raw.mixed_locale"


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
    plain, found = files.digest(files.capture(RAW)), files.digest(data)
    assert found.groups == plain.groups, form


def test_banner_lines_between_launches_are_passed_over() -> None:
    """Breaks when a progress line between rows ends the table or becomes a launch."""
    lines = files.capture("two-processes.raw.csv").splitlines(keepends=True)
    noisy = b"".join([*lines[:3], b'==PROF== Profiling "k" - 1: 0%....100%\n', b"step 2 done\n", *lines[3:]])
    assert files.digest(noisy).groups == files.digest(files.capture("two-processes.raw.csv")).groups


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
    assert code(data) == "raw.truncated"
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
    assert quantity.locale_of(["117.344", "65,77", "27.595.520"]) == "comma"
    assert quantity.number("117.344", "comma") == 117344.0
    assert quantity.locale_of(["1,234", "82.60"]) == "C"
    assert quantity.locale_of(["1,234"]) == "C assumed"
    assert quantity.locale_of(["82.60", "65,77"]) == "mixed"
    assert [quantity.number(t, "C") for t in ("n/a", "(!) n/a", "nan", "", "no data", "(0; 1)", "1e99")] == [None] * 7
    assert quantity.number("5.1 (4; 6)", "C") == 5.1
    assert quantity.number("1\u202f234,5", "comma") == 1234.5


@pytest.mark.parametrize("name", [*REFUSED, *TEXTS])
def test_every_refusal_is_a_line_for_a_shell_that_writes_into_nobodys_folder(name: str) -> None:
    """Breaks when prose stands in the command, or an export is proposed beside a file that is no report."""
    data = files.capture(name) if name in REFUSED else TEXTS[name]
    found = ncu.digest(data, source=ncu.Input(name="ls", bytes=len(data), sha256=""), path="/bin/ls")
    assert found.refused is not None
    command, _, note = found.refused.fix.partition("  # ")
    assert "/bin" not in found.refused.fix or found.refused.code.startswith("report.")
    assert "(" not in command and ", then" not in found.refused.fix
    assert command.startswith("ncu ")
    assert command.endswith(".raw.csv")
    assert note or "PROGRAM" in command or found.refused.code.startswith("report.")
