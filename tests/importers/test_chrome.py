"""Chrome traces: JAX and Proton, damaged and odd files, and how they are distinguished from other JSON."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.nsys_pages import gaps_page, kernels_page, ranges_page, sums_page, totals_page
from tui_probe.nsight.pages.nsys_profile import NsysSources
from tui_probe.nsight.pages.timeline import StreamTimeline


def event(name: str, start: float, length: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, **more}


def kernel(name: str, start: float, length: float, **details: Any) -> dict[str, Any]:
    return event(name, start, length, cat="kernel", args={"device": 0, "stream": 7, "correlation": 1, **details})


def written(folder: Path, value: object, name: str = "trace.json") -> Path:
    path = folder / name
    data = (value if isinstance(value, str) else json.dumps(value)).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def sources(path: Path) -> NsysSources:
    return NsysSources(read_nsys([path]))


def test_operators_and_modules_of_pytorch_are_ranges(tmp_path: Path) -> None:
    events = [
        kernel("gemm", 100, 10.5, grid=[4, 1, 1], block=[64, 1, 1]),
        event("cudaLaunchKernel", 12, 2, cat="cuda_runtime", args={"correlation": 1}),
        event("aten::mm", 11, 5, cat="cpu_op"),
        event("nn.Module: Linear_0", 10, 20, cat="python_function"),
        event("train.py(7): main", 0, 99, cat="python_function"),
        event("step", 5, 50, cat="user_annotation"),
        event("ac2g", 12, 0, cat="ac2g", ph="s"),
    ]
    profile = sources(written(tmp_path, {"traceEvents": events}, "trace.json.gz"))
    rows = [(row.name, row.level, row.kernels, row.duration) for row in ranges_page(profile).rows]
    assert rows == [("step", 0, 1, 10_500), ("Linear_0", 1, 1, 10_500), ("aten::mm", 2, 1, 10_500)]
    (row,) = kernels_page(profile).rows
    assert (row.range, row.grid, row.process, row.start) == ("aten::mm", (4, 1, 1), 1, 95_000)


def test_kernels_of_jax_are_in_its_streams(tmp_path: Path) -> None:
    def named(kind: str, name: str, **where: Any) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "args": {"name": name}, **where}

    details = {"kernel_details": "regs:32 static_shared:0 dynamic_shared:1024 grid:4,1,1 block:64,1,1 occ_pct:50"}
    where = {"pid": 2, "tid": 13}
    events = [
        named("process_name", "/device:GPU:1 NVIDIA H100", pid=2),
        named("thread_name", "Stream #13(Compute)", **where),
        named("thread_name", "XLA Ops", pid=2, tid=1),
        event("fusion_1", 10, 5, **where, args=details | {"hlo_module": "jit_f", "hlo_op": "fusion.1"}),
        event("fusion_2", 20, 5, **where, args=details | {"hlo_module": "jit_f", "hlo_op": "fusion.2"}),
        event("MemcpyH2D", 30, 5, **where, args={"memcpy_details": "kind:1"}),
        event("fusion.1", 10, 5, pid=2, tid=1),
        event("PjitFunction(f)", 0, 9, pid=3, tid=4),
    ]
    profile = sources(written(tmp_path, {"displayTimeUnit": "ns", "traceEvents": events}))
    rows = [
        (row.name, row.device, row.stream, row.grid, row.registers, row.shared_size)
        for row in kernels_page(profile).rows
    ]
    assert rows == [(f"fusion_{i}", 1, 13, (4, 1, 1), 32, 1024) for i in (1, 2)]
    assert len(profile.report.copies.start) == 1
    assert [(row.name, row.level, row.kernels) for row in ranges_page(profile).rows] == [
        ("jit_f", 0, 2),
        ("fusion.1", 1, 1),
        ("fusion.2", 1, 1),
    ]


def test_scopes_of_proton_are_ranges(tmp_path: Path) -> None:
    def launch(name: str, start: float, *scopes: str) -> dict[str, Any]:
        return event(name, start, 5, cat="kernel", tid=0, args={"call_stack": ["ROOT", *scopes, name]})

    events = [launch("a", 0, "step", "mm"), launch("b", 10, "step", "mm"), launch("c", 20, "step"), launch("d", 30)]
    page = ranges_page(found := sources(written(tmp_path, {"displayTimeUnit": "us", "traceEvents": events})))
    assert [(row.name, row.level, row.start, row.end) for row in page.rows] == [
        ("step", 0, 0, 25_000),
        ("mm", 1, 0, 15_000),
    ]
    assert page.part_of_row is not None
    _, only = page.part_of_row(page.rows[1])
    assert [row.name for row in totals_page(found.limited_to(only)).rows] == ["a", "b"]


def test_scopes_within_one_of_their_name_are_summed_once(tmp_path: Path) -> None:
    """A recursive scope: both calls have the time of the inner kernel, the total has it once."""
    events = [
        event("k", start, 1, cat="kernel", tid=0, args={"call_stack": ["ROOT", *scopes, "k"]})
        for start, scopes in ((0, ("f", "f")), (10, ("g",)), (20, ("f",)))
    ]
    page = sums_page(sources(written(tmp_path, {"traceEvents": events})))
    sums = [(row.name, row.calls, row.total, row.mean, row.p99, row.kernels) for row in page.rows]
    assert sums == [("f", 3, 2000, 1000, 1000, 2), ("g", 1, 1000, 1000, 1000, 1)]


def test_processes_of_equal_ids_are_distinguished_by_file(tmp_path: Path) -> None:
    """Ranks in containers are all process 1; kernels of both files are on stream 7 of GPU 0."""
    call = event("cudaLaunchKernel", 1, 2, cat="cuda_runtime", args={"correlation": 1})
    copy = event("Memcpy", 28, 1, cat="gpu_memcpy", args={"device": 0, "stream": 7})
    files = [
        written(tmp_path, [call, kernel("a", 10 + rank, 5), kernel("b", 30 + rank, 5, correlation=2), copy], name)
        for rank, name in enumerate(("rank0.json", "rank1.json"))
    ]
    profile = NsysSources(read_nsys(files))
    assert [(row.name, row.process) for row in kernels_page(profile).rows] == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]
    gaps = gaps_page(profile)
    assert [(row["length_ns"], row["file"]) for row in gaps.record()["gaps"]] == [
        (15_000, "rank0.json"),
        (15_000, "rank1.json"),
    ]
    assert all(name in "\n".join(gaps.text(120)) for name in ("rank0.json", "rank1.json"))
    labels = [lane.label for lane in StreamTimeline(profile).lanes]
    assert labels == ["rank0.json stream 7", "rank1.json stream 7"]
    assert "2 processes" in dict(totals_page(profile).texts.head)["seen"]


def test_copies_belong_to_the_process_of_their_call(tmp_path: Path) -> None:
    """One file of two processes, whose kernels have the GPU in place of the process."""
    events = [
        event("launch", 1, 1, cat="cuda_runtime", pid=pid, args={"correlation": 10 * pid + i}) | {"ts": 1 + i}
        for pid in (1, 2)
        for i in range(3)
    ]
    for pid, start in ((1, 10), (2, 110)):
        events += [kernel("k", start + 40 * i, 5, correlation=10 * pid + i) for i in range(2)]
    events.append(event("Memcpy", 16, 30, cat="gpu_memcpy", args={"device": 0, "stream": 7, "correlation": 12}))
    profile = sources(written(tmp_path, events))
    assert [(row.stream.process, row.gap.cause) for row in gaps_page(profile).rows] == [(1, "copy"), (2, "other")]


def test_times_are_exact_to_a_nanosecond(tmp_path: Path) -> None:
    text = json.dumps([kernel("k", 1, 1), kernel("k", 2, 2)]).replace('"ts": 1,', '"ts": 1764000000000000.123,')
    text = text.replace('"ts": 2,', '"ts": 1764000000000002.001,').replace('"dur": 1,', '"dur": 1.001,')
    kernels = read_nsys([written(tmp_path, text)]).kernels
    assert (kernels.start.tolist(), kernels.end.tolist()) == ([0, 1878], [1001, 3878])


def test_events_that_cannot_be_are_counted(tmp_path: Path) -> None:
    odd = [event("x", start, length, cat="kernel") for start, length in (("soon", 1), (1, -1), (1e300, 1), (None, 1))]
    report = read_nsys([written(tmp_path, [kernel("k", 1, 1), *odd, 7, None])])
    assert len(report.kernels) == 1
    assert report.notes[0].endswith("events excluded because of impossible times: 4")


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_file_that_is_cut_off_gives_its_events(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, [kernel(f"k{i}", i, 1) for i in range(2000)], name)
    path.write_bytes(path.read_bytes()[: -len(path.read_bytes()) // 3])
    report = read_nsys([path])
    assert 100 < len(report.kernels) < 2000
    assert "truncated after" in report.notes[0]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ('{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "expected a comma"),
        ('{"traceEvents": {"ph": "X"}}', r"expected \["),
        ('{"traceEvents": []}', "without GPU kernels"),
        ('[{"ph": ' + "[" * 100_000, "not a readable Chrome trace|without GPU kernels"),
    ],
)
def test_file_that_is_wrong_is_named(tmp_path: Path, value: str, problem: str) -> None:
    with pytest.raises(ImportFileError, match=rf"trace\.json: .*({problem})"):
        read_nsys([written(tmp_path, value)])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "x"])
EVENTS = st.lists(st.dictionaries(KEYS, VALUES | st.sampled_from(["X", "M", "kernel", "cpu_op", "cuda_runtime"])))


@given(EVENTS)
def test_any_events(tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]) -> None:
    path = written(tmp_path_factory.mktemp("any"), [kernel("k", 1, 1), *events])
    page = totals_page(sources(path))
    assert page.rows
