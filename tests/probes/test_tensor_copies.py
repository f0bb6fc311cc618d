"""Boxes of copies by tensor map are counted as what of them is inside the tensor."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import tui_probe
from tests.probes.running import SIMULATED_MAPS, result_of
from tests.probes.tensor_copy import COLUMNS, ROWS
from tests.simgpu.device import Device
from tui_probe.cli.main import main
from tui_probe.probes import gmem_bytes, gmem_sectors, what_limits
from tui_probe.simgpu.executor import Checker, Machine

if TYPE_CHECKING:
    from pathlib import Path


class Tiling(NamedTuple):
    """A tensor of rank 2, the box that goes over it, where the first one is, and bytes from row to row."""

    rows: int
    columns: int
    box: tuple[int, int]
    first: tuple[int, int] = (0, 0)
    stride: int = 256
    element: int = 4

    @property
    def grid(self) -> tuple[int, int]:
        """Boxes that cover the tensor."""
        return tuple(
            -(-(extent - start) // size)
            for extent, start, size in zip((self.columns, self.rows), self.first, self.box, strict=True)
        )  # type: ignore[return-value]

    @property
    def sectors(self) -> int:
        """Sectors of the rows of all boxes."""
        total = 0
        for x in range(self.first[0], self.columns, self.box[0]):
            start, end = (max(0, min(self.columns, place)) * self.element for place in (x, x + self.box[0]))
            rows = (row * self.stride for row in range(self.rows))
            total += sum((row + end + 31) // 32 - (row + start) // 32 for row in rows if end > start)
        return total


TYPES = {1: 0, 2: 6, 4: 7, 8: 9}
HEAD = ".version 8.6\n.target sm_90a\n.address_size 64\n"


def kernel(tiling: Tiling, copies: str = "") -> str:
    """A kernel whose blocks make a map each, and load and store one box by it."""
    width, height = tiling.box
    size = width * height * tiling.element
    fields = [
        ("rank", "b32", "1"), ("elemtype", "b32", str(TYPES[tiling.element])),
        ("box_dim", "b32", f"0, {width}"), ("box_dim", "b32", f"1, {height}"),
        ("global_dim", "b32", f"0, {tiling.columns}"), ("global_dim", "b32", f"1, {tiling.rows}"),
        ("element_stride", "b32", "0, 1"), ("element_stride", "b32", "1, 1"),
    ]  # fmt: skip
    replaced = "\n".join(f"tensormap.replace.tile.{n}.shared::cta.b1024.{t} [%rd3], {v};" for n, t, v in fields)
    load = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    load += " [%r6], [%rd1, {%r4, %r5}], [%r7];"
    store = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r4, %r5}], [%r6];"
    return (
        HEAD
        + f""".visible .entry copies(.param .u64 maps, .param .u64 tensor) {{
    .shared .align 128 .b8 made[128]; .shared .align 128 .b8 tile[{size}]; .shared .align 8 .b64 arrived;
    .reg .b32 %r<9>; .reg .b64 %rd<6>; .reg .pred %p, %q;
    ld.param.u64 %rd1, [maps]; ld.param.u64 %rd2, [tensor]; mov.u32 %r1, %tid.x; mov.u32 %r2, made;
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %nctaid.x; mad.lo.u32 %r6, %r5, %r6, %r4;
    shl.b32 %r6, %r6, 7; cvt.u64.u32 %rd3, %r6; add.u64 %rd1, %rd1, %rd3;
    mad.lo.s32 %r4, %r4, {width}, {tiling.first[0]}; mad.lo.s32 %r5, %r5, {height}, {tiling.first[1]};
    shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; st.shared.b32 [%r2], 0; bar.sync 0;
    mov.u32 %r2, made; cvt.u64.u32 %rd3, %r2; mov.b64 %rd4, {tiling.stride}; setp.eq.u32 %p, %r1, 0; @!%p bra rest;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd3], %rd2;
    {replaced}
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%rd3], 0, %rd4;
rest:
    bar.sync 0; mov.u32 %r6, tile; mov.u32 %r7, arrived;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%rd3], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
    @!%p bra wait;
    mbarrier.init.shared::cta.b64 [%r7], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r7], {size};
wait:
    bar.sync 0;
    {copies}
    @%p {load}
again:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%r7], 0; @!%q bra again;
    @%p {store}
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ret; }}"""
    )


TILINGS = [
    Tiling(20, 44, (16, 8)),
    Tiling(7, 64, (64, 32)),
    Tiling(32, 32, (16, 8), first=(-5, -3)),
    Tiling(9, 25, (16, 4), stride=112),
    Tiling(6, 100, (32, 6), element=1, stride=144),
    Tiling(11, 30, (8, 3), element=2, stride=80),
    Tiling(5, 14, (4, 2), element=8),
]


def run(tmp_path: Path, probe: str, tiling: Tiling) -> Any:
    width, height = tiling.grid
    maps, tensor = np.zeros(128 * width * height, np.uint8), np.arange(tiling.rows * tiling.stride) % 251
    return result_of(tmp_path, probe, kernel(tiling), maps, tensor.astype(np.uint8), grid=tiling.grid)


@pytest.mark.parametrize("tiling", TILINGS)
def test_bytes_equal_those_of_the_tensor(tmp_path: Path, tiling: Tiling) -> None:
    counts = gmem_bytes.analyse(run(tmp_path, "gmem_bytes", tiling))
    size = tiling.rows * tiling.columns * tiling.element
    assert (counts.bulk_loaded, counts.bulk_stored, counts.tensor_loads, counts.tensor_stores) == (size, size, 0, 0)


@pytest.mark.parametrize("tiling", TILINGS)
def test_sectors_are_those_of_rows_of_boxes(tmp_path: Path, tiling: Tiling) -> None:
    counts = gmem_sectors.analyse(run(tmp_path, "gmem_sectors", tiling))
    assert (counts.bulk_load_sectors, counts.bulk_store_sectors) == (tiling.sectors, tiling.sectors)
    assert (counts.bulk_copies, counts.unsized_copies) == (2 * int(np.prod(tiling.grid)), 0)


def test_limiter_counts_boxes(tmp_path: Path) -> None:
    tiling = TILINGS[3]
    analysis = what_limits.analyse(run(tmp_path, "what_limits", tiling))
    size = tiling.rows * tiling.columns * tiling.element
    assert (analysis.read, analysis.written, analysis.sums["unsized"]) == (size, size, 0)
    assert (analysis.sums["load_sectors"], analysis.sums["store_sectors"]) == (tiling.sectors, tiling.sectors)


def test_copies_without_a_known_layout_have_no_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.probes.running.SIMULATED_MAPS", "")
    counts = gmem_bytes.analyse(run(tmp_path, "gmem_bytes", TILINGS[0]))
    assert (counts.read, counts.written, counts.tensor_loads) == (None, None, 9)
    sectors = gmem_sectors.analyse(run(tmp_path, "gmem_sectors", TILINGS[0]))
    assert (sectors.bulk_copies, sectors.bulk_load_sectors, sectors.unsized_copies) == (0, None, 18)


def test_hook_finds_the_layout_and_counts_boxes_of_maps_of_the_host(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tui_probe",
        "run",
        "--sim",
        "--sim-arch",
        "sm_90",
        "--no-report",
        "--launches",
        "all",
    ]
    probes = [word for name in ("gmem_bytes", "gmem_sectors_by_line") for word in ("-p", name)]
    program = [sys.executable, "-m", "tests.probes.tensor_copy"]
    done = subprocess.run(
        [*command, *probes, "--tracedir", str(tmp_path), "--", *program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    (folder,) = tmp_path.iterdir()
    assert re.findall(r"^\[tensor-map\] layout (.*)$", (folder / "event.log").read_text(), re.M) == [SIMULATED_MAPS]
    (copies,) = tui_probe.open(folder).kernels
    expected = {"bulk_loaded": 4 * ROWS * COLUMNS, "bulk_stored": 4 * ROWS * COLUMNS, "bulk_load_sectors": ROWS * 3 * 2}
    metrics = copies.metrics()
    assert {name: np.unique(metrics[name][~np.isnan(metrics[name])]).tolist() for name in expected} == {
        name: [value] for name, value in expected.items()
    }


def test_phases_name_the_tensors_of_maps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The content of a map in a parameter leads to the call that made it, its address to the tensor's name."""
    command = [sys.executable, "-m", "tui_probe", "run", "--sim", "--sim-arch", "sm_90", "--no-report", "-p", "phases"]
    program = [sys.executable, "-m", "tests.probes.tensor_copy"]
    subprocess.run([*command, "--tracedir", str(tmp_path), "--", *program], capture_output=True, text=True, check=True)
    (folder,) = tmp_path.iterdir()
    log = (folder / "event.log").read_text()
    source, target = dict.fromkeys(re.findall(r"^\[tensor-map\] cuTensorMapEncodeTiled .* address (\w+) ", log, re.M))
    (folder / "tensor.trace").write_text(
        f"[call]  1  (20, 48)  {ROWS * 192}  {int(source, 16)}  K  attention  attention.py:7\n"
    )
    assert target != source
    assert main(["show", "phases", str(folder), "--format", "json"]) == 0
    phases = {phase["phase"]: phase["tensors"] for phase in json.loads(capsys.readouterr().out)["data"]["phases"]}
    assert phases["prologue: bulk copy of K"] == ["K"]
    assert phases["prologue: global store of param 1"] == ["param 1"]


def test_copies_of_bytes_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements smaller than all accesses in the code of the kernel made the checks of the simulated GPU fail."""
    checkers: list[Checker] = []

    def with_checks(device: Device, size: int = 1 << 22, machine: Machine | None = None) -> None:
        plain(device, size, machine)
        checkers.append(Checker(device.memory))
        device.checker = checkers[-1]

    plain = Device.__init__
    monkeypatch.setattr(Device, "__init__", with_checks)
    run(tmp_path, "gmem_bytes", TILINGS[4])
    assert checkers
    assert "unchecked" not in {fault.kind for checker in checkers for fault in checker.take_faults()}
