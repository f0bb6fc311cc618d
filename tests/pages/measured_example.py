"""A kernel whose lines measure what is known beforehand, run with a probe on the simulated GPU, as a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.probes.running import result_of
from tests.trace.make import TraceWriter
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace

COALESCED, STRIDED, NEVER, STORED = 21, 24, 28, 32
"""Lines of the accesses: 4 sectors per request, 32, not executed, 8."""
STRIDES = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry strides(.param .u64 from, .param .u64 to, .param .u32 n)
{
.reg .pred %p<2>;
.reg .f32 %f<4>;
.reg .b32 %r<6>;
.reg .b64 %rd<8>;
ld.param.u64 %rd1, [from];
ld.param.u64 %rd2, [to];
ld.param.u32 %r5, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %rd3, %r4, 4;
add.u64 %rd4, %rd1, %rd3;
setp.lt.u32 %p1, %r4, %r5;
.loc 1 6 13
ld.global.f32 %f1, [%rd4];
mad.lo.u64 %rd5, %rd3, 31, %rd4;
.loc 1 7 13
ld.global.f32 %f2, [%rd5];
add.f32 %f3, %f1, %f2;
@%p1 bra $store;
.loc 1 9 9
st.global.f32 [%rd1], %f3;
$store:
mad.lo.u64 %rd6, %rd3, 2, %rd2;
.loc 1 11 5
st.global.v2.f32 [%rd6], {%f3, %f3};
ret;
}
.file 1 "/src/strides.cu"
"""
BLOCKS, THREADS = 2, 64


def write_measured(directory: Path, probe: str = "gmem_sectors_by_line") -> Trace:
    """One launch of it."""
    kernel = Kernel.of(parse(STRIDES), "strides")
    probed, info = probed_kernel(kernel, load_probe(probe))
    writer = TraceWriter(directory)
    writer.start(device="Simulated GPU", command="./strides")
    folder = writer.kernel(0, "strides")
    for name, content in (("pruned.ptx", kernel.pruned), ("probed.ptx", probed), ("kernel.info", info)):
        (folder / name).write_text(content)
    (folder / "original.ptx").write_text(STRIDES)
    values, sums = np.ones(BLOCKS * THREADS * 32, np.float32), np.zeros(BLOCKS * THREADS * 2, np.float32)
    grid, block = (BLOCKS, 1, 1), (THREADS, 1, 1)
    result = result_of(directory, probe, STRIDES, values, sums, np.uint32(1 << 20), grid=grid, block=block)
    writer.save(0, writer.launch(0, grid, block), result.path.read_bytes())
    result.path.unlink()
    writer.exit()
    writer.run_json(probe=probe, driver={"path": "/sim/libcuda.so.1", "simulated": True})
    return open_trace(directory)
