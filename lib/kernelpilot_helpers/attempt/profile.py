"""What was profiled and how: ``profile.json`` beside a digest. Pure record; the digest's own formats are ncu's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Literal

import msgspec

from kernelpilot_helpers.records import Owner

FORMAT = "kernelpilot.profile"
VERSION = 1
FOLDER = "artifacts/profile-digests"
NAME = "profile.json"
FACTS, DIGEST, PAGE = "facts.json", "digest.json", "digest.md"
REPORT = "report.ncu-rep"
"""Git-ignored, and optional when the evidence is checked."""
SETS = ("focused", "full")

LIMIT_S = 240.0
"""Seconds that ncu gets unless told otherwise; one that was given less time and did not end proves nothing."""
CODES: Mapping[str, re.Pattern[str] | None] = {
    "ncu.permission": re.compile(r"ERR_NVGPUCTRPERM|permission to access NVIDIA GPU Performance Counters", re.I),
    "ncu.library": re.compile(r"LibraryNotLoaded|Failed to load .*library|libcuda.* not found", re.I),
    "ncu.busy": re.compile(r"ResourceUnavailable|driver resource was unavailable|another.{0,40}profil", re.I),
    "ncu.mismatch": re.compile(r"driver.{0,60}(?:not supported|too old|incompatible|mismatch)|unsupported driver"
                               r"|InsufficientDriver|(?:GPU|device).{0,40}not supported", re.I),
    "ncu.no_kernels": re.compile(r"No kernels were profiled|no kernel.{0,40}match|holds no launch", re.I),
    "ncu.missing": None, "ncu.timeout": None, "ncu.no_report": None, "ncu.unreadable": None, "ncu.failed": None,
}  # fmt: skip
"""Reason code and ncu's words for it, the first that fits; where it has no words of its own, None."""
MACHINE = ("ncu.missing", "ncu.permission", "ncu.library", "ncu.mismatch")
"""Reasons that lie in the machine and hold for whatever is profiled on it."""

Source = Literal["ncu", "fallback"]


class Why(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why ncu gave no report: a stable code, and the tool's own words without names of people and machines."""

    code: str
    """One of ``CODES``."""
    words: str


class Launches(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which launches were captured, and in which state of the machine."""

    calls: int
    """Calls between the profiler's start and stop, after the warm-up."""
    warm_up: int
    skip: int
    count: int
    kernels: tuple[str, ...] = ()
    """Function names of the filter; empty captures whatever the calls start."""
    cache_control: Literal["all", "none"] = "all"
    """``all``: emptied before every pass, as for cold tensors. ``none``: as the calls before left it."""
    clock_control: Literal["none"] = "none"
    collected: Literal["focused", "full"] = "focused"


class ReportFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The binary report, which git does not hold."""

    name: str
    bytes: int
    sha256: str


class Compared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The digest that this one was held against."""

    subject: str
    facts_sha256: str


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One profile of one version on one case."""

    format: Literal["kernelpilot.profile"] = "kernelpilot.profile"
    version: int = VERSION
    subject: str
    """Version label."""
    variant: str
    tree: str
    epoch: int
    case_id: str
    regime: str
    residency: Literal["hot", "cold"]
    """What the cache state was chosen for: where most of the case's bytes are when a timed call begins."""
    verdict: str
    """Of the row that shows the version correct; ``baseline`` for the baseline."""
    run: str
    """Run that this verdict rests on."""
    at: str
    seconds: float
    source: Source
    """``fallback``: no report of ncu; times of the framework's profiler and static facts of the build."""
    why: Why | None = None
    """Always there with ``fallback``: the waiver of a real profile."""
    tool: str = ""
    """``ncu 2025.3.1.0``; empty where it is not there."""
    gpu: str = ""
    driver: str = ""
    framework: str = ""
    command: tuple[str, ...] = ()
    """What ncu was started with: paths relative to the repo, programs by name alone."""
    launches: Launches
    report: ReportFile | None = None
    facts_sha256: str
    digest_sha256: str
    page_sha256: str
    compared: Compared | None = None

    @property
    def id(self) -> str:
        """What ``kernelpilot attempt --digest`` takes."""
        return f"{self.subject}/{self.case_id}"

    @property
    def major(self) -> str:
        """ncu's major version; empty without ncu."""
        words = self.tool.split()
        return words[1].partition(".")[0] if len(words) > 1 else ""


OWNER = Owner(format=FORMAT, version=VERSION, type=Profile, fix="kernelpilot profile --version VERSION --case CASE")


def folder(subject: str, case_id: str) -> str:
    """Repo-relative folder of a digest."""
    return f"{FOLDER}/{subject}/{case_id}"


def command(subject: str, case_id: str = "") -> str:
    """The command that profiles a version on a case."""
    name = "baseline" if subject == "v000_baseline" else subject
    return f"kernelpilot profile --version {name}" + (f" --case {shlex.quote(case_id)}" if case_id else "")


def waives(made: Profile) -> str:
    """What is wrong with a fallback's reason, in words; empty where it may stand for a digest.

    >>> from types import SimpleNamespace as Made
    >>> waives(Made(why=Why(code="ncu.permission", words="no ncu today"), tool="ncu 2025.3", seconds=9.0))
    'gives the reason ncu.permission without the words in which ncu says so'
    """
    why = made.why
    if why is None or not why.words.strip():
        return "gives no reason why ncu did not run"
    if why.code not in CODES:
        return f"gives a reason that is none of ncu's ({why.code})"
    pattern = CODES[why.code]
    if pattern is not None and not pattern.search(why.words):
        return f"gives the reason {why.code} without the words in which ncu says so"
    if made.tool if why.code == "ncu.missing" else not made.tool and why.code not in ("ncu.failed", *MACHINE):
        return f"gives the reason {why.code} and names {made.tool or 'no ncu'}"
    if why.code == "ncu.timeout" and made.seconds < LIMIT_S:
        return f"says that ncu did not end, and gave it less than {LIMIT_S:g} s"
    return ""
