"""The screen's page of GPUs, from the management library of a real driver."""

from __future__ import annotations

from tui_probe.nvml import open_nvml, sample_all
from tui_probe.ui.live.gpus import GpuView, gpu_lines


def test_the_management_library_gives_every_figure() -> None:
    nvml, reason = open_nvml()
    assert nvml is not None, reason
    sample = sample_all(nvml)[0]
    assert "NVIDIA" in sample.name
    assert sample.load is not None
    assert 0 <= sample.load <= 100
    assert sample.memory_total is not None
    assert sample.memory_total > 1e9
    assert sample.memory_used is not None
    assert sample.memory_used <= sample.memory_total
    assert sample.sm_clock is not None
    assert sample.sm_clock_max is not None
    assert 0 < sample.sm_clock <= sample.sm_clock_max
    assert sample.temperature is not None
    assert 0 < sample.temperature < 120
    assert sample.power is not None
    assert sample.power > 0


def test_the_page_of_a_real_gpu_has_no_gaps() -> None:
    nvml, reason = open_nvml()
    assert nvml is not None, reason
    samples = sample_all(nvml)[:1]
    lines = gpu_lines(GpuView(samples, ((samples[0].load,),), ""), 100, ascii_only=False)
    text = "\n".join("".join(part for part, _ in line) for line in lines)
    for label in ("load", "memory", "clocks", "temperature", "power"):
        assert label in text
    assert "–" not in text
