"""The readers of the pages that ncu prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelpilot_helpers.ncu import details, raw, session_page, source_page
from kernelpilot_helpers.ncu.report import Report

READERS: Mapping[str, Callable[..., Report]] = {
    "raw": raw.parse,
    "details": details.parse,
    "source": source_page.parse,
    "session": session_page.parse,
}
"""By the form that ``sniff.form`` names."""
