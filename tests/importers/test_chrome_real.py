"""Chrome traces that PyTorch, JAX and Proton wrote on an H100, against what the files themselves say of each kernel."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.nsys_pages import kernels_page, ranges_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.trace.kernel_status import demangle

RECORDED = Path(__file__).parents[1] / "data" / "chrome"
FILES = ["torch.json.gz", "jax.json.gz", "proton.json"]


def events(name: str) -> list[dict[str, Any]]:
    """The timed events of a file by start."""
    raw = (RECORDED / name).read_bytes()
    recorded = json.loads(gzip.decompress(raw) if name.endswith(".gz") else raw)["traceEvents"]
    return sorted((event for event in recorded if event.get("ph") == "X"), key=lambda event: event["ts"])


def is_kernel(event: dict[str, Any]) -> bool:
    return event.get("cat") == "kernel" or "kernel_details" in event.get("args", {})


def sources(name: str) -> NsysSources:
    return NsysSources(read_nsys([RECORDED / name]))


@pytest.mark.parametrize("name", FILES)
def test_kernels_of_a_recorded_trace(name: str) -> None:
    recorded = filter(is_kernel, events(name))
    wanted = [(demangle(event["name"]), round(event["dur"] * 1000), event["tid"]) for event in recorded]
    assert [(row.name, row.duration, row.stream) for row in kernels_page(sources(name)).rows] == wanted


def test_range_of_a_kernel_of_pytorch_is_its_operator() -> None:
    """The profiler numbers operators, and notes the number at the kernels that they launched."""
    recorded = events("torch.json.gz")
    numbered = (event for event in recorded if event["cat"] in ("cpu_op", "user_annotation"))
    operators = {event["args"]["External id"]: event["name"] for event in numbered}
    wanted = [operators.get(event["args"].get("External id")) for event in filter(is_kernel, recorded)]
    shown = [row.range for row in kernels_page(sources("torch.json.gz")).rows]
    assert shown == wanted
    assert wanted.count(None) == 4  # of two replays of a graph, outside of all operators


def test_range_of_a_kernel_of_jax_is_its_operation() -> None:
    wanted = [event["args"]["hlo_op"] for event in filter(is_kernel, events("jax.json.gz"))]
    profile = sources("jax.json.gz")
    assert [row.range for row in kernels_page(profile).rows] == wanted
    steps = [row.kernels for row in ranges_page(profile).rows if row.name == "train"]
    assert steps == [4, 4, 4]
    assert not any(row.name.startswith("$") for row in ranges_page(profile).rows)


def test_ranges_of_kernels_of_proton_are_its_scopes() -> None:
    rows = [(row.name, row.level, row.kernels) for row in ranges_page(sources("proton.json")).rows]
    assert rows == [("step", 0, 4), ("inner", 1, 1), ("inner", 1, 1)]
