"""Read reports of Nsight Compute (``.ncu-rep``) with NVIDIA's package ``ncu-report``.

A report has the metrics of the raw page. Metrics with one value per instruction are read by ``ncu_source``.
"""

from __future__ import annotations

import importlib
import shlex
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.ncu_layouts import RAW_SECTION
from tui_probe.nsight.importers.ncu_table import Extent, Instruction, Metric, NcuFile, NcuLaunch, NcuTable, base_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

PACKAGE: Final = "ncu_report"
EXECUTED_METRIC: Final = "inst_executed"
"""Warps that executed the instruction."""
SECTORS_METRIC: Final = "memory_l2_theoretical_sectors_global"
"""Sectors of 32 bytes of its global accesses."""
IDEAL_SECTORS_METRIC: Final = "memory_l2_theoretical_sectors_global_ideal"
"""The minimum of sectors for the requested bytes."""
_STALL_PREFIX: Final = "smsp__pcsamp_warps_issue_stalled_"
"""Prefix of counters of samples in which a warp was stalled at the instruction; the reason follows."""
_NOT_ISSUED_SUFFIX: Final = "_not_issued"
"""Suffix of counters of the same samples without those in which the warp issued."""
REPORT_MARK: Final = b"NVR"


class Value(Protocol):
    """A metric of a launch, in the package's words: one value, and perhaps some by instruction."""

    def unit(self) -> str: ...
    def has_value(self) -> bool: ...
    def value(self, idx: int = ...) -> str | int | float | None: ...
    def num_instances(self) -> int: ...
    def has_correlation_ids(self) -> bool: ...
    def correlation_ids(self) -> Value: ...


class Action(Protocol):
    """A profiled launch, in the package's words."""

    def name(self, name_base: int = ...) -> str | None: ...
    def metric_names(self) -> Sequence[str]: ...
    def metric_by_name(self, metric_name: str) -> Value | None: ...
    def source_info(self, address: int) -> Any: ...
    def source_files(self) -> dict[str, str]: ...
    def sass_by_pc(self, address: int) -> str: ...


def actions_of(path: Path, progress: Callable[[float], object]) -> Iterator[Action]:
    """The profiled launches of a report, in the order of launching. Each is only good until the next: the report, which
    owns them, goes with the last.
    """
    package = _import_package(path)
    try:
        report = package.load_report(str(path))
        for i in range(report.num_ranges()):
            part = report.range_by_idx(i)
            for j in range(part.num_actions()):
                progress((i + j / part.num_actions()) / report.num_ranges())
                yield part.action_by_idx(j)
    except (OSError, RuntimeError, ValueError, AttributeError) as error:
        raise ImportFileError(f"{path}: ncu-report cannot read this report ({error}); record it again") from error


def _import_package(path: Path) -> Any:
    """NVIDIA's module; ImportFileError without it."""
    try:
        return importlib.import_module(PACKAGE)
    except ImportError as error:
        raise ImportFileError(
            f"{path}: a report of Nsight Compute; to read it, install NVIDIA's package ncu-report (pip install"
            f" 'tui-probe[ncu]'), or make a CSV: ncu --import {shlex.quote(str(path))} --page raw --csv > FILE.csv"
        ) from error


def instructions_of(action: Action, launch: int) -> list[Instruction]:
    """Return the instructions of one launch with any counter, in the order of the code.

    Counters of single instructions are metrics whose instances are addresses of code.
    """
    counts = {
        name: _values_by_address(action, name) for name in (EXECUTED_METRIC, SECTORS_METRIC, IDEAL_SECTORS_METRIC)
    }
    stalls: dict[int, dict[str, float]] = defaultdict(dict)
    for name in action.metric_names():
        if name.startswith(_STALL_PREFIX) and not name.endswith(_NOT_ISSUED_SUFFIX):
            for address, samples in (_values_by_address(action, name) or {}).items():
                if samples:
                    stalls[address][name.removeprefix(_STALL_PREFIX)] = samples
    addresses = sorted({*stalls, *(address for values in counts.values() if values for address in values)})
    return [
        _instruction(action, launch, address, addresses[0], counts, stalls.get(address, {})) for address in addresses
    ]


def _instruction(
    action: Action,
    launch: int,
    address: int,
    first_address: int,
    counts: Mapping[str, Mapping[int, float] | None],
    stalls: Mapping[str, float],
) -> Instruction:
    executed, sectors, ideal = (
        None if (values := counts[name]) is None else values.get(address)
        for name in (EXECUTED_METRIC, SECTORS_METRIC, IDEAL_SECTORS_METRIC)
    )
    place = action.source_info(address)
    file, line = (None, None) if place is None else (str(place.file_name()), int(place.line()))
    text = " ".join((action.sass_by_pc(address) or "").split())
    return Instruction(
        launch, address - first_address, text, file or None, line or None, executed, sectors, ideal, stalls
    )


def _values_by_address(action: Action, name: str) -> dict[int, float] | None:
    """The values of a metric by the address of their instruction; None if it was not collected by instruction."""
    metric = action.metric_by_name(name)
    if metric is None or not metric.num_instances() or not metric.has_correlation_ids():
        return None
    return dict(_pairs(metric, metric.correlation_ids()))


def _pairs(metric: Value, addresses: Value) -> Iterator[tuple[int, float]]:
    for i in range(metric.num_instances()):
        address, value = addresses.value(i), metric.value(i)
        if isinstance(address, int | float) and isinstance(value, int | float):
            yield int(address), float(value)


def read_report(path: Path, progress: Callable[[float], object] = lambda _: None) -> NcuTable:
    """The launches of one report with all metrics that have a value. ImportFileError says what to do without it."""
    rows = _ReportRows()
    for action in actions_of(path, progress):
        kernel = kernel_name(action)
        if kernel is None:
            problem = "truncated: the kernel names are missing"
            raise ImportFileError(f"{path}: {problem}; copy or record it again")
        rows.add(action, kernel)
    if not rows.launches:
        raise ImportFileError(f"{path}: the report has no kernels; nothing was profiled, or the file is truncated")
    return rows.table(str(path))


class _ReportRows:
    """Values of launches, collected as columns."""

    def __init__(self) -> None:
        self.launches: list[NcuLaunch] = []
        self._metrics: dict[Metric, int] = {}
        self._columns: tuple[list[int], list[int], list[float]] = [], [], []
        self._texts: dict[int, str] = {}
        self._instructions: list[Instruction] = []

    def add(self, action: Action, kernel: str) -> None:
        number = len(self.launches)
        self.launches.append(_launch(action, number, kernel))
        self._instructions += instructions_of(action, number)
        launch, metric, value = self._columns
        for name in sorted(action.metric_names()):
            metric_value = action.metric_by_name(name)
            if metric_value is None or not metric_value.has_value():
                continue
            unit, factor = base_unit(metric_value.unit() or "")
            printed = metric_value.value()
            if isinstance(printed, str):
                self._texts[len(value)] = printed
            launch.append(number)
            metric.append(self._metrics.setdefault(Metric(RAW_SECTION, name, unit), len(self._metrics)))
            value.append(printed * factor if isinstance(printed, int | float) else np.nan)

    def table(self, file: str) -> NcuTable:
        launch, metric, value = self._columns
        return NcuTable(
            (NcuFile(file, ()),), self.launches, [*self._metrics], np.array(launch, dtype=np.int32),
            np.array(metric, dtype=np.int32), np.array(value, dtype=np.float64), self._texts, self._instructions,
        )  # fmt: skip


def _launch(action: Action, number: int, kernel: str) -> NcuLaunch:
    """The launch with what its metrics say of it. Reports do not name processes."""
    return NcuLaunch(
        file=0,
        session=0,
        number=number,
        process=None,
        process_name="",
        kernel=kernel,
        grid=_launch_extent(action, "launch__grid_dim"),
        block=_launch_extent(action, "launch__block_dim"),
        stream=_id_text(action, "launch__stream_id"),
        device=_id_text(action, "launch__device_id"),
    )


def kernel_name(action: Action) -> str | None:
    """The whole name of a kernel, as CSV has it; None in a report that is cut off, where the names are last."""
    base = getattr(action, "NameBase_DEMANGLED", None)
    return (action.name() if base is None else action.name(base)) or action.name()


def _id_text(action: Action, name: str) -> str:
    number = count_of(action, name)
    return "" if number is None else str(number)


def _launch_extent(action: Action, name: str) -> Extent | None:
    x, y, z = (count_of(action, f"{name}_{side}") for side in "xyz")
    return None if x is None or y is None or z is None else (x, y, z)


def count_of(action: Action, name: str) -> int | None:
    """A metric that counts; None if it was not collected."""
    metric = action.metric_by_name(name)
    value = None if metric is None or not metric.has_value() else metric.value()
    return int(value) if isinstance(value, int | float) else None
