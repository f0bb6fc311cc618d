"""Several records per slot, on the simulated GPU: what is kept and counted, no matter who takes part and however it
ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.device_maps import DeviceMaps
from tests.engine.kernels import entry, probed, toml_probe
from tests.engine.test_execution import INDEX
from tests.simgpu.device import Device
from tui_probe.probe_model.probe import Probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel
from tui_probe.trace.results import Result, read_result

GRID, THREADS = 3, 77
WARPS = -(-THREADS // 32)
RECORD = np.dtype([("value", "<u8"), ("step", "<u4"), ("lane", "<u4")])
SHORT = np.dtype([("step", "<u4"), ("lane", "<u4")])

# Each thread makes as many steps as its number in ``steps`` says, but skips those below its ``begin``,
# and leaves immediately if it has none. Lanes of a warp therefore come and continue their own.
KERNEL = entry(
    f"""{INDEX}
ld.param.u64 %rd4, [steps];
add.s64 %rd4, %rd4, %rd2;
ld.global.u32 %r8, [%rd4];
ld.param.u64 %rd5, [begin];
add.s64 %rd5, %rd5, %rd2;
ld.global.u32 %r9, [%rd5];
setp.eq.u32 %p1, %r8, 0;
@%p1 ret;
mov.u32 %r10, 0;
$loop:
setp.lt.u32 %p2, %r10, %r9;
@%p2 bra $next;
mad.lo.u32 %r11, %r10, 1000, %r7;
prmt.b32 %r12, %r11, %r10, 0x3210;
$next:
add.u32 %r10, %r10, 1;
setp.lt.u32 %p3, %r10, %r8;
@%p3 bra $loop;
st.global.u32 [%rd3], %r8;
exit;""",
    ".param .u64 out, .param .u64 steps, .param .u64 begin",
)


def probe(level: str, cap: object, *, dynamic: bool = False) -> Probe:
    """Two maps of one level: records of 16 bytes, and of 8."""
    kind = 'type = "dynamic"' if dynamic else f"cap = {cap}"
    return toml_probe(
        f'''
[map.whole]
level = "{level}"
{kind}
regs = {{ value = "u64", step = "u32", lane = "u32" }}
[map.short]
level = "{level}"
{kind}
regs = {{ step = "u32", lane = "u32" }}
[probe.p]
position = "prmt"
before = """
.reg .b64 %wide;
cvt.u64.u32 %wide, IN1;
SAVE [ whole ] {{%wide, IN2, %laneid}};
LOCATE [ short ];
add.u64 %wide, %wide, 1;
SAVE [ short ] {{IN2, %laneid}};
"""
'''
    )


def run(folder: Path, own: Probe, steps: Any, begin: Any, caps: dict[str, int] | None = None) -> Result:
    """Run the kernel with a probe, check its results, and read what the probe kept."""
    maps = DeviceMaps(own, (GRID,), (THREADS,), caps)
    out = np.zeros(GRID * THREADS, np.uint32)
    device = Device()
    kernel = compile_kernel(parse(probed(KERNEL, probe=own)), "kernel")
    device.launch(kernel, out, steps, begin, *maps.arguments, grid=(GRID,), block=(THREADS,))
    np.testing.assert_array_equal(out, steps)
    path = folder / "1.000000.bin"
    maps.save(path)
    return read_result(path)


def of_threads(values: list[int]) -> Any:
    return np.resize(np.array(values, np.uint32), GRID * THREADS)


LISTS = st.lists(st.integers(0, 9), min_size=1, max_size=GRID * THREADS)
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUICK
@given(steps=LISTS, begin=LISTS, cap=st.integers(2, 11), dynamic=st.booleans())
def test_threads_keep_their_first_records(
    tmp_path: Path, steps: list[int], begin: list[int], cap: int, dynamic: bool
) -> None:
    to, since = of_threads(steps), of_threads(begin)
    caps = {"whole": cap, "short": cap}
    result = run(tmp_path, probe("thread", cap, dynamic=dynamic), to, since, caps)
    attempts = np.maximum(to.astype(np.int64) - since, 0).reshape(GRID, THREADS)
    for index, dtype in ((0, RECORD), (2, SHORT)):
        np.testing.assert_array_equal(result.attempts(index), attempts)
        np.testing.assert_array_equal(result.record_counts(index), np.minimum(attempts, cap))
        written = np.arange(cap) < attempts[:, :, np.newaxis]
        np.testing.assert_array_equal(result.written_mask(index), written)
        assert result.totals(index) == (np.minimum(attempts, cap).sum(), attempts.sum())
        records = result.records(index, dtype)
        assert not records[~written].view(np.uint8).any()
        expected = since.reshape(GRID, THREADS, 1) + np.arange(cap)
        np.testing.assert_array_equal(records["step"][written], expected[written])
        lanes = np.broadcast_to(np.arange(THREADS)[:, np.newaxis] % 32, expected.shape)
        np.testing.assert_array_equal(records["lane"][written], lanes[written])
    threads = np.arange(GRID * THREADS).reshape(GRID, THREADS, 1)
    whole, written = result.records(0, RECORD), result.written_mask(0)
    np.testing.assert_array_equal(whole["value"][written], (whole["step"] * 1000 + threads)[written])


@QUICK
@given(steps=LISTS, begin=LISTS, cap=st.integers(2, 30), dynamic=st.booleans())
def test_warps_keep_no_record_twice_and_lose_none_without_counting_it(
    tmp_path: Path, steps: list[int], begin: list[int], cap: int, dynamic: bool
) -> None:
    """Each step of a warp has one record, by its lowest lane there; strays of one step may come in several groups."""
    to, since = of_threads(steps), of_threads(begin)
    result = run(tmp_path, probe("warp", cap, dynamic=dynamic), to, since, {"whole": cap, "short": cap})
    attempts, saved = result.attempts(0), result.record_counts(0)
    assert attempts is not None
    assert saved is not None
    records = result.records(0, RECORD)
    for block in range(GRID):
        for warp in range(WARPS):
            at = slice(block * THREADS + warp * 32, block * THREADS + min(warp * 32 + 32, THREADS))
            steps_of_lane_0 = max(int(to[at][0]) - int(since[at][0]), 0)
            steps_there = {s for end, start in zip(to[at], since[at], strict=True) for s in range(start, end)}
            assert attempts[block, warp] >= len(steps_there)
            assert saved[block, warp] == min(attempts[block, warp], cap)
            own = records[block, warp, : saved[block, warp]]
            assert not records[block, warp, saved[block, warp] :].view(np.uint8).any()
            of_lane_0 = own[: min(steps_of_lane_0, cap)]
            assert of_lane_0["step"].tolist() == [int(since[at][0]) + i for i in range(len(of_lane_0))]
            assert (of_lane_0["lane"] == 0).all()
            strays = own[len(of_lane_0) :]
            assert (strays["lane"] > 0).all()
            assert len(np.unique(strays)) == len(strays)
            assert (own["value"] == own["step"] * 1000 + at.start + own["lane"]).all()
            if attempts[block, warp] <= cap:
                assert set(own["step"].tolist()) == steps_there


def test_threads_that_trap_or_hang_tell_no_number() -> None:
    """There is no exit to write the count at: nothing is written but the record itself."""
    text = probed(entry(".reg .b32 %r<3>;\nprmt.b32 %r1, %r1, %r2, 0x3210;\ntrap;"), probe=probe("thread", 4))
    assert "tp__attempts_whole, 1;" in text
    assert not [line for line in text.splitlines() if "st.global.u32" in line]


def test_unknown_number_is_reported(tmp_path: Path) -> None:
    """A thread that did not reach an exit: its records stay, those that are not zero count as written."""
    own = probe("thread", 4)
    maps = DeviceMaps(own, (1,), (5,))
    rows = maps.arguments[0].reshape(-1, 32, 16)  # the counts, then one row per record
    rows[0].reshape(-1).view(np.uint8)[0:16:4] = [1, 3, 0, 9]
    rows[1:3, 1:4] = 7
    maps.save(tmp_path / "r.bin")
    result = read_result(tmp_path / "r.bin")
    assert result.attempts(0).tolist() == [[0, 2, -1, 8, -1]]
    assert result.record_counts(0).tolist() == [[0, 2, -1, 4, -1]]
    assert result.totals(0) == (6, 10)
    written = result.written_mask(0)[0].tolist()
    assert written == [[False] * 4, [True, True, False, False], [True, True, False, False], [True] * 4, [False] * 4]


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_slots_tell_whether_they_were_written(tmp_path: Path, level: str) -> None:
    own = toml_probe(
        f"""
[map.one]
level = "{level}"
regs = {{ step = "u32" }}
[probe.p]
position = "prmt"
before = "SAVE [ one ] {{IN2}};"
"""
    )
    steps = of_threads([1, 0, 0, 0])
    steps[32:64] = 0
    result = run(tmp_path, own, steps, np.zeros_like(steps))
    assert not result.maps[0].any()  # a written zero and one that never was look the same
    expected = (steps > 0).reshape(GRID, THREADS)
    if level == "warp":
        expected = np.array([[block[at : at + 32].any() for at in (0, 32, 64)] for block in expected])
    written = result.written_mask(0)
    assert written is not None
    np.testing.assert_array_equal(written[:, :, 0], expected)
    assert (result.attempts(0), result.record_counts(0), result.capacity(0)) == (None, None, 1)
