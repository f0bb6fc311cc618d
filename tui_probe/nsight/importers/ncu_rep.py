"""Reads reports of Nsight Compute (``.ncu-rep``) with NVIDIA's package ``ncu-report``, which is imported only for that.

A report has the metrics of the raw page. Metrics with one value per instruction are read by ``ncu_source``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.ncu_layouts import RAW_SECTION
from tui_probe.nsight.importers.ncu_package import actions_of
from tui_probe.nsight.importers.ncu_source import instructions_of
from tui_probe.nsight.importers.ncu_table import Metric, NcuFile, NcuLaunch, NcuTable
from tui_probe.nsight.importers.quantities import base_unit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.nsight.importers.ncu_package import Action
    from tui_probe.nsight.importers.ncu_table import Extent, Instruction

from tui_probe.nsight.importers.ncu_table import Extent

REPORT_MARK: Final = b"NVR"


def read_report(path: Path, progress: Callable[[float], object] = lambda _: None) -> NcuTable:
    """The launches of one report with all metrics that have a value. ImportFileError says what to do without it."""
    rows = _Rows()
    for action in actions_of(path, progress):
        rows.add(action)
    if not rows.launches:
        raise ImportFileError(f"{path}: a report without profiled kernels")
    return rows.table(str(path))


class _Rows:
    """Values of launches, collected as columns."""

    def __init__(self) -> None:
        self.launches: list[NcuLaunch] = []
        self._metrics: dict[Metric, int] = {}
        self._columns: tuple[list[int], list[int], list[float]] = [], [], []
        self._words: dict[int, str] = {}
        self._instructions: list[Instruction] = []

    def add(self, action: Action) -> None:
        number = len(self.launches)
        self.launches.append(_launch(action, number))
        self._instructions += instructions_of(action, number)
        launch, metric, value = self._columns
        for name in sorted(action.metric_names()):
            found = action.metric_by_name(name)
            if found is None or not found.has_value():
                continue
            unit, factor = base_unit(found.unit() or "")
            shown = found.value()
            if isinstance(shown, str):
                self._words[len(value)] = shown
            launch.append(number)
            metric.append(self._metrics.setdefault(Metric(RAW_SECTION, name, unit), len(self._metrics)))
            value.append(shown * factor if isinstance(shown, int | float) else np.nan)

    def table(self, file: str) -> NcuTable:
        launch, metric, value = self._columns
        return NcuTable(
            (NcuFile(file, ()),), self.launches, [*self._metrics], np.array(launch, dtype=np.int32),
            np.array(metric, dtype=np.int32), np.array(value, dtype=np.float64), self._words, self._instructions,
        )  # fmt: skip


def _launch(action: Action, number: int) -> NcuLaunch:
    """The launch with what its metrics tell of it. Reports do not name processes."""
    return NcuLaunch(
        file=0,
        session=0,
        number=number,
        process=None,
        process_name="",
        kernel=kernel_name(action),
        grid=_extent(action, "launch__grid_dim"),
        block=_extent(action, "launch__block_dim"),
        stream=str(whole(action, "launch__stream_id") or ""),
        device=str(whole(action, "launch__device_id") or ""),
    )


def kernel_name(action: Action) -> str:
    """The whole name of a kernel, as CSV has it."""
    base = getattr(action, "NameBase_DEMANGLED", None)
    return (action.name() if base is None else action.name(base)) or action.name()


def _extent(action: Action, name: str) -> Extent | None:
    x, y, z = (whole(action, f"{name}_{side}") for side in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def whole(action: Action, name: str) -> int | None:
    """A metric that counts; None if it was not collected."""
    found = action.metric_by_name(name)
    value = None if found is None or not found.has_value() else found.value()
    return int(value) if isinstance(value, int | float) else None
