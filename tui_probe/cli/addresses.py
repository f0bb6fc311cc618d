"""Traces, kernels and launches as the command line names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.errors import TraceError, UsageError
from tui_probe.trace.address import Address, parse_address
from tui_probe.trace.locate import find_trace, is_trace, trace_of_result, traces_in
from tui_probe.trace.recent import remembered

from .chosen import trace_dir
from .output import shell_word
from .reading import Reading

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.trace.model import Trace

ADDRESS = "TRACE, TRACE:KERNEL, TRACE@LAUNCH, TRACE:KERNEL@LAUNCH or a result file; without TRACE the newest trace"
"""For helps: KERNEL is an index or a regular expression, LAUNCH the number of a launch of the process."""


def named(word: str) -> Address:
    """The address that a word is; a result file stands for its launch. Raises UsageError, TraceError."""
    address = parse_address(word)
    trace = None if address.path is None or not address.is_whole else trace_of_result(address.path)
    return address if trace is None or address.path is None else _of_result(trace, address.path.name)


def _of_result(directory: Path, name: str) -> Address:
    """The launch that left the file of this name."""
    from tui_probe.trace.follow import open_trace

    trace = open_trace(directory)
    for kernel in trace.kernels:
        for row in kernel.result_rows:
            launch = trace.results.launch(row)
            if trace.results.name(row) == name and launch is not None:
                return Address(directory, str(kernel.index), trace.launches[launch].number)
    raise TraceError(f"{directory}: event.log does not say which launch left result/{name}: name the trace alone")


def place_of(address: Address) -> Path:
    """The directory of its trace: the newest where it names none. Raises TraceError, which says where was looked."""
    if address.path is not None:
        return find_trace(address.path)
    folder = trace_dir()
    found = traces_in(folder) if folder.is_dir() else []
    if not found:
        raise TraceError(f"no trace was found in {folder.absolute()}: {_instead()}")
    return found[-1]


def _instead() -> str:
    """What to name, where no trace is in the usual folder."""
    recent = next((path for path in remembered() if is_trace(path)), None)
    name = "name one" if recent is None else f"name one, such as {shell_word(recent)}, the last that was looked at"
    return f"{name}, or set trace_dir in the settings"


def opened(address: Address) -> Trace:
    """The trace. Raises TraceError."""
    from tui_probe.trace.follow import open_trace

    place = place_of(address)
    with Reading() as reading:
        return open_trace(place, reading)


def opened_in_part(address: Address) -> Trace:
    """The trace with the kernels alone that the address names, for pages about several traces. Raises ChoiceError."""
    trace = opened(address)
    if address.launch is not None:
        raise UsageError(f"{address}: all launches of a kernel are taken together here: leave out @{address.launch}")
    if address.kernel is not None:
        from tui_probe.pages.views.choose import meant_by

        meant = meant_by(trace, address.kernel)
        trace.kernels.clear()
        for kernel in meant:
            trace.kernels.add(kernel)
    return trace
