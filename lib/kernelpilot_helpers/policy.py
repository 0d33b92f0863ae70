"""Every promised number, once. Documents and skills are generated from here; nothing else spells them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Tier:
    """How much is measured before a verdict. Looks, alpha and coverage were chosen by simulation."""

    name: str
    looks: tuple[int, ...]
    """Cross-over pairs at each look; every entry is even (half start A first, half B)."""
    alpha: float
    """Two-sided error per look: three looks at 2.2 % keep the whole near 5 %."""
    blocks: int
    """Timed blocks per (pair, case, arm)."""
    confirm: bool
    """An IMPROVED must be seen again on fresh processes and seeds before it is recorded."""
    may_improve: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class DevicePolicy:
    """What a device's noise allows one to claim. Ratios are fractions: 0.01 is 1 %."""

    kind: str
    floor_max: float
    """A/A half-width above this: the machine is unfit for a verdict."""
    noninferiority: float
    """A required case whose lower bound lies below -this blocks IMPROVED."""
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Numerics:
    """Error limits in units of the baseline's own error; a contract may only tighten them."""

    rms_ratio: float = 1.5
    tile_ratio: float = 3.0
    max_ratio: float = 2.0
    bias_sigma: float = 4.0
    max_slack_ulp: float = 2.0
    """Added to max_ratio x the baseline's worst error."""
    bias_slack_ulp: float = 0.25
    """A bias must also exceed the baseline's by this much, or honest rounding differences would be flagged."""
    baseline_rms_max_ulp: float = 4096.0
    """A baseline further than this from the reference disagrees with it: the contract is refused."""


SCREEN = Tier(name="screen", looks=(2,), alpha=0.022, blocks=12, confirm=False, may_improve=False)
ACCEPT = Tier(name="accept", looks=(6, 10, 20), alpha=0.022, blocks=20, confirm=True, may_improve=True)
CLAIM = Tier(name="claim", looks=(10,), alpha=0.01, blocks=32, confirm=True, may_improve=True)
TIERS = {t.name: t for t in (SCREEN, ACCEPT, CLAIM)}
GPU_TIERS = {
    name: dataclasses.replace(tier, blocks=blocks)
    for (name, tier), blocks in zip(TIERS.items(), (8, 12, 16), strict=True)
}
"""On a GPU pairs decide and blocks hardly do (measured: the spread lies between pairs): fewer blocks."""


def tiers(kind: str) -> dict[str, Tier]:
    """The tiers of a device kind, ``cpu`` or ``gpu``."""
    return GPU_TIERS if kind == "gpu" else TIERS


CPU = DevicePolicy(
    kind="cpu",
    floor_max=0.05,
    noninferiority=0.10,
    note="CPU figures show the mechanism, not the kernel.",
)
GPU = DevicePolicy(kind="gpu", floor_max=0.01, noninferiority=0.02, note="")
DEVICES = {d.kind: d for d in (CPU, GPU)}

NUMERICS = Numerics()


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The loop's and the referee's promises."""

    max_rounds: int = 84
    weak_gain: float = 0.01
    """Point estimate of a round's gain over the prior best below this: a weak round."""
    weak_rounds: int = 2
    """This many in a row: look for new ideas before the next attempt."""
    plateau_rounds: int = 4
    """Weak rounds in a row after which the round ends only with a decision: stop, pivot, or go on and why."""
    research_sources: int = 50
    research_code_share: float = 0.5
    """More than this share of them is code, and that comes first: prose before it does not count."""
    same_band: float = 0.01
    """SAME: both one-sided tests inside +- this."""
    profile_band: float = 0.02
    """Within +- this of the baseline: profile."""
    improved_point: float = 0.005
    """IMPROVED needs at least this as point estimate, whatever the interval says."""
    research_hypotheses: int = 5
    """Written ideas (mechanism, expected metric) that a research expansion must end in."""
    far_off: float = 10.0
    """This many times away from what was expected, in either direction: explain it before going on."""
    near_peak: float = 0.85
    aa_minutes: int = 60
    """An A/A floor is valid this long on the same boot, device and driver."""
    verify_seeds: int = 3
    recheck_share: float = 0.10
    """Share of timed blocks whose outputs are compared with the reference, picked at random."""
    wall_ratio_max: float = 1.5
    """Parent's wall clock over the worker's ticks, beyond a fixed allowance per block: more is a lying clock."""
    wall_slack_us: float = 1500.0
    clock_disagree: float = 0.20
    """The worker's ticks and the parent's wall clock may differ by this share of a block's time ..."""
    clock_disagree_us: float = 100.0
    """... and by this much, after the incumbent's own overhead is taken off: beyond both is a lying clock."""
    charge_disagree: float = 0.03
    """The processor time charged beyond the worker's ticks may differ between the arms by this share of a block ..."""
    charge_disagree_us: float = 15.0
    """... and by this much (measured between honest arms: under 8 us at the median): beyond both is hidden work."""
    screen_gross: float = 2.0
    """Without an interval, REGRESSED needs every pair beyond this many non-inferiority margins."""
    gate_s: float = 900.0
    """How long the loop lets one evidence command run."""
    build_s: float = 120.0
    gpu_build_s: float = 300.0
    """A torch extension takes about 50 s, several sources more."""
    gpu_job_s: float = 900.0
    gpu_sample_us: float = 2000.0
    """A replay lasts at least this long: work below ``gpu_clock_disagree_us`` can hide in 3 % of it."""
    gpu_zygote_pairs: int = 10
    gpu_clock_disagree: float = 0.03
    """As ``clock_disagree``, for device time: unjoined work shows as time that only the parent saw ..."""
    gpu_clock_disagree_us: float = 60.0
    """... beyond this, after the incumbent's own usual overhead."""
    gpu_stamp_us: float = 2.0
    """Between the GPU's own timer around a timed span and the span as the worker reports it, beyond what that
    difference is for the incumbent: so much a span ..."""
    gpu_stamp_events_us: float = 15.0
    """The same for calls that could not be captured: the host submits the stamps one by one, and may be late ..."""
    gpu_stamp_share: float = 0.02
    """... and this share of the span; more is a lying clock."""
    gpu_stamp_gain_us: float = 0.4
    """A gain must also be there with all that the GPU's own timer saw of a span beyond this: honest arms differ by up
    to 0.3 us."""
    gpu_flush_share: float = 0.7
    """A cache flush that takes less of the incumbent's flush than this was not one."""
    library_share: float = 0.10
    """Share of a call's GPU time that kernels of others may take where library calls are forbidden."""
    sanitize_s: float = 60.0
    """One run of compute-sanitizer over one case."""
    call_s: float = 20.0
    job_s: float = 600.0
    lock_s: float = 900.0
    """How long one command waits for another's lock before it says who holds it."""
    scratch_keep: int = 20
    """Tries kept in .kernelpilot/scratch (a ring buffer)."""
    evidence_file_bytes_max: int = 8 * 1024 * 1024
    shingle_tokens: int = 24
    """A stretch of so many tokens that two files share is no accident; below it, idioms of the language are."""
    shared_tokens_max: int = 100
    """More tokens in such stretches: one file was made from the other. About ten lines; measured in docs/formats."""
    framework_source_bytes_max: int = 1024 * 1024
    """What a contract may name of a framework as its baseline's code: it is compared at every gate."""


POLICY = Policy()
