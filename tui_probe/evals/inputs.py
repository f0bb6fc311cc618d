"""Inputs of an evaluation: traces, kernels, launches, files, and directories of collected runs."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.printable import printable
from tui_probe.errors import ChoiceError, TraceError
from tui_probe.input_limits import COLLECTION, PROGRAM_OUTPUT, parse_json
from tui_probe.probekit.measured import analyse_result
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.probekit.probe_results import kernels_named, read_result_row
from tui_probe.probekit.probe_view import no_result_reason
from tui_probe.trace.follow import open_trace
from tui_probe.trace.locate import find_trace, is_trace, parse_address, path_in_trace, trace_of_result, traces_in
from tui_probe.trace.plain_file import read_start, read_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from os import PathLike

    from tui_probe.probekit.measured import AnalysedResult
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.model import Kernel, Trace

COLLECTED_FILE: Final = "collected.json"
COLLECTED_SCHEMA: Final = "tui-probe.collected"


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """A collected run. ``command``: its command line. ``problem``: why it left no result, None if it left one.

    ``saved_as`` is the name of the trace's directory, or of a file. ``note`` is a remark for readers, such as
    parts that were left out when it was bundled.
    """

    name: str
    command: str
    problem: str | None = None
    saved_as: str | None = None
    note: str | None = None

    @property
    def file(self) -> str:
        """Name of the saved result; that of the run if no other is recorded."""
        return self.saved_as or self.name


def read_collected(folder: Path) -> dict[str, CollectedRun]:
    """Return the runs by name, in the order of the collection; {} without a record. Raises TraceError for a damaged
    one.
    """
    path = folder / COLLECTED_FILE
    if not path.is_file():
        return {}
    try:
        data = parse_json(read_within(path, COLLECTION))
        return {
            name: CollectedRun(name, run["command"], run["problem"], run.get("kept"), run.get("note"))
            for name, run in data["runs"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(f"{path} is unreadable ({error}); delete it and collect again") from error


def write_collected(folder: Path, runs: dict[str, CollectedRun]) -> None:
    """Write the record in one step: a collection may be interrupted at any time."""
    data: dict[str, Any] = {
        "schema": COLLECTED_SCHEMA,
        "version": 1,
        "runs": {name: _collected_record(run) for name, run in runs.items()},
    }
    temporary = folder / f"{COLLECTED_FILE}.{os.getpid()}"
    temporary.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(folder / COLLECTED_FILE)


def _collected_record(collected: CollectedRun) -> dict[str, str | None]:
    return {
        "name": collected.name,
        "command": collected.command,
        "problem": collected.problem,
        "kept": collected.saved_as,
        "note": collected.note,
    }


def is_finished(folder: Path, collected: CollectedRun | None, command: str) -> bool:
    """Return True if a run of the same command has left its result in the folder."""
    return (
        collected is not None
        and collected.problem is None
        and collected.command == command
        and is_kept(folder, collected)
    )


def is_kept(folder: Path, run: CollectedRun) -> bool:
    """Return True if the result of a run is still in the folder. Raises TraceError for a path that leads out of it."""
    path = path_in_trace(folder, run.file)
    if path is None:
        raise TraceError(
            f"{folder / COLLECTED_FILE}: {run.file!r} is outside of this directory; delete the entry and collect again"
        )
    return path.is_file() or is_trace(path)


@dataclass(frozen=True, slots=True)
class EvaluationInput:
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
        """Selected kernels. Raises ChoiceError if the trace has none of that name."""
        if self.trace is None:
            return []
        return list(self.trace.kernels) if self.kernel is None else kernels_named(self.trace, self.kernel)

    @property
    def hardware(self) -> str:
        """Name of the GPU in the trace; "" without a trace."""
        state = None if self.trace is None else self.trace.state
        if state is None:
            return ""
        name = "an unknown GPU" if state.device is None else printable(state.device.name)
        return "simulated GPU" if state.simulated else name

    @property
    def text(self) -> str:
        """``NAME: NVIDIA H200, python fill.py``: the command without directories."""
        if self.trace is None:
            return f"{self.label}: {self.path.name}" if self.label != self.path.name else self.label
        command = " ".join(word.rpartition("/")[2] or word for word in self.trace.state.command.split(" "))
        return f"{self.label}: {self.hardware}, {printable(command) or 'an unknown command'}"

    def results(self, *probes: str) -> Iterator[AnalysedResult]:
        """Yield the analysed results of these probes: of each kernel the selected launch, else its newest result.

        One that cannot be analysed has a ``problem``.
        """
        return (analyse_result(source.trace, source.kernel, row) for source, row in self._rows(probes))

    def probe_results(self, *probes: str) -> Iterator[ProbeResult]:
        """Yield the same results as they were read, for timelines and views. Raises TraceError naming the file."""
        return (read_result_row(source.trace, source.kernel, row) for source, row in self._rows(probes))

    def _rows(self, probes: tuple[str, ...]) -> Iterator[tuple[ViewSource, int]]:
        """Yield each kernel under one of these probes, and the row of its result."""
        for kernel in self.kernels if self.trace is not None else ():
            assert self.trace is not None
            source = ViewSource(self.trace, kernel).for_analyses(*probes)
            if no_result_reason(source, *probes) is None and (row := self._row(source)) is not None:
                yield source, row

    def _row(self, source: ViewSource) -> int | None:
        """Return the row of the selected launch or file in the table of results; None if it has none."""
        results, launches = source.trace.results, source.trace.launches
        if self.launch is None and self.result is None:
            return source.kernel.find_newest_result()
        for row in source.kernel.result_rows:
            launch_row = results.launch(row)
            if results.name(row) == self.result or (
                launch_row is not None and launches[launch_row].number == self.launch
            ):
                return row
        return None

    def no_result_reason(self, *probes: str) -> str:
        """Return the reason why ``results`` yields none; it begins with the path."""
        kernels = self.kernels
        if self.trace is None:
            return f"{self.path} is not a trace"
        if not kernels:
            return f"{self.path}: no kernel was launched"
        reason = no_result_reason(ViewSource(self.trace, kernels[0]), *probes)
        return f"{self.path}: {reason or 'the launch has no result'}"


def output_lines(path: Path, start: str) -> list[str]:
    """Return the lines of a program's output that begin with ``start``, as programs of evaluations print records."""
    text = read_start(path, PROGRAM_OUTPUT).decode("utf-8", "replace")
    return [line for line in text.splitlines() if line.startswith(start)]


def read_inputs(arguments: Sequence[str | PathLike[str]]) -> tuple[list[EvaluationInput], list[str]]:
    """Resolve arguments to inputs, with a note per missing one.

    A folder of traces means all of them, in the order of its ``inputs.json``, else the oldest first. Raises
    TraceError for what is not there.
    """
    inputs, notes = [], []
    for argument in arguments:
        text = fspath(argument)
        path = Path(text)
        if path.is_dir() and not is_trace(path):
            inputs += _inputs_in_directory(path)
            runs = read_collected(path).values()
            notes += [f"{run.name}: {note}" for run in runs if (note := run.problem or run.note)]
        else:
            inputs.append(_input_of_text(text))
    return inputs, notes


def _inputs_in_directory(folder: Path) -> list[EvaluationInput]:
    runs = read_collected(folder)
    finished = [run for run in runs.values() if run.problem is None and is_kept(folder, run)]
    if finished:
        return [_input_at_path(run.name, folder / run.file) for run in finished]
    if not (paths := traces_in(folder)):
        problems = "; ".join(f"{run.name}: {run.problem}" for run in runs.values() if run.problem)
        raise TraceError(
            f"{folder} contains no trace{f' ({problems})' if problems else ''}; pass the directory of a run"
        )
    return [_input_at_path(path.name, path) for path in paths]


def _input_at_path(name: str, path: Path) -> EvaluationInput:
    """Return the input for a trace or a file, with this label."""
    return EvaluationInput(name, path, open_trace(path) if path.is_dir() else None)


def _input_of_text(text: str) -> EvaluationInput:
    path = Path(text)
    trace = trace_of_result(path)
    if trace is not None:
        return EvaluationInput(trace.absolute().name, trace, open_trace(trace), result=path.name)
    if path.is_file() and path.name != "event.log":
        return EvaluationInput(path.name, path)
    address = parse_address(text)
    if address.path is None:
        raise ChoiceError(f"{text} does not name a trace: use TRACE{address}")
    directory = find_trace(address.path)
    return EvaluationInput(directory.absolute().name, directory, open_trace(directory), address.kernel, address.launch)
