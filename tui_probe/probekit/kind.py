"""A kind of view: its name, what it needs of a kernel or a launch, and how it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.draw.table import Column
    from tui_probe.draw.view import Progress, View
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Trace


@dataclass(frozen=True, slots=True)
class Source:
    """What a view is about: a launch of a kernel (None: the newest that has what the view needs)."""

    trace: Trace
    kernel: Kernel
    launch: Launch | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of view. ``name`` is the word for ``tui-probe show``, ``title`` that of its page, ``about`` one line.

    ``missing`` tells why there is nothing to show and what to do (“run with -p NAME”), None if there is; it reads
    little. ``open`` reads what is needed; it raises TraceError naming the file.
    """

    name: str
    title: str
    about: str
    missing: Callable[[Source], str | None]
    open: Callable[[Source, Progress], View]
    explanation: tuple[str, ...] = ()
    """How to read it, a paragraph each."""
    order: int = 50
    """Where its page stands among others; those of the kernel itself come first."""
    short: str = ""
    """The title of its tab where there is little room; "" for the whole one."""
    grows: bool = False
    """Whether it is read again while the kernel is still launched."""
    drawn: bool = False
    """Whether it is a drawing: with a window that moves, a cursor, and a worst place that it knows."""
    fed_by: Callable[[], tuple[str, ...]] = tuple
    """The names of the probes whose results it shows, the one to run first; none if every kernel has what it shows."""

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes whose results it shows."""
        return self.fed_by()


@dataclass(frozen=True, slots=True)
class TracePage:
    """A page about a whole trace: lines of text of a width, and rows of a table as data.

    Without ``lines`` the rows are its text, too. ``title`` and ``about`` are those of the page of a kernel that has the
    same name, where there is one.
    """

    name: str
    lines: Callable[..., Iterator[str]] | None
    columns: Sequence[Column[Any]]
    rows: Callable[..., Iterator[Any]]
    title: str = ""
    about: str = ""
    headed: bool = True
    """Whether its text begins with what the trace is of."""
    head: Callable[..., dict[str, Any]] | None = None
    """What else the head of its JSON says."""
    table: Callable[[Trace], Sequence[Column[Any]]] | None = None
    """The columns of its rows as a table, where they go by the trace."""
    tells: bool = False
    """Whether ``lines``, ``rows`` and ``head`` take, last, what is told how far they are: results are read for it."""
