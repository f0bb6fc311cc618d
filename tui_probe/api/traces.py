"""Traces and evaluations: what ``tui_probe.open`` and ``tui_probe.evaluate`` return."""

from __future__ import annotations

from html import escape
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_probe.api.kernels import Kernel, Kernels
from tui_probe.api.tables import Findings
from tui_probe.draw import units
from tui_probe.draw.table import SCHEMA, SCHEMA_VERSION
from tui_probe.errors import ChoiceError, UsageError
from tui_probe.evals.evaluation import evaluate as run_evaluation
from tui_probe.probekit.probe_results import kernels_named
from tui_probe.probekit.registry import add_folder
from tui_probe.trace.follow import open_trace as follow_trace
from tui_probe.trace.locate import parse_address
from tui_probe.verdicts.kernel_columns import whole_run_record
from tui_probe.verdicts.run_brief import MAX_CHARS, run_brief
from tui_probe.verdicts.run_findings import run_findings
from tui_probe.verdicts.run_outcome import head_lines, head_record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from os import PathLike

    from tui_probe.evals.answer import Answer
    from tui_probe.trace.model import Trace as FollowedTrace


class Trace:
    """One process of a run, up to what its trace holds now: open it again to see later launches."""

    def __init__(self, trace: FollowedTrace, chosen: Container[int] | None = None) -> None:
        """``chosen`` are the indices of the kernels that it has, None for all."""
        self._trace = trace
        self.kernels = Kernels(trace, chosen)

    @property
    def path(self) -> Path:
        """The trace directory."""
        return self._trace.directory

    @property
    def command(self) -> str:
        """The command line of the process."""
        return self._trace.state.command

    @property
    def probe(self) -> str | None:
        """The probe as ``run -p`` was given it; None in a trace without ``run.json``."""
        return None if self._trace.run_info is None else self._trace.run_info.probe

    @property
    def device(self) -> str | None:
        """The first GPU of the process."""
        return None if self._trace.state.device is None else self._trace.state.device.name

    @property
    def simulated(self) -> bool:
        """True for the simulated GPU. Its counts are exact; its clocks are those of a model."""
        return self._trace.state.simulated

    @property
    def running(self) -> bool:
        """True if the process was still running when the trace was opened."""
        return self._trace.state.running

    @property
    def exit_status(self) -> int | None:
        """Exit status of the process; None while it runs, if a signal ended it, and if it is unknown."""
        return self._trace.state.exit_status

    def kernel(self, name: str) -> Kernel:
        """The kernel of this name, mangled or not, or the only one whose name contains it. ChoiceError if none is."""
        exact = [kernel for kernel in self.kernels if name in (kernel.name, kernel.demangled)]
        matches = exact or [kernel for kernel in self.kernels if name in kernel.name or name in kernel.demangled]
        if len(matches) == 1:
            return matches[0]
        among = ", ".join(f"#{kernel.index} {kernel.demangled}" for kernel in matches or self.kernels) or "none"
        what = f"several kernel names contain {name!r}" if matches else f"no kernel name contains {name!r}"
        raise ChoiceError(f"{self.path}: {what}; there are: {among}")

    def findings(self) -> Findings:
        """The losses of its kernels with the largest shares, their limiters, and what was not measured."""
        chosen = {kernel.index for kernel in self.kernels}
        return Findings(found for found in run_findings(self._trace).findings if found.kernel.index in chosen)

    def brief(self, max_chars: int = MAX_CHARS) -> str:
        """Return the verdict on each kernel, the worst lines and what to measure next in at most ``max_chars``
        characters.
        """
        return run_brief(self._trace).text(max_chars)

    def to_dict(self) -> dict[str, Any]:
        """The document of ``tui-probe report --format json``, of plain types. None is not measured."""
        kernels = [kernel.to_dict() for kernel in self.kernels]
        head = {"schema": SCHEMA, "version": SCHEMA_VERSION, "page": "kernels", **head_record(self._trace)}
        return {**head, **whole_run_record(self._trace), "kernels": kernels}

    def __repr__(self) -> str:
        state = self._trace.state
        numbers = (state.kernels, "kernel"), (state.launches, "launch"), (state.results, "result")
        return f"<Trace {str(self.path)!r}: {', '.join(units.counted(*number) for number in numbers)}>"

    def _repr_html_(self) -> str:
        """Return the head of the report and the kernels as HTML, for notebooks."""
        head = "\n".join(escape(line) for line in head_lines(self._trace))
        return f"<pre>{head}</pre>{self.kernels._repr_html_()}"


def open_trace(trace: str | PathLike[str], *, probes: Iterable[str | PathLike[str]] = ()) -> Trace:
    """Read a trace: its directory, its ``event.log``, or a folder of traces: then the newest trace.

    ``TRACE:KERNEL``, as the command line takes it, has the kernels only that an index or a regular expression means;
    for a launch write ``.kernels[0].launches``. ``probes`` are folders of probes that no package brings: their code is
    run, to know what the results mean. Results are not read before they are asked for.

    Raises TraceError if there is no trace, ChoiceError if it has no such kernel, ProbeFileError for a folder without a
    probe.
    """
    for folder in probes:
        add_folder(Path(folder))
    address = parse_address(fspath(trace))
    if address.launch is not None:
        raise UsageError(f"{trace}: only traces and kernels can be opened, not launches: remove @{address.launch}")
    if address.path is None:
        raise UsageError(f"{trace} does not name a trace: use TRACE{address}")
    opened = follow_trace(address.path)
    if address.kernel is None:
        return Trace(opened)
    return Trace(opened, {kernel.index for kernel in kernels_named(opened, address.kernel)})


def evaluate(name: str, traces: str | PathLike[str] | Sequence[str | PathLike[str]] = ()) -> Answer:
    """Answer the evaluation ``name`` from traces; without any from those that come with the package.

    ``answer.tables["NAME"]["COLUMN"]`` is an array, ``answer.tables["NAME"].records()`` are plain rows,
    ``answer.arrays`` larger data. Names are those of ``tui-probe eval``.

    Raises UsageError for a name that there is not, TraceError or ChoiceError where something is missing: their texts
    say what to run.
    """
    return run_evaluation(name, traces)
