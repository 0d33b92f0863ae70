"""Facts about CUDA optimization pull requests, searched by identifier, mechanism or symptom.

A record holds facts (paths, symbols, diff tokens, a sorted bag of title words) and two sentences of our own. Open the
code that a record names before any prose about it.
"""

from kernelpilot_helpers.knowledge.check import check
from kernelpilot_helpers.knowledge.corpus import Corpus, Source, bundle_folder, find, load, read
from kernelpilot_helpers.knowledge.model import (
    RECORDS,
    VOCABULARY,
    Answer,
    Filters,
    Hit,
    Record,
    Symptom,
    Vocabulary,
    open_first,
    url,
)
from kernelpilot_helpers.knowledge.search import search
from kernelpilot_helpers.knowledge.store import opened

__all__ = [
    "RECORDS",
    "VOCABULARY",
    "Answer",
    "Corpus",
    "Filters",
    "Hit",
    "Record",
    "Source",
    "Symptom",
    "Vocabulary",
    "bundle_folder",
    "check",
    "find",
    "load",
    "open_first",
    "opened",
    "read",
    "search",
    "url",
]
