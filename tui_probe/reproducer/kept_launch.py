"""Launches saved by ``--keep-launch``: the directory of each in the trace, and what the log reports of it.

``kept/KERNEL@LAUNCH`` in the trace has launch.info, the image, and memory before and after the launch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from tui_probe.draw import units
from tui_probe.errors import ChoiceError, TraceError
from tui_probe.input_limits import LAUNCH_INFO
from tui_probe.reasons import advice_on
from tui_probe.trace.events import parse_line
from tui_probe.trace.follow import open_trace
from tui_probe.trace.kernel_status import demangle
from tui_probe.trace.launch_events import LaunchKept, LaunchNotKept
from tui_probe.trace.locate import LOG, path_in_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.trace.model import Run, Trace

FOLDER: Final = "kept"
INFO: Final = "launch.info"
MEMORY_BEFORE: Final = "before.bin"
MEMORY_AFTER: Final = "after.bin"
IMAGES: Final = ("code.bin", "ptx.bin")
"""Machine code of the GPU that launched it, and PTX; one of them at least."""
_NAME: Final = re.compile(r"(\d{1,10})@(\d{1,18})")
_OPTION: Final = re.compile(r"[^@]*|.*@\d{1,18}", re.DOTALL)
_ADDRESS_BITS: Final = 64
_MAX_NAMES: Final = 5
"""Kernels that a message lists."""
_LAUNCH_ATTRIBUTE_BYTES: Final = 64
"""Bytes of CUlaunchAttributeValue."""
_MARKS: Final = (b"[probe] kept ", b"[probe] not-kept ")


@dataclass(frozen=True, slots=True)
class SavedAllocation:
    """An allocation of the program."""

    address: int
    size: int


@dataclass(frozen=True, slots=True)
class SavedVariable:
    """A variable of the kernel's module, whose content comes before allocations in the files of memory."""

    name: str
    size: int


@dataclass(slots=True)
class KeptLaunch:
    """Contents of launch.info, and the directory of the files."""

    folder: Path
    index: int
    number: int
    name: str = ""
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared: int = 0
    architecture: str = ""
    parameters: bytes = b""
    function_attributes: list[tuple[int, int]] = field(default_factory=list)
    launch_attributes: list[tuple[int, bytes]] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    """Launch attributes with handles of the process, or that relate the launch to others."""
    limits: list[tuple[int, int]] = field(default_factory=list)
    variables: list[SavedVariable] = field(default_factory=list)
    memory: list[SavedAllocation] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    """Some of the addresses in saved memory whose own memory was not saved."""
    variables_known: bool = True
    load_options: bool = False
    """The program loaded the image with options, which are not repeated."""

    @property
    def demangled(self) -> str:
        """The name as in the source."""
        return demangle(self.name)

    @property
    def saved_bytes(self) -> int:
        """Bytes of each of the two files of memory."""
        return sum(part.size for part in self.variables) + sum(part.size for part in self.memory)

    @property
    def has_result(self) -> bool:
        """False if the launch failed, or its process ended before it: then the memory after it was not saved."""
        return self.file(MEMORY_AFTER) is not None

    def file(self, name: str) -> Path | None:
        """Return one of its files, or None if there is none, or a link leads out of the trace."""
        trace = self.folder.parents[1]
        path = path_in_trace(trace, FOLDER, self.folder.name, name)
        return path if path is not None and path.is_file() else None


def kept_launches(trace: Path) -> list[KeptLaunch]:
    """The saved launches of a trace, in the order of their numbers. Raises TraceError for a damaged launch.info."""
    folder = path_in_trace(trace, FOLDER)
    names = [child.name for child in folder.iterdir()] if folder is not None and folder.is_dir() else []
    folders = [(match, path_in_trace(trace, FOLDER, match[0])) for name in names if (match := _NAME.fullmatch(name))]
    launches = [read_kept_launch(path, int(match[1]), int(match[2])) for match, path in folders if path is not None]
    return sorted(launches, key=lambda launch: launch.number)


def choose_kept(
    launches: Sequence[KeptLaunch],
    selects: Callable[[KeptLaunch], bool],
    number: int | None,
    options: Sequence[str] = (),
) -> KeptLaunch:
    """Return the launch of that number. ChoiceError without one.

    ``options`` are the values of ``--keep-launch``: for one of these, return the launch that the run chose for it.
    """
    matches = [
        launch
        for launch in launches
        if selects(launch) and (number in (None, launch.number) or _is_for(launch, number or 0, options))
    ]
    if not matches:
        names = ", ".join(f"{launch.index}@{launch.number} {launch.demangled}" for launch in launches)
        raise ChoiceError(f"no such launch was saved; saved launches: {names or 'none'}")
    return matches[0]


def _is_for(launch: KeptLaunch, number: int, options: Sequence[str]) -> bool:
    """Return whether an option asked for this kernel from a number on, and the launch is not an earlier one."""
    requests = (split_option(word) for word in options)
    return launch.number >= number and any(
        part in launch.name and first_number == number for part, first_number in requests
    )


def split_option(word: str) -> tuple[str, int]:
    """Return the part of the kernel's name, and the number of the first launch that counts, of ``KERNEL@N``."""
    part, _, number = word.rpartition("@") if "@" in word else (word, "", "0")
    return part, int(number)


def kept_options(trace: Path) -> list[str]:
    """The values of ``--keep-launch`` of the run; none if the trace does not have them."""
    run_info = open_trace(trace).run_info
    options = run_info.options.get("keep_launch") if run_info is not None else None
    return [word for word in options if isinstance(word, str) and _OPTION.fullmatch(word)] if options else []


def read_kept_launch(folder: Path, index: int, number: int) -> KeptLaunch:
    """Read launch.info. Raises TraceError, with the line, for one that is missing or damaged."""
    launch = KeptLaunch(folder, index, number)
    path = launch.file(INFO)
    if path is None or path.stat().st_size > LAUNCH_INFO.maximum:
        raise TraceError(f"{folder}: {INFO} is missing or too large; record the launch again")
    for place, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        tag, *fields = line.split(" ")
        try:
            if tag in _READERS:
                _READERS[tag](launch, fields)
        except (ValueError, IndexError) as error:
            raise TraceError(f"{path}:{place}: {line[:80]!r} is damaged; record the launch again") from error
    if not launch.name or len(launch.grid) != 3 or len(launch.block) != 3:
        raise TraceError(f"{path}: the file is truncated; record the launch again")
    return launch


def _number(word: str, base: int = 10) -> int:
    value = int(word, base)
    if not 0 <= value < 1 << _ADDRESS_BITS:
        raise ValueError(word)
    return value


def _name(word: str) -> str:
    return unquote_to_bytes(word).decode("utf-8", "surrogateescape")


def _attribute(words: list[str]) -> tuple[int, bytes]:
    value = bytes.fromhex(words[1])
    if len(value) != _LAUNCH_ATTRIBUTE_BYTES:
        raise ValueError(words[1])
    return _number(words[0]), value


def _pair(words: list[str]) -> tuple[int, int]:
    return int(words[0]), int(words[1])


def _setter(name: str, parse: Callable[[list[str]], object]) -> Callable[[KeptLaunch, list[str]], None]:
    return lambda launch, words: setattr(launch, name, parse(words))


def _appender(name: str, parse: Callable[[list[str]], object]) -> Callable[[KeptLaunch, list[str]], None]:
    return lambda launch, words: getattr(launch, name).append(parse(words))


_READERS: Final[dict[str, Callable[[KeptLaunch, list[str]], None]]] = {
    "kernel": _setter("name", lambda words: _name(words[0])),
    "grid": _setter("grid", lambda words: tuple(map(_number, words))),
    "block": _setter("block", lambda words: tuple(map(_number, words))),
    "shared": _setter("shared", lambda words: _number(words[0])),
    "architecture": _setter("architecture", lambda words: words[0]),
    "parameters": _setter("parameters", lambda words: bytes.fromhex(words[0])),
    "function-attribute": _appender("function_attributes", _pair),
    "launch-attribute": _appender("launch_attributes", _attribute),
    "left-out": _appender("left_out", lambda words: _number(words[0])),
    "limit": _appender("limits", _pair),
    "variable": _appender("variables", lambda words: SavedVariable(_name(words[0]), _number(words[1]))),
    "variables-unknown": _setter("variables_known", lambda _: False),
    "load-options": _setter("load_options", lambda _: True),
    "memory": _appender("memory", lambda words: SavedAllocation(_number(words[0], 16), _number(words[1]))),
    "unknown": _appender("unknown", lambda words: _number(words[0], 16)),
}


def keep_outcomes(trace: Path) -> Iterator[LaunchKept | LaunchNotKept]:
    """Yield the launches that event.log reports as saved or not saved."""
    with (trace / LOG).open("rb") as log:
        for line in log:
            event = parse_line(line) if line.startswith(_MARKS) else None
            if isinstance(event, (LaunchKept, LaunchNotKept)):
                yield event


def outcome_text(event: LaunchKept | LaunchNotKept) -> str:
    """Return a sentence about a launch, with advice if it was not saved."""
    launch = f"{event.index}@{event.number}"
    if isinstance(event, LaunchKept):
        unknown = f"; {units.counted(event.unknown, 'pointer')} to memory that is not saved" if event.unknown else ""
        result = f" without a result, because it failed: {event.failure.text}" if event.failure is not None else ""
        return f"launch {launch} is saved ({units.size(event.size)}{unknown}){result}"
    if event.reason is None:
        return f"launch {launch} is not saved"
    advice = advice_on(event.reason.code, event.reason.parameters)
    return f"launch {launch} is not saved: {event.reason.text}. {advice}".rstrip(" .")


def why_not_kept(trace: Path) -> str:
    """Return what happened to launches that were not saved, for the end of a message; "" if there are none."""
    return "".join(f"; {outcome_text(event)}" for event in keep_outcomes(trace) if isinstance(event, LaunchNotKept))


def saved_launches(traces: Sequence[Path]) -> Iterator[tuple[Path, LaunchKept]]:
    """Yield the saved launches of a run, each with its trace."""
    for trace in traces:
        yield from ((trace, event) for event in keep_outcomes(trace) if isinstance(event, LaunchKept))


def keep_problems(traces: Sequence[Path], options: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Yield messages about ``options`` launches that were not saved, each with the trace that it is about."""
    outcomes = [(trace, event) for trace in traces for event in keep_outcomes(trace)]
    for trace, event in outcomes:
        if isinstance(event, LaunchNotKept):
            yield trace, outcome_text(event)
        elif _lacks_variables(trace / FOLDER / f"{event.index}@{event.number}"):
            text = "variables of the module are not saved, because the kernel was not prepared for a probe"
            yield trace, f"launch {event.index}@{event.number}: {text}; if -k excludes the kernel, include it"
    if not traces:
        return
    open_traces = [open_trace(trace) for trace in traces]
    names = [{kernel.index: kernel.name for kernel in trace.kernels} for trace in open_traces]
    launches = [(names[traces.index(trace)].get(event.index, ""), event.number) for trace, event in outcomes]
    for trace, launch in _launches_without_end(outcomes, traces):
        yield trace, f"launch {launch.index}@{launch.number} is saved without a result, because it did not end"
        launches.append((launch.name, launch.number))
    for word in options:
        part, number = split_option(word)
        if not any(part in name and launch_number >= number for name, launch_number in launches):
            yield traces[0], f"--keep-launch {word}: {_missing_text(open_traces, part, number)}"


def unended_launches(trace: Run) -> list[KeptLaunch]:
    """The saved launches of a trace whose process ended before them; none if they cannot be read."""
    options = trace.run_info.options.get("keep_launch") if trace.run_info is not None else None
    if not options or trace.state.is_running:
        return []
    try:
        unended = [launch for launch in kept_launches(trace.directory) if not launch.has_result]
        logged = {(event.index, event.number) for event in keep_outcomes(trace.directory)} if unended else set()
    except (OSError, TraceError):
        return []
    return [launch for launch in unended if (launch.index, launch.number) not in logged]


def _launches_without_end(
    outcomes: Iterable[tuple[Path, LaunchKept | LaunchNotKept]], traces: Iterable[Path]
) -> Iterator[tuple[Path, KeptLaunch]]:
    """Yield the saved launches about which the log has no line: their process ended first."""
    logged = {(trace, event.index, event.number) for trace, event in outcomes}
    for trace in traces:
        for launch in kept_launches(trace):
            if (trace, launch.index, launch.number) not in logged:
                yield trace, launch


def _lacks_variables(folder: Path) -> bool:
    return folder.is_dir() and not read_kept_launch(folder, 0, 0).variables_known


def _missing_text(traces: Sequence[Trace], part: str, number: int) -> str:
    """Return why no launch of a kernel was saved, by the kernels that the program had."""
    kernels = [kernel for trace in traces for kernel in trace.kernels]
    matches = [kernel for kernel in kernels if part in kernel.name]
    if not matches:
        mangled_name = next((kernel.name for kernel in kernels if part in kernel.demangled), None)
        if mangled_name is not None:
            return f"names are compared in their mangled form; use {mangled_name}@{number}"
        names = ", ".join(kernel.demangled for kernel in kernels[:_MAX_NAMES]) or "none"
        return f"no kernel has this name; kernels of the program: {names}{', …' if kernels[_MAX_NAMES:] else ''}"
    if any(kernel.captures for kernel in matches):
        return "no such launch outside CUDA graphs; launches in CUDA graphs are not saved"
    last_numbers = (kernel.trace.launches[kernel.rows[-1]].number for kernel in matches if len(kernel.rows))
    numbers = [launch for launch in last_numbers if launch is not None]
    note = f" (the last launch of this kernel is {max(numbers)})" if numbers else ""
    return f"no launch has number {number} or higher{note}; --keep-launch {part}@0 saves the first launch"
