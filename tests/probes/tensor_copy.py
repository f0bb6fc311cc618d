"""Copy a tensor box by box through shared memory, by tensor maps; prints whether the copy is right.

The arguments, if there are any, are a cubin of ``PTX`` to run instead, and the threads of a block.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

from tui_probe.cuda_driver import CudaDevice

ROWS, COLUMNS, STRIDE = 20, 44, 192
BOX, TIMES = (16, 8), 2
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
PTX = f""".version 8.6
.target sm_90
.address_size 64
.visible .entry copies(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128]) {{
    .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 arrived;
    .reg .b32 %r<6>; .reg .b64 %rd<3>; .reg .pred %p, %q;
    mov.b64 %rd1, from; cvta.param.u64 %rd1, %rd1; mov.b64 %rd2, to; cvta.param.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, arrived;
    mov.u32 %r4, %ctaid.x; mul.lo.u32 %r4, %r4, {BOX[0]}; mov.u32 %r5, %ctaid.y; mul.lo.u32 %r5, %r5, {BOX[1]};
    @!%p bra wait;
    mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 512;
wait:
    bar.sync 0;
    @%p {LOAD} [%r2], [%rd1, {{%r4, %r5}}], [%r3];
again:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r3], 0; @!%q bra again;
    @%p cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {{%r4, %r5}}], [%r2];
    @%p cp.async.bulk.commit_group;
    @%p cp.async.bulk.wait_group 0;
    ret; }}"""


def encoded(driver: ctypes.CDLL, address: ctypes.c_uint64) -> ctypes.Array[ctypes.c_ubyte]:
    """The map of a tensor at an address."""
    room = (ctypes.c_ubyte * 192)()
    start = ctypes.addressof(room) + 63 & ~63
    sizes, strides = (ctypes.c_uint64 * 2)(COLUMNS, ROWS), (ctypes.c_uint64 * 1)(STRIDE)
    box, steps = (ctypes.c_uint32 * 2)(*BOX), (ctypes.c_uint32 * 2)(1, 1)
    status = driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(start), 7, 2, address, sizes, strides, box, steps, 0, 0, 0, 0
    )
    if status:
        raise RuntimeError(f"cuTensorMapEncodeTiled: {status}")
    return (ctypes.c_ubyte * 128).from_buffer_copy(room, start - ctypes.addressof(room))


def main() -> None:
    """Copy, and compare."""
    device, driver = CudaDevice(), ctypes.CDLL("libcuda.so.1")
    image = Path(sys.argv[1]).read_bytes() if sys.argv[1:] else PTX.encode()
    threads = int(sys.argv[2]) if sys.argv[2:] else 32
    copies = device.module_function(device.load_module(image), "copies")
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    values = bytes(7 * place % 251 for place in range(ROWS * STRIDE))
    for memory in (source, target):
        driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(len(values)))
    driver.cuMemcpyHtoD_v2(source, values, ctypes.c_size_t(len(values)))
    driver.cuMemsetD8_v2(target, 0, ctypes.c_size_t(len(values)))
    grid = (-(-COLUMNS // BOX[0]), -(-ROWS // BOX[1]), 1)
    for _ in range(TIMES):
        device.launch_kernel(copies, grid, (threads, 1, 1), 0, encoded(driver, source), encoded(driver, target))
    copy = ctypes.create_string_buffer(len(values))
    driver.cuMemcpyDtoH_v2(copy, target, ctypes.c_size_t(len(values)))
    rows = [slice(row * STRIDE, row * STRIDE + 4 * COLUMNS) for row in range(ROWS)]
    sys.stdout.write(f"{all(copy.raw[row] == values[row] for row in rows)}\n")


if __name__ == "__main__":
    main()
