"""What the home screen shows and what it is left with. Knows nothing of Textual."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tui_probe.probe_files.folders import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.pages.run_verdict import RunVerdict
    from tui_probe.trace.recent import Brief


class Finding(Protocol):
    """One thing about the machine. ``advice`` is what to do, or what it would give, or "".

    ``state`` is "ok", "optional" (it is not there, and nothing needs it), "warn" or "missing".
    """

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def found(self) -> str: ...
    @property
    def advice(self) -> str: ...


class ProbeWords(Protocol):
    """What a probe is chosen by."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def measures(self) -> str: ...
    @property
    def cost(self) -> str: ...


@dataclass
class Form:
    """What to start and how. It outlives the screen: who comes back finds it as it was left."""

    command: str = ""
    probe: str = DEFAULT
    kernels: str = ""
    excluded: str = ""
    launches: str = ""
    simulated: bool | None = None
    """None: as the machine has a GPU or not."""
    benchmark: bool = False

    def command_line(self) -> str:
        """The same on the command line, without what need not be said."""
        words = ["tui-probe", "run", "-p", self.probe]
        for option, text in (("-k", self.kernels), ("--exclude", self.excluded), ("--launches", self.launches)):
            words += [option, text] if text else []
        words += ["--sim"] if self.simulated else []
        words += ["--benchmark"] if self.benchmark else []
        return f"{shlex.join(words)} -- {self.command or 'COMMAND'}"


@dataclass(frozen=True)
class Open:
    """Look at this trace."""

    trace: Path


@dataclass(frozen=True)
class OpenPath:
    """Look at what a person named: a trace, a folder of traces, or a file of another profiler."""

    name: str


@dataclass(frozen=True)
class Start:
    """Start what the form says."""


@dataclass(frozen=True)
class Demo:
    """Start the bundled example, with the form's probe."""


@dataclass
class Home:
    """What the screen asks of the world; all is called in a background thread. ``notice`` is said at the start."""

    recent: Callable[[], Sequence[Brief]]
    verdict: Callable[[Path], RunVerdict]
    findings: Callable[[], Sequence[Finding]]
    probes: Callable[[], Sequence[ProbeWords]]
    form: Form = field(default_factory=Form)
    notice: str = ""
    choice: Open | OpenPath | Start | Demo | None = None
    """What the user left the screen for; None: to quit."""
