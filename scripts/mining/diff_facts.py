"""One change to its facts. Pure: the texts are handed in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec

from mining import archs, facets, paths, spans, tiers, tokens
from mining.facts import Facts, File
from mining.patch import FileDiff
from mining.repos import Source
from mining.said import Said

MOST_FILES = 40
MOST_PATHS = 24
MOST_LINES = 150_000
"""Added lines of code in one change above which a whole library was copied in: no change that anybody could read."""
MOST_LINES_OF_FILE = 20_000
"""Above: written by a program."""
MOST_NAMES = 16
HEAD_NAME = re.compile(r"([A-Za-z_~][\w:]*)\s*\(")
COMMENT = re.compile(r"^(//|#(?!\s*(?:pragma|define|include|if|el|en|undef))|\*|/\*)")
NEW_KERNEL = re.compile(r"\b__global__\b|^@(triton\.jit|cute\.kernel|gluon\.jit|T\.prim_func|ct\.kernel)\b")
BLANKS = re.compile(r"\s+")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a history or an interface says of one change, before judging."""

    id: str
    pr: int | None
    sha: str
    date: str
    how: str
    said: Said
    files: tuple[FileDiff, ...]
    """Code with its lines, the rest with counts."""
    unread: tuple[str, ...] = ()
    """Changed paths whose content could not be had."""
    new_paths: frozenset[str] = frozenset()


class Hit(msgspec.Struct, kw_only=True):
    """A kernel file of a change: which lines count, and the functions they stand in."""

    diff: FileDiff
    kind: str
    spans: tuple[spans.Span, ...]
    text: str = ""
    """The file after the change, where it could be read."""
    host: bool = False
    """No device code in the file: only lines that name a mechanism make it count."""
    reached: bool = False
    """Some line inside a kernel changed, were it only moved."""
    lines: list[tuple[str, bool]] = msgspec.field(default_factory=list)
    """(text, inside a kernel) of added lines that were not moved."""
    symbols: Counter[str] = msgspec.field(default_factory=Counter)
    context: Counter[str] = msgspec.field(default_factory=Counter)


Reader = Callable[[str], str | None]
"""Path -> text after the change; None where the file is gone or absent from the snapshot."""


def facts_of(change: Change, source: Source, read: Reader) -> Facts | None:
    """The record, or nothing when no kernel source is touched or a whole library was copied in."""
    if sum(diff.add for diff in change.files if diff.added) > MOST_LINES:
        return None
    gone = _moved_pool(change.files)
    hits = [hit for diff in change.files if (hit := _hit(diff, source, read, gone)) is not None]
    hits = [hit for hit in hits if _touches(hit)]
    if not hits:
        return None
    hits.sort(key=lambda hit: (-hit.diff.add, hit.diff.path))
    return _record(change, source, hits)


def _moved_pool(files: Iterable[FileDiff]) -> Counter[str]:
    """Deleted lines of the whole change: a line that reappears was moved, here or to another file."""
    return Counter(bare for diff in files for _, text in diff.removed if (bare := BLANKS.sub(" ", text.strip())))


def _hit(diff: FileDiff, source: Source, read: Reader, gone: Counter[str]) -> Hit | None:
    if not paths.may_hold_kernels(diff.path, source) or not (diff.added or diff.removed):
        return None
    if diff.add > MOST_LINES_OF_FILE:
        return None
    text = read(diff.path)
    shown = text if text is not None else "\n".join(line for _, line in (diff.added or diff.removed))
    kind = paths.kind_of(diff.path, shown.encode(), source)
    if not kind:
        return None
    found: tuple[spans.Span, ...] = ()
    if text is not None and kind != "compiler":
        found = spans.python_spans(text) if diff.path.endswith(".py") else spans.cpp_spans(text)
    host = kind == "cuda" and paths.is_host(diff.path, shown.encode(), source)
    hit = Hit(diff=diff, kind=kind, spans=found, text=text or "", host=host)
    _place(hit, gone)
    return hit


def _place(hit: Hit, gone: Counter[str]) -> None:
    inside, names = _line_map(hit.spans)
    for number, text in hit.diff.added:
        bare = BLANKS.sub(" ", text.strip())
        if not bare:
            continue
        hit.reached = hit.reached or number in inside
        if gone[bare] > 0:
            gone[bare] -= 1
            continue
        hit.lines.append((bare, number in inside))
        _name(hit, names.get(number))
    for gap in hit.diff.gaps:
        if gap in inside and gap + 1 in inside:
            _name(hit, names.get(gap))
    for head in hit.diff.heads if not hit.diff.path.endswith(".py") else ():
        found = HEAD_NAME.search(head)
        if found and found[1] not in hit.symbols:
            hit.context[found[1]] += 1


def _line_map(found: Iterable[spans.Span]) -> tuple[set[int], dict[int, spans.Span]]:
    """Lines inside kernels, and the innermost function of each line."""
    inside: set[int] = set()
    names: dict[int, spans.Span] = {}
    for span in found:
        lines = range(span.first, span.last + 1)
        for number in lines:
            names[number] = span
        if span.kernel:
            inside.update(lines)
    return inside, names


def _name(hit: Hit, span: spans.Span | None) -> None:
    if span is not None:
        (hit.symbols if span.entry else hit.context)[span.name] += 1


def _touches(hit: Hit) -> bool:
    """Whether kernel source changed: in Python only lines inside kernels, or lines that choose a launch, say so."""
    if hit.host:
        return bool(_terms([hit]))
    if hit.kind == "compiler" or not hit.diff.path.endswith(".py"):
        return bool(hit.diff.added or hit.diff.removed)
    return bool(hit.reached or hit.symbols or _terms([hit]))


def counted(hit: Hit) -> list[str]:
    """Added lines in which mechanisms are looked for."""
    if hit.kind == "compiler" or not hit.diff.path.endswith(".py"):
        return [text for text, _ in hit.lines if not COMMENT.match(text)]
    return [text for text, inside in hit.lines if inside and not text.startswith("#")]


def _terms(hits: Iterable[Hit]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for hit in hits:
        totals.update(tokens.count(counted(hit)))
        if hit.diff.path.endswith(".py") and hit.kind != "compiler":
            outside = tokens.count(text for text, inside in hit.lines if not inside and not text.startswith("#"))
            chosen = outside if hit.kind == "tuner" else {k: n for k, n in outside.items() if k in tokens.LAUNCH}
            totals.update(chosen)
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


def _record(change: Change, source: Source, hits: list[Hit]) -> Facts:
    terms = _terms(hits)
    symbols, context = _names(hit.symbols for hit in hits), _names(hit.context for hit in hits)
    kernel_paths = [hit.diff.path for hit in hits]
    lines = [text for hit in hits for text in counted(hit)]
    said = change.said
    tally = facets.tally(
        paths=kernel_paths, kernels=symbols, context=context, lines=lines, algorithms=said.algorithms,
        named={"dtype": said.dtypes, "family": said.families},
    )  # fmt: skip
    found = _archs(said, hits, symbols, context, terms)
    kernel_lines = sum(inside for hit in hits for _, inside in hit.lines)
    benches = _of(change, paths.is_bench)
    choice = tiers.choose(_weight(change, hits, terms, kernel_lines, len(benches)))
    dtypes = tally.values("dtype", facets.LINES_FOR_DTYPE)
    families = tally.values("family", 1)
    if any(hit.kind == "compiler" for hit in hits):
        families = tuple(sorted({*families, "compiler"}))
    kinds = tuple(sorted({hit.kind for hit in hits}))
    chosen = {*(f"dtype:{v}" for v in dtypes), *(f"family:{v}" for v in families)}
    evidence = {f"arch:{arch}": found[arch] for arch in sorted(found)}
    evidence |= {key: tally.seen[key] for key in sorted(chosen) if key in tally.seen}
    for kind in kinds:
        evidence[f"dsl:{kind}"] = {"files": sum(hit.kind == kind for hit in hits)}
    return Facts(
        id=change.id,
        repo=source.repo,
        pr=change.pr,
        sha=change.sha,
        merged_at=change.date,
        how=change.how,
        tier=choice.tier,
        why=choice.why,
        score=choice.score,
        label=_label(kinds, families, tuple(found), dtypes, terms, symbols or context),
        archs=tuple(found),
        dtypes=dtypes,
        families=families,
        kinds=kinds,
        evidence=evidence,
        n_files=len(change.files) + len(change.unread),
        files=_files(change, kernel_paths),
        kernel_files=tuple(kernel_paths[:MOST_PATHS]),
        test_files=_of(change, paths.is_test),
        bench_files=benches,
        config_files=sum(paths.is_table(diff.path) for diff in change.files),
        kadd=sum(hit.diff.add for hit in hits),
        kdel=sum(hit.diff.deleted for hit in hits),
        knet=sum(len(hit.lines) for hit in hits),
        kernel_lines=kernel_lines,
        symbols=symbols,
        context=context,
        diff_terms=terms,
        claims=said.claims,
        words=said.words,
    )


def _archs(
    said: Said, hits: list[Hit], symbols: tuple[str, ...], context: tuple[str, ...], terms: Mapping[str, int]
) -> dict[str, dict[str, int]]:
    """Architectures, each with what says so."""
    seen = archs.Said()
    seen.add(said.archs, "title")
    for hit in hits:
        seen.add(archs.named(hit.diff.path), "paths")
        for text in counted(hit):
            seen.line(text)
    for name in symbols:
        seen.add(archs.named(name), "symbols")
    for name in context:
        seen.add(archs.named(name), "around")
    return seen.conclude(terms, (hit.text for hit in hits if hit.symbols and hit.kind != "compiler"))


def _weight(change: Change, hits: list[Hit], terms: Mapping[str, int], kernel_lines: int, benches: int) -> tiers.Weight:
    return tiers.Weight(
        said=change.said,
        terms=dict(terms),
        kernel_lines=kernel_lines,
        knet=sum(len(hit.lines) for hit in hits),
        n_files=len(change.files) + len(change.unread),
        new_kernels=sum(hit.diff.path in change.new_paths or _declares(hit) for hit in hits),
        other_files=all(paths.other_hardware(hit.diff.path) for hit in hits),
        compiler_only=all(hit.kind == "compiler" for hit in hits),
        benches=benches,
    )


def _declares(hit: Hit) -> bool:
    return any(NEW_KERNEL.search(text) for text, _ in hit.lines)


def _names(counters: Iterable[Counter[str]]) -> tuple[str, ...]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return tuple(sorted(total, key=lambda name: (-total[name], name))[:MOST_NAMES])


def _of(change: Change, test: Callable[[str], bool]) -> tuple[str, ...]:
    added = {diff.path: diff.add for diff in change.files if test(diff.path)}
    return tuple(sorted(added, key=lambda path: (-added[path], path))[:MOST_PATHS])


def _files(change: Change, kernel_paths: list[str]) -> tuple[File, ...]:
    kernels = set(kernel_paths)

    def rank(diff: FileDiff) -> tuple[int, int, str]:
        place = 0 if diff.path in kernels else 1 if paths.is_test(diff.path) else 2 if paths.is_bench(diff.path) else 3
        return place, -diff.add, diff.path

    rows = [
        File(path=diff.path, add=None if diff.binary else diff.add, del_=None if diff.binary else diff.deleted)
        for diff in sorted(change.files, key=rank)
    ]
    return (*rows, *(File(path=path, add=None, del_=None) for path in sorted(change.unread)))[:MOST_FILES]


def _label(
    kinds: tuple[str, ...], families: tuple[str, ...], targets: tuple[str, ...], dtypes: tuple[str, ...],
    terms: Mapping[str, int], names: tuple[str, ...],
) -> str:  # fmt: skip
    """``triton gemm, fp8, sm90: tma 12, swizzle 3; in _matmul``."""
    what = " ".join(["/".join(kinds), "/".join(families[:3]) or "kernel"])
    head = ", ".join([what, *(["/".join(dtypes[:3])] if dtypes else []), *(["/".join(targets[:3])] if targets else [])])
    means = ", ".join(f"{name} {lines}" for name, lines in list(terms.items())[:5]) or "no mechanism named"
    return f"{head}: {means}{f'; in {names[0]}' if names else ''}"[:240]
