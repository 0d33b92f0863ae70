"""Figures of speed: ratios in words and alone are found; sizes, types and shares are none."""

from __future__ import annotations

import pytest

from kernelpilot_helpers.knowledge import check_speed

RATIOS = """\
It cuts the time in half.
It cuts latency in half on long rows.
The run time drops by half.
It runs in half the time.
It is 2x.
It gives 2x on long rows.
A win of up to 3x over the baseline.
It reaches nearly 2x.
| H100 | 2x |
- 2x on H100
A 2x win for decode.
2x higher throughput
2x the throughput
two times the speed
It is three times as fast.
It is twice faster.
It doubles decode throughput.
It doubled its throughput.
Throughput doubles.
The latency has nearly halved.
It halves the kernel's run time.
It triples the bandwidth.
A doubling of throughput.
It is an order of magnitude faster.
It is orders of magnitude slower.
It wins an order of magnitude.
Latency falls by an order of magnitude.
It takes half as long.
It runs twice as long.
A third of the time.
a tenfold speedup
five-fold improvement
a twofold increase in throughput
It is faster by a third.
It lowers latency by a quarter.
twenty percent faster
It doubles throughput.
It speeds decode up by half.
""".splitlines()
"""Ratios in words, and ratios that stand alone."""
SIZES = """\
A 2x2 tile with a 2x unroll.
2xfp16 in one register
half of the warps
half precision, in half precision
The tile is cut in half.
unroll by 2x
Unroll 2x or 4x.
2x the registers
It halves the bytes and doubles the tile.
A 64-row block reads B twice as often.
sequences twice as long
The fp32 output tile is twice as large.
The error is an order of magnitude larger.
one third of the warps
a quarter warp
loads in half, one tile at a time
It doubles build time.
Three times as many blocks as SMs.
a grid of 2x the SMs
At most two times the L2.
split in half for the two warpgroups
a latency of half a wave
reads tokens in half
double-buffer and half the tile
two CTAs, each half of B
The row times a scale, half the columns in time order.
1x1 cluster, 2x1 for M > 64
compute it twice in time step 3
a factor of two
sm90 | 128x128 | 2x1
every second time step, half of them
x2 loads, .x4 matrices
""".splitlines()
"""What is counted, split or typed, and no speed."""


@pytest.mark.parametrize("line", RATIOS)
def test_a_ratio_in_words_or_alone_is_a_figure_of_speed(line: str) -> None:
    """Breaks when a measured ratio passes unsourced because no figure with its unit stands in it."""
    assert check_speed.figure_of(line)


@pytest.mark.parametrize("line", SIZES)
def test_a_tile_a_type_a_share_and_a_count_are_no_figure_of_speed(line: str) -> None:
    """Breaks when tiles, unrolling, packed types, halves of warps or sizes need a source as if they were measured."""
    assert check_speed.figure_of(line) == ""
