"""Facts about CUDA optimization pull requests, searched by identifier, mechanism or symptom.

A record holds facts (paths, symbols, diff tokens, a sorted bag of title words) and, where we read it, a lesson of our
own; pages say which technique to try when. Open the code that a record names before any prose about it.
"""

from kernelpilot_helpers.knowledge import clones, listing, shelf
from kernelpilot_helpers.knowledge.check import check, check_pages, checked
from kernelpilot_helpers.knowledge.corpus import Corpus, Source, bundle_folder, load, read
from kernelpilot_helpers.knowledge.model import (
    LESSONS,
    VOCABULARY,
    Answer,
    Filters,
    Hit,
    Lesson,
    PageHit,
    Record,
    Symptom,
    Vocabulary,
    open_first,
    url,
)
from kernelpilot_helpers.knowledge.page import Page
from kernelpilot_helpers.knowledge.route import Evidence, Route, Routes, Rule, route, rules
from kernelpilot_helpers.knowledge.search import asked, search
from kernelpilot_helpers.knowledge.seen import seen_names
from kernelpilot_helpers.knowledge.store import opened
from kernelpilot_helpers.knowledge.symptom import Case, case_of

__all__ = [
    "LESSONS",
    "VOCABULARY",
    "Answer",
    "Case",
    "Corpus",
    "Evidence",
    "Filters",
    "Hit",
    "Lesson",
    "Page",
    "PageHit",
    "Record",
    "Route",
    "Routes",
    "Rule",
    "Source",
    "Symptom",
    "Vocabulary",
    "asked",
    "bundle_folder",
    "case_of",
    "check",
    "check_pages",
    "checked",
    "clones",
    "listing",
    "load",
    "open_first",
    "opened",
    "read",
    "route",
    "rules",
    "search",
    "seen_names",
    "shelf",
    "url",
]
