"""Names for what is inserted, none of which the kernel's own PTX uses."""

from __future__ import annotations

import re
from itertools import count
from typing import Final

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_]")


class Names:
    """Makes the names of inserted registers, labels and parameters for one PTX text."""

    def __init__(self, source: str) -> None:
        self._prefix = next(prefix for prefix in _prefixes() if prefix not in source)
        self._labels = count()

    def register(self, own: str) -> str:
        """The name in the kernel of a probe's own register: ``%begin`` is ``%tp_begin``."""
        return f"%{self._prefix}{own.removeprefix('%')}"

    def temporary(self, name: str) -> str:
        """The name of a register that the engine needs itself."""
        return f"%{self._prefix}_{name}"

    def parameter(self, name: str) -> str:
        """The name of a parameter for a map or a variable."""
        return f"{self._prefix}param_{_NOT_IN_NAMES.sub('_', name)}"

    def new_label(self) -> str:
        """A label that was not given before."""
        return f"${self._prefix}{next(self._labels)}"


def _prefixes() -> list[str]:
    return ["tp_", *(f"tp{i}_" for i in range(1, 1000))]
