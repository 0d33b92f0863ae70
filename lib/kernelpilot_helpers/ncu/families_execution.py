"""Edit families of execution: arithmetic, tensor cores, latency."""

from __future__ import annotations

from collections.abc import Mapping

from kernelpilot_helpers.ncu.family import Family

EXECUTION: Mapping[str, Family] = {
    "exec.divergence": Family(
        id="uniform-warps",
        what="Map the branch to whole warps: sort or group the work so that the 32 lanes of a warp take the same "
        "path, or use predicated arithmetic for the short side.",
        role="lanes",
        toward="32",
        guard="bytes used per sector (the new order must stay coalesced)",
        words="warp divergence",
    ),
    "lat.occupancy": Family(
        id="resource-cut",
        what="Cut the limiting resource so that several blocks fit an SM, and launch that many blocks: then waits "
        "of one block hide behind the work of another.",
        role="occupancy_theoretical",
        toward="the next step of the limiter",
        guard="bytes moved (smaller tiles reuse less)",
        refute="occupancy rises and the duration stays: latency was not the limit",
        words="occupancy registers",
    ),
    "lat.dependency": Family(
        id="independent-work",
        what="Give each thread two or four independent accumulators or rows, so that an instruction does not wait "
        "for the one before it.",
        role="issue",
        toward="60 % or more",
        guard="registers per thread (no spills)",
        words="instruction level parallelism",
    ),
    "lat.dependency/short_scoreboard": Family(
        id="independent-work",
        what="Read the next operands from shared memory (or start the next special function) before the current "
        "ones are used: software-pipeline the inner loop by one step.",
        role="top_stall_share",
        toward="below 30 %",
        guard="registers per thread (no spills)",
        words="software pipelining shared memory latency",
    ),
    "lat.dependency/dispatch_stall": Family(
        id="independent-work",
        what="Order the inner loop so that neighbouring instructions share an operand (an outer product over a "
        "register tile) and alternate between pipes: the dispatcher holds instructions back that want the same "
        "register ports or pipe.",
        role="top_stall_share",
        toward="below 30 %",
        guard="registers per thread (no spills)",
        words="register bank conflict instruction order",
    ),
    "lat.dependency/branch_resolving": Family(
        id="independent-work",
        what="Take branches out of the inner loop: unroll it by a constant, replace short branches by predicated or "
        "select instructions, keep calls inlined.",
        role="top_stall_share",
        toward="below 30 %",
        guard="instructions executed and the size of the loop's code",
        words="loop unroll branch predication",
    ),
    "lat.barrier": Family(
        id="fewer-barriers",
        what="Replace the block-wide step by a warp-wide one (shuffles), or do two pieces of work per barrier; "
        "give every warp the same work before it.",
        role="top_stall_share",
        toward="below 30 %",
        guard="instructions executed",
        words="barrier warp shuffle",
    ),
    "lat.barrier/reduction": Family(
        id="fewer-barriers",
        what="Reduce inside each warp by shuffles first, so that one barrier and one value a warp are left for the"
        " block; let one warp own a row where rows are short.",
        role="top_stall_share",
        toward="below 30 %",
        guard="the error of the changed sum order",
        risk=2,
        words="warp shuffle reduction barrier",
    ),
    "lat.membar": Family(
        id="narrow-fence",
        what="Narrow the fence's scope to the block, or move it out of the loop.",
        role="top_stall_share",
        toward="below 15 %",
        guard="correctness (the racing test)",
        risk=2,
        words="memory fence scope",
    ),
    "lat.warpgroup_skew": Family(
        id="more-stages",
        what="Add a pipeline stage between the copy and the matrix instructions (cut tile N if shared memory is "
        "full), so that operands are there when they are asked for.",
        role="tensor",
        toward="60 % or more",
        guard="shared memory per block",
        words="wgmma pipeline stages",
    ),
    "lat.icache": Family(
        id="smaller-body",
        what="Unroll less, or split the kernel, so that the hot loop fits the instruction cache.",
        role="top_stall_share",
        toward="below 20 %",
        guard="instructions executed",
        words="unroll instruction cache",
    ),
    "lat.imc": Family(
        id="constants-close",
        what="Read the constants once into registers or shared memory before the loop; index constant memory by "
        "the same value in all lanes.",
        role="top_stall_share",
        toward="below 15 %",
        guard="registers per thread",
        words="constant memory",
    ),
    "exec.tensor_bound": Family(
        id="overlap-epilogue",
        what="Overlap what is not matrix work with matrix work: let two consumer warpgroups alternate (ping-pong),"
        " so that the epilogue of one runs under the matrix instructions of the other, and store by TMA.",
        role="tensor",
        toward="80 % or more",
        guard="registers per thread (no spills) and shared memory per block",
        words="epilogue overlap ping-pong warp specialization",
    ),
    "exec.tensor_bound/attention": Family(
        id="overlap-epilogue",
        what="Run the softmax of one tile under the matrix instructions of the other: two consumer warpgroups in "
        "turns, and part of the exponentials as a polynomial on the FMA pipe.",
        role="tensor",
        toward="80 % or more",
        guard="registers per thread (no spills) and the error of the softmax",
        words="flash attention softmax overlap ping-pong",
    ),
    "exec.tensor_bound/tcgen": Family(
        id="overlap-epilogue",
        what="Give the accumulator two TMEM buffers, so that the epilogue drains one while the matrix instructions"
        " fill the other; pair two SMs on one tile (2-CTA MMA) where operands limit.",
        role="tensor",
        toward="80 % or more",
        guard="TMEM columns and shared memory per block",
        words="tmem double buffer epilogue 2cta tcgen05",
    ),
    "exec.tensor_bound/mma": Family(
        id="overlap-epilogue",
        what="Keep matrix instructions back to back: one more stage of asynchronous copies, fragments for step k+1"
        " loaded while step k multiplies, a larger tile a warp.",
        role="tensor",
        toward="80 % or more",
        guard="registers per thread (no spills) and shared memory per block",
        words="mma pipelining ldmatrix double buffer",
    ),
    "exec.tensor_missing": Family(
        id="use-tensor-cores",
        what="Compute the product with matrix instructions (a library call, WGMMA or mma.sync through CUTLASS or "
        "Triton's dot) in the widest input type that the contract's error bound allows.",
        role="tensor",
        toward="50 % or more",
        guard="the contract's error bound",
        risk=2,
        words="tensor core mma gemm",
    ),
    "exec.pipe_bound": Family(
        id="cheaper-mix",
        what="Execute fewer instructions per result on that pipe: packed or fused forms, address arithmetic out of"
        " the loop, a cheaper approximation where the tolerance allows.",
        role="busiest_pipe",
        toward="below 60 %",
        guard="correctness and the other pipes",
        words="instruction mix",
    ),
    "exec.pipe_bound/fma": Family(
        id="cheaper-mix",
        what="Execute fewer FMA-pipe instructions per result: hoist what every iteration repeats, use packed forms "
        "(half2 or bf16x2 where the contract allows; fma.rn.f32x2 from sm_100 on), and matrix instructions where the "
        "sums are products of tiles.",
        role="busiest_pipe",
        toward="below 60 %",
        guard="the contract's error bound and registers per thread (no spills)",
        risk=2,
        words="packed half2 fma instruction count",
    ),
    "exec.pipe_bound/xu": Family(
        id="cheaper-mix",
        what="Take work off the special-function pipe: a polynomial on the FMA pipe for part of the elements, exp2"
        " with a folded scale, one reciprocal in place of several divisions, no conversions in the loop.",
        role="busiest_pipe",
        toward="below 60 %",
        guard="the contract's error bound and the FMA pipe",
        risk=2,
        words="exp polynomial special function",
    ),
    "exec.pipe_bound/fp64": Family(
        id="cheaper-mix",
        what="Compute in a narrower type where the contract's error bound allows; look for literals and functions "
        "that are double by accident.",
        role="busiest_pipe",
        toward="below 60 %",
        guard="the contract's error bound",
        risk=2,
        words="fp64 precision",
    ),
    "exec.pipe_bound/alu": Family(
        id="cheaper-mix",
        what="Take integer and comparison work out of the loop: strength-reduced addresses, fast division by a "
        "constant, packed conversions, predicates computed once.",
        role="busiest_pipe",
        toward="below 60 %",
        guard="registers per thread",
        words="integer division address arithmetic",
    ),
    "exec.pipe_bound/issue": Family(
        id="cheaper-mix",
        what="Execute fewer instructions per result: wider loads and stores, packed half-precision or fused forms,"
        " addresses out of the loop, several elements a thread.",
        role="instructions",
        toward="fewer",
        guard="registers per thread (no spills)",
        words="vectorized instruction count",
    ),
}
