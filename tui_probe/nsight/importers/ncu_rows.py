"""Rows of Nsight Compute's tables, collected as columns of codes: each launch, metric and value text is kept once."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tui_probe.nsight.importers.ncu_table import Metric, NcuLaunch
from tui_probe.nsight.importers.numbers import ABSENT, number_of, point_of
from tui_probe.nsight.importers.quantities import base_unit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.ncu_table import Extent

_EXTENT: Final = re.compile(r"\D*(\d{1,10})\D+(\d{1,10})\D+(\d{1,10})\D*")
_DIGITS: Final = 18


class Codes(dict[str, int]):
    """Numbers texts in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code


_Block: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]"
"""Launches, metrics and texts, one entry per value."""


class Rows:
    """The values of one file as they are read."""

    def __init__(self) -> None:
        self.launches: list[NcuLaunch] = []
        self.texts = Codes()
        self._metrics: dict[tuple[str, str, str], int] = {}
        self._launch = array("i")
        self._metric = array("i")
        self._text = array("i")
        self._blocks: list[_Block] = []

    def metric(self, section: str, name: str, unit: str) -> int:
        """The code of a metric; ``unit`` as it is printed."""
        return self._metrics.setdefault((section, name, unit), len(self._metrics))

    def add(self, launch: int, metric: int, text: str) -> None:
        """One value."""
        self._launch.append(launch)
        self._metric.append(metric)
        self._text.append(self.texts[text])

    def extend(self, launch: int, metrics: NDArray[np.int32], texts: Sequence[str]) -> None:
        """All values of one launch: as many metrics as texts."""
        codes = np.fromiter(map(self.texts.__getitem__, texts), dtype=np.int32, count=len(texts))
        self._close_block()
        self._blocks.append((np.full(len(texts), launch, dtype=np.int32), metrics, codes))

    def _close_block(self) -> None:
        """What was added one by one becomes a block."""
        if self._launch:
            launch, metric, text = (np.array(part, dtype=np.int32) for part in (self._launch, self._metric, self._text))
            self._blocks.append((launch, metric, text))
            del self._launch[:], self._metric[:], self._text[:]

    def metrics(self) -> tuple[list[Metric], NDArray[np.int32], NDArray[np.float64]]:
        """The metrics in base units; for each code of ours the position among them, and its factor."""
        found: dict[Metric, int] = {}
        positions, factors = [], []
        for section, name, unit in self._metrics:
            base, factor = base_unit(unit)
            positions.append(found.setdefault(Metric(section, name, base), len(found)))
            factors.append(factor)
        return list(found), np.array(positions, dtype=np.int32), np.array(factors)

    def columns(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], dict[int, str]]:
        """``launch``, code of the ``metric``, ``value`` as it is printed, and words by row."""
        self._close_block()
        none = np.empty(0, dtype=np.int32)
        columns = zip(*self._blocks, strict=True) if self._blocks else ((none,),) * 3
        launch, metric, codes = (np.concatenate(column) for column in columns)
        self._blocks.clear()
        texts = [text.strip() for text in self.texts]
        point = point_of(texts)
        numbers = [number_of(text, point) for text in texts]
        values = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
        is_word = [number is None and text.lower() not in ABSENT for number, text in zip(numbers, texts, strict=True)]
        rows = np.flatnonzero(np.array(is_word, dtype=np.bool_)[codes]) if len(codes) else codes
        return (
            launch,
            metric,
            values[codes] if len(codes) else values[:0],
            {int(row): texts[codes[row]] for row in rows},
        )


def launch_of(cells: Mapping[str, str], session: int) -> NcuLaunch:
    """A launch from the cells that name it, by heading."""
    return NcuLaunch(
        file=0,
        session=session,
        number=whole(cells.get("ID", "")),
        process=whole(cells.get("Process ID", "")),
        process_name=cells.get("Process Name", ""),
        kernel=cells.get("Kernel Name", ""),
        grid=extent(cells.get("Grid Size", "")),
        block=extent(cells.get("Block Size", "")),
        stream=cells.get("Stream", ""),
        device=cells.get("Device", ""),
        invocations=whole(cells.get("Invocations", "")),
    )


def whole(text: str) -> int | None:
    """A count, which may have separators; None if it is none."""
    digits = re.sub(r"[,. '’\u00a0\u202f]", "", text)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else None


def extent(text: str) -> Extent | None:
    """``(256, 1, 1)`` -> (256, 1, 1)."""
    match = _EXTENT.fullmatch(text)
    sides = [whole(side) for side in match.groups()] if match is not None else [None]
    return None if None in sides else (sides[0] or 0, sides[1] or 0, sides[2] or 0)
