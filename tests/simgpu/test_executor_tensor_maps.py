"""Tiles copied by tensor map: where elements are, what is outside the tensor, swizzles, maps that kernels make."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.simgpu.device import Device, compiled
from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor import MemoryFaultError
from tui_probe.simgpu.executor.tensor_copies import FIELDS, MAP_BYTES, TensorMap

TYPES = {1: 0, 2: 6, 4: 7, 8: 9}
SPANS = (0, 32, 64, 128)


def encoded(address: int, tensor: np.ndarray[Any, Any], box: tuple[int, ...], swizzle: int = 0, **more: int) -> bytes:
    """A map of a whole tensor in C order; ``box`` has the innermost dimension first, as a map has."""
    raw = bytearray(MAP_BYTES)

    def put(name: str, *values: int) -> None:
        start, size, _ = FIELDS[name]
        for number, value in enumerate(values):
            raw[start + size * number : start + size * (number + 1)] = value.to_bytes(size, "little")

    put("global_address", address)
    put("rank", tensor.ndim - 1)
    put("elemtype", TYPES[tensor.itemsize])
    put("swizzle_mode", swizzle)
    put("global_stride", *tensor.strides[-2::-1])
    put("global_dim", *tensor.shape[::-1])
    put("box_dim", *box)
    put("element_stride", *more.pop("steps", (1,) * tensor.ndim))  # type: ignore[misc]
    for name, value in more.items():
        put(name, value)
    return bytes(raw)


def copying(rank: int, size: int) -> str:
    """A kernel ``copies(map, coordinates, out)``: a tile to shared memory, whose ``size`` bytes go to ``out``."""
    loads = " ".join(f"ld.global.s32 %c{n}, [%rd2+{4 * n}];" for n in range(rank))
    names = ", ".join(f"%c{n}" for n in range(rank))
    return f""".version 8.6\n.target sm_90\n.address_size 64
    .visible .entry copies(.param .align 64 .b8 map[128], .param .u64 coordinates, .param .u64 out) {{
        .shared .align 1024 .b8 tile[{size}]; .shared .align 8 .b64 arrived;
        .reg .b32 %r<6>, %c<5>; .reg .b64 %rd<5>; .reg .pred %p, %q;
        ld.param.u64 %rd2, [coordinates]; ld.param.u64 %rd3, [out]; mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1;
        {loads} mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; mov.u32 %r2, tile; mov.u32 %r3, arrived;
        @%p bra wait;
        mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size};
        cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r2],
            [%rd1, {{{names}}}], [%r3];
    wait:
        bar.sync 0;
    again:
        mbarrier.try_wait.parity.shared::cta.b64 %q, [%r3], 0; @!%q bra again;
        add.u32 %r2, %r2, %r1; cvt.u64.u32 %rd4, %r1; add.u64 %rd3, %rd3, %rd4; mov.u32 %r4, %r1;
    rest:
        ld.shared.u8 %r5, [%r2]; st.global.u8 [%rd3], %r5; add.u32 %r2, %r2, 32; add.u64 %rd3, %rd3, 32;
        add.u32 %r4, %r4, 32; setp.lt.u32 %p, %r4, {size}; @%p bra rest;
        ret; }}"""


def tile_of(tensor: np.ndarray[Any, Any], box: tuple[int, ...], first: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The elements of a box at coordinates, zeros outside; both with the innermost dimension first."""
    tile = np.zeros(box[::-1], tensor.dtype)
    for place in product(*(range(size) for size in box[::-1])):
        source = tuple(start + own for start, own in zip(first[::-1], place, strict=True))
        if all(0 <= own < extent for own, extent in zip(source, tensor.shape, strict=True)):
            tile[place] = tensor[source]
    return tile


def copied(tensor: np.ndarray[Any, Any], box: tuple[int, ...], first: tuple[int, ...], **more: Any) -> bytes:
    device = Device()
    address = device.upload(tensor)
    size = int(np.prod(box)) * tensor.itemsize
    out = np.zeros(size, np.uint8)
    raw = encoded(address, tensor, box, **more)
    device.launch(compiled(copying(tensor.ndim, size)), raw, np.array(first, np.int32), out)
    return out.tobytes()


@pytest.mark.parametrize(
    ("shape", "box", "first"),
    [
        ((64,), (32,), (8,)),
        ((20, 16), (16, 8), (0, 5)),
        ((20, 16), (16, 8), (4, 15)),
        ((20, 16), (16, 8), (-3, -2)),
        ((5, 6, 16), (16, 4, 2), (0, 3, 4)),
        ((3, 4, 5, 8), (8, 2, 3, 2), (0, 4, 2, 1)),
        ((2, 3, 4, 5, 8), (8, 2, 2, 2, 2), (4, 0, 1, 2, 1)),
    ],
)
@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.float32, np.float64])
def test_tiles(shape: tuple[int, ...], box: tuple[int, ...], first: tuple[int, ...], kind: Any) -> None:
    tensor = np.random.default_rng(1).integers(1, 100, shape).astype(kind)
    assert copied(tensor, box, first) == tile_of(tensor, box, first).tobytes()


@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_swizzled_rows(swizzle: int) -> None:
    """Pieces of 16 bytes of a row are exchanged by the number of the row, in groups of eight, four, two."""
    span = SPANS[swizzle]
    tensor = np.random.default_rng(1).integers(1, 100, (32, span)).astype(np.uint8)
    result = np.frombuffer(copied(tensor, (span, 16), (0, 8), swizzle=swizzle), np.uint8).reshape(-1, 16)
    pieces = tensor[8:24].reshape(-1, 16)
    for number, piece in enumerate(pieces):
        turn = number * 16 // 128 % (span // 16)
        assert (result[number ^ turn] == piece).all()


def test_use_without_a_map_is_refused() -> None:
    tensor = np.zeros((8, 16), np.uint8)
    with pytest.raises(SimulationError, match="not encoded"):
        Device().launch(compiled(copying(2, 64)), bytes(128), np.zeros(2, np.int32), np.zeros(64, np.uint8))
    with pytest.raises(SimulationError, match="NaN fill is not supported"):
        copied(tensor, (16, 4), (0, 0), fill_mode=1)
    with pytest.raises(SimulationError, match="rows of 16 elements, which do not fill its swizzle span of 128 bytes"):
        copied(tensor, (16, 4), (0, 0), swizzle=3)
    for box, steps in (((16, 4), (1, 0)), ((0, 4), (1, 1)), ((65536, 65536), (1, 1))):
        with pytest.raises(SimulationError, match=re.escape(f"the box {[*box]} or the element stride")):
            TensorMap(encoded(256, tensor, box, steps=steps))  # type: ignore[arg-type]
    with pytest.raises(MemoryFaultError, match="line 11"):
        copied(tensor, (16, 4), (0, 0), global_address=8 << 24)


MADE = """.version 8.6\n.target sm_90a\n.address_size 64
.visible .entry makes(.param .u64 map, .param .u64 tensor) {
    .shared .align 128 .b8 made[128]; .shared .align 128 .b8 tile[256];
    .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .pred %p;
    ld.param.u64 %rd1, [map]; ld.param.u64 %rd2, [tensor]; mov.u32 %r1, %tid.x; mov.u32 %r2, made;
    shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.b32 [%r2], 0; bar.sync 0;
    mov.u32 %r2, made; cvt.u64.u32 %rd3, %r2; mov.b64 %rd4, 64; setp.ne.u32 %p, %r1, 0; @%p bra rest;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd3], %rd2;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd3], 1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd3], 0, 8;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%rd3], 1, 4;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd3], 0, 16;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%rd3], 1, 6;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd3], 0, %rd4;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd3], 0, 1;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%rd3], 1, 1;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%rd3], 2;
rest:
    bar.sync 0;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd3], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
    mov.u32 %r2, tile; add.u32 %r2, %r2, %r3; st.shared.b32 [%r2], %r1; mov.u32 %r2, tile;
    bar.sync 0; @%p bra end; mov.u32 %r3, 4;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r3, %r3}], [%r2];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
end:
    ret; }"""


def test_a_map_that_a_kernel_makes_and_stores_by() -> None:
    """Rows beyond the sixth are outside, and stay as they are."""
    device = Device()
    memory = np.full((8, 16), 99, np.uint32)
    place = np.uint64(device.upload(memory))
    device.launch(compiled(MADE), np.zeros(128, np.uint8), place)
    expected = memory.copy()
    expected[4:6, 4:12] = np.arange(32).reshape(4, 8)[:2]
    assert (device.download(int(place), memory) == expected).all()
