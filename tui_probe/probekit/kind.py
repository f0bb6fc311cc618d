"""A kind of view: its name, what it needs of a kernel or a launch, and how it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.draw.view import Progress, View
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import Kernel, Trace


@dataclass(frozen=True, slots=True)
class Source:
    """What a view is about: a launch of a kernel (None: the newest that has what the view needs)."""

    trace: Trace
    kernel: Kernel
    launch: Launch | None = None


class ViewKind(Protocol):
    """What the module of a view offers, as its ``KIND``."""

    @property
    def name(self) -> str:
        """The word for ``tui-probe show``."""

    @property
    def title(self) -> str:
        """The name of its page."""

    @property
    def about(self) -> str:
        """One line: what it shows."""

    @property
    def probes(self) -> tuple[str, ...]:
        """The probes whose results it shows, the one to run first; none if it shows what every kernel has."""

    @property
    def short(self) -> str:
        """The name of its page where there is little room; "" for its title."""

    @property
    def grows(self) -> bool:
        """Is it about all launches if none was chosen, and read again while launches go on?"""

    def missing(self, source: Source) -> str | None:
        """Why there is nothing to show and what to do (“run with -p dmat”), None if there is. Reads little."""

    def open(self, source: Source, progress: Progress) -> View:
        """Read what is needed. Raises TraceError naming the file."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A ``ViewKind`` made of functions."""

    name: str
    title: str
    about: str
    missing: Callable[[Source], str | None]
    open: Callable[[Source, Progress], View]
    probes: tuple[str, ...] = ()
    short: str = ""
    grows: bool = False
