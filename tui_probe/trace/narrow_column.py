"""A column of whole numbers that takes no more bytes for each than the widest of them needs."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CODES: Final = "bhiq"
"""Of ``array``: 1, 2, 4 and 8 bytes."""
_LIMITS: Final = {code: (int(np.iinfo(code).min), int(np.iinfo(code).max)) for code in _CODES}
_FEW: Final = 16
"""Numbers that are added faster one by one than by NumPy."""


class NarrowColumn:
    """Numbers of 64 bits, all in as many bytes as the widest needs. One thread extends it, any may read meanwhile."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values = array(_CODES[0])

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, values: NDArray[np.int64]) -> None:
        """Append these numbers."""
        if len(values) > _FEW:
            self._widen(int(values.min()), int(values.max()))
            self._values.frombytes(values.astype(self._values.typecode).tobytes())
            return
        few = values.tolist()
        try:
            self._values.fromlist(few)  # all of them, or none
        except OverflowError:
            self._widen(min(few), max(few))
            self._values.fromlist(few)

    def _widen(self, least: int, most: int) -> None:
        """Make room for numbers in this range. Whoever reads has the array as it was, or the wider one."""
        code = next(code for code in _CODES if _LIMITS[code][0] <= least and most <= _LIMITS[code][1])
        if _CODES.index(code) > _CODES.index(self._values.typecode):
            self._values = array(code, self._values)

    def first(self, count: int) -> NarrowColumn:
        """A copy of the first so many."""
        copy = NarrowColumn()
        copy._values = self._values[:count]
        return copy

    def numbers(self) -> NDArray[np.int64]:
        """A copy of all (i8)."""
        return np.array(self._values, dtype=np.int64)
