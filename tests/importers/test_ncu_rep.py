"""Reports of Nsight Compute, read through a stand-in for NVIDIA's package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.importers.fake_report import Metric, Package, launch
from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.which_tool import tool_of
from tui_probe.nsight.pages.ncu_report import Sources, ncu_page

TIME, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run.ncu-rep"
    path.write_bytes(b"NVR\0whatever")
    return path


def recorded(monkeypatch: pytest.MonkeyPatch, package: Package) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", package)  # type: ignore[arg-type]


def test_pages_of_a_report(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    metrics = {TIME: Metric(2.5, of="us"), BYTES: Metric(4, of="Kbyte"), "launch__func_cache_config": Metric("Prefer")}
    recorded(monkeypatch, Package([launch("scale(float*)", grid, **metrics) for grid in (4, 8)]))
    table = read_ncu([report])
    assert [(each.kernel, each.grid, each.block, each.number) for each in table.launches] == [
        ("scale(float*)", (4, 1, 1), (64, 1, 1), 0),
        ("scale(float*)", (8, 1, 1), (64, 1, 1), 1),
    ]
    assert (table.column(TIME, unit="ns").tolist(), table.column(BYTES).tolist()) == ([2500, 2500], [4000, 4000])
    assert "Prefer" in table.words.values()
    (traffic,) = ncu_page("traffic", Sources(table)).record()["traffic"]
    assert (traffic["dram_bytes"], traffic["time_ns"]) == (8000, 5000)
    assert len(ncu_page("averages", Sources(table)).rows) == 2 * 8


def test_report_without_the_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    assert tool_of(report) == "ncu"
    with pytest.raises(ImportFileError, match=r"run\.ncu-rep: .*tui-probe\[ncu\].*ncu --import .*run\.ncu-rep"):
        read_ncu([report])


def test_report_that_is_damaged_or_empty_is_named(monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
    recorded(monkeypatch, Package([]))
    with pytest.raises(ImportFileError, match=r"run\.ncu-rep: a report without profiled kernels"):
        read_ncu([report])
    broken = report.rename(report.with_name("broken.ncu-rep"))
    with pytest.raises(ImportFileError, match=r"broken\.ncu-rep: no report .*bad header"):
        read_ncu([broken])
