"""Clocks of the GPUs while programs are timed: a time means little without them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from tui_probe.nvml import IDLE, open_nvml, sample_all
from tui_probe.verdicts.gate import Clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tui_probe.nvml import GpuSample

SAMPLE_INTERVAL: Final = 0.05
"""Seconds between samples: NVML takes about a millisecond for one, and clocks change over tenths of a second."""


class ClockWatch:
    """Samples clocks during runs, apart for each program. ``absent`` is why there are no samples, or ""."""

    def __init__(self, opener: Callable[[], tuple[Any, str]] = open_nvml, interval: float = SAMPLE_INTERVAL) -> None:
        self._nvml, self.absent = opener()
        self._interval = interval
        self._samples: dict[str, list[GpuSample]] = {}

    @contextmanager
    def during(self, program: str) -> Iterator[None]:
        """Sample in a thread until the end of the block, for a program."""
        ended = threading.Event()
        thread = threading.Thread(target=self._sample, args=(program, ended), name="tui-probe-clocks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _sample(self, program: str, ended: threading.Event) -> None:
        samples = self._samples.setdefault(program, [])
        while self._nvml is not None and not ended.wait(self._interval):
            try:
                samples += [sample for sample in sample_all(self._nvml) if _is_busy(sample)]
            except self._nvml.NVMLError as error:
                self.absent = f"NVIDIA management library: {error}"
                return

    def clocks(self, program: str) -> Clocks | None:
        """Return the clocks during all runs of a program; None without a sample of a busy GPU."""
        samples = self._samples.get(program, [])
        values = [sample.sm_clock for sample in samples if sample.sm_clock is not None]
        if not values:
            return None
        reasons = [name for sample in samples for name in sample.clock_limits or ()]
        limits = {name: reasons.count(name) / len(samples) for name in dict.fromkeys(reasons)}
        return Clocks(len(values), min(values), median(values), max(values), limits)


def _is_busy(sample: GpuSample) -> bool:
    return sample.clock_limits is not None and IDLE not in sample.clock_limits
