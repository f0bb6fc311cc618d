"""Texts of an sqlite export of Nsight Systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.nsight.importers.distinct import distinct
from tui_probe.nsight.importers.nsys_model import UNKNOWN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.nsight.importers.sqlite_tables import Tables


class Strings:
    """Texts by their numbers in the export, and by ours: positions in ``names``."""

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("StringIds", {"id": ..., "value": ...})
        self._texts = {number: str(text) for number, text in rows}
        self.names: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """The number of a text in ``names``."""
        code = self._codes.setdefault(text, len(self.names))
        if code == len(self.names):
            self.names.append(text)
        return code

    def codes(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Our numbers for those of the export; -1 stays -1."""
        values, places = distinct(numbers)
        ours = [UNKNOWN if number == UNKNOWN else self.code(self.text(number)) for number in values.tolist()]
        return np.array(ours, dtype=np.int32)[places]

    def text(self, number: int) -> str:
        return self._texts.get(number, f"string {number}")
