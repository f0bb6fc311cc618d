"""Load, memory, clocks, temperature and power of GPUs, from the NVIDIA Management Library (NVML)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

GPU_IDLE: Final = "GPU idle"
_CLOCK_LIMITS: Final = {
    0x1: GPU_IDLE,
    0x2: "applications clocks setting",
    0x4: "SW power cap",
    0x8: "HW slowdown",
    0x10: "sync boost",
    0x20: "SW thermal slowdown",
    0x40: "HW thermal slowdown",
    0x80: "HW power brake slowdown",
    0x100: "display clock setting",
}
"""Bits of ``nvmlClocksEventReasons``, NVML API Reference Guide."""


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
    clock_limits: tuple[str, ...] | None = None
    """Reasons of clocks below their maximum, in the words of nvidia-smi; ``GPU idle`` if nothing runs."""


def open_nvml() -> tuple[ModuleType | None, str]:
    """Return NVML, initialised, or why there is none and what to do."""
    try:
        import pynvml
    except ImportError:
        return None, "the Python package nvidia-ml-py is missing: pip install nvidia-ml-py"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return None, f"NVIDIA management library: {error}. Is an NVIDIA driver installed? Run tui-probe doctor"
    return pynvml, ""


def sample_all(nvml: Any) -> tuple[GpuSample, ...]:
    """Return one sample of each GPU. Raises ``nvml.NVMLError`` if the library fails."""
    return tuple(_sample(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount()))


def _sample(nvml: Any, device: Any) -> GpuSample:
    def query(function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(device, *arguments)
        except nvml.NVMLError:
            return None  # not supported by this device, or not allowed here

    name = query(nvml.nvmlDeviceGetName) or "GPU"
    load, memory = query(nvml.nvmlDeviceGetUtilizationRates), query(nvml.nvmlDeviceGetMemoryInfo)
    power, limit = query(nvml.nvmlDeviceGetPowerUsage), query(nvml.nvmlDeviceGetEnforcedPowerLimit)
    return GpuSample(
        name=name.decode() if isinstance(name, bytes) else name,
        load=load.gpu if load else None,
        memory_load=load.memory if load else None,
        memory_used=int(memory.used) if memory else None,
        memory_total=int(memory.total) if memory else None,
        sm_clock=query(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
        sm_clock_max=query(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
        memory_clock=query(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM),
        temperature=query(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
        power=power / 1000 if power is not None else None,
        power_limit=limit / 1000 if limit is not None else None,
        clock_limits=_clock_limits(query(_event_reasons(nvml))),
    )


def _event_reasons(nvml: Any) -> Callable[[Any], int]:
    """Return NVML's query of the reasons, which releases before 12.2 call throttle reasons."""
    current_function = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    return current_function or nvml.nvmlDeviceGetCurrentClocksThrottleReasons  # type: ignore[no-any-return]


def _clock_limits(reasons: int | None) -> tuple[str, ...] | None:
    if reasons is None:
        return None
    return tuple(name for bit, name in _CLOCK_LIMITS.items() if reasons & bit)
