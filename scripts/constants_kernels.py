"""CUDA sources of scripts/gpu_constants.py: loops whose clock cycles are those of one instruction or one transfer.

Thread 0 writes the cycles of the timed loop to ``t[0]``; where it has company, the loop stands between two barriers.
"""

from __future__ import annotations

import dataclasses

REPEATS = 512
"""Turns of a timed loop, unrolled by 32."""
BYTES_LDS = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe:
    """One kernel: ``figure`` is what its cycles say, ``count`` how many of that happened on the SM."""

    name: str
    group: str
    figure: str
    """``cycles each`` (cycles / count), ``each cycle`` (count / cycles)."""
    body: str
    count: int
    threads: int = 32
    needs: int = 0
    """Oldest compute capability."""
    setup: str = ""
    smem: int = 0
    last: str = ""
    """Added to what is stored, so that nothing is dead."""


def chain(name: str, step: str, *, needs: int = 0) -> Probe:
    """Latency: each turn needs the last one's result ``v`` (float) or ``u`` (unsigned)."""
    return Probe(name=name, group="latency", figure="cycles each", body=step, count=REPEATS, needs=needs)


def full(name: str, step: str, *, per: int = 1, needs: int = 0, smem: int = 0) -> Probe:
    """Throughput of one SM: 1,024 threads, four independent values each, ``per`` operations a value and turn."""
    body = "".join(step.replace("$", str(ix)) for ix in range(4))
    return Probe(
        name=name, group="throughput", figure="each cycle", body=body, count=REPEATS * 1024 * 4 * per, threads=1024,
        needs=needs, smem=smem,
    )  # fmt: skip


def barrier(threads: int) -> Probe:
    """Cycles of a block-wide barrier."""
    return Probe(
        name=f"bar.sync, {threads} threads", group="barrier", figure="cycles each", body="__syncthreads();",
        count=REPEATS, threads=threads,
    )  # fmt: skip


def conflict(stride: int) -> Probe:
    """Cycles of a warp's 4-byte shared load whose lanes lie ``stride`` words apart, 32 warps at once."""
    step = "u0 += s[(base + u0) & 8191];"
    setup = f"const unsigned base = (threadIdx.x % 32) * {stride}; u0 = 0;"
    return Probe(
        name=f"ld.shared.b32, stride {stride} words", group="shared memory", figure="cycles each", body=step,
        count=REPEATS * 32, threads=1024, setup=setup, smem=32768,
    )  # fmt: skip


def mma(warps: int) -> Probe:
    """mma.sync m16n8k16 of bf16: one warp's latency, or the rate of an SM whose warps have two accumulators each."""

    def one(acc: str) -> str:
        outs = ", ".join(f'"+f"({acc}{ix})' for ix in range(4))
        return (
            'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, '
            f'{{%0,%1,%2,%3}};" : {outs} : "r"(u0));'
        )

    if warps == 1:
        return Probe(name="mma.sync m16n8k16 bf16", group="latency", figure="cycles each", body=one("v"), count=REPEATS)
    return Probe(
        name=f"mma.sync m16n8k16 bf16, {warps} warps", group="tensor", figure="FLOP each cycle",
        body=one("v") + one("x"), setup="float x0 = 0, x1 = 0, x2 = 0, x3 = 0;", last=" + x0 + x1 + x2 + x3",
        count=2 * REPEATS * warps * 2 * 16 * 8 * 16, threads=32 * warps,
    )  # fmt: skip


def wgmma(n: int, warpgroups: int = 1) -> Probe:
    """wgmma m64nNk16 of bf16, both operands in shared memory, back to back into one accumulator."""
    regs = n // 2
    names = ", ".join(f"%{ix}" for ix in range(regs))
    outs = ", ".join(f'"+f"(acc[{ix}])' for ix in range(regs))
    step = (
        f'asm volatile("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{names}}}, '
        f'%{regs}, %{regs}, 1, 1, 1, 0, 0;"'
        f' : {outs} : "l"(desc));'
    )
    setup = (
        f"float acc[{regs}]; for (int i = 0; i < {regs}; i++) acc[i] = 0.f;"
        "const unsigned long long desc = ((unsigned long long)(__cvta_generic_to_shared(s) & 0x3ffff) >> 4)"
        " | (8ull << 16) | (16ull << 32);"
        'asm volatile("wgmma.fence.sync.aligned;");'
    )
    return Probe(
        name=f"wgmma m64n{n}k16 bf16, {warpgroups} warpgroup{'s' * (warpgroups > 1)}", group="tensor",
        figure="FLOP each cycle", body=step, count=REPEATS * warpgroups * 2 * 64 * n * 16, threads=128 * warpgroups,
        needs=90, setup=setup, smem=32768,
        last="".join(f" + acc[{ix}]" for ix in range(regs)),
    )  # fmt: skip


CVT = 'asm volatile("cvt.rn.bf16x2.f32 %0, %1, %1;" : "+r"(u$) : "f"(__uint_as_float(u$)));'
PROBES = (
    chain("fma.f32", "v0 = fmaf(v0, 1.0001f, 0.5f);"),
    chain("ex2.approx.f32", 'asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(v0));'),
    chain("rsqrt.approx.f32", 'asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(v0));'),
    chain("tanh.approx.f32", 'asm volatile("tanh.approx.f32 %0, %0;" : "+f"(v0));', needs=75),
    chain("shfl.sync.bfly", "u0 += __shfl_xor_sync(0xffffffffu, u0, 1);"),
    chain("redux.sync.add", "u0 = __reduce_add_sync(0xffffffffu, u0);", needs=80),
    chain("imad.u32", "u0 = u0 * u0 + 1u;"),
    chain("u32 division by a runtime value", "u0 = (u0 + 77777u) / (unsigned)n;"),
    chain("u64 division by a runtime value", "w0 = (w0 + 777777777ull) / (unsigned long long)n;"),
    chain("fma.f64", "d0 = fma(d0, 1.0001, 0.5);"),
    mma(1),
    full("fma.f32", "v$ = fmaf(v$, 1.0001f, 0.5f);"),
    full("fma.bf16x2 (two each)", 'asm volatile("fma.rn.bf16x2 %0, %0, %0, %0;" : "+r"(u$));', per=2, needs=80),
    full("ex2.approx.f32", 'asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(v$));'),
    full("cvt.rn.bf16x2.f32 (two each)", CVT, per=2, needs=80),
    full("imad.u32", "u$ = u$ * u$ + 1u;"),
    full("shfl.sync.bfly", "u$ += __shfl_xor_sync(0xffffffffu, u$, 1);"),
    full("fma.f64", "d$ = fma(d$, 1.0001, 0.5);"),
    barrier(64), barrier(128), barrier(256), barrier(512), barrier(1024),
    conflict(1), conflict(2), conflict(4), conflict(8), conflict(16), conflict(32), conflict(33),
    mma(4), mma(8), mma(16), mma(32),
    wgmma(8), wgmma(16), wgmma(32), wgmma(64), wgmma(128), wgmma(256), wgmma(64, 2), wgmma(128, 2), wgmma(256, 2),
)  # fmt: skip

HEAD = """extern "C" __global__ void __launch_bounds__({threads}) probe(long long* t, float* out, int n) {{
  {shared}
  float v0 = threadIdx.x, v1 = v0 + 1, v2 = v0 + 2, v3 = v0 + 3;
  unsigned u0 = threadIdx.x * 0x3f803f80u, u1 = u0 + 1, u2 = u0 + 2, u3 = u0 + 3;
  unsigned long long w0 = threadIdx.x;
  double d0 = v0, d1 = v1, d2 = v2, d3 = v3;
  {setup}
  __syncthreads();
  const long long begin = clock64();
  #pragma unroll 32
  for (int i = 0; i < {repeats}; i++) {{ {body} }}
  {wait}
  __syncthreads();
  const long long end = clock64();
  if (threadIdx.x == 0) t[0] = end - begin;
  out[threadIdx.x] = v0 + v1 + v2 + v3 + u0 + u1 + u2 + u3 + w0 + (float)(d0 + d1 + d2 + d3) {last};
}}
"""
FILL = "__shared__ __align__(128) unsigned s[{words}]; for (int i = threadIdx.x; i < {words}; i += {threads}) s[i] = 0;"
WAIT = 'asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");'


def source(probe: Probe) -> str:
    """The probe as CUDA C++."""
    async_mma = probe.name.startswith("wgmma")
    return HEAD.format(
        threads=probe.threads, repeats=REPEATS, body=probe.body, setup=probe.setup, last=probe.last,
        wait=WAIT if async_mma else "",
        shared=FILL.format(words=probe.smem // 4, threads=probe.threads) if probe.smem else "",
    )  # fmt: skip


CHASE = r"""
extern "C" __global__ void chase(const long long* p, long long* t, long long* out, int turns, int warm) {
  const long long* at = p;
  for (int i = 0; i < warm; i++) asm volatile("ld.global.WHERE.u64 %0, [%0];" : "+l"(at));
  const long long begin = clock64();
  #pragma unroll 8
  for (int i = 0; i < turns; i++) asm volatile("ld.global.WHERE.u64 %0, [%0];" : "+l"(at));
  out[0] = (long long)at;
  t[0] = clock64() - begin;
}
extern "C" __global__ void chase_shared(long long* t, unsigned* out, int turns) {
  __shared__ unsigned s[1024];
  for (int i = 0; i < 1024; i++) s[i] = (i * 4 + 132) % 4096;
  unsigned at = (unsigned)__cvta_generic_to_shared(s), base = at, off = 0;
  const long long begin = clock64();
  #pragma unroll 8
  for (int i = 0; i < turns; i++) { asm volatile("ld.shared.u32 %0, [%1];" : "=r"(off) : "r"(base + off)); }
  out[0] = off;
  t[0] = clock64() - begin;
}
extern "C" __global__ void adds(unsigned* p, int mode, int turns) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* at = mode == 0 ? p : mode == 1 ? p + (i / 32) * 32 : p + i;
  for (int k = 0; k < turns; k++) asm volatile("red.global.add.u32 [%0], 1;" :: "l"(at) : "memory");
}
"""
