"""Fill an array of half-precision numbers with zeros in several ways, time each launch, and check the result.

``plain`` is a kernel of many short blocks, ``memset`` the driver's own ``cuMemsetD16``, ``persistent`` a kernel of one
block per SM that continues until all is filled. With PyTorch and Triton, plain is ``torch.zeros`` and persistent a
Triton kernel; without them both are PTX of our own, which needs the driver only. A line of JSON is written for each.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu import SM_COUNT, DriverError, Gpu

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = 2
AHEAD = 32  # fills of that many bytes per element, that often, before launches are timed: some ms
PLAIN_BLOCK, PLAIN_STORE = 128, 8
PERSISTENT_BLOCK, PERSISTENT_STORE = 1024, 16
HEAD = ".version 7.2\n.target sm_80\n.address_size 64\n"
PLAIN = """
.visible .entry fill_plain(.param .u64 output, .param .u32 stores)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [output];
    ld.param.u32 %r1, [stores];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 8;
    add.s64 %rd4, %rd2, %rd3;
    mov.u32 %r1, 0;
    st.global.v2.b32 [%rd4], {%r1, %r1};
DONE:
    ret;
}
"""
PERSISTENT = """
.visible .entry fill_persistent(.param .u64 output, .param .u32 stores)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [output];
    ld.param.u32 %r1, [stores];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %nctaid.x;
    mul.lo.u32 %r6, %r6, %r3;
    mov.u32 %r7, 0;
MORE:
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r5, 16;
    add.s64 %rd4, %rd2, %rd3;
    st.global.v4.b32 [%rd4], {%r7, %r7, %r7, %r7};
    add.u32 %r5, %r5, %r6;
    bra MORE;
DONE:
    ret;
}
"""


@dataclass
class Variant:
    """A way to fill: what it is, how to do it once, and whether what it filled is zero now."""

    what: str
    fill: Callable[[], None]
    is_right: Callable[[], bool]


def driver_variants(gpu: Gpu, elements: int) -> dict[str, Variant]:
    """All of them with the driver only."""
    size = elements * BYTES
    output, sms = gpu.allocate(size), gpu.attribute(SM_COUNT)
    plain_kernel, persistent_kernel = (
        gpu.function(HEAD + PLAIN, "fill_plain"),
        gpu.function(HEAD + PERSISTENT, "fill_persistent"),
    )
    stores, wide_stores = ctypes.c_uint32(size // PLAIN_STORE), ctypes.c_uint32(size // PERSISTENT_STORE)
    blocks = -(-stores.value // PLAIN_BLOCK)
    gpu.call("cuMemsetD16_v2", output, ctypes.c_ushort(0xFFFF), ctypes.c_size_t(elements))

    def is_right() -> bool:
        is_zero = not any(gpu.read_memory(output, size))
        gpu.call("cuMemsetD16_v2", output, ctypes.c_ushort(0xFFFF), ctypes.c_size_t(elements))
        return is_zero

    fills: dict[str, tuple[str, Callable[[], None]]] = {
        "plain": (
            f"PTX, {blocks} blocks of {PLAIN_BLOCK} threads",
            lambda: gpu.launch(plain_kernel, blocks, PLAIN_BLOCK, output, stores),
        ),
        "memset": (
            "cuMemsetD16",
            lambda: gpu.call("cuMemsetD16_v2", output, ctypes.c_ushort(0), ctypes.c_size_t(elements)),
        ),
        "persistent": (
            f"PTX, {sms} blocks of {PERSISTENT_BLOCK} threads",
            lambda: gpu.launch(persistent_kernel, sms, PERSISTENT_BLOCK, output, wide_stores),
        ),
    }
    return {name: Variant(what, fill, is_right) for name, (what, fill) in fills.items()}


def torch_variants(gpu: Gpu, elements: int) -> dict[str, Variant]:
    """Plain by PyTorch, persistent by Triton, memset as ever. ImportError without them."""
    import torch
    from kernels_triton import FILL_BLOCK_SIZE as BLOCK_SIZE
    from kernels_triton import FILL_WARPS as WARPS
    from kernels_triton import fill_persistent

    sms = torch.cuda.get_device_properties("cuda").multi_processor_count
    outputs: dict[str, Any] = {}

    def fill_plain() -> None:
        outputs["plain"] = torch.zeros(elements, dtype=torch.float16, device="cuda")

    def persistent() -> None:
        if "persistent" not in outputs:
            outputs["persistent"] = torch.empty(elements, dtype=torch.float16, device="cuda")
        fill_persistent[(sms,)](outputs["persistent"], elements, BLOCK_SIZE=BLOCK_SIZE, NUM_SMS=sms, num_warps=WARPS)

    variants = driver_variants(gpu, elements)
    for name, what, fill in (
        ("plain", "torch.zeros", fill_plain),
        ("persistent", f"Triton, {sms} blocks of {32 * WARPS} threads, {BLOCK_SIZE} elements at a time", persistent),
    ):
        variants[name] = Variant(what, fill, lambda name=name: not outputs[name].cpu().any())  # type: ignore[misc]
    return variants


def timed(gpu: Gpu, fill: Callable[[], None], times: int, queue_work: Callable[[], None]) -> list[float]:
    """Microseconds of each of that many launches, between two events; the first, which compiles, is not one of them.

    ``queue_work`` keeps the GPU busy meanwhile, so that no launch waits for the host between its events.
    """
    pairs = [(gpu.event(), gpu.event()) for _ in range(times)]
    fill()
    gpu.synchronize()
    queue_work()
    for start, end in pairs:
        gpu.record(start)
        fill()
        gpu.record(end)
    gpu.synchronize()
    return [1e3 * gpu.milliseconds(start, end) for start, end in pairs]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fill an array with zeros in several ways.")
    parser.add_argument("variant", nargs="+", choices=("plain", "memset", "persistent"))
    parser.add_argument("--elements", type=int, default=1 << 24, help="default %(default)s: 32 MiB")
    parser.add_argument(
        "--times", type=int, default=100, help="number of timed launches per variant; 0: one untimed launch"
    )
    parser.add_argument("--driver-only", action="store_true", help="do not use PyTorch and Triton")
    options = parser.parse_args()
    try:
        gpu = Gpu()
        try:
            variants = (driver_variants if options.driver_only else torch_variants)(gpu, options.elements)
        except ImportError:
            variants = driver_variants(gpu, options.elements)
        memory, size = gpu.allocate(AHEAD * options.elements), ctypes.c_size_t(AHEAD * options.elements)

        def queue_work() -> None:
            for _ in range(AHEAD):
                gpu.call("cuMemsetD8Async", memory, ctypes.c_ubyte(0), size, None)

        wrong_variants = [
            name for name in options.variant if not run(gpu, name, variants[name], options.times, queue_work)
        ]
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 1 if wrong_variants else 0


def run(gpu: Gpu, name: str, variant: Variant, times: int, queue_work: Callable[[], None]) -> bool:
    """Fill, and write the outcome of it."""
    if times:
        microseconds, event_overheads = (
            timed(gpu, variant.fill, times, queue_work),
            timed(gpu, lambda: None, times, queue_work),
        )
    else:
        variant.fill()
        gpu.synchronize()
        microseconds, event_overheads = [], []
    has_right_result = variant.is_right()
    line = {
        "fill": name,
        "what": variant.what,
        "right": has_right_result,
        "microseconds": microseconds,
        "nothing": event_overheads,
    }
    print(json.dumps(line), flush=True)
    return has_right_result


if __name__ == "__main__":
    sys.exit(main())
