"""CSV of nsys stats."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.files import write
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.nsys import read_nsys
from tui_probe.nsight.pages.nsys_pages import kernels_page
from tui_probe.nsight.pages.nsys_profile import NsysSources

TRACE = """\
NOTICE: Existing SQLite export found: run.sqlite
Processing [run.sqlite] with [/opt/reports/cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),\
Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
100,50,1,4,2,1,64,1,1,32,0.001,0.002,,,,,NVIDIA H100 (1),1,,7,"void f<1, 2>(int)"
200,20,2,,,,,,,,,,1.5,100.0,Pageable,Device,NVIDIA H100 (1),1,,7,[CUDA memcpy Host-to-Device]
300,60,3,1,1,1,32,1,1,16,0.000,0.000,,,,,NVIDIA H100 (1),1,,8,g(int)
"""
RANGES = """\
Name,Projected Start (us),Projected Duration (us),Orig Start (us),Orig Duration (us),Style,PID,TID,NumGPUOps,Lvl,\
NumChild,RangeId,ParentId,RangeStack
:outer,0.1,0.3,0.01,2.5,PushPop,7,7,3,1,1,1,,:1
:inner,0.1,0.05,0.02,0.5,PushPop,7,7,1,2,0,2,1,:1:2
"""
SUMS = """\
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
60.0,600,3,200.0,210.0,100,290,1.0,"void f<1, 2>(int)"
40.0,400,1,400.0,400.0,400,400,0.0,g(int)
"""


def test_kernels_and_copies_of_a_trace(tmp_path: Path) -> None:
    report = read_nsys([write(tmp_path, TRACE)])
    kernels = report.kernels
    assert [kernels.names[code] for code in kernels.name] == ["void f<1, 2>(int)", "g(int)"]
    assert kernels.start.tolist() == [100, 300]
    assert kernels.end.tolist() == [150, 360]
    assert kernels.shape.tolist() == [[4, 2, 1, 64, 1, 1], [1, 1, 1, 32, 1, 1]]
    assert (kernels.stream.tolist(), kernels.device.tolist(), kernels.shared.tolist()) == ([7, 8], [1, 1], [3000, 0])
    assert (report.copies.start.tolist(), report.copies.end.tolist()) == ([200], [220])
    assert "number of SMs" in report.notes[0]


def test_projected_ranges_in_another_unit_of_time(tmp_path: Path) -> None:
    outer, inner = read_nsys([write(tmp_path, RANGES)]).projected
    assert (outer.name, outer.start, outer.end, outer.level, outer.kernels) == ("outer", 100, 400, 0, 3)
    assert (inner.name, inner.start, inner.end, inner.level) == ("inner", 100, 150, 1)
    assert (inner.host_start, inner.host_end, inner.stream) == (20, 520, None)


def test_a_summary(tmp_path: Path) -> None:
    report = read_nsys([write(tmp_path, SUMS)])
    assert [(total.name, total.launches, total.total, total.median) for total in report.sums] == [
        ("void f<1, 2>(int)", 3, 600, 210),
        ("g(int)", 1, 400, 400),
    ]
    assert "has no individual launches" in report.notes[0]


def test_reports_in_one_file_and_in_several(tmp_path: Path) -> None:
    joined = read_nsys([write(tmp_path, f"{TRACE}\n{RANGES}\n{SUMS}", "one.csv")])
    several = read_nsys([write(tmp_path, text, f"{i}.csv") for i, text in enumerate((TRACE, RANGES, SUMS))])
    for report in (joined, several):
        assert (len(report.kernels), len(report.projected), len(report.sums)) == (2, 2, 2)


def test_two_profiles_are_not_mixed(tmp_path: Path) -> None:
    paths = [write(tmp_path, TRACE, name) for name in ("a.csv", "b.csv")]
    with pytest.raises(ImportFileError, match=r"b\.csv: its cuda_gpu_trace differs"):
        read_nsys(paths)


def test_no_report(tmp_path: Path) -> None:
    with pytest.raises(ImportFileError, match=r"profile\.csv: neither a known report of nsys stats"):
        read_nsys([write(tmp_path, "a,b,c\n1,2,3\n")])


def sums_of(folder: Path, text: str) -> list[tuple[object, ...]]:
    return [(total.name, total.launches, total.total, total.mean, total.minimum, total.maximum) for total in
            read_nsys([write(folder, text)]).sums]  # fmt: skip


@pytest.mark.parametrize(
    "headings",
    [
        "Time(%),Total Time,Instances,Average,Minimum,Maximum,Name",
        "Time(%),Total Time (ns),Instances,Average (ns),Minimum (ns),Maximum (ns),Name",
        "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name",
        "Time (%),Total Time(nsec),Instances,Avg(nsec),Min(nsec),Max(nsec),Name",
    ],
)
def test_summaries_have_headings_of_all_versions(tmp_path: Path, headings: str) -> None:
    text = f"{headings}\n60.0,600,3,200.0,100,290,f(int)\n"
    assert sums_of(tmp_path, text) == [("f(int)", 3, 600, 200, 100, 290)]
    page = kernels_page(NsysSources(read_nsys([write(tmp_path, text)])))
    assert dict(page.texts.head)["seen"] == "1 kernel, 3 launches"


def test_summary_by_shape_has_grid_and_block(tmp_path: Path) -> None:
    headings = "Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),GridXYZ,BlockXYZ,Name"
    rows = "60.0,600,3,200,200,200,   4    2    1,  64    1    1,f(int)\n40.0,400,1,400,400,400,8 1 1,32 1 1,f(int)"
    report = read_nsys([write(tmp_path, f"{headings}\n{rows}\n")])
    assert [(total.launches, total.grid, total.block) for total in report.sums] == [
        (3, (4, 2, 1), (64, 1, 1)),
        (1, (8, 1, 1), (32, 1, 1)),
    ]


OTHERS = (
    "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),Name\n90,900,9,1,1,1,1,cudaFree\n",
    "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),Operation\n9,9,9,1,1,1,1,[copy]\n",
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),Style,Range\n9,9,9,1,1,1,1,Push,:a\n",
    "Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation\n9,9,1,1,1,1,0,[copy]\n",
    "Time(%),Total Time (ns),Num Calls,Average,Minimum,Maximum,Name\n90,900,9,1,1,1,poll\n",
)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("gap", ["", "\n", "\nProcessing [x.sqlite] with [/opt/reports/other.py]... \n"])
def test_other_reports_in_the_file_add_nothing(tmp_path: Path, other: str, gap: str) -> None:
    single_file = read_nsys([write(tmp_path, TRACE + RANGES + SUMS, "only.csv")])
    text = gap.join((other, TRACE, other, RANGES, other, SUMS, other))
    report = read_nsys([write(tmp_path, text)])
    assert (len(report.kernels), len(report.copies.start)) == (2, 1)
    assert (report.projected, report.sums) == (single_file.projected, single_file.sums)


def test_summary_of_all_operations_gives_its_kernels(tmp_path: Path) -> None:
    text = (
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Category,Operation\n"
        "60,600,3,200,210,100,290,1,CUDA_KERNEL,f(int)\n40,400,1,400,400,400,400,0,MEMORY_OPER,[CUDA memset]\n"
    )
    assert sums_of(tmp_path, text) == [("f(int)", 3, 600, 200, 100, 290)]
    assert sums_of(tmp_path, text + SUMS)[1][0] == "g(int)"


@pytest.mark.parametrize(("unit", "factor"), [("B", 1), ("KB", 1000), ("KiB", 1024), ("MiB", 1 << 20)])
def test_shared_memory_in_any_unit(tmp_path: Path, unit: str, factor: int) -> None:
    text = TRACE.replace("StcSMem (MB)", f"StcSMem ({unit})").replace("DymSMem (MB)", f"DymSMem ({unit})")
    assert read_nsys([write(tmp_path, text.replace("0.001,0.002", "1,2"))]).kernels.shared.tolist()[0] == 3 * factor


def test_streams_of_contexts_are_apart(tmp_path: Path) -> None:
    text = TRACE.replace("NVIDIA H100 (1),1,,8", "NVIDIA H100 (1),2,,7")
    kernels = read_nsys([write(tmp_path, text)]).kernels
    assert [kernels.streams[queue][1:] for queue in kernels.queue] == [(1, 1, 7), (1, 2, 7)]


LINES = [line for text in (TRACE, RANGES, SUMS) for line in text.splitlines()]


@given(st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=12)), max_size=12), st.binary(max_size=12))
def test_any_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "x.csv"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass") + end)
    try:
        report = read_nsys([path])
    except ImportFileError as error:
        assert str(error).startswith(f"{path}: ")  # noqa: PT017 - any other error is the failure
    else:
        assert len(report.kernels.start) == len(report.kernels.shape)
