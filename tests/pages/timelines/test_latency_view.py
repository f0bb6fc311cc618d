"""Cost of a probe in a launch, and waits of warps, from values that are known."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from tests.pages.timelines import planted
from tests.pages.timelines.drawing import golden_view, text_of
from tests.probes.test_report import Writer
from tests.trace.make import result_bytes
from tui_probe.draw.view import no_progress
from tui_probe.pages.view_output import csv_of_view
from tui_probe.pages.views.latency import KIND, LatencyView
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probes import barrier_wait
from tui_probe.trace.follow import open_trace


def waits() -> bytes:
    """Two blocks of two warps, which wait 100, 200, 300 and 4000 cycles at 10 barriers each."""
    records = np.zeros((2, 2, 1), barrier_wait.RECORD)
    records["waited"] = np.array([[100, 200], [300, 4000]])[:, :, np.newaxis]
    records["barriers"], records["threads"] = 10, 32
    return result_bytes((2, 1, 1), (64, 1, 1), [(32, records.view(np.uint8).reshape(2, 2, -1))])


def write(directory: Path, *, device: str = "NVIDIA H100", timed: bool = True) -> ViewSource:
    writer = Writer(directory)
    writer.start(device=device)
    writer.counting_kernel(0, "stencil", "barrier_wait", barrier_wait.RECORD)
    launch = writer.launch(0, (2, 1, 1), (64, 1, 1))
    writer.save(0, launch, waits())
    for i in range(5 if timed else 0):
        writer.lines(
            f"[benchmark] prologue 0.01 kernel 0.0{30 + i} epilogue 0.005 original 0.020 impact 1.{50 + 5 * i} 0 "
            f"kernel 0 launch {launch}"
        )
    trace = open_trace(directory)
    return ViewSource(trace, trace.kernels[0])


def opened(source: ViewSource) -> LatencyView:
    assert KIND.missing_reason(source) is None
    view = KIND.open(source, no_progress)
    assert isinstance(view, LatencyView)
    return view


def test_goldens(tmp_path: Path) -> None:
    golden_view("latency", opened(write(tmp_path / "t")))


def test_goldens_of_blocks(tmp_path: Path) -> None:
    golden_view("latency-blocks", opened(planted.write_planted(tmp_path / "t")))


def test_exposed_latency_of_a_launch(tmp_path: Path) -> None:
    """Medians 10 + 32 + 5 µs against 20 µs."""
    view = opened(write(tmp_path / "t"))
    text = " ".join(" ".join(text_of(view, (80, 24))).split())
    assert "with the probe, a launch takes 27.0 µs longer (2.35× the original)" in text
    probed, original = (line for line in text_of(view, (120, 40)) if line.endswith(("█", "░")))
    parts = [probed.count(sign) for sign in "▒█░"]
    assert [part / sum(parts) for part in parts] == pytest.approx([10 / 47, 32 / 47, 5 / 47], abs=0.02)
    assert original.count("█") / sum(parts) == pytest.approx(20 / 47, abs=0.02)


def test_waits_at_barriers(tmp_path: Path) -> None:
    record = json.loads(json.dumps(opened(write(tmp_path / "t")).record()))
    assert record["inside"]["cycles"]["one_warp"]["p100"] == 4000
    assert record["inside"]["cycles"]["one_barrier"]["p50"] == 25
    assert record["slowdown"]["p50"] == pytest.approx(1.6)


def test_a_simulated_gpu_has_no_time(tmp_path: Path) -> None:
    view = opened(write(tmp_path / "t", device="Simulated GPU"))
    assert view.record()["milliseconds"]["original"] is None
    assert "no times on a simulated GPU" in "\n".join(text_of(view, (80, 24)))
    assert "µs" not in "\n".join(text_of(view, (80, 24)))


def test_missing_measurement_is_reported(tmp_path: Path) -> None:
    view = opened(write(tmp_path / "t", timed=False))
    assert "not measured: run with --benchmark" in "\n".join(text_of(view, (80, 24)))
    rows = list(csv.DictReader(io.StringIO("\n".join(csv_of_view(view)))))
    assert [(row["of"], row["unit"], row["count"]) for row in rows] == [
        ("one warp", "cycles", "4"),
        ("one barrier", "cycles", "4"),
    ]


def test_missing_data_is_reported(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "t")
    writer.start()
    writer.counting_kernel(0, "stencil", "gmem_bytes", np.dtype("u8"))
    trace = open_trace(writer.directory)
    why = KIND.missing_reason(ViewSource(trace, trace.kernels[0]))
    assert why is not None
    assert "probed with gmem_bytes" in why
    assert "--benchmark" in why
