"""``run --detail`` and without: what is in the trace, and what is shown of it, on the simulated GPU."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tui_probe
from tests.e2e.conftest import EXAMPLE, SAXPY, Tool
from tests.engine.reduced_maps import reduced_bytes
from tests.turns import due
from tui_probe.probe_files.loading import load_probe
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path


class WithSettings(Tool):
    """The tool of a user with settings."""

    @property
    def environment(self) -> dict[str, str]:
        return super().environment | {"XDG_CONFIG_HOME": str(self.folder / "config")}


def result_rows(tool: Tool, trace: Path) -> Any:
    """All results of a trace but for its name and their files."""
    rows = json.loads(tool("report", str(trace), "--page", "results", "--format", "json").stdout)["results"]
    return [{key: value for key, value in row.items() if key not in ("result", "trace")} for row in rows]


def of_saxpy(trace: Path) -> Any:
    """Its only result, in Python."""
    (kernel,) = [kernel for kernel in tui_probe.open(trace).kernels if kernel.name == "saxpy"]
    return kernel.results[0]


@pytest.fixture(scope="module")
def unprofiled(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> str:
    """Output of the example without tui-probe."""
    return Tool(tmp_path_factory.mktemp("alone"), natives).unprofiled(*EXAMPLE).stdout


@pytest.mark.parametrize("probe", due(["block_sched", "gmem_bytes", "gmem_sectors", "barrier_wait"]))
def test_reduced_results_give_the_same_pages(tool: Tool, probe: str, unprofiled: str) -> None:
    run, small = tool.run(EXAMPLE, "-p", probe)
    (tool.folder / "other").mkdir()
    again = Tool(tool.folder / "other", tool.natives)
    whole_run, large = again.run(EXAMPLE, "-p", probe, "--detail")
    assert (run.returncode, run.stdout) == (whole_run.returncode, whole_run.stdout) == (0, unprofiled)
    assert result_rows(tool, small) == result_rows(tool, large)
    (own,) = load_probe(probe).maps
    assert own.reduction is not None
    traces = [open_trace(small), open_trace(large)]
    small_kernels, large_kernels = ({kernel.name: kernel for kernel in trace.kernels} for trace in traces)
    for name, kernel in small_kernels.items():
        all_of_it, left = (
            large_kernels[name].read_result_file(large_kernels[name].results[0]),
            kernel.read_result_file(kernel.results[0]),
        )
        written = all_of_it.written_mask(0)
        slots = all_of_it.maps[0]
        saved = np.ones(slots.shape[:2], bool) if written is None else written[:, :, 0]
        assert left.map_records[0].marks.tobytes() == reduced_bytes(own.reduction, slots, saved)
        assert kernel.results[0].stat().st_size < large_kernels[name].results[0].stat().st_size / 3
        assert kernel.probe_bytes == large_kernels[name].probe_bytes  # device memory


def test_the_run_says_what_it_kept(tool: Tool) -> None:
    _, trace = tool.run(SAXPY, "-p", "block_sched", "--detail")
    assert json.loads((trace / "run.json").read_text())["options"]["detail"] is True
    (folder := tool.folder / "config" / "tui-probe").mkdir(parents=True)
    (folder / "settings.toml").write_text("detail = true\n")
    tool = WithSettings(tool.folder, tool.natives)
    _, trace = tool.run(SAXPY, "-p", "block_sched")
    assert of_saxpy(trace).reduced == {}
    _, trace = tool.run(SAXPY, "-p", "block_sched", "--no-detail")
    result = of_saxpy(trace)
    assert result.reduced == {"block_sched": "block"}
    assert result.maps["block_sched"].shape == result.written["block_sched"].shape == (64, 1, 1)
    assert result.maps["block_sched"].dtype.names == ("start", "elapsed", "smid")


def test_results_count_against_the_limit_as_they_are_saved(tool: Tool) -> None:
    """All records of 1 563 blocks with eight warps each, 56 bytes per warp, would be too much for the trace: they are
    reduced with --detail, too, if that is all there is room for.
    """
    command = [*SAXPY, "--size", "400000"]
    for limit, is_reduced in ("600K", True), ("10M", False):
        _, trace = tool.run(command, "-p", "gmem_bytes", "--max-trace-bytes", limit, "--detail")
        assert bool(of_saxpy(trace).reduced) == is_reduced


def test_irreducible_records_are_block_sampled(tool: Tool) -> None:
    """The records of 1 563 blocks with 256 threads each are more than the trace may have: some blocks are, in a second
    copy of the kernel that is made for it.
    """
    command = [*SAXPY, "--size", "400000"]
    run, trace = tool.run(command, "-p", "dmat", "--max-trace-bytes", "2M")
    assert (run.returncode, run.stdout) == (0, tool.unprofiled(*command).stdout)
    (kernel,) = [kernel for kernel in open_trace(trace).kernels if kernel.name == "saxpy"]
    sample = kernel.read_result_file(kernel.results[0]).sample
    assert sample is not None
    assert (sample.grid, sample.blocks[0]) == ((1563, 1, 1), 0)
    assert 16 <= len(sample.blocks) < 1563
    assert (kernel.folder / "sampled" / "probed.ptx").exists()
    shown = tool("report", str(trace), "--page", "results").stdout
    assert f"{len(sample.blocks)} of 1 563 blocks" in shown, shown


def test_pages_of_warps_say_what_to_do(tool: Tool) -> None:
    _, trace = tool.run(SAXPY, "-p", "block_sched")
    shown = tool("show", "timeline", str(trace), "-k", "saxpy", "--do", "level,level")
    assert "one row per SM; to see warps, run with --detail" in shown.stdout + shown.stderr
    _, trace = tool.run([*EXAMPLE, "--kernel", "softmax"], "-p", "barrier_wait")
    shown = tool("show", "latency", str(trace), "-k", "softmax")
    assert "for each warp's waits, run with --detail" in shown.stdout
    assert "one warp              –        –        –" in shown.stdout
    page = tool("show", "latency", str(trace), "-k", "softmax", "--format", "json").stdout
    assert json.loads(page)["data"]["inside"]["cycles"] == {"one_warp": None, "one_barrier": None}
