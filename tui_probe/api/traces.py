"""Traces, their kernels, and evaluations: the objects that ``tui_probe.open`` and ``tui_probe.evaluate`` return."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from tui_probe.api.results import Launches, Results
from tui_probe.api.tables import Findings, TableSequence
from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import SCHEMA, SCHEMA_VERSION, as_record
from tui_probe.errors import ChoiceError, UsageError
from tui_probe.evals.evaluation import evaluate as run_evaluation
from tui_probe.probekit.measured import analyse_results
from tui_probe.probekit.probe_results import kernels_named
from tui_probe.probekit.registry import add_folder
from tui_probe.trace.follow import open_trace as follow_trace
from tui_probe.trace.locate import parse_address
from tui_probe.verdicts.kernel_columns import KERNEL_COLUMNS, shown_columns
from tui_probe.verdicts.kernel_findings import kernel_findings
from tui_probe.verdicts.run_brief import MAX_CHARS, run_brief
from tui_probe.verdicts.run_findings import run_findings, whole_run_record
from tui_probe.verdicts.run_outcome import head_lines, head_record

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from os import PathLike

    from numpy.typing import NDArray

    from tui_probe.draw.table import Column
    from tui_probe.evals.answer import Answer
    from tui_probe.trace.gpu_time import GpuTime
    from tui_probe.trace.launch_events import ProbeMode
    from tui_probe.trace.model import Kernel as TracedKernel
    from tui_probe.trace.model import Status
    from tui_probe.trace.model import Trace as FollowedTrace

_NAME_CELLS: Final = 60
"""Cells of a kernel's name in its ``repr``."""


class Kernel:
    """One kernel: the outcome of it, its launches, and what its probe measured. What was not measured is None."""

    def __init__(self, kernel: TracedKernel, trace: FollowedTrace) -> None:
        self._kernel = kernel
        self._trace = trace

    @property
    def index(self) -> int:
        """Number in the trace: kernels are counted from 0, in the order of their first launch."""
        return self._kernel.index

    @property
    def name(self) -> str:
        """Name in the image, mangled for C++."""
        return self._kernel.name

    @property
    def demangled(self) -> str:
        """Demangled name."""
        return self._kernel.demangled

    @property
    def status(self) -> Status:
        """``probed``, ``skipped``, ``failed``, ``excluded``, or ``pending`` where the log ends too soon."""
        return self._kernel.status

    @property
    def way(self) -> ProbeMode | None:
        """Mode of the probe: inserted into PTX (``ptx``), or grafted into SASS (``graft``)."""
        return self._kernel.mode

    @property
    def reason(self) -> str | None:
        """Reason why it was not probed; for a probed kernel, remarks of the engine."""
        return self._kernel.reason

    @property
    def folder(self) -> Path | None:
        """Directory in the trace, with PTX, SASS and ``process.log``; None if the kernel never reached the engine."""
        return self._kernel.folder

    @property
    def registers(self) -> tuple[int | None, int | None]:
        """Registers per thread, without the probe and with it."""
        return self._kernel.registers_pruned, self._kernel.registers_probed

    @property
    def spills(self) -> tuple[int | None, int | None]:
        """Spill stores and loads in bytes per thread, without the probe and with it."""
        return self._kernel.spills_pruned, self._kernel.spills_probed

    @property
    def slowdown(self) -> float | None:
        """Probed time / original time: median of a benchmark, else by sampled launches; None if simulated."""
        return self._kernel.slowdown

    @property
    def time_ms(self) -> float | None:
        """Median time of the original in milliseconds, by a benchmark, else by sampled launches; None if simulated."""
        return self._kernel.time_ms

    @property
    def gpu_time(self) -> GpuTime | None:
        """GPU time by sampled launches: count, mean, median, p99, total and their standard errors, in ns; None if
        simulated.
        """
        return self._kernel.gpu_time

    @property
    def time_share(self) -> float | None:
        """Share of the GPU time of all timed kernels, from 0 to 1; None if it was not timed."""
        return self._kernel.time_share

    @property
    def launches(self) -> Launches:
        """Launches, in the order of the log."""
        return Launches(self._kernel)

    @property
    def results(self) -> Results:
        """Results, the oldest first."""
        return Results(self._kernel)

    def metrics(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
        """Values of the probe's metrics by name: arrays with one value per result, in the order of ``results``.

        NaN is what was not measured. Empty where there is no result.
        """
        return metrics_of(self._kernel)

    def findings(self) -> Findings:
        """All findings by its newest results, the most valuable first, with its limiter and what was not measured."""
        return Findings(kernel_findings(self._trace, self._kernel))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of ``tui-probe report --format json``, of plain types."""
        return as_record(KERNEL_COLUMNS, self._kernel)

    def __repr__(self) -> str:
        reason = f" ({self.reason})" if self.reason and self.status != "probed" else ""
        launches = units.counted(self._kernel.launches, "launch")
        return f"<Kernel #{self.index} {shorten(self.demangled, _NAME_CELLS)}: {self.status}{reason}, {launches}>"

    def _repr_html_(self) -> str:
        """Return its findings and launches as HTML, for notebooks."""
        findings, launches = self.findings(), self.launches
        return f"<pre>{escape(repr(self))}</pre>{findings._repr_html_()}{launches._repr_html_()}"


class Kernels(Sequence[Kernel], TableSequence):
    """The kernels of a trace, or those of them that were named, by their index."""

    def __init__(self, trace: FollowedTrace, indices: Container[int] | None = None) -> None:
        self._kernels = [
            Kernel(kernel, trace) for kernel in trace.kernels if indices is None or kernel.index in indices
        ]

    def __len__(self) -> int:
        return len(self._kernels)

    @overload
    def __getitem__(self, place: int) -> Kernel: ...
    @overload
    def __getitem__(self, place: slice) -> list[Kernel]: ...
    def __getitem__(self, place: int | slice) -> Kernel | list[Kernel]:
        return self._kernels[place]

    def _columns(self) -> Sequence[Column[Any]]:
        return shown_columns(KERNEL_COLUMNS, list(self._shown_rows()))

    def _shown_rows(self) -> Iterator[TracedKernel]:
        return (kernel._kernel for kernel in self._kernels)


def trace_of(kernel: Kernel) -> FollowedTrace:
    """Return the trace that a kernel was read from, for pages of it."""
    return kernel._trace


def metrics_of(kernel: TracedKernel) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    """Name of a metric -> its values, one per result, in the order of ``kernel.result_rows``: shape (results,).

    int64 where every result has a whole number, else float64 with NaN where it was not measured. A result that cannot
    be analysed is NaN in all, with a warning that says why. Where a result is of a sample of blocks there are
    ``blocks`` and ``blocks_measured``, too: sums of results that differ in these are not to be taken together.
    """
    rows = list(_metrics_by_result(kernel))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _metric_array([row.get(name) for row in rows]) for name in names}


def _metrics_by_result(kernel: TracedKernel) -> Iterator[dict[str, float | None]]:
    """Yield the values of each result."""
    results = list(analyse_results(kernel.trace, kernel))
    is_sampled = any(result.sample is not None for result in results)
    for result in results:
        _warn_of_problem(result.problem)
        values = {metric_value.key: metric_value.value for metric_value in result.metric_values}
        yield values | ({"blocks": result.blocks, "blocks_measured": result.blocks_measured} if is_sampled else {})


def _warn_of_problem(problem: str | None) -> None:
    if problem is not None:
        warnings.warn(problem, stacklevel=5)


def _metric_array(values: list[float | None]) -> NDArray[np.float64] | NDArray[np.int64]:
    if all(isinstance(value, int) for value in values):
        return np.array(values, np.int64)
    return np.array([np.nan if value is None else value for value in values], np.float64)


class Trace:
    """One process of a run, up to what its trace holds now: open it again to see later launches."""

    def __init__(self, trace: FollowedTrace, indices: Container[int] | None = None) -> None:
        """``indices`` are the indices of the kernels that it has, None for all."""
        self._trace = trace
        self.kernels = Kernels(trace, indices)

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
        return self._trace.state.is_running

    @property
    def exit_status(self) -> int | None:
        """Exit status of the process; None while it runs, if a signal ended it, and if it is unknown."""
        return self._trace.state.exit_status

    def kernel(self, name: str) -> Kernel:
        """The kernel of this name, mangled or not, or the only one whose name contains it. ChoiceError if none is."""
        exact_matches = [kernel for kernel in self.kernels if name in (kernel.name, kernel.demangled)]
        matches = exact_matches or [
            kernel for kernel in self.kernels if name in kernel.name or name in kernel.demangled
        ]
        if len(matches) == 1:
            return matches[0]
        name_list = ", ".join(f"#{kernel.index} {kernel.demangled}" for kernel in matches or self.kernels) or "none"
        problem = f"several kernel names contain {name!r}" if matches else f"no kernel name contains {name!r}"
        raise ChoiceError(f"{self.path}: {problem}; there are: {name_list}")

    def findings(self) -> Findings:
        """Return the losses of its kernels with the largest shares, their limiters, and what was not measured."""
        indices = {kernel.index for kernel in self.kernels}
        return Findings(finding for finding in run_findings(self._trace).findings if finding.kernel.index in indices)

    def brief(self, max_chars: int = MAX_CHARS) -> str:
        """Return the verdict on each kernel, the worst lines and what to measure next in at most ``max_chars``
        characters.
        """
        return run_brief(self._trace).text(max_chars)

    def to_dict(self) -> dict[str, Any]:
        """Return the document of ``tui-probe report --format json``, of plain types. None is not measured."""
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
    followed = follow_trace(address.path)
    if address.kernel is None:
        return Trace(followed)
    return Trace(followed, {kernel.index for kernel in kernels_named(followed, address.kernel)})


def evaluate(name: str, traces: str | PathLike[str] | Sequence[str | PathLike[str]] = ()) -> Answer:
    """Answer the evaluation ``name`` from traces; without any from those that come with the package.

    ``answer.tables["NAME"]["COLUMN"]`` is an array, ``answer.tables["NAME"].records()`` are plain rows,
    ``answer.arrays`` larger data. Names are those of ``tui-probe eval``.

    Raises UsageError for a name that there is not, TraceError or ChoiceError where something is missing: their texts
    say what to run.
    """
    return run_evaluation(name, traces)
