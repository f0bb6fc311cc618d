"""Arguments: addresses of traces, sizes, counts, launches and commands, and defaults from the user's settings."""

from __future__ import annotations

import argparse
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError, UsageError, did_you_mean
from tui_probe.launcher.control import NO_LIMIT
from tui_probe.launcher.options import ALL, AUTO
from tui_probe.settings import read_settings
from tui_probe.trace.locate import (
    REGEX,
    Address,
    find_trace,
    is_trace,
    parse_address,
    trace_of_result,
    traces_in,
)
from tui_probe.trace.recent import named_traces, run_of_name
from tui_probe.trace.run_info import is_run_name
from tui_probe.trace.user_state import opened_traces

from .output import Progress, shell_word, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.settings import Settings
    from tui_probe.trace.model import Trace

_PROGRAM: Final = "tui-probe"
_PYTHON: Final = re.compile(r"python[\d.]*")
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
ADDRESS = (
    "a result file, or TRACE, TRACE:KERNEL, TRACE@LAUNCH or TRACE:KERNEL@LAUNCH, where TRACE is a trace directory or"
    " the name of a run; default: the newest trace"
)
"""Help for trace addresses: KERNEL is an index or a part of a name, LAUNCH the number of a launch of the process."""
KERNEL = "select a kernel by its index, or by a part of its name (A or B); regex:RE selects names that match RE"


@cache
def user_settings() -> Settings:
    """The settings of this user."""
    return read_settings()


def trace_dir() -> Path:
    """Return the directory of traces, from the environment or else the settings."""
    folder = os.environ.get("NEUTRINO_TRACEDIR")
    return Path(folder) if folder else user_settings().trace_dir or Path("trace")


def default_launches(*, each_timed: bool) -> str:
    """Return the default of ``--launches``: ``each_timed`` one where each is timed or sized."""
    return ALL if each_timed else user_settings().launches or AUTO


def setting_problems() -> list[str]:
    """All that is wrong with the settings, the keys included."""
    from tui_probe.ui import keys

    settings = user_settings()
    return [*settings.problems, *(f"{settings.path}: {problem}" for problem in keys.remap(settings.keys))]


def warn_about_settings() -> None:
    """A line on stderr for each."""
    for problem in setting_problems():
        warn(problem)


def size(text: str) -> int:
    """``512M``, ``4G``, ``1.5G``, ``1048576``, ``64KiB``: a positive number of bytes, units of 1024."""
    from decimal import Decimal  # which takes longer to read than the rest, and few runs give a size

    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?", text.strip().upper())
    value = int(Decimal(match[1]) * UNITS[match[2]]) if match else 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size in bytes, such as 4096, 512M or 4G")
    return value


def limit(text: str) -> int:
    """A size, which may be 0, or ``none``, which is ``NO_LIMIT``."""
    try:
        return _limit_or_none(text, lambda: 0 if text.strip() == "0" else size(text))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, 0, or none for no limit") from error


def count(text: str) -> int:
    """``2000``, ``0``, or ``none``, which is ``NO_LIMIT``."""
    if not re.fullmatch(r"\d{1,15}|none", text.strip().lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; write a number, e.g. 2000, or none for no limit")
    return _limit_or_none(text, lambda: int(text))


def positive(text: str) -> int:
    """A number of at least one."""
    return whole_number(text, 1)


def whole_number(text: str, minimum: int) -> int:
    """A number of at most nine digits, and at least ``minimum``."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
    if number < minimum:
        raise argparse.ArgumentTypeError(f"{text}: pass a whole number, at least {minimum}")
    return number


def _limit_or_none(text: str, otherwise: Callable[[], int]) -> int:
    return NO_LIMIT if text.strip().lower() == "none" else otherwise()


def seconds(text: str) -> float:
    """``30s``, ``500ms``, ``2m``, ``1h``, ``1.5``: a positive time, in seconds if it has no unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", text.strip().lower())
    value = float(match[1]) * SECONDS[match[2] or "s"] if match else 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, such as 30s, 500ms or 2m")
    return value


def min_free(text: str) -> str:
    """``10G``, ``3%``, ``2G,5%``: what stays free of a disk, in the hook's own words; ``0``: nothing."""
    parts = text.replace(" ", "").split(",")
    if parts == ["0"]:
        return "0"
    shares = [part for part in parts if re.fullmatch(r"\d{1,2}%", part)]
    sizes = [part for part in parts if part not in shares]
    if len(shares) > 1 or len(sizes) > 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an amount of free disk space; write a size, a percentage or both, e.g. 10G, 3% or"
            " 2G,5%; 0 means no minimum"
        )
    return ",".join([*(str(size(part)) for part in sizes), *shares])


def launches(text: str) -> str:
    """``0-9,20``: indices of a kernel's launches, from 0, in ranges that do not run backwards; ``auto``, ``all``."""
    compact = re.sub(r"\s+", "", text)
    if compact in (AUTO, ALL):
        return compact
    for part in compact.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise argparse.ArgumentTypeError(
                f"{text!r} does not name launches; write auto, all, or indices from 0, e.g. 0-9,20"
            )
    return compact


def kept_launch(text: str) -> str:
    """``KERNEL@N``: a part of a kernel's name, and the number of a launch, without which it is 0."""
    kernel, separator, number = text.rpartition("@") if "@" in text else (text, "@", "0")
    if not kernel or "\n" in kernel or not re.fullmatch(r"[0-9]{1,18}", number):
        raise argparse.ArgumentTypeError(f"{text!r} does not name a launch; write KERNEL@N, e.g. matmul@3")
    return f"{kernel}{separator}{number}"


def sample(text: str) -> str:
    """``1/16`` one block in 16, ``0-131`` those of a range, ``64`` as many spread over the grid."""
    from tui_probe.probe_files.choices import compact_sample  # reads code of the engine, which few commands need

    try:
        return compact_sample(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def names(text: str) -> str:
    """``a:b``: parts of kernel names, none of them empty."""
    if text.startswith(REGEX):
        raise argparse.ArgumentTypeError(
            f"{text!r}: only show and check accept regex:RE; pass parts of kernel names, e.g. a:b"
        )
    if not all(text.split(":")):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty part; write a:b for names that contain a or b")
    return text


class JoinNames(argparse.Action):
    """Joins the names of an option that is given several times, as ``a:b`` would."""

    def __call__(
        self, _parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: object, _option: object = None
    ) -> None:
        previous_names = getattr(namespace, self.dest)
        setattr(namespace, self.dest, f"{previous_names}:{values}" if previous_names else values)


def run_name(text: str) -> str:
    """Return a name for a run. Raises ArgumentTypeError for one that could be a path, an address or an option."""
    if not is_run_name(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid run name; use up to 64 letters, digits and . _ - + = ,"
        )
    return text


def address_of(word: str) -> Address:
    """Return the address of a word: a path, the name of a run, or a result file. Raises UsageError, TraceError."""
    address = resolve_name(parse_address(word))
    trace = None if address.path is None or not address.is_whole else trace_of_result(address.path)
    return address if trace is None or address.path is None else _address_of_result(trace, address.path.name)


def resolve_name(address: Address) -> Address:
    """Return the address with a path instead of the name of a run. Raises TraceError for a name with a typo."""
    if address.path is None or not (traces := traces_of_name(str(address.path))):
        return address
    return replace(address, path=traces[0])


def traces_of_name(word: str) -> tuple[Path, ...]:
    """Return the traces of the newest run of this name; () if a path has the name, or no run has a similar one."""
    if not is_run_name(word) or Path(word).exists():
        return ()
    folders = [trace_dir()]
    if traces := run_of_name(word, folders):
        return traces
    if suggestion := did_you_mean(word, dict.fromkeys(name for name, _, _ in named_traces(folders))):
        raise TraceError(f"{word} is neither a path nor the name of a run{suggestion}")
    return ()


def _address_of_result(directory: Path, name: str) -> Address:
    """The launch that left the file of this name."""
    from tui_probe.trace.follow import open_trace

    trace = open_trace(directory)
    for kernel in trace.kernels:
        for row in kernel.result_rows:
            launch = trace.results.launch(row)
            if trace.results.name(row) == name and launch is not None:
                return Address(directory, str(kernel.index), trace.launches[launch].number)
    raise TraceError(f"{directory}: event.log lists no launch for result/{name}; pass the trace directory")


def trace_folder_of(address: Address) -> Path:
    """The directory of its trace: the newest where it names none. Raises TraceError, which says where was looked."""
    if address.path is not None:
        return find_trace(address.path)
    folder = trace_dir()
    traces = traces_in(folder) if folder.is_dir() else []
    if not traces:
        raise TraceError(f"no trace in {folder.absolute()}; {_suggested_trace()}")
    return traces[-1]


def _suggested_trace() -> str:
    """Suggest what to name if the usual folder has no trace."""
    recent = next((path for path in opened_traces() if is_trace(path)), None)
    name = "pass a trace" if recent is None else f"pass a trace, e.g. {shell_word(recent)}, the trace opened last"
    return f"{name}, or set trace_dir in settings.toml"


def open_address(address: Address) -> Trace:
    """The trace. Raises TraceError."""
    from tui_probe.trace.follow import open_trace

    directory = trace_folder_of(address)
    with Progress() as reading:
        return open_trace(directory, reading)


def open_addressed_kernels(address: Address) -> Trace:
    """The trace, with only the kernels that the address names, for pages about several traces. Raises ChoiceError."""
    trace = open_address(address)
    if address.launch is not None:
        raise UsageError(f"{address}: this command uses all launches of a kernel; omit @{address.launch}")
    if address.kernel is not None:
        from tui_probe.probekit.probe_results import kernels_named

        kernels = kernels_named(trace, address.kernel)
        trace.kernels.clear()
        for kernel in kernels:
            trace.kernels.add(kernel)
    return trace


def self_profiling_advice(command: Sequence[str]) -> str:
    """Return advice if ``command`` is tui-probe itself; "" for another program."""
    name = PurePath(command[0]).name if command else ""
    if name == _PROGRAM:
        arguments = command[1:]
    elif _PYTHON.fullmatch(name) and tuple(command[1:3]) == ("-m", "tui_probe"):
        arguments = command[3:]
    else:
        return ""
    if "run" in arguments[:1]:
        return f"{_PROGRAM} does not profile itself; pass the program without “{_PROGRAM} run”"
    if "demo" in arguments[:1]:
        return (
            f"{_PROGRAM} does not profile itself; run the demo from a shell or from the command palette of the home"
            " screen"
        )
    return f"{_PROGRAM} does not profile itself; pass the program to profile"
