"""``run --sample``: from the command line to what reports say, on the simulated GPU."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import EXAMPLE, SAXPY, Tool
from tui_probe.probe_files.loading import load_probe
from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    from pathlib import Path


def counts(tool: Tool, trace: Path) -> dict[tuple[str, str], Any]:
    """Rows of the page of counts by kernel and value."""
    page = json.loads(tool("report", str(trace), "--page", "results", "--format", "json").stdout)
    return {(row["name"], row["figure"]): row for row in page["results"]}


def test_counts_say_of_which_blocks_they_are(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    unprofiled = tool.unprofiled(*EXAMPLE)
    run, trace = tool.run(EXAMPLE, "-p", "gmem_sectors", "--sample", "1/16")
    assert (run.returncode, run.stdout) == (0, unprofiled.stdout)
    row = counts(tool, trace)["strided_store", "store_sectors"]
    assert (row["value"], row["blocks"], row["blocks_measured"]) == (4096 // 16, 64, 4)
    note = "sample    one block in 16 of each grid; all values cover only these blocks"
    assert note in tool("report", str(trace)).stdout
    page = tool("report", str(trace), "--page", "results").stdout
    note = "sectors per store 8.00, excessive store sectors 50.00 %  (sampled 4 of 64 blocks, one in 16)  simulated"
    assert note in " ".join(page.split("\n      "))
    memory = {kernel.name: kernel.probe_bytes for kernel in open_trace(trace).kernels}
    assert memory["coalesced_store"] == 4 * 8 * load_probe("gmem_sectors").maps[0].slot_bytes


def test_records_are_numbered_as_in_the_grid(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    run, trace = tool.run(SAXPY, "-p", "dmat", "--sample", "40-43", "--no-report")
    assert run.returncode == 0
    (kernel,) = [kernel for kernel in open_trace(trace).kernels if kernel.name == "saxpy"]
    result = kernel.read_result_file(kernel.results[0])
    assert (result.blocks, result.header.grid) == (range(40, 44), (64, 1, 1))
    addresses = result.records(1, [("address", "<u8"), ("rest", "<u8")])["address"]
    assert (addresses[1, 0, 0] - addresses[0, 0, 0]) == 256 * 4
    lines = json.loads(tool("show", "lines", str(trace), "-k", "saxpy", "--format", "json").stdout)["data"]
    assert {line["requests"] for line in lines["lines"]} == {4 * 8}
    assert "sampled 4 of 64 blocks, 40 to 43" in tool("show", "dmat", str(trace), "-k", "saxpy").stdout


def test_a_launch_without_a_block_of_the_sample_runs_as_it_is(tmp_path: Path, natives: Path) -> None:
    tool = Tool(tmp_path, natives)
    run, trace = tool.run(EXAMPLE, "-p", "gmem_bytes", "--sample", "100-120", "--no-report")
    assert (run.returncode, run.stdout) == (0, tool.unprofiled(*EXAMPLE).stdout)
    launches = open_trace(trace).launches
    reasons = [launches[number].reason for number in range(len(launches))]
    assert reasons == [None, *["no block of the launch is in the sample"] * 6]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sample", "1/16"), "--sample: block_sched needs every block, so it cannot be sampled"),
        (("-p", "dmat", "--sample", "2/3"), "'2/3' is not a sample of blocks; write 1/16"),
    ],
)
def test_sampling_is_refused_where_impossible(tmp_path: Path, natives: Path, words: tuple[str, ...], said: str) -> None:
    done = Tool(tmp_path, natives)("run", "--sim", *words, "--", "true")
    assert done.returncode == 2
    assert said in done.stderr
