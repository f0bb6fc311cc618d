"""The GPU page and what it is drawn from."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from tests import recorded
from tests.patience import HANG
from tests.ui.conftest import on_stage
from tests.ui.desk import TestDesk, shown
from tui_probe.nvml import GpuSample, sample_all
from tui_probe.trace.event_types import Device
from tui_probe.ui.live.gpus import GpuSampler, GpuView
from tui_probe.ui.live.live_pages import GpuPage
from tui_probe.ui.session import Session


class NvmlError(Exception):
    pass


class FakeNvml:
    """Two GPUs; the second reports little."""

    NVMLError = NvmlError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetName": b"NVIDIA H100 80GB HBM3",
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87, memory=31),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=12_300_000_000, total=85_000_000_000),
            "nvmlDeviceGetClockInfo": 1755,
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetTemperature": 54,
            "nvmlDeviceGetPowerUsage": 412_300,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetCurrentClocksEventReasons": 0x24,
        }

        def answer(device: int, *_: object) -> Any:
            if device == 1 and name != "nvmlDeviceGetName":
                raise NvmlError("Not Supported")
            return answers[name]

        return answer


def test_a_sample_has_what_the_device_tells_and_none_for_the_rest() -> None:
    first, second = sample_all(FakeNvml())
    assert first == GpuSample(
        "NVIDIA H100 80GB HBM3", 87, 31, 12_300_000_000, 85_000_000_000, 1755, 1980, 1755, 54, 412.3, 700.0,
        ("SW power cap", "SW thermal slowdown"),
    )  # fmt: skip
    assert second == GpuSample("NVIDIA H100 80GB HBM3")


def test_the_sampler_keeps_a_history_and_stops() -> None:
    enough = threading.Event()

    class Counting(FakeNvml):
        asked = 0

        def nvmlDeviceGetCount(self) -> int:  # noqa: N802
            self.asked += 1
            if self.asked == 4:
                enough.set()
            return 2

    sampler = GpuSampler(lambda: (Counting(), ""), interval=0.001)
    sampler.start()
    assert enough.wait(HANG)
    sampler.stop()
    sampler._thread.join(HANG)
    view = sampler.latest
    assert view.missing_reason == ""
    assert len(view.samples) == 2
    assert len(view.loads[0]) >= 3
    assert set(view.loads[0]) == {87}
    assert set(view.loads[1]) == {None}


def test_a_gpu_that_is_lost_says_so() -> None:
    class Lost(FakeNvml):
        def nvmlDeviceGetCount(self) -> int:  # noqa: N802
            raise NvmlError("GPU is lost")

    sampler = GpuSampler(lambda: (Lost(), ""), interval=0.001)
    sampler.start()
    while sampler.latest.missing_reason == "not sampled yet":
        threading.Event().wait(0.001)
    sampler.stop()
    assert "GPU is lost" in sampler.latest.missing_reason


H200 = Device(0, 132, 1_980_000, "9.0", "NVIDIA H200")


def page(view: GpuView, *, running: bool = True, simulated: bool = False, ascii_only: bool = False) -> str:
    gpu = GpuPage(TestDesk(), "gpu", ascii_only=ascii_only)
    gpu.resize(80, 30)
    gpu.show_gpus(view, [H200], is_running=running, is_simulated=simulated)
    return "\n".join(shown(gpu))


def test_the_page_has_every_figure_with_its_unit() -> None:
    text = page(GpuView(sample_all(FakeNvml()), ((0, 50, 87), (None, None, None)), ""))
    for words in ("87 %", "12.3 GB of 85.0 GB", "SM 1755 MHz of 1980 MHz", "54 °C", "412 W of 700 W", "█"):
        assert words in text
    assert "– of –" in text


def test_charts_can_be_drawn_in_ascii() -> None:
    text = page(GpuView(sample_all(FakeNvml())[:1], ((0, 50, 87),), ""), ascii_only=True)
    assert "#" in text
    assert "█" not in text


def test_without_a_gpu_the_page_says_why() -> None:
    why = "NVIDIA management library: Driver Not Loaded. Is an NVIDIA driver installed? Run tui-probe doctor"
    text = page(GpuView(missing_reason=why))
    assert " ".join(line.strip() for line in text.split("\n")).endswith(f"no GPU {why}")


def test_ended_run_shows_its_own_device() -> None:
    for view in (GpuView(missing_reason="no NVIDIA driver here"), GpuView(sample_all(FakeNvml())[:1], ((50,),), "")):
        text = page(view, running=False)
        assert "device 0 of the run  NVIDIA H200\n 132 SMs, compute capability 9.0, up to 1980 MHz" in text
        assert "temperature and power are shown only while the program" in text
        assert "no GPU" not in text
        assert "87 %" not in text


def test_a_simulated_gpu_has_no_figures() -> None:
    text = page(GpuView(sample_all(FakeNvml())[:1], ((50,),), ""), simulated=True)
    assert "A simulated GPU has no load, clocks or power." in text
    assert "87 %" not in text


async def test_a_recorded_trace_tells_its_own_device() -> None:
    async with on_stage(Session(traces=(recorded.H200 / "demo",)), (80, 24)) as stage:
        await stage.press("0", "g")
        assert "device 0 of the run  NVIDIA H200" in stage.text
        assert "no GPU" not in stage.text
