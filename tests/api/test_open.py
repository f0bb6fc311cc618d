"""``tui_probe.open``: what scripts and notebooks get of a trace."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tui_probe
from tests.recorded import H200, SIMULATED, unpacked
from tui_probe.pages.page_registry import report_lines
from tui_probe.probekit import registry
from tui_probe.trace.follow import open_trace

SECTORS = SIMULATED / "gmem_sectors"


def test_public_names_are_there() -> None:
    for name in tui_probe.__all__:
        assert getattr(tui_probe, name) is not None
    assert set(tui_probe.__all__) <= set(dir(tui_probe))
    assert (Path(tui_probe.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="no attribute 'opened'"):
        _ = tui_probe.opened


def test_package_import_is_cheap() -> None:
    code = (
        "import sys, tui_probe; print(sorted({'numpy', 'rich', 'textual', 'tui_probe.api.traces'} & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "[]\n"


def test_results_are_structured_arrays_by_map() -> None:
    (kernel,) = tui_probe.open(SECTORS).kernels
    result = kernel.results[0]
    records = result.maps["gmem_sectors"]
    assert (records.shape, result.grid, result.block, len(result.blocks)) == ((40, 2, 1), (40, 1, 1), (64, 1, 1), 40)
    assert records["store_sectors"].sum() == 2560
    assert not records.flags.writeable
    assert result.written["gmem_sectors"].all()
    assert result.launch == kernel.launches[0]


def test_metrics_have_a_value_per_result() -> None:
    metrics = tui_probe.open(SECTORS).kernels[0].metrics()
    assert metrics["store_sectors"].tolist() == [2560, 192]
    assert metrics["store_sectors"].dtype == np.int64
    assert np.isnan(metrics["sectors_per_copy"]).all()
    schedule = tui_probe.open(SIMULATED / "block_sched").kernels[0].metrics()
    assert schedule["running_cycles"][0] > schedule["running_cycles"][1] > 0


def test_records_per_slot_are_distinguished_from_room(tmp_path: Path) -> None:
    result = tui_probe.open(unpacked(SIMULATED / "dmat", tmp_path)).kernels[0].results[0]
    records, written = result.maps["dmat"], result.written["dmat"]
    assert records.shape == written.shape
    assert written.sum() == np.minimum(result.attempts["dmat"], records.shape[2]).sum()
    assert (records[written]["address"] > 0).all()


def test_a_map_of_sites_has_a_record_per_line() -> None:
    kernel = tui_probe.open(H200 / "attention_sectors").kernel("flash_attention")
    result = kernel.results[0]
    assert result.maps["sites"].shape == (1, 1, len(result.sites["sites"]))
    assert result.maps["sites"]["load_requests"].sum() + result.maps["sites"]["copy_requests"].sum() == 270336


def test_launches_as_one_array() -> None:
    launches = tui_probe.open(SECTORS).kernels[0].launches
    table = launches.to_numpy()
    assert table["grid"].tolist() == [[40, 1, 1], [3, 1, 1]]
    assert [launch.number for launch in launches] == table["number"].tolist() == [0, 1]
    assert [launch.grid for launch in launches[1:]] == [(3, 1, 1)]


def test_the_dictionary_is_the_report() -> None:
    trace = tui_probe.open(H200 / "demo")
    report = json.loads("\n".join(report_lines(open_trace(H200 / "demo"), form="json")))
    assert json.loads(json.dumps(trace.to_dict())) == report


def test_a_kernel_is_found_by_its_name() -> None:
    trace = tui_probe.open(H200 / "demo")
    assert trace.kernel("saxpy").index == 3
    assert trace.kernel("zero").name == "zero_fill"
    with pytest.raises(tui_probe.ChoiceError, match="several kernel names contain 'store'; there are: #1"):
        trace.kernel("store")
    with pytest.raises(tui_probe.ChoiceError, match="no kernel name contains 'gemm'; there are: #0 zero_fill"):
        trace.kernel("gemm")


def test_notebooks_show_small_tables() -> None:
    trace = tui_probe.open(H200 / "attention_sectors")
    page = trace._repr_html_()
    assert page.count("<tr>") == len(trace.kernels) + 1
    assert "distribution_elementwise_grid_stride_kernel&lt;float" in page
    assert "flash_attention" in repr(trace.kernels)
    assert max(map(len, repr(trace.kernels).split("\n"))) <= 88
    assert repr(trace.kernels[0].results) == "<no results>"
    assert "result/5.015670.bin" in repr(trace.kernel("flash_attention").results)


def test_unreadable_results_are_reported(tmp_path: Path) -> None:
    with pytest.raises(tui_probe.TraceError, match="does not exist"):
        tui_probe.open(tmp_path / "none")
    trace = tmp_path / "trace"
    shutil.copytree(SECTORS, trace)
    first = trace / "result" / "2.394620.bin"
    first.write_bytes(first.read_bytes()[:100])
    (kernel,) = tui_probe.open(trace).kernels
    with pytest.raises(tui_probe.TraceError, match="the file is truncated"):
        _ = kernel.results[0]
    with pytest.warns(UserWarning, match="the file is truncated"):
        assert np.isnan(kernel.metrics()["store_sectors"]).tolist() == [True, False]
    (trace / "probe.toml").unlink()
    with pytest.raises(tui_probe.TraceError, match=r"probe\.toml"):
        _ = kernel.results[1].maps


def test_an_address_opens_the_kernels_that_it_names() -> None:
    everything = tui_probe.open(H200 / "demo").kernels
    assert len(everything) > 1
    (kernel,) = tui_probe.open(f"{H200 / 'demo'}:zero").kernels
    assert (kernel.index, kernel.name) == (everything[0].index, everything[0].name)
    with pytest.raises(tui_probe.ChoiceError, match="no kernel is named nothing"):
        tui_probe.open(f"{H200 / 'demo'}:nothing")
    with pytest.raises(tui_probe.ProbeError, match="remove @3"):
        tui_probe.open(f"{H200 / 'demo'}:zero@3")
    with pytest.raises(tui_probe.ProbeError, match="does not name a trace: use TRACE:zero"):
        tui_probe.open(":zero")


def test_folders_of_probes_are_known_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_user_probes", {})
    folder = Path(__file__).parents[1] / "e2e" / "probes" / "store_count"
    tui_probe.open(SECTORS, probes=[folder])
    assert registry.probe_named("store_count") is not None
    with pytest.raises(tui_probe.ProbeError, match=r"neither probe\.toml"):
        tui_probe.open(SECTORS, probes=[str(tmp_path)])
