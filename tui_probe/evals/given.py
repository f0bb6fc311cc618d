"""What an evaluation is given: traces, kernels or launches of them, folders of traces, and files of other kinds."""

from __future__ import annotations

from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.table import safe
from tui_probe.errors import ChoiceError, TraceError
from tui_probe.evals.collected import is_there, read_collected
from tui_probe.pages.views.choose import meant_by
from tui_probe.probekit.kind import Source
from tui_probe.probekit.measured import measured
from tui_probe.probekit.missing import missing
from tui_probe.probekit.probe_results import aimed, read_row
from tui_probe.trace.address import parse_address
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import find_trace, is_trace, trace_of_result, traces_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from tui_probe.probekit.measured import Measured
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import Kernel, Trace


@dataclass(frozen=True, slots=True)
class Given:
    """One trace, or a ``path`` that is none. ``label`` is its name in tables: that of its folder or file.

    ``kernel`` is an index or a regular expression, ``launch`` the number of a launch; None for all.
    """

    label: str
    path: Path
    trace: Trace | None = None
    kernel: str | None = None
    launch: int | None = None
    result: str | None = None
    """The name of the result file that stands for its launch."""

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels that are meant. ChoiceError if the trace has none such."""
        if self.trace is None:
            return []
        return list(self.trace.kernels) if self.kernel is None else meant_by(self.trace, self.kernel)

    @property
    def hardware(self) -> str:
        """The GPU, as the trace names it."""
        state = None if self.trace is None else self.trace.state
        if state is None:
            return ""
        name = "an unknown GPU" if state.device is None else safe(state.device.name)
        return "simulated GPU" if state.simulated else name

    @property
    def words(self) -> str:
        """``NAME: NVIDIA H200, python fill.py``: what was run, without the folders."""
        if self.trace is None:
            return f"{self.label}: {self.path.name}" if self.label != self.path.name else self.label
        command = " ".join(word.rpartition("/")[2] or word for word in self.trace.state.command.split(" "))
        return f"{self.label}: {self.hardware}, {safe(command) or 'an unknown command'}"

    def results(self, *probes: str) -> Iterator[Measured]:
        """What one of these probes measured: of each kernel the launch that was named, else its newest result.

        One that cannot be analysed has a ``problem``.
        """
        return (measured(source.trace, source.kernel, row) for source, row in self._rows(probes))

    def read(self, *probes: str) -> Iterator[ProbeResult]:
        """The same results as they were read, for timelines and views. Raises TraceError naming the file."""
        return (read_row(source.trace, source.kernel, row) for source, row in self._rows(probes))

    def _rows(self, probes: tuple[str, ...]) -> Iterator[tuple[Source, int]]:
        """Each kernel as one of these probes had it, and the row of its result."""
        for kernel in self.kernels if self.trace is not None else ():
            assert self.trace is not None
            source = aimed(Source(self.trace, kernel), *probes)
            if missing(source, *probes) is None and (row := self._row(source)) is not None:
                yield source, row

    def _row(self, source: Source) -> int | None:
        """The row of the result table."""
        results, launches = source.trace.results, source.trace.launches
        if self.launch is None and self.result is None:
            return source.kernel.newest_result
        for row in source.kernel.result_rows:
            at = results.launch(row)
            if results.name(row) == self.result or (at is not None and launches[at].number == self.launch):
                return row
        return None

    def why_none(self, *probes: str) -> str:
        """Why ``results`` are none, in words that begin with the path."""
        kernels = self.kernels
        if self.trace is None:
            return f"{self.path}: it is no trace"
        if not kernels:
            return f"{self.path}: no kernel was launched"
        return f"{self.path}: {missing(Source(self.trace, kernels[0]), *probes) or 'that launch has no result'}"


def given(words: Sequence[str | PathLike[str]]) -> tuple[list[Given], list[str]]:
    """What the words mean, and what is missing of it, a note each.

    A folder of traces means all of them, in the order of its ``collected.json``, else the oldest first. Raises
    TraceError for what is not there.
    """
    found, notes = [], []
    for each in words:
        word = fspath(each)
        path = Path(word)
        if path.is_dir() and not is_trace(path):
            found += _in_folder(path)
            runs = read_collected(path).values()
            notes += [f"{run.name}: {said}" for run in runs if (said := run.problem or run.note)]
        else:
            found.append(_one(word))
    return found, notes


def _in_folder(folder: Path) -> list[Given]:
    runs = read_collected(folder)
    kept = [run for run in runs.values() if run.problem is None and is_there(folder, run)]
    if kept:
        return [_named(run.name, folder / run.file) for run in kept]
    if not (paths := traces_in(folder)):
        problems = "; ".join(f"{run.name}: {run.problem}" for run in runs.values() if run.problem)
        raise TraceError(f"{folder} holds no trace{f' ({problems})' if problems else ''}: name the directory of a run")
    return [_named(path.name, path) for path in paths]


def _named(name: str, path: Path) -> Given:
    """A trace or a file of this name."""
    return Given(name, path, open_trace(path) if path.is_dir() else None)


def _one(word: str) -> Given:
    path = Path(word)
    trace = trace_of_result(path)
    if trace is not None:
        return Given(trace.absolute().name, trace, open_trace(trace), result=path.name)
    if path.is_file() and path.name != "event.log":
        return Given(path.name, path)
    address = parse_address(word)
    if address.path is None:
        raise ChoiceError(f"{word}: name the trace: TRACE{address}")
    directory = find_trace(address.path)
    return Given(directory.absolute().name, directory, open_trace(directory), address.kernel, address.launch)
