"""Tensors of real frameworks have names, and programs do with them what they do without."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.probes.tensor_copy import COLUMNS, PTX, ROWS, STRIDE, TIMES
from tests.probes.test_tensor_copies import TILINGS, Tiling, kernel
from tui_probe.engine.assembler import Assembler
from tui_probe.evals.evaluation import PROGRAMS_FOLDER as EVALUATED
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.probe_results import read_result_row
from tui_probe.probes import gmem_bytes
from tui_probe.probes.dmat.accesses import accesses_of, read_accesses
from tui_probe.probes.dmat.boxes import read_boxes
from tui_probe.trace.device_memory import LaunchMemory
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result
from tui_probe.trace.tensors import read_tensors

from .conftest import PROGRAMS, Runner, cutlass_product

if TYPE_CHECKING:
    from tui_probe.probes.dmat.boxes import Boxes
    from tui_probe.trace.model import Kernel

SMALL = ("--batch", "1", "--heads", "2", "--length", "512")


def needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


@pytest.mark.parametrize(
    ("variant", "module", "kernel"),
    [("triton", "triton", "_attn_fwd"), ("flash", "torch", "flash"), ("efficient", "torch", "fmha")],
)
def test_attention_is_right_and_its_tensors_have_names(variant: str, module: str, kernel: str, runner: Runner) -> None:
    needs("torch", module)
    command = [sys.executable, str(EVALUATED / "attention.py"), *SMALL, variant]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.stdout.startswith(f"attention {variant} ok\n"), unprofiled.stderr
    profiled = runner.profiled(command, "-p", "dmat", "-k", kernel, "--tensors", "--max-write-rate", "none")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    trace = open_trace(profiled.trace)
    assert any(kernel in other.name for other in trace.kernels)
    tensors = {tensor.name.lower(): tensor for tensor in read_tensors(trace)}
    assert {"q", "k", "v"} <= tensors.keys()
    assert tensors["q"].shape == (1, 2, 512, 64)
    assert tensors["q"].index(2 * (3 * 64 + 5)) == (0, 0, 3, 5)
    if variant == "triton":
        shown = subprocess.run(
            [sys.executable, "-m", "tui_probe", "show", "dmat", str(profiled.trace), "-k", kernel, "--format", "json"],
            capture_output=True, text=True, check=True, cwd=runner.folder,
        ).stdout  # fmt: skip
        named = {band["name"].lower(): band["shape"] for band in json.loads(shown)["data"]["bands"]}
        assert [named.get(name) for name in ("q", "k", "v", "out")] == [[1, 2, 512, 64]] * 4


def test_a_program_that_imports_it_by_its_older_name(runner: Runner) -> None:
    needs("torch")
    program = runner.folder / "older.py"
    program.write_text(
        "import torch\nfrom neutrino.utils.tensortrace import TensorTrace\n"
        "before = torch.ones(64, device='cuda')\n"
        "with TensorTrace() as t:\n    x = torch.full((8, 16), 2.0, device='cuda')\n    y = torch.relu(x)\n"
        "print(y.sum().item(), before.sum().item())\n"
    )
    profiled = runner.profiled([sys.executable, str(program)], "-p", "block_sched")
    assert profiled.outcome.stdout == "256.0 64.0\n"
    names = {tensor.name: tensor.shape for tensor in read_tensors(open_trace(profiled.trace))}
    assert names["x"] == names["y"] == (8, 16)


@pytest.mark.parametrize(
    ("name", "module"),
    [("compiled_graph", "torch"), ("cupy_raw", "cupy"), ("jax_matmul", "jax"), ("triton_kernel", "triton")],
)
def test_programs_launch_the_same_kernels_with_names(name: str, module: str, runner: Runner) -> None:
    needs(module)
    command = [sys.executable, str(PROGRAMS / f"{name}.py")]
    runner.unprofiled(command)  # what it compiles, and warns of then, is kept
    without = runner.profiled(command, "-p", "block_sched")
    named = runner.profiled(command, "-p", "block_sched", "--tensors")
    assert (named.outcome.status, named.outcome.stdout) == (without.outcome.status, without.outcome.stdout)
    assert named.outcome.stderr == without.outcome.stderr
    kernels = [[(kernel.name, kernel.launches) for kernel in open_trace(run.trace).kernels] for run in (without, named)]
    assert kernels[0] == kernels[1]
    assert read_tensors(open_trace(named.trace))


def tensor_copy_cubin(folder: Path) -> Path:
    """The kernel of ``tensor_copy.py`` without PTX."""
    source, cubin = folder / "copies.ptx", folder / "copies.cubin"
    source.write_text(PTX)
    Assembler().assemble(source, cubin, "sm_90", "copies")
    return cubin


def test_sectors_of_copies_by_tensor_map_are_counted_in_sass(tmp_path: Path, runner: Runner) -> None:
    """Three boxes side by side have two sectors per row each; the last one is cut off after 48 of its 64 bytes."""
    command = [sys.executable, str(PROGRAMS.parents[1] / "probes" / "tensor_copy.py"), str(tensor_copy_cubin(tmp_path))]
    probes = ("-p", "gmem_sectors", "-p", "gmem_sectors_by_line")
    profiled = runner.profiled(command, *probes, "--launches", "all", "--wait")
    assert profiled.outcome.stdout == "True\n", profiled.outcome.stderr
    (kernel,) = open_trace(profiled.trace).kernels
    assert kernel.mode == "graft", kernel.reason
    analyses = {
        probed.probe: [result.analysis for result in analyse_results(probed.trace, probed)]
        for probed in kernel.by_probe()
    }
    sums = [*analyses["gmem_sectors"], *(counts.analysis for counts in analyses["gmem_sectors_by_line"])]
    print(f"GPU-BOX-SECTORS\t{sums}")
    assert len(sums) >= TIMES
    boxes = 3 * -(-ROWS // 8)
    for counts in sums:
        assert (counts.bulk_load_sectors, counts.bulk_store_sectors) == (ROWS * 3 * 2,) * 2
        assert (counts.bulk_copies, counts.unsized_copies) == (2 * boxes, 0)


def test_bytes_of_copies_by_tensor_map_are_counted_in_sass(tmp_path: Path, runner: Runner) -> None:
    command = [sys.executable, str(PROGRAMS.parents[1] / "probes" / "tensor_copy.py"), str(tensor_copy_cubin(tmp_path))]
    profiled = runner.profiled(command, "-p", "gmem_bytes", "--launches", "all", "--wait")
    assert profiled.outcome.stdout == "True\n", profiled.outcome.stderr
    (kernel,) = open_trace(profiled.trace).kernels
    assert (kernel.status, kernel.mode, len(kernel.results)) == ("probed", "graft", TIMES), kernel.reason
    for path in kernel.results:
        moved = gmem_bytes.analyse(read_result(path))
        assert (moved.bulk_loaded, moved.bulk_stored) == (4 * COLUMNS * ROWS,) * 2
        assert (moved.tensor_loads, moved.tensor_stores) == (0, 0)


@pytest.mark.parametrize("tiling", [TILINGS[0], TILINGS[6]])
@pytest.mark.parametrize("mode", ["ptx", "graft"])
def test_copies_by_maps_that_the_kernel_makes_are_counted(
    mode: str, tiling: Tiling, tmp_path: Path, runner: Runner
) -> None:
    """``tensormap.replace`` sets each parameter; the code at the copies reads the map where it lies.

    No box begins in front of the tensor: by such a map, an H200 then ends the kernel with
    CUDA_ERROR_ILLEGAL_INSTRUCTION, without a probe, too.
    """
    source, cubin = tmp_path / "made.ptx", tmp_path / "made.cubin"
    source.write_text(kernel(tiling))
    Assembler().assemble(source, cubin, "sm_90a", "copies")
    image, size = cubin if mode == "graft" else source, tiling.rows * tiling.stride
    command = [sys.executable, str(PROGRAMS / "made_maps.py"), str(image), *map(str, (*tiling.grid, size))]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.stdout.startswith("True "), unprofiled.stdout
    profiled = runner.profiled(command, "-p", "gmem_bytes", "-p", "gmem_sectors", "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout), profiled.outcome.stderr
    (probed_kernel,) = open_trace(profiled.trace).kernels
    assert probed_kernel.mode == mode, probed_kernel.reason
    analyses = {
        probed.probe: [result.analysis for result in analyse_results(probed.trace, probed)]
        for probed in probed_kernel.by_probe()
    }
    print(f"GPU-MADE-MAPS\t{mode}\t{analyses}")
    inside = tiling.rows * tiling.columns * tiling.element
    assert {(own.bulk_loaded, own.bulk_stored) for own in analyses["gmem_bytes"]} == {(inside, inside)}
    sectors = {(own.bulk_load_sectors, own.bulk_store_sectors) for own in analyses["gmem_sectors"]}
    assert sectors == {(tiling.sectors, tiling.sectors)}


@pytest.mark.exclusive
@pytest.mark.parametrize("mode", ["ptx", "graft"])
def test_boxes_of_bulk_copies_are_the_bytes_of_their_tensors(mode: str, tmp_path: Path, runner: Runner) -> None:
    """Maps of the driver are read by the kernel: each byte of both tensors is in one box, and none that overhangs."""
    command = [sys.executable, str(PROGRAMS.parents[1] / "probes" / "tensor_copy.py")]
    if mode == "graft":
        command.append(str(tensor_copy_cubin(tmp_path)))
    unprofiled = runner.unprofiled(command)
    profiled = runner.profiled(command, "-p", "dmat", "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (unprofiled.status, unprofiled.stdout)
    trace = open_trace(profiled.trace)
    (kernel,) = trace.kernels
    assert (kernel.status, kernel.mode) == ("probed", mode), kernel.reason
    assert len(kernel.results) == TIMES
    log = (profiled.trace / "event.log").read_text()
    addresses = {int(address, 16) for address in re.findall(r"cuTensorMapEncodeTiled 0 .* address (\w+) ", log)}
    inside = {row * STRIDE + byte for row in range(ROWS) for byte in range(4 * COLUMNS)}
    for path in kernel.results:
        result = read_result(path)
        boxes = read_boxes(read_accesses(result, compact=False, memory=LaunchMemory(), simulated=False))
        assert copied_bytes(boxes) == {address + offset: 1 for address in addresses for offset in inside}
        print(f"GPU-BOXES\t{boxes.text}\t{int(boxes.bytes.sum())} B\t{path.stat().st_size} B on disk")
    assert len(addresses) == 2


def copied_bytes(boxes: Boxes | None) -> Counter[int]:
    """Count the boxes of ``tensor_copy.py`` that have each byte."""
    assert boxes is not None
    assert (len(boxes.records), boxes.total_copies, boxes.unsized_copies) == (18, 18, 0)
    assert all(0 <= time < 1 << 24 for time in boxes.times.tolist())
    return Counter(
        int(record["start"]) + row * int(record["stride1"]) + byte
        for record in boxes.records
        for row in range(record["count1"])
        for byte in range(record["row"])
    )


COPIES_ONLY = ("dmat", "gmem_bytes", "gmem_sectors")


@pytest.mark.exclusive
@pytest.mark.parametrize("probe", COPIES_ONLY)
def test_copies_of_warps_that_exchange_registers_are_recorded(probe: str, tmp_path: Path, runner: Runner) -> None:
    """Warps with ``setmaxnreg`` have no registers for more; their copies are the same as without."""
    source, cubin = tmp_path / "copies.ptx", tmp_path / "copies.cubin"
    source.write_text(
        PTX.replace("sm_90", "sm_90a").replace(") {", ") .maxnreg 64 {\nsetmaxnreg.dec.sync.aligned.u32 40;", 1)
    )
    Assembler().assemble(source, cubin, "sm_90a", "copies")
    command = [sys.executable, str(PROGRAMS.parents[1] / "probes" / "tensor_copy.py"), str(cubin), "128"]
    unprofiled = runner.unprofiled(command)
    assert unprofiled.stdout == "True\n", unprofiled.stderr
    profiled = runner.profiled(command, "-p", probe, "--launches", "all", "--wait")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout), profiled.outcome.stderr
    (kernel,) = open_trace(profiled.trace).kernels
    inside = {row * STRIDE + byte for row in range(ROWS) for byte in range(4 * COLUMNS)}
    log = (profiled.trace / "event.log").read_text()
    addresses = {int(address, 16) for address in re.findall(r"cuTensorMapEncodeTiled 0 .* address (\w+) ", log)}
    (analyses,) = copies_only(kernel).values()
    assert len(analyses) == TIMES
    for analysis in analyses:
        if probe == "gmem_bytes":
            assert (analysis.bulk_loaded, analysis.bulk_stored) == (4 * COLUMNS * ROWS,) * 2
        elif probe == "gmem_sectors":
            assert (analysis.bulk_load_sectors, analysis.bulk_store_sectors) == (ROWS * 3 * 2,) * 2
            assert (analysis.bulk_copies, analysis.unsized_copies) == (18, 0)
    for row in kernel.result_rows if probe == "dmat" else ():
        boxes = read_boxes(accesses_of(read_result_row(kernel.trace, kernel, row)))
        assert copied_bytes(boxes) == {address + offset: 1 for address in addresses for offset in inside}


SIZE, TILE = 4096, 128
"""Rows and columns of the product of ``cutlass_warp_specialised.cu``, and of a block's part of it."""


@pytest.mark.exclusive
def test_copies_of_cutlass_product_are_the_tiles_of_its_matrices(tmp_path: Path, runner: Runner) -> None:
    """Without PTX. Each tile of the result takes TILE rows of A and TILE columns of B, of two bytes each."""
    program = cutlass_product(tmp_path, has_ptx=False)
    unprofiled = runner.unprofiled([program])
    probes = [part for probe in COPIES_ONLY for part in ("-p", probe)]
    profiled = runner.profiled([program], *probes, "--launches", "all", "--wait", "--max-write-rate", "none")
    assert (profiled.outcome.status, profiled.outcome.stdout) == (0, unprofiled.stdout), profiled.outcome.stderr
    (kernel,) = open_trace(profiled.trace).kernels
    analyses = copies_only(kernel)
    assert analyses.keys() == {*COPIES_ONLY}
    tiles, matrix = SIZE // TILE, 2 * SIZE * SIZE
    for moved in analyses["gmem_bytes"]:
        assert (moved.bulk_loaded, moved.bulk_stored) == (2 * tiles * matrix, matrix)
    for sectors in analyses["gmem_sectors"]:
        assert (sectors.bulk_load_sectors, sectors.bulk_store_sectors) == (2 * tiles * matrix // 32, matrix // 32)
        assert sectors.unsized_copies == 0
    for table in analyses["dmat"]:
        assert (table.box_bytes, table.unsized_copies) == ((2 * tiles + 1) * matrix, 0)


def copies_only(kernel: Kernel) -> dict[str, list[Any]]:
    """The analyses of the probes of a kernel whose records are bulk copies only, by probe."""
    analyses = {}
    for probed in kernel.by_probe():
        assert (probed.status, probed.mode) == ("probed", "graft"), probed.reason
        own = [result.analysis for result in analyse_results(probed.trace, probed)]
        assert own, probed.probe
        print(f"GPU-COPIES\t{probed.probe}\t{probed.reason}\t{own[-1]}"[:600])
        analyses[probed.probe or ""] = own
    return analyses
