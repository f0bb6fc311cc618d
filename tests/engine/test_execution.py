"""Probed kernels on the simulated GPU: the same results, and records that are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.device_maps import DeviceMaps
from tests.engine.kernels import BLOCK_SCHED, DATA, HEADER, entry, matched_probe, probed_and_shared, toml_probe
from tests.simgpu.device import Device
from tui_probe.probe_model.probe import Level, Probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

Extent = tuple[int, ...]

WARP_RECORD = np.dtype([("start", "<u8"), ("elapsed", "<u4"), ("smid", "<u4")])

INDEX = """
.reg .pred %p<9>;
.reg .b32 %r<20>;
.reg .b64 %rd<9>;
mov.u32 %r1, %tid.z;
mov.u32 %r2, %ntid.y;
mov.u32 %r3, %tid.y;
mad.lo.u32 %r1, %r1, %r2, %r3;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r1, %r1, %r2, %r3;       // %r1: thread in the block
and.b32 %r4, %r1, 31;                // %r4: lane, as the threads are dealt out
mov.u32 %r5, %ctaid.x;
mov.u32 %r6, %ntid.x;
mad.lo.u32 %r7, %r5, %r6, %r3;       // %r7: global index of a 1-D launch
ld.param.u64 %rd1, [out];
mul.wide.u32 %rd2, %r7, 4;
add.s64 %rd3, %rd1, %rd2;
"""


def slots(level: Level, grid: Extent, block: Extent) -> tuple[int, int]:
    """Blocks, and slots of a block."""
    threads = int(np.prod(block))
    return int(np.prod(grid)), -(-threads // 32) if level is Level.WARP else threads


def run_probed(
    text: str,
    probe: Probe,
    *arguments: Any,
    grid: Extent = (1,),
    block: Extent = (32,),
    name: str = "kernel",
    caps: Mapping[str, int] | None = None,
) -> list[np.ndarray[Any, Any]]:
    """Run a kernel and the probed one on copies of the arguments; the results must agree. The file's maps, by slots."""
    device = Device()
    originals = [argument.copy() for argument in arguments]
    device.launch(compile_kernel(parse(text), name), *originals, grid=grid, block=block)
    probed, shared = probed_and_shared(text, name, probe)
    assert shared.variables == ()
    maps = DeviceMaps(matched_probe(text, name, probe), grid, block, caps)
    copies = [argument.copy() for argument in arguments]
    device.launch(compile_kernel(parse(probed), name), *copies, *maps.arguments, grid=grid, block=block)
    for original, copy in zip(originals, copies, strict=True):
        np.testing.assert_array_equal(copy, original)
    return [np.ascontiguousarray(file_map.slots).reshape(-1, file_map.slots.shape[2]) for file_map in maps.of_file()]


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1,), (1,)),
        ((3,), (32,)),
        ((20,), (33,)),
        ((4, 3, 2), (5,)),
        ((2, 2, 3), (8, 4, 3)),
        ((5, 1, 2), (7, 3, 5)),
    ],
)
def test_block_sched_has_a_record_for_each_warp(grid: Extent, block: Extent) -> None:
    text = entry(f"{INDEX}\nst.global.u32 [%rd3], %r1;\nret;", ".param .u64 out")
    (raw,) = run_probed(text, BLOCK_SCHED, np.zeros(4096, np.uint32), grid=grid, block=block)
    records = raw.view(WARP_RECORD).reshape(slots(Level.WARP, grid, block))
    assert (records["elapsed"] > 0).all()
    assert (records["smid"] == records["smid"][:, :1]).all()
    expected_sms = np.arange(len(records)) % Device().machine.sm_count
    np.testing.assert_array_equal(records["smid"][:, 0], expected_sms)
    assert len(np.unique(records["elapsed"])) == 1
    first = records["start"][records["smid"] == 0]
    assert (first.reshape(-1, records.shape[1]) == first.reshape(-1, records.shape[1])[:, :1]).all()


def test_block_sched_keeps_the_whole_clock() -> None:
    """The start's high half is restored, also where the low half wraps between start and end."""
    device = Device()
    text, _ = probed_and_shared(entry("ret;"))
    function = compile_kernel(parse(text), "kernel")
    wraps = []
    for offset in range(0, 400, 8):
        raw = np.zeros((1, 16), np.uint8)
        begin = (5 << 32) - offset
        device.launch(function, raw, start_cycle=begin)
        record = raw.view(WARP_RECORD)[0, 0]
        assert begin <= record["start"] <= begin + 4000
        wraps.append((int(record["start"]) >> 32, (int(record["start"]) + int(record["elapsed"])) >> 32))
    assert (4, 5) in wraps


def test_lanes_that_leave_early_leave_the_latest_end() -> None:
    """Lanes 0 to 9 leave first, in half of the warps all lanes do; the record is that of the last to leave."""
    body = f"""{INDEX}
setp.lt.u32 %p1, %r4, 10;
setp.ge.u32 %p2, %r1, 32;
or.pred %p3, %p1, %p2;
@%p3 ret;
mov.u32 %r8, 0;
$loop:
add.u32 %r8, %r8, 1;
setp.lt.u32 %p4, %r8, 50;
@%p4 bra $loop;
st.global.u32 [%rd3], %r8;
ret;"""
    (raw,) = run_probed(entry(body, ".param .u64 out"), BLOCK_SCHED, np.zeros(64, np.uint32), block=(64,))
    stayed, left = raw.view(WARP_RECORD)[:, 0]
    assert stayed["elapsed"] > left["elapsed"] + 50 * 3 * 4
    assert stayed["start"] == left["start"]


def test_each_thread_leaves_once_whatever_its_way_out() -> None:
    probe = toml_probe(
        """
[map.left]
level = "thread"
regs = { lane = "u32", times = "u32" }
[probe.p]
position = "kernel"
before = ".reg .b32 %times, %lane; mov.u32 %times, 0;"
after = "add.u32 %times, %times, 1; mov.u32 %lane, %laneid; SAVE [ left ] {%lane, %times};"
"""
    )
    body = f"""{INDEX}
setp.lt.u32 %p1, %r4, 3;
@%p1 exit;
setp.gt.u32 %p2, %r4, 20;
@!%p2 bra $middle;
{{
ret;
}}
$middle:
setp.eq.u32 %p3, %r4, 7;
@!%p3 ret;
mov.u32 %r9, 1;"""
    (raw,) = run_probed(entry(body, ".param .u64 out"), probe, np.zeros(1, np.uint32), grid=(2,), block=(48,))
    records = raw.view(np.uint32).reshape(2, 48, 2)
    np.testing.assert_array_equal(records[:, :, 0], np.tile(np.arange(48) % 32, (2, 1)))
    assert (records[:, :, 1] == 1).all()


LOADS = f"""{INDEX}
mov.u32 %r8, 0;
mov.u64 %rd4, %rd1;
$loop:
@!%p0 ld.global.u32 %r9, [%rd4+4];
add.s64 %rd4, %rd4, 8;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p4, %r8, 6;
@%p4 bra $loop;
st.global.u32 [%rd3], %r9;
ret;"""


@pytest.mark.parametrize("cap", [2, 6, 9])
def test_records_are_kept_in_order_up_to_the_cap_and_all_are_counted(cap: int) -> None:
    probe = toml_probe(
        f"""
[map.reads]
level = "warp"
cap = {cap}
regs = {{ address = "u64", bytes = "u32", lane = "u32" }}
[probe.p]
position = "ld.global"
before = "SAVE [ reads ] {{ADDR, BYTES, %laneid}};"
"""
    )
    guard = "setp.lt.u32 %p0, %r4, 5;"
    text = entry(LOADS.replace("mov.u32 %r8, 0;", f"{guard} mov.u32 %r8, 0;"), ".param .u64 out")
    raw, attempts = run_probed(text, probe, np.arange(96, dtype=np.uint32), grid=(2,), block=(40,))
    assert (attempts.view(np.uint32)[[0, 1, 2, 3], 0] == [6, 6, 6, 6]).all()
    records = raw.view(np.dtype([("address", "<u8"), ("bytes", "<u4"), ("lane", "<u4")])).reshape(4, cap)
    n_records = min(cap, 6)
    assert (records["lane"][:, :n_records] == 5).all()
    assert (records["bytes"][:, :n_records] == 4).all()
    assert (np.diff(records["address"][:, :n_records].astype(np.int64)) == 8).all()
    assert not raw.reshape(4, cap, 16)[:, n_records:].any()


def test_a_predicated_load_is_counted_in_the_lanes_that_load() -> None:
    probe = toml_probe(
        """
[map.n]
level = "thread"
regs = { n = "u32" }
[probe.frame]
position = "kernel"
before = ".reg .b32 %n; mov.u32 %n, 0;"
after = "SAVE [ n ] {%n};"
[probe.count]
position = "ld.global"
after = "add.u32 %n, %n, BYTES;"
"""
    )
    guard = "setp.lt.u32 %p0, %r4, 5;"
    text = entry(LOADS.replace("mov.u32 %r8, 0;", f"{guard} mov.u32 %r8, 0;"), ".param .u64 out")
    (raw,) = run_probed(text, probe, np.arange(96, dtype=np.uint32), block=(40,))
    expected = np.where(np.arange(40) % 32 < 5, 0, 24)
    np.testing.assert_array_equal(raw.view(np.uint32)[:, 0], expected)


def test_module_variables_are_the_original_ones() -> None:
    text = f"""{HEADER}
.visible .global .align 4 .u32 visits = 40;
.global .align 8 .u64 cell = generic(visits);
.visible .const .align 4 .b32 scale[4] = {{10, 20, 30, 40}};
.visible .entry kernel(.param .u64 out)
{{
{INDEX}
atom.global.add.u32 %r8, [visits], 1;
ld.global.u64 %rd4, [cell];
atom.add.u32 %r8, [%rd4], 1;
mov.u64 %rd5, scale;
and.b32 %r9, %r1, 3;
mul.wide.u32 %rd6, %r9, 4;
add.s64 %rd7, %rd5, %rd6;
ld.const.u32 %r10, [%rd7];
ld.const.u32 %r11, [scale+12];
add.u32 %r10, %r10, %r11;
st.global.u32 [%rd3], %r10;
ret;
}}
"""
    probed, shared = probed_and_shared(text)
    assert shared.variables == ("visits", "cell", "scale")
    results, counts = [], []
    for source in (text, probed):
        device = Device()
        device.load_variables(parse(text))
        function = compile_kernel(parse(source), "kernel")
        out = np.zeros(64, np.uint32)
        added: list[Any] = []
        if source is probed:
            added = [np.zeros((2, 16), np.uint8), *(np.uint64(device.variables[name]) for name in shared.variables)]
        device.launch(function, out, *added, block=(64,))
        results.append(out)
        counts.append(int(device.download(device.variables["visits"], np.zeros(1, np.uint32))[0]))
    np.testing.assert_array_equal(results[0], results[1])
    assert results[0][:4].tolist() == [50, 60, 70, 80]
    assert counts == [168, 168]


def values(count: int, kind: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).integers(1, 100, count).astype(kind)


@pytest.mark.parametrize(
    ("file", "name", "arguments"),
    [
        ("warps.sm_80.ptx", "votes", [values(32, "u4"), np.uint32(9)]),
        ("warps.sm_80.ptx", "reduces", [values(32, "f4"), values(32, "i4")]),
        ("warps.sm_80.ptx", "vectors", [values(256, "f4"), values(256, "f4"), values(128, "i4"), values(256, "u1")]),
        ("warps.sm_80.ptx", "halves", [values(64, "f2"), values(64, "f2"), values(64, "f2")]),
        ("control.sm_80.ptx", "leave_early", [values(32, "i4"), np.int32(20)]),
        ("triton_add.sm_80.ptx", "add", None),
    ],
)
def test_kernels_of_compilers_keep_their_results(file: str, name: str, arguments: list[Any] | None) -> None:
    text = (DATA / file).read_text()
    if arguments is None:
        n = 1000
        arguments = [values(2048, "f4"), values(2048, "f4"), np.zeros(2048, "f4"), np.int32(n)]
        arguments += [np.uint64(0)] * (len(parse(text).entries()[0].parameters) - len(arguments))
        (raw,) = run_probed(text, BLOCK_SCHED, *arguments, grid=(1,), block=(128,), name=name)
    else:
        (raw,) = run_probed(text, BLOCK_SCHED, *arguments, name=name)
    assert (raw.view(WARP_RECORD)["elapsed"] > 0).all()
