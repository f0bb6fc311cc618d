"""NVIDIA's package ``ncu-report``: the part of its interface that is used, and how a report is opened with it."""

from __future__ import annotations

import importlib
import shlex
from typing import TYPE_CHECKING, Any, Final, Protocol

from tui_probe.errors import ImportFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PACKAGE: Final = "ncu_report"


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

    def name(self, name_base: int = ...) -> str: ...
    def metric_names(self) -> Sequence[str]: ...
    def metric_by_name(self, metric_name: str) -> Value | None: ...
    def source_info(self, address: int) -> Any: ...
    def source_files(self) -> dict[str, str]: ...
    def sass_by_pc(self, address: int) -> str: ...


def actions_of(path: Path, progress: Callable[[float], object]) -> Iterator[Action]:
    """The profiled launches of a report, in the order of launching. Each is only good until the next: the report, which
    owns them, goes with the last.
    """
    package = _package(path)
    try:
        report = package.load_report(str(path))
        for i in range(report.num_ranges()):
            part = report.range_by_idx(i)
            for j in range(part.num_actions()):
                progress((i + j / part.num_actions()) / report.num_ranges())
                yield part.action_by_idx(j)
    except (OSError, RuntimeError, ValueError, AttributeError) as error:
        raise ImportFileError(f"{path}: no report that ncu-report can read ({error}): record it again") from error


def _package(path: Path) -> Any:
    """NVIDIA's module; ImportFileError without it."""
    try:
        return importlib.import_module(PACKAGE)
    except ImportError as error:
        raise ImportFileError(
            f"{path}: a report of Nsight Compute: to read it install NVIDIA's package ncu-report (pip install"
            f" 'tui-probe[ncu]'), or make CSV: ncu --import {shlex.quote(str(path))} --page raw --csv > FILE.csv"
        ) from error
