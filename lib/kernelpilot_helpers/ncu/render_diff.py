"""A diff as a few lines of text and as a Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from kernelpilot_helpers import tables
from kernelpilot_helpers.ncu.change import Change, Diff, Pair, Side
from kernelpilot_helpers.ncu.plain import clean, code, escaped
from kernelpilot_helpers.ncu.render import amount, delta

_SHOWN = 5
_HEADLINE = ("duration", "cycles", "clock", "dram_bytes", "instructions")


def text(diff: Diff) -> str:
    """Verdict, time, what moved in the kernels with most time, and what is in one report only."""
    noise = f"noise {diff.noise.share:.1%} ({diff.noise.source})"
    lines = [f"verdict  {diff.verdict.replace('_', ' ')}{' (plateau)' if diff.plateau else ''}",
             f"time     {_move(diff.time)}; {noise}"]  # fmt: skip
    lines += [f"reason   {clean(reason, 240)}" for reason in diff.reasons]
    for pair in diff.pairs[:_SHOWN]:
        lines += _lines(pair)
    lines += [f"only in  baseline: {clean(side.kernel)}" for side in diff.only_baseline[:_SHOWN]]
    lines += [f"only in  candidate: {clean(side.kernel)}" for side in diff.only_candidate[:_SHOWN]]
    lines += [f"note     {clean(flag, 240)}" for flag in diff.flags]
    return "\n".join(lines)


def _lines(pair: Pair) -> list[str]:
    moved = ", ".join(delta(c) for c in pair.changes if c.role in _HEADLINE and c.delta is not None)
    limiter = pair.candidate.name if not pair.shifted else f"{pair.baseline.name} to {pair.candidate.name}"
    lines = [f"kernel   {clean(pair.candidate.kernel)} (matched by {pair.matched})", f"  moved  {moved or 'unknown'}",
             f"  class  {limiter}{' (plateau)' if pair.plateau else ''}"]  # fmt: skip
    if pair.stalls:
        lines.append("  stalls " + ", ".join(delta(c) for c in pair.stalls[:3]))
    if pair.reach is not None and pair.reach.same_code is not None:
        lines.append(f"  code   {clean(pair.reach.text, 240)}")
    return lines


def _words(found: Diff | Pair) -> str:
    return found.verdict.replace("_", " ") + (", plateau" if found.plateau else "")


def _move(change: Change) -> str:
    before, after = (("n/a" if v is None else amount(v, change.unit)) for v in (change.baseline, change.candidate))
    return f"{before} to {after}, {'n/a' if change.delta is None else f'{change.delta * 100:+.2f} %'}"


def markdown(diff: Diff) -> str:
    """The whole diff as a page."""
    parts = [
        f"# Baseline {code(diff.baseline.name)} against candidate {code(diff.candidate.name)}\n",
        f"**{_words(diff)}**: {_move(diff.time)}; noise {diff.noise.share:.1%} ({diff.noise.source}).\n",
        *(f"- Not comparable: {escaped(reason)}" for reason in diff.reasons),
        *(f"- {escaped(flag)}" for flag in diff.flags),
        f"- Files: `{diff.baseline.sha256}` and `{diff.candidate.sha256}`\n",
    ]
    for pair in diff.pairs:
        parts += _page(pair)
    parts += _lone("Only in the baseline", diff.only_baseline) + _lone("Only in the candidate", diff.only_candidate)
    return "\n".join(parts) + "\n"


def _page(pair: Pair) -> list[str]:
    shift = f"{pair.baseline.name} ({pair.baseline.busiest}) to {pair.candidate.name} ({pair.candidate.busiest})"
    return [
        f"## {code(pair.candidate.kernel)}\n",
        f"Matched by {pair.matched}; {_words(pair)}. Limiter: {escaped(shift)}.\n",
        *([f"{escaped(pair.reach.text)}.\n"] if pair.reach is not None else []),
        tables.render(["Metric", "Baseline", "Candidate", "Delta", "Interpretation"], _rows(pair.changes)),
        *(["Warp cycles lost, by reason:\n", tables.render(["Stall", "Baseline", "Candidate", "Delta", "Metric"],
           [[*row[:4], code(c.metric)] for row, c in zip(_rows(pair.stalls), pair.stalls, strict=True)])]
          if pair.stalls else []),
    ]  # fmt: skip


def _rows(changes: Sequence[Change]) -> list[list[str]]:
    return [
        [c.role, *(("not in the file" if v is None else amount(v, c.unit)) for v in (c.baseline, c.candidate)),
         "n/a" if c.delta is None else f"{c.delta * 100:+.1f} %", c.says]
        for c in changes
    ]  # fmt: skip


def _lone(title: str, sides: Sequence[Side]) -> list[str]:
    return [f"## {title}\n", *(f"- {code(s.kernel)}, grid {code(s.grid or 'none')}" for s in sides)] if sides else []
