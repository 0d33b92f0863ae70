"""What a file is, by its content and never by its suffix; what is no raw page is refused with the way to make one."""

from __future__ import annotations

import re
import shlex

from kernelpilot_helpers.ncu.model import Refusal, RefusedInput

REPORT_MAGIC = b"NVR\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_BANNER = re.compile(r"^==(PROF|WARNING|ERROR|LOG|INFO)==", re.MULTILINE)
_SECTION = re.compile(r"^\s+(Section: |Metric Name\s+Metric Unit\s+Metric Value)", re.MULTILINE)
_SESSION = re.compile(r'^"?(Launch Settings|Launch Attribute"|Session Attribute")', re.MULTILINE)
_SOURCE = re.compile(r'"?(Address|Line No|#)"?,"?Source"?[,\r\n]')


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
    """The refusal for a text in which no raw-page table was found, by what it looks like."""
    head = text[:20_000]
    looks = (
        ("file.empty", "an empty file", not text.strip()),
        ("log.permission", "a log: the user may not read the GPU's counters", "ERR_NVGPUCTRPERM" in text),
        ("log.no_kernels", "a log: no kernel was profiled", "No kernels were profiled" in text),
        ("page.session", "a session page", bool(_SESSION.search(head))),
        ("page.source", "a source page", bool(_SOURCE.search(head))),
        ("page.text", "a details page as text, not CSV", bool(_SECTION.search(text))),
        ("log.error", "a log in which ncu reports an error and no table", "\n==ERROR==" in f"\n{text}"),
        ("log.no_table", "a log of ncu without a table", bool(_BANNER.search(text))),
    )
    for code, what, found in looks:
        if found:
            return RefusedInput(code, what)
    return RefusedInput("not_ncu", "no table with columns of Nsight Compute (such as sm__throughput...) was found")


_EXPORT = "ncu --import REPORT.ncu-rep --page raw --csv > REPORT.raw.csv"
_CAPTURE = f"ncu --set full --import-source yes -o REPORT PROGRAM && {_EXPORT}"
_FIRST = {
    "log.permission": "first allow the counters: driver option NVreg_RestrictProfilingToAdminUsers=0, or root",
    "log.no_kernels": "first check the kernel filter (-k, -c, -s) and that the program launches kernels",
    "log.error": "first mend what the ==ERROR== lines name",
}


def refusal(fault: RefusedInput, *, path: str) -> Refusal:
    """The refusal as it is shown: what was found, and a command for a shell that exports the right thing.

    Only a report's own export is proposed beside it; the folder of any other file is none to write into.
    """
    if fault.code.startswith("report."):
        stem = path[: path.rfind(".")] if "." in path.rsplit("/", 1)[-1] else path
        fix = f"ncu --import {shlex.quote(path)} --page raw --csv > {shlex.quote(f'{stem}.raw.csv')}"
    elif fault.code.startswith("file.too_large") or fault.code == "file.line_too_long":
        fix = f"{_EXPORT.replace(' --page', ' -c 100 --page')}  # fewer launches, and without instance values"
    elif fault.code.startswith(("page.", "raw.")):
        fix = f"{_EXPORT}  # REPORT.ncu-rep: what `ncu -o REPORT` wrote"
    else:
        fix = _CAPTURE + (f"  # {_FIRST[fault.code]}" if fault.code in _FIRST else "")
    return Refusal(code=fault.code, what=fault.what, fix=fix)
