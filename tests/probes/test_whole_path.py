"""A counting probe from the command line to the report, through hook and engine, on the simulated GPU."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import EXAMPLE, Tool, build_examples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True, scope="module")
def _examples() -> None:
    build_examples()


def test_sectors_of_the_example(tmp_path: Path, natives: Path) -> None:
    """16 384 threads store side by side and two apart; saxpy loads twice."""
    tool = Tool(tmp_path, natives)
    unprofiled = tool.unprofiled(*EXAMPLE)
    run, trace = tool.run(EXAMPLE, "-p", "gmem_sectors")
    assert (run.returncode, run.stdout) == (unprofiled.returncode, unprofiled.stdout)
    page = json.loads(tool("report", str(trace), "--page", "results", "--format", "json").stdout)
    values = {(row["name"], row["figure"]): row["value"] for row in page["results"]}
    assert values["coalesced_store", "store_requests"] == 512
    assert values["coalesced_store", "store_sectors"] == 2048
    assert values["strided_store", "store_sectors"] == 4096
    assert values["saxpy", "load_requests"] == 1024
    assert values["saxpy", "sectors_per_load"] == 4
    assert values["zero_fill", "sectors_per_load"] is None
    assert {row["threads_missing"] for row in page["results"]} == {0}


def test_sectors_of_each_line_of_the_example(tmp_path: Path, natives: Path) -> None:
    """The store that does not coalesce, with its line of source, from the table of lines."""
    tool = Tool(tmp_path, natives)
    run, trace = tool.run(EXAMPLE, "-p", "gmem_sectors_by_line")
    assert (run.returncode, run.stdout) == (0, tool.unprofiled(*EXAMPLE).stdout)
    shown = tool("show", "lines", str(trace), "-k", "strided_store", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    (line,) = json.loads(shown.stdout)["data"]["lines"]
    assert (line["requests"], line["sectors"], line["sectors_per_request"]) == (512, 4096, 8)
    assert (line["file"].rpartition("/")[2], line["source_line"]) == ("strided_store.cu", 4)
