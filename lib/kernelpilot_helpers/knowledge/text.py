"""Text to search words: identifiers whole, in parts and joined, so that split_kv, SplitKV and "split kv" meet."""

from __future__ import annotations

import functools
import re
import unicodedata

CHUNK = re.compile(r"[A-Za-z0-9_.]+(?:-[A-Za-z0-9_.]+)*")
PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+[a-z]?(?![a-z])|[0-9]+")
"""SMs, RMS|Norm, fused, int8, FP8, 90a, 128. The plural s of SMs is dropped before."""
WORD = re.compile(r"[\w./-]+")
ARCH = re.compile(r"(?:sm|compute)_?([0-9]{2,3})[af]?")
LONGEST = 80
"""Characters of one identifier that are looked at."""
STOP = frozenset(
    re.findall(
        "[a-z]+",
        "a an and any are as at be by can do does for from has have how i in into is it its me my no not of on one or "
        "our per so than that the their then there this to too up via we what when where which while why with your",
    )
)


def fold(text: str) -> str:
    """ASCII letters for their relatives (full-width, accented); other scripts vanish."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


@functools.lru_cache(maxsize=65536)
def stem(part: str) -> str:
    """A word without its ending, so that swizzle, swizzling and swizzled meet; identifiers with digits stay."""
    if not part.isalpha() or len(part) < 4:
        return part
    if part.endswith("s") and not part.endswith(("ss", "us")):
        part = part[:-1]
    for ending in ("ing", "ed"):
        if part.endswith(ending) and len(part) - len(ending) >= 4:
            part = part[: -len(ending)]
            break
    part = part.replace("isation", "ization")
    part = part[:-2] + "iz" if part.endswith("is") and len(part) > 6 else part
    return part[:-1] if part.endswith("e") and len(part) > 4 else part


def parts(chunk: str) -> list[str]:
    """Pieces of one identifier: at underscores, dots, hyphens, and where the case turns; lower case, stemmed."""
    return [stem(piece) for piece in surfaces(chunk)]


def surfaces(chunk: str) -> list[str]:
    """The same pieces as they were written, in lower case."""
    bare = re.sub(r"(?<=[A-Z]{2})s(?![A-Za-z0-9])", "", chunk[:LONGEST])
    return [piece.lower() for piece in PART.findall(bare)]


def normal_arch(text: str) -> str:
    """``sm_90a``, ``SM90`` and ``compute_90`` as ``sm90``; empty for anything else."""
    found = ARCH.fullmatch(text.strip().lower())
    return f"sm{found[1]}" if found else ""


@functools.lru_cache(maxsize=65536)
def _chunk_tokens(chunk: str) -> tuple[str, ...]:
    return tuple(chunk_tokens(chunk))


def chunk_tokens(chunk: str) -> list[str]:
    """Search words of one identifier: whole, joined, and its parts; an architecture also in its plain form."""
    bare = chunk[:LONGEST].strip("._-").replace("-", "_")
    if not bare:
        return []
    pieces = parts(bare)
    whole = pieces[0] if len(pieces) == 1 and bare.isalpha() else bare.lower()
    return list(dict.fromkeys(t for t in (whole, normal_arch(bare), "".join(pieces), *pieces) if t))


def tokens(text: str) -> list[str]:
    """Search words of a text in order, repeated as often as they occur."""
    return [token for chunk in CHUNK.findall(fold(text)) for token in _chunk_tokens(chunk)]


def query_words(text: str, limit: int = 256) -> dict[str, list[str]]:
    """What a user typed -> search words of it; stop words gone, at most ``limit`` different words.

    An architecture is looked for whole and in its plain form only: its ``sm`` stands everywhere.
    """
    found: dict[str, list[str]] = {}
    for chunk in CHUNK.findall(fold(text)):
        bare = chunk[:LONGEST].strip("._-")
        if bare and bare.lower() not in STOP and bare not in found:
            arch = normal_arch(bare)
            whole, *rest = [bare.lower(), arch] if arch else chunk_tokens(bare)
            found[bare] = [whole, *(token for token in rest if token not in STOP)]
            if len(found) == limit:
                break
    return found


def only_stop_words(text: str) -> bool:
    """True for words that are all looked over, and none that is looked for."""
    said = [chunk.strip("._-").lower() for chunk in CHUNK.findall(fold(text))]
    return any(said) and all(word in STOP for word in said if word)


@functools.lru_cache(maxsize=8192)
def phrase(text: str) -> str:
    """A text as stemmed parts between single spaces, to look for phrases in."""
    return f" {' '.join(piece for chunk in CHUNK.findall(fold(text)) for piece in parts(chunk))} "


@functools.lru_cache(maxsize=4096)
def concept(kind: str, name: str) -> str:
    """The search word that stands for a mechanism, family or architecture itself, however it was spelled."""
    return f"z{kind}_{re.sub('[^a-z0-9]', '_', name.lower())}"
