"""Distinct numbers of integer columns, and for each entry its place among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_DENSE: Final = 1 << 20
"""Numbers that differ by less are looked up in a table, which is quicker than to sort them."""


def distinct(column: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The numbers of a column, ascending, and for each entry its position among them."""
    if not len(column):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32)
    low = int(column.min())
    if int(column.max()) - low >= _DENSE:
        numbers, places = np.unique(column, return_inverse=True)
        return numbers.astype(np.int64), places.reshape(-1).astype(np.int32)
    offsets = column - low
    there = np.zeros(int(offsets.max()) + 1, dtype=np.bool_)
    there[offsets] = True
    places = (np.cumsum(there) - 1).astype(np.int32)[offsets]
    return np.flatnonzero(there) + low, places


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[list[tuple[int, ...]], NDArray[np.int32]]:
    """The same of several columns side by side: rows in ascending order, the first column first."""
    rows: list[tuple[int, ...]] = [()]
    places = np.zeros(len(columns[0]), dtype=np.int32)
    for column in columns:
        numbers, positions = distinct(column)
        several = max(len(numbers), 1)
        codes, places = distinct(places.astype(np.int64) * several + positions)
        rows = [(*rows[code // several], int(numbers[code % several])) for code in codes.tolist()]
    return rows, places


def ranks(texts: Sequence[str]) -> NDArray[np.int64]:
    """For each text its place in alphabetical order."""
    found = np.empty(len(texts), dtype=np.int64)
    found[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return found
