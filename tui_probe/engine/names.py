"""Names for what is inserted, none of which the kernel's own PTX uses."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Names:
    """Makes the names of inserted registers, labels and parameters for one PTX text."""

    def __init__(self, source: str) -> None:
        self._prefix = next(prefix for prefix in _prefixes() if prefix not in source)
        self._labels = count()
        self._undeclared: dict[str, str] = {}
        self._functions: dict[str, Names] = {}

    def of_function(self, name: str) -> Names:
        """The same names for a function that the kernel calls, which declares its registers itself."""
        if name not in self._functions:
            names = copy(self)
            names._undeclared, names._functions = {}, {}
            self._functions[name] = names
        return self._functions[name]

    def register(self, own: str, kind: str) -> str:
        """The name in the kernel of a probe's own register of a PTX type: ``%begin`` is ``%tp_begin``."""
        return self._declare(f"%{self._prefix}{own.removeprefix('%')}", kind)

    def temporary(self, name: str, kind: str) -> str:
        """The name of a register of a PTX type that the engine needs itself."""
        return self._declare(f"%{self._prefix}_{name}", kind)

    def declarations(self) -> list[str]:
        """Declarations of the registers asked for since the last call, those of a type in one."""
        names = defaultdict(list)
        for name, kind in self._undeclared.items():
            names[kind].append(name)
        self._undeclared.clear()
        return [f".reg .{kind} {', '.join(listed)};" for kind, listed in names.items()]

    def parameter(self, purpose: str, name: str) -> str:
        """The name of a parameter for a ``map``, its ``count``, or a module ``variable``."""
        return f"{self._prefix}{purpose}_{name.replace('%', '$')}"

    def new_label(self) -> str:
        """A label that was not given before."""
        return f"${self._prefix}{next(self._labels)}"

    def new_argument(self) -> str:
        """The name of an argument of a call, that was not given before."""
        return f"{self._prefix}argument{next(self._labels)}"

    def declare(self, name: str, kind: str) -> None:
        """Declare a register of that very name, which another function has, too."""
        self._undeclared[name] = kind

    def _declare(self, name: str, kind: str) -> str:
        self._undeclared[name] = kind
        return name


def _prefixes() -> Iterator[str]:
    yield "tp_"
    yield from (f"tp{number}_" for number in count())
