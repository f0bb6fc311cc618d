"""A trace of ``dmat`` with accesses that are known, as the hook would write it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from tests.analysis.dmat_files import Launch
from tests.trace.make import EPOCH_NS, TraceWriter

A, B, C = 0x7F20_0000_0000, 0x7F20_0020_0000, 0x7F30_0000_0000
SIZE = 1 << 16
PTX = """\
.version 8.4
.target sm_90
.address_size 64
.visible .entry stream(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
.reg .b64 %rd<4>;
.reg .f32 %f<3>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u64 %rd3, [c];
.loc 1 7 3
ld.global.f32 %f1, [%rd1];
.loc 1 8 3
ld.global.f32 %f2, [%rd2];
.loc 1 11 5
st.global.f32 [%rd3], %f1;
ret;
}
.file 1 "/src/stream.cu"
"""
LOAD_A, LOAD_B, STORE_C = 12, 14, 16
"""Lines of the accesses."""
BLOCKS, THREADS, STEPS = 32, 64, 12


@cache
def stream() -> Launch:
    """Blocks in two waves. Each block streams through its part of A (coalesced) and all through the start of B, then
    each thread stores one word to C, 128 bytes from its neighbour's: 32 sectors per request.
    """
    accesses: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for block in range(BLOCKS):
        for thread in range(THREADS):
            made = []
            lane = 4 * thread
            for step in range(STEPS):
                at = 40 + 150 * step + 4 * (thread // 32)
                made.append((at, A + block * SIZE // BLOCKS + (step * 4 * THREADS + lane) % (SIZE // BLOCKS), LOAD_A))
                made.append((at + 30, B + step * 4 * THREADS + lane, LOAD_B))
            made.append((40 + 150 * STEPS + 4 * (thread // 32), C + (block * THREADS + thread) * 128, STORE_C))
            accesses[block, thread] = made
    entries = [1000 * (block % 4) // 4 + 2500 * (block // 16) + 11 * (block % 16) for block in range(BLOCKS)]
    return Launch(BLOCKS, THREADS, accesses, entries)


@cache
def _content(capacity: int, *, compact: bool) -> bytes:
    return stream().content(capacity, compact=compact)


def write_dmat(
    directory: Path, *, capacity: int = 32, compact: bool = False, memory: bool = True, simulated: bool = True
) -> None:
    """A trace with one launch of ``stream``; without ``memory`` its log tells no allocations and no parameters."""
    writer = TraceWriter(directory)
    writer.start(device="Simulated GPU" if simulated else "NVIDIA H200", command="./stream")
    folder = writer.kernel(0, "stream")
    (folder / "pruned.ptx").write_text(PTX)
    probe = "dmat_compact" if compact else "dmat"
    size = capacity * (8 if compact else 16)
    (folder / "kernel.info").write_text(f"stream\n4\n3\n1,24\n0,{size}\n0,4\ncallback {probe}\n")
    parameters = [A, B, C, 1024] if memory else [1024]
    if memory:
        for start in (A, B, C):
            writer.lines(f"[mem] cuMemAlloc_v2 0 dptr {start:x} bytesize {SIZE if start != C else 4 * SIZE}")
    writer.lines(
        f"[exec] {EPOCH_NS + 5} param {' '.join(f'{value:x}' for value in parameters)}",
        f"[exec] grid {BLOCKS} 1 1 block {THREADS} 1 1 shared 0 kernel 0 launch 0 stream 0x0",
        "[exec] probe-mem 4096 (bytes)",
        "[exec] succeed 0",
    )
    writer.launches += 1
    writer.save(0, 0, _content(capacity, compact=compact))
    writer.exit()
    writer.run_json(driver={"path": "/sim/libcuda.so.1", "simulated": simulated})


@cache
def everywhere(seed: int = 1) -> Launch:
    """Accesses all over three ranges at all times, in no order: the busiest picture that there can be."""
    generator = np.random.default_rng(seed)
    accesses = {}
    for block in range(64):
        for thread in range(64):
            times = np.sort(generator.integers(0, 1 << 16, 32))
            places = generator.integers(0, SIZE, 32) // 4 * 4 + np.array([A, B, C])[generator.integers(0, 3, 32)]
            lines = np.array([LOAD_A, STORE_C])[generator.integers(0, 2, 32)]
            accesses[block, thread] = list(zip(times.tolist(), places.tolist(), lines.tolist(), strict=True))
    return Launch(64, 64, accesses, [0] * 64)
