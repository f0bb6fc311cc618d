"""What the user wants to be run when the screen has ended, or to be shown instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Named(Protocol):
    """A kernel, or a row of one."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def demangled(self) -> str: ...


@dataclass(frozen=True)
class SameKernel:
    """A kernel as it is found in another run: by its name, mangled or not, and its place among those of that name."""

    name: str
    demangled: str
    place: int

    @classmethod
    def of(cls, kernel: Named, kernels: Iterable[Named]) -> SameKernel:
        """As it is told from the others of its trace."""
        earlier = [each for each in kernels if each.name == kernel.name and each.index < kernel.index]
        return cls(kernel.name, kernel.demangled, len(earlier))

    def index_in(self, kernels: Iterable[Named], *, all_there: bool) -> int | None:
        """Its index there; None as long as it may still come, or where it did not."""
        known = list(kernels)
        same = [each.index for each in known if each.name == self.name]
        same = sorted(same or [each.index for each in known if each.demangled == self.demangled])
        if self.place < len(same):
            return same[self.place]
        return same[-1] if same and all_there else None


@dataclass(frozen=True)
class Against:
    """A run is to be shown against one before it; nothing needs to run for that."""

    before: Path
    after: Path


@dataclass(frozen=True)
class Again:
    """The program of ``trace`` is to run once more, with these options of ``run`` in place of those that it had.

    The screen of that run begins at the kernel ``begin``; None: anywhere.
    """

    trace: Path
    options: tuple[str, ...] = ()
    begin: SameKernel | None = None


@dataclass(frozen=True)
class ToPaste:
    """A command that has to be run elsewhere."""

    command: str
