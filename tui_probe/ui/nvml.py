"""Load, memory, clocks, temperature and power of the GPUs, sampled once a second in a thread."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

HISTORY = 240
INTERVAL = 1.0


@dataclass(frozen=True)
class GpuSample:
    """One GPU at one moment; None where the device does not say.

    ``load`` and ``memory_load`` are percent of the last sampling period in which a kernel ran or memory was read or
    written; memory in bytes, clocks in MHz, temperature in °C, power in W.
    """

    name: str
    load: int | None = None
    memory_load: int | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    sm_clock: int | None = None
    sm_clock_max: int | None = None
    memory_clock: int | None = None
    temperature: int | None = None
    power: float | None = None
    power_limit: float | None = None


@dataclass(frozen=True)
class GpuView:
    """The newest samples with the load of the time before, oldest first; ``absent`` says why there are none."""

    samples: tuple[GpuSample, ...] = ()
    loads: tuple[tuple[int | None, ...], ...] = ()
    absent: str = "not sampled yet"


def open_nvml() -> tuple[ModuleType | None, str]:
    """NVML, initialised, or why there is none, and what to do."""
    try:
        import pynvml
    except ImportError:
        return None, "the Python package nvidia-ml-py is missing: pip install nvidia-ml-py"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, f"the NVIDIA management library says: {error}. Is an NVIDIA driver installed? See tui-probe doctor"
    return pynvml, ""


def sample_all(nvml: Any) -> tuple[GpuSample, ...]:
    """One sample of each GPU."""
    return tuple(_sample(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount()))


def _sample(nvml: Any, device: Any) -> GpuSample:
    def ask(question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(device, *arguments)
        except nvml.NVMLError:
            return None  # not supported by this device, or not allowed here

    name = ask(nvml.nvmlDeviceGetName) or "GPU"
    load, memory = ask(nvml.nvmlDeviceGetUtilizationRates), ask(nvml.nvmlDeviceGetMemoryInfo)
    power, limit = ask(nvml.nvmlDeviceGetPowerUsage), ask(nvml.nvmlDeviceGetEnforcedPowerLimit)
    return GpuSample(
        name=name.decode() if isinstance(name, bytes) else name,
        load=load.gpu if load else None,
        memory_load=load.memory if load else None,
        memory_used=int(memory.used) if memory else None,
        memory_total=int(memory.total) if memory else None,
        sm_clock=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        sm_clock_max=ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        memory_clock=ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        temperature=ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        power=power / 1000 if power is not None else None,
        power_limit=limit / 1000 if limit is not None else None,
    )


class GpuSampler:
    """Samples in a daemon thread until stopped. ``latest`` is replaced as a whole, so any thread may read it."""

    def __init__(self, opener: Callable[[], tuple[Any, str]] = open_nvml, interval: float = INTERVAL) -> None:
        self.latest = GpuView()
        self._opener = opener
        self._interval = interval
        self._stop = threading.Event()
        self._loads: list[deque[int | None]] = []
        self._thread = threading.Thread(target=self._run, name="tui-probe-gpu", daemon=True)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """Take no further sample."""
        self._stop.set()

    def _run(self) -> None:
        nvml, reason = self._opener()
        if nvml is None:
            self.latest = GpuView(absent=reason)
            return
        while not self._stop.is_set():
            try:
                self._keep(sample_all(nvml))
            except nvml.NVMLError as error:
                self.latest = GpuView(absent=f"the NVIDIA management library says: {error}")
            self._stop.wait(self._interval)

    def _keep(self, samples: tuple[GpuSample, ...]) -> None:
        if not samples:
            self.latest = GpuView(absent="the NVIDIA driver reports no GPU")
            return
        while len(self._loads) < len(samples):
            self._loads.append(deque(maxlen=HISTORY))
        for history, sample in zip(self._loads, samples, strict=False):
            history.append(sample.load)
        self.latest = GpuView(samples, tuple(tuple(history) for history in self._loads), "")
