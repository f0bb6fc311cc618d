"""Calls of an operation: as the program wrote them, or from a file of their medians."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.input_limits import MEDIANS, PROGRAM_OUTPUT
from tui_probe.json_data import parse_json
from tui_probe.trace.plain_file import read_plain, read_start, read_within

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.evals.given import Given

KEYS: Final = ("probe", "original", "ncu", "neutrino", "prologue", "kernel", "epilogue")
"""The columns of a file of medians."""
_HEADINGS: Final = 4096
"""Bytes of a file in which its headings are looked for."""
How = Literal["original", "probed", "ncu"]


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one run: medians in microseconds, None where the simulated GPU has no time.

    ``probe`` is "" where nothing was probed. ``left_out`` are launches of the run that should have been probed and were
    not; the log does not say of which of its operations.
    """

    operation: str
    how: How
    probe: str
    total: float | None
    call: float | None
    stream: float | None
    left_out: int = 0

    @property
    def parts(self) -> tuple[float, float, float] | None:
        """Prologue, kernel, epilogue, as the evaluation says; the sum is the total, unless host and stream overlap."""
        if self.total is None or self.call is None or self.stream is None:
            return None
        return self.call, self.stream, max(self.total - self.call - self.stream, 0.0)


@dataclass(frozen=True, slots=True)
class Row:
    """An operation with one probe, in microseconds, or in the unit of the file it was read from."""

    operation: str
    probe: str
    original: float | None
    ncu: float | None
    neutrino: float | None
    prologue: float | None
    kernel: float | None
    epilogue: float | None

    def ratio(self, value: float | None) -> float | None:
        """A time as so many times the original."""
        return value / self.original if value is not None and self.original else None


def calls_in(given: Given) -> list[Calls]:
    """The calls in a trace's output, or in that of a run under ncu; none where the program is another one."""
    trace = given.trace
    path = given.path if trace is None else trace.file("stdout.log")
    lines = [] if path is None else list(_lines(path))
    probed, missed, probe = False, 0, ""
    if trace is not None:
        kernels = [kernel for kernel in trace.kernels if kernel.status == "probed"]
        probed = any(kernel.launches_probed for kernel in kernels)
        missed = sum(kernel.launches - kernel.launches_probed for kernel in kernels) if probed else 0
        probe = (trace.run_info.probe or "" if trace.run_info is not None else "") if probed else ""
    how: How = "ncu" if trace is None else "probed" if probed else "original"
    simulated = trace is not None and trace.state.simulated
    try:
        return [_calls(parse_json(line), how, probe, missed, timed=not simulated) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise TraceError(f"{path}: a line of calls cannot be read ({error}): collect it again") from error


def _lines(path: Path) -> Iterator[str]:
    text = read_start(path, PROGRAM_OUTPUT).decode("utf-8", "replace")
    return (line for line in text.splitlines() if line.startswith('{"latency": '))


def _calls(line: dict[str, Any], how: How, probe: str, left_out: int, *, timed: bool) -> Calls:
    total, call, stream = (float(np.median(line[key])) if timed else None for key in ("total", "call", "stream"))
    return Calls(str(line["latency"]), how, probe, total, call, stream, left_out)


def is_table(path: Path) -> bool:
    """Whether a file begins with the columns of medians."""
    try:
        first = read_plain(path, _HEADINGS).decode("utf-8-sig", "replace").partition("\n")[0]
        return set(KEYS) <= {cell.strip() for cell in next(csv.reader([first.rstrip("\r")]), [])}
    except OSError:
        return False


def read_table(path: Path) -> list[Row]:
    """The rows of a file of medians, whose operation is the file's name. TraceError for a cell that is no number."""
    try:
        text = read_within(path, MEDIANS).decode("utf-8-sig", "replace")
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    rows = csv.DictReader(io.StringIO(text, newline=""))
    lines = [{(key or "").strip(): value for key, value in line.items()} for line in rows]
    return [_row(path, number, line) for number, line in enumerate(lines, 2)]


def _row(path: Path, number: int, line: dict[str, Any]) -> Row:
    def value(key: str) -> float | None:
        text = (line.get(key) or "").strip()
        try:
            return float(text) if text else None
        except ValueError:
            raise TraceError(f"{path}:{number}: {key} is {text!r}, and a number was expected") from None

    return Row(path.stem, (line.get("probe") or "").strip(), *map(value, KEYS[1:]))


def rows_of(calls: list[Calls]) -> tuple[list[Row], list[str]]:
    """Each probed run beside the original and ncu of its operation, and what is missing."""
    rows, notes = [], []
    for one in calls:
        if one.how != "probed":
            continue
        original, ncu = (_median(calls, one.operation, how) for how in ("original", "ncu"))
        prologue, kernel, epilogue = one.parts or (None, None, None)
        rows.append(Row(one.operation, one.probe, original, ncu, one.total, prologue, kernel, epilogue))
        if one.left_out:
            notes.append(
                f"{one.operation} with {one.probe}: {units.counted(one.left_out, 'launch')} of its run not probed,"
                " and medians may hold them"
            )
    probed = {one.operation for one in calls if one.how == "probed"}
    for operation in dict.fromkeys(one.operation for one in calls):
        if operation not in probed:
            notes.append(f"{operation}: no probed run: collect one with --only PROBE")
        elif not any(one.how == "original" for one in calls if one.operation == operation):
            notes.append(f"{operation}: no original, so no ratios: collect it with --only original")
    return rows, notes


def _median(calls: list[Calls], operation: str, how: How) -> float | None:
    return next((one.total for one in calls if (one.operation, one.how) == (operation, how)), None)
