"""Stalls: results of a grafted kernel with known sums. Only a GPU runs such a graft: tests/gpu measures real waits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.engine.kernels import DATA
from tests.golden import golden
from tests.trace.make import TraceWriter, result_bytes
from tui_probe.binaries.cubin import Cubin
from tui_probe.cli import main as front
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting.grafts import Grafter
from tui_probe.probe_files.loading import load_probe
from tui_probe.toolchain import find_tools
from tui_probe.trace.follow import open_trace
from tui_probe.verdicts.limiter import latency_cause

CUBIN = DATA / "attn_fwd.sm_90a.cubin"
GRID, BLOCK, WARPS = (4, 1, 1), (64, 1, 1), 8
LIFE = 10_000
SITE_BYTES, WARP_SIZE = 16, 32
MARKED, SITES = 1, 4


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of attention with a launch of the first group: site 0 waits longest, each next one half as long."""
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    probe = load_probe("stall_sites")
    grafted = Grafter(probe, Assembler(), sampled=False).graft(Cubin.read(CUBIN.read_bytes()), "attn_fwd")
    writer = TraceWriter(tmp_path_factory.mktemp("stalls") / "trace")
    writer.start(device="NVIDIA H100", sms=132)
    folder = writer.kernel(0, "attn_fwd")
    (folder / "kernel.info").write_text(grafted.info)
    (folder / "sites.json").write_text(grafted.sites)
    sites = next(line.split()[2:] for line in grafted.info.splitlines() if line.startswith("sites 0 "))
    sums = np.array([[8192 >> number, 16] for number in range(len(sites))], "<u8")
    lives = np.full((GRID[0], BLOCK[0] // WARP_SIZE, 1), LIFE, "<u4").view(np.uint8)
    maps = [(WARP_SIZE, np.zeros((GRID[0], BLOCK[0] // WARP_SIZE, 0), np.uint8)), (WARP_SIZE, lives)]
    about = [(SITES, SITE_BYTES, sums.tobytes()), (MARKED, 4, b"\xff")]
    writer.save(0, writer.launch(0, GRID, BLOCK), result_bytes(GRID, BLOCK, maps, about=about))
    writer.exit()
    return writer.directory


def test_page_ranks_sites_by_warp_life(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert front.main(["show", "stalls", str(trace)]) == 0
    golden("stalls.txt", capsys.readouterr().out)


def test_record_has_classes_producers_and_shares(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["show", "stalls", str(trace), "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)["data"]
    sites = record["sites"]
    first = sites[0]
    assert first["cycles"] == 8192 - 2 * 16
    assert first["share"] == pytest.approx(first["cycles"] / (LIFE * WARPS))
    assert first["executions"] == 16
    assert {site["waits_for"] for site in sites} >= {"cp.async group", "barrier", "wgmma"}
    assert next(site for site in sites if site["waits_for"] == "wgmma")["producer"].startswith("HGMMA")
    assert next(site for site in sites if site["waits_for"] == "cp.async group")["producer"].startswith("LDGSTS")
    assert record["sites_not_measured"] > 30


def test_finding_names_wait_and_producer(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["report", str(trace)]) == 0
    report = " ".join(capsys.readouterr().out.split())
    assert "longest wait" in report
    assert "of warp life" in report


def test_latency_names_its_cause(trace: Path) -> None:
    cause = latency_cause(open_trace(trace).kernels[0])
    assert cause == "tfa.py:6 (STS) waits 10% of warp life for LDG tfa.py:6 (global memory, 510 cycles each)"


def test_kernel_without_sass_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["check", "stall_sites", str(DATA / "tiled_matmul.sm_80.ptx")]) == 1
    text = capsys.readouterr().out
    assert "code      needs-sass" in text
    assert "Compile for this GPU" in text
