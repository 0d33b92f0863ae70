"""What a file is, by its content and never by its suffix; what cannot be read is refused with the way to mend it."""

from __future__ import annotations

import itertools
import re
import shlex
from typing import Literal

from kernelpilot_helpers.ncu.model import Refusal, RefusedInput
from kernelpilot_helpers.ncu.plain import clean
from kernelpilot_helpers.ncu.report import Report

Form = Literal["report", "facts", "raw", "details", "source", "session"]
REPORT_MAGIC = b"NVR\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ERROR = re.compile(r"^==ERROR== ?(.*)$", re.MULTILINE)
_BANNER = re.compile(r"^==(PROF|WARNING|ERROR|LOG|INFO)==", re.MULTILINE)
_SECTION = re.compile(r"^\s+(Section: |Metric Name\s+Metric Unit\s+Metric Value)", re.MULTILINE)
_SESSION = re.compile(r'^"?(Launch Settings|Launch Attribute"|Session Attribute")', re.MULTILINE)
_SOURCE = re.compile(r'"?(Address|Line No|#)"?,?"Source"?[,\r\n]')
_HEADS: tuple[tuple[Form, re.Pattern[str]], ...] = (
    ("details", re.compile(r"(?=.*Kernel Name)(?=.*\bID\b)(?=.*Metric Name).*Metric Value")),
    ("raw", re.compile(r"(?=.*Kernel Name)(?=.*\bID\b).*__")),
    ("source", re.compile(r'"(?:Address|Line No|#)","(?:Address",")?Source"')),
    ("session", re.compile(r'"(?:Launch|Session|Device) Attribute","')),
)
_UNSUPPORTED = re.compile(r"not supported on (this |the )?(device|GPU)|GPU[^\n]{0,80} not supported|nsupported GPU")


def is_binary(head: bytes) -> bool:
    """Whether a file is a binary report, plain or compressed."""
    return head.startswith((REPORT_MAGIC, ZSTD_MAGIC))


def form(data: bytes) -> Form:
    """Which reader a file is for. Raises RefusedInput, by what it looks like, when it is for none."""
    if is_binary(data[:4]):
        return "report"
    binary(data[:4096])
    if data[:1] == b"{" and b"kernelpilot.ncu-facts" in data[:4096]:
        return "facts"
    text = decode(data)
    for line in text.splitlines():
        if line.startswith("==") or not any(mark in line for mark in ",;\t"):
            continue
        for name, head in _HEADS:
            if head.match(line):
                return name
    raise no_table(text)


def binary(head: bytes) -> None:
    """Raises RefusedInput for a binary report, a compressed one, and whatever is no text at all."""
    if head.startswith(REPORT_MAGIC):
        raise RefusedInput("report.binary", "a binary report (.ncu-rep)")
    if head.startswith(ZSTD_MAGIC):
        raise RefusedInput("report.compressed", "a compressed binary report (.ncu-repz)")
    if head[:2] not in (b"\xff\xfe", b"\xfe\xff") and b"\0" in head[:4096] and not _utf16_without_mark(head):
        raise RefusedInput("file.not_text", "binary data that is no report of Nsight Compute")


def _utf16_without_mark(head: bytes) -> bool:
    sample = head[:400]
    return sample[1::2].count(0) > len(sample) * 0.4 or sample[::2].count(0) > len(sample) * 0.4


def decode(data: bytes) -> str:
    """Text of UTF-8 or UTF-16 bytes, with or without a mark; bytes that are neither become U+FFFD."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    if b"\0" in data[:400] and _utf16_without_mark(data):
        return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be", "replace")
    return data.decode("utf-8-sig", "replace")


def no_table(text: str) -> RefusedInput:
    """The refusal for a text in which no table was found, by what it looks like."""
    head = text[:20_000]
    looks = (
        ("file.empty", "an empty file", not text.strip()),
        ("log.permission", "a log: the user may not read the GPU's counters", "ERR_NVGPUCTRPERM" in text),
        ("log.unsupported_gpu", "a log: this GPU cannot be profiled by this ncu", bool(_UNSUPPORTED.search(head))),
        ("log.no_kernels", "a log: no kernel was profiled", "No kernels were profiled" in text),
        ("page.session", "a session page", bool(_SESSION.search(head))),
        ("page.source", "a source page", bool(_SOURCE.search(head))),
        ("page.text", "a details page as text, not CSV", bool(_SECTION.search(text))),
        ("log.report", "a log: its report is the file to read", "\n==PROF== Report: " in f"\n{text}"),
        ("log.error", f"a log in which ncu reports an error and no table{_errors(text)}", "\n==ERROR==" in f"\n{text}"),
        ("log.no_table", "a log of ncu without a table", bool(_BANNER.search(text))),
    )
    for code, what, found in looks:
        if found:
            return RefusedInput(code, what)
    columns = next((line for line in head.splitlines() if line.count(",") >= 3), "")
    shown = f"; its first columns are {columns[:80]!r}" if columns else ""
    return RefusedInput("not_ncu", f"no table with metric names of Nsight Compute (such as sm__throughput...){shown}")


def _errors(text: str) -> str:
    """ncu's first two ``==ERROR==`` lines, without folders and control characters: what has to be mended."""
    lines = [found[1].strip() for found in itertools.islice(_ERROR.finditer(text), 2)]
    words = " ".join(word for line in lines for word in line.split() if "/" not in word and "\\" not in word)
    return f": {clean(words, 200)}" if words else ""


def launched(report: Report) -> Report:
    """The report, where it holds a launch. Raises RefusedInput: a source or a session page alone has none."""
    if not report.launches:
        forms = " and ".join(dict.fromkeys(f"{file.form} page" for file in report.files))
        raise RefusedInput("page.alone", f"only a {forms}: that holds no launch")
    return report


_DIGEST = "kernelpilot ncu digest REPORT.ncu-rep"
_CAPTURE = f"ncu --set full --import-source yes -f -o REPORT PROGRAM && {_DIGEST}"
_FEWER = "ncu --import REPORT.ncu-rep -c 100 --page raw --csv > REPORT.raw.csv"
_WROTE = "REPORT.ncu-rep: what `ncu -o REPORT` wrote"
_NOTES = {
    "log.permission": "first allow the counters: driver option NVreg_RestrictProfilingToAdminUsers=0, or root",
    "log.unsupported_gpu": "first take an ncu whose release notes name this GPU",
    "log.no_kernels": "first check the kernel filter (-k, -c, -s) and that the program launches kernels",
    "log.error": "first mend what the ==ERROR== lines name",
    "report.no_results": "first check the kernel filter (-k, -c, -s) and that the program launches kernels",
}
_FIXES = {
    "log.report": f"{_DIGEST}  # the file that the log's `==PROF== Report:` line names",
    "report.zstd_missing": "python -m pip install zstandard",
    "file.too_large": f"{_FEWER}  # fewer launches, and without instance values",
    "report.too_large": f"{_FEWER}  # fewer launches, and without instance values",
    "file.line_too_long": f"{_FEWER}  # fewer launches, and without instance values",
    "file.too_many": f"{_DIGEST}  # the files of one report only",
    "merge.differ": f"{_DIGEST}  # one report at a time: these files are of different runs",
}


def refusal(fault: RefusedInput, *, path: str) -> Refusal:
    """The refusal as it is shown: what was found, and a command for a shell that gets the right thing.

    Only a report's own export is proposed beside it; the folder of any other file is none to write into.
    """
    code = fault.code
    if code in ("report.binary", "report.compressed", "report.version"):
        force = " --force" if code == "report.version" else ""
        fix = f"kernelpilot ncu digest {shlex.quote(path)}{force}"
    elif code == "page.alone":
        fix = f"kernelpilot ncu digest {shlex.quote(path)} REPORT.ncu-rep  # {_WROTE}, or its raw page as CSV"
    elif code in _FIXES:
        fix = _FIXES[code]
    elif code.startswith(("page.", "raw.", "details.", "source.", "session.", "file.truncated")):
        fix = f"{_DIGEST}  # {_WROTE}"
    else:
        fix = _CAPTURE + (f"  # {_NOTES[code]}" if code in _NOTES else "")
    return Refusal(code=code, what=fault.what, fix=fix)
