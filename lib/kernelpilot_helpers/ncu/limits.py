"""Thresholds of the decision list and bounds of the reader. Percentages are percent of the unit's peak.

Sources: *rule* = the rule scripts that NVIDIA ships with Nsight Compute; *guide* = its compute triage guide;
*ours* = chosen here and tried on kernels whose bottleneck is known by construction.
"""

from __future__ import annotations

from kernelpilot_helpers.policy import POLICY

MAX_BYTES = 64 * 1024 * 1024
"""A thousand launches of a full set."""
MAX_LINE = 4 * 1024 * 1024
"""A full set with instance values prints about 0.4 MB a row."""
MAX_COLUMNS = 20_000
MAX_LAUNCHES = 50_000
MAX_NAME = 400
LOCALE_CELLS = 20_000
"""Metric cells that are asked for the file's locale."""

BUSY = 60.0
"""rule: a unit below this is not the limiter; both below it is a latency problem."""
NEAR = 80.0
"""rule: near the limit."""
ROOF = POLICY.near_peak * 100
"""policy: at the roof; tuning the same instruction and byte stream is over."""
BALANCED = 10.0
"""rule: compute and memory this close are both limits."""
SAME_TIER = 5.0
"""ours: a memory tier this close to the roll-up is the tier that makes it."""
MARGIN = 10.0
"""ours: points beyond a threshold that make a reading clear."""
EXCESS_SECTORS = 0.30
"""ours: share of L2 sectors of global accesses beyond the ideal (guide: 1.5 times the ideal)."""
BYTES_PER_SECTOR = 16.0
"""guide: of 32."""
STORE_SHARE = 0.20
"""ours: stores below this share of the global sectors are not what a kernel's memory is busy with."""
CONFLICT = 0.10
"""rule: excess share of shared-memory wavefronts."""
LOCAL_SHARE = 0.05
"""ours: share of local memory in what passes L1."""
SPILL_INSTRUCTIONS = 0.10
"""ours: spill loads and stores as share of all instructions, where traffic by space was not captured."""
ATOMIC_SHARE = 0.25
"""ours: atomics and reductions as share of the sectors that L2 is asked for."""
REMOTE_SHARE = 0.40
"""rule: share of another aperture in what L2 misses."""
REMOTE_TRAFFIC = 0.05
"""ours: misses to another aperture as share of all L2 sectors; below it they are flags, not traffic."""
LANES = 24.0
"""rule: threads per instruction, of 32."""
LANE_WASTE = 0.25
"""ours: idle lanes of a block whose size is no multiple of 32."""
GRID_BOUND = 0.20
"""ours: idle SMs below this share are not worth a grid change."""
WAVES_SHORT = 0.8
"""ours: a launch below 10 us that fills less than this of one wave ends before the GPU is full."""
TAIL_BOUND = 0.20
"""rule: 1 / (1 + full waves)."""
IMBALANCE = 1.2
"""guide: busiest SM over the average SM."""
IMBALANCE_BOUND = 0.05
"""rule: (1 - average / maximum) x active / elapsed."""
SEVERE = 1 / 3
"""ours: idle SM time from which uneven SMs are named before waste and waits (busiest over average 1.5)."""
LAUNCH_CYCLES = 1500
"""ours: cycles of a kernel before its first and after its last block, at least (1,900 to 5,000 seen)."""
IDLE_RANGE = 0.10
"""guide: idle time of a range beyond this is orchestration."""
THEORETICAL = 40.0
"""ours: below this and no specialised pipeline, warps cannot hide latency."""
ACHIEVED = 60.0
"""guide."""
ISSUE = 50.0
"""guide: issue slots used below this are starved."""
STALL = 0.30
"""rule: share of the true stalls that names a reason; half of it with low confidence."""
TENSOR_USED = 5.0
"""ours: a kernel with more uses tensor cores on purpose."""
TENSOR_NEAR = 50.0
"""ours: with an MMA pipeline by design, this much of the tensor pipe is what limits it."""
PIPE_LOW = 20.0
"""rule: a pipe below this is hardly used."""
MOST = 0.75
"""ours: share of one pipe in the issued instructions from which full issue slots are that pipe's."""
MANY = 8
"""ours: launches of one kernel from which their number, not one of them, is the problem."""
SHORT_NS = 10_000.0
"""guide: counters are noisy below 10 us; a flag, never a reason to stay silent."""
FLOOR_NS = 5_000.0
"""ours: here a kernel's time is the launch itself."""
EMPTY = 10.0
"""ours: a short launch in which no unit is busier than this has next to nothing to do."""
STREAM_ROOF = 82.0
"""ours: copies by 16-byte vectors, each byte once, reach 82 to 92 % of the DRAM peak; no stream goes far beyond."""
STREAM_EXCESS = 0.05
"""ours: unused sectors of a stream whose every byte is wanted, and what caches may add to or take from its bytes."""
NEAR_MINIMUM = 1.10
"""ours: bytes moved over the least possible."""
CLOCKS_AGREE = 0.05
"""Duration against cycles over clock: beyond this a unit, locale or counter is wrong."""
SPREAD = 0.20
"""Durations of one group's launches: beyond this they do not do the same work."""
