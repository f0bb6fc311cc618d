"""Session of the screen: its input, and requests of the user that outlive it.

A request is a trace to open, a program to start, or a run to repeat or compare.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.probe_files import DEFAULT_PROBE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from tui_probe.probekit.page_kinds import PageSet
    from tui_probe.trace.locate import Address
    from tui_probe.trace.recent import TraceSummary
    from tui_probe.verdicts.run_verdict import RunVerdict

BETWEEN_HINT: Final = "on page Source press m on the first line, m on the last line, then R"
"""Message that fits a line of 80 cells."""


class MachineFinding(Protocol):
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


class ProbeSummary(Protocol):
    """Name, title and cost of a probe, for the list to choose from."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def measures(self) -> str: ...
    @property
    def cost(self) -> str: ...


@dataclass
class StartForm:
    """Program to start and its options. The form outlives the screen, so that a user who returns finds it unchanged."""

    command: str = ""
    probe: str = DEFAULT_PROBE
    kernels: str = ""
    excluded: str = ""
    launches: str = ""
    simulated: bool | None = None
    """None: as the machine has a GPU or not."""
    benchmark: bool = False

    def command_line(self) -> str:
        """Return the request as a command line, without defaults."""
        argv = ["tui-probe", "run", "-p", self.probe]
        for option, text in (("-k", self.kernels), ("--exclude", self.excluded), ("--launches", self.launches)):
            argv += [option, text] if text else []
        argv += ["--sim"] if self.simulated else []
        argv += ["--benchmark"] if self.benchmark else []
        return f"{shlex.join(argv)} -- {self.command or 'COMMAND'}"


@dataclass(frozen=True)
class OpenTrace:
    """Look at this trace. ``begin`` is not used: a trace begins where the user left it."""

    trace: Path
    begin: SameKernel | None = None


@dataclass(frozen=True)
class OpenPath:
    """Look at what a user named: a trace, a folder of traces, or a file of another profiler."""

    name: str


@dataclass(frozen=True)
class StartProgram:
    """Start what the form says."""


@dataclass(frozen=True)
class StartDemo:
    """Start the bundled example, with the form's probe."""


@dataclass
class HomeSources:
    """Functions that the screen calls in a background thread. ``notice`` is shown at the start."""

    recent: Callable[[], Sequence[TraceSummary]]
    verdict: Callable[[Path], RunVerdict]
    findings: Callable[[], Sequence[MachineFinding]]
    probes: Callable[[], Sequence[ProbeSummary]]
    form: StartForm = field(default_factory=StartForm)
    notice: str = ""
    choice: OpenTrace | OpenPath | StartProgram | StartDemo | None = None
    """The action for which the user left the screen; None: quit."""


class NamedKernel(Protocol):
    """A kernel, or a row of one."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def demangled(self) -> str: ...


@dataclass(frozen=True)
class SameKernel:
    """A kernel as it is found in another run: by its name, mangled or not, and its place among those of that name.

    ``page`` is its page that the other run is for, "" for none.
    """

    name: str
    demangled: str
    place: int
    page: str = ""

    @classmethod
    def from_kernel(cls, kernel: NamedKernel, kernels: Iterable[NamedKernel]) -> SameKernel:
        """Describe a kernel so that it differs from the others of its trace."""
        earlier = [other for other in kernels if other.name == kernel.name and other.index < kernel.index]
        return cls(kernel.name, kernel.demangled, len(earlier))

    def index_in(self, kernels: Iterable[NamedKernel], *, is_complete: bool) -> int | None:
        """Return its index in another trace; None while it may still come, or if it did not."""
        candidates = list(kernels)
        indices = [candidate.index for candidate in candidates if candidate.name == self.name]
        indices = sorted(
            indices or [candidate.index for candidate in candidates if candidate.demangled == self.demangled]
        )
        if self.place < len(indices):
            return indices[self.place]
        return indices[-1] if indices and is_complete else None


@dataclass(frozen=True)
class ComparisonRequest:
    """A run is to be shown against one before it; nothing needs to run for that."""

    baseline: Path
    candidate: Path


@dataclass(frozen=True)
class RerunRequest:
    """The program of ``trace`` is to run once more, with these options of ``run`` in place of those that it had.

    The screen of that run begins at the kernel ``begin``; None: anywhere.
    """

    trace: Path
    options: tuple[str, ...] = ()
    begin: SameKernel | None = None


@dataclass(frozen=True)
class CommandToPaste:
    """A command that has to be run elsewhere."""

    command: str


class LiveTarget(Protocol):
    """A program that was started under the hook. All may be called from any thread; signals are sent immediately."""

    @property
    def command(self) -> Sequence[str]:
        """The program and its arguments."""

    @property
    def simulated(self) -> bool:
        """True if it runs on the simulated GPU."""

    @property
    def started(self) -> float:
        """Time in seconds since 1970."""

    @property
    def stdout_path(self) -> Path:
        """The file that receives its standard output."""

    @property
    def stderr_path(self) -> Path:
        """The file that receives its standard error."""

    def poll(self) -> int | None:
        """Return None while it runs, then its exit status, or minus the number of the signal that ended it."""

    def interrupt(self) -> None:
        """Send SIGINT to its process group, as a terminal does on ctrl+c."""

    def terminate(self) -> None:
        """Send SIGTERM to its process group."""

    def kill(self) -> None:
        """Send SIGKILL to its process group."""

    def leave(self) -> None:
        """Let it continue when the screen ends."""

    def trace_directories(self) -> list[Path]:
        """Return the trace directories that its processes have made so far, the oldest first."""


@dataclass
class Session:
    """Input of the screen: a target that runs, or trace directories that exist."""

    target: LiveTarget | None = None
    traces: tuple[Path, ...] = ()
    imported: PageSet | None = None
    """Files of another profiler, shown instead."""
    home: HomeSources | None = None
    """The home screen, shown instead."""
    from_home: bool = False
    """True if it was opened from the home screen, which appears again afterwards."""
    watching: bool = False
    """True if another command started the run: the screen reports that, and the end of the run."""
    address: Address | None = None
    """Kernel and launch that are selected first; None: as the user left the trace."""
    begin: SameKernel | None = None
    """Kernel of an earlier run from whose page this run was started; its page is shown first."""
    notice: str = ""
    """Text about what is opened, shown once it is read."""
    next_request: RerunRequest | OpenTrace | None = None
    """The run to start, or the trace to open, after the screen has ended."""
