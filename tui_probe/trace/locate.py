"""Traces by path and by address ``TRACE:KERNEL@LAUNCH``, and files in a trace by the names in its log."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.errors import ChoiceError, TraceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = "event.log"
_OTHER_SUFFIXES = (".csv", ".sqlite")
"""Suffixes of the files of ncu and nsys."""


def find_trace(path: Path) -> Path:
    """The trace directory that ``path`` means.

    ``path`` may be a trace directory, its ``event.log``, or a folder of traces: then the newest is meant. TraceError
    says what to do if there is none.
    """
    if path.name == LOG and path.is_file():
        return path.parent
    if not path.is_dir():
        if path.suffix in _OTHER_SUFFIXES and path.is_file():
            word = shlex.quote(str(path))
            raise TraceError(
                f"{path} is a file, not a trace directory; for files of ncu or nsys: tui-probe open {word}"
            )
        kind = "is a file, not a trace directory" if path.exists() else "does not exist"
        raise TraceError(f"{path} {kind}; pass a trace directory (it contains {LOG})")
    if is_trace(path):
        return path
    traces = traces_in(path)
    if not traces:
        raise TraceError(f"{path} has no trace (no {LOG} in it or in its subdirectories); pass the directory of a run")
    return traces[-1]


def trace_of_result(path: Path) -> Path | None:
    """The trace that a result file, ``TRACE/result/0.486795.bin``, is of; None for anything else."""
    trace = path.absolute().parent.parent
    is_result = path.suffix == ".bin" and path.parent.name == "result" and path.is_file() and is_trace(trace)
    return (path.parent.parent if path.parent.parent.name else trace) if is_result else None


def is_trace(directory: Path) -> bool:
    return (directory / LOG).is_file()


def traces_in(directory: Path) -> list[Path]:
    """The traces in a folder, the oldest first, by the time of the last event."""
    try:
        traces = [child for child in directory.iterdir() if child.is_dir() and is_trace(child)]
    except OSError as error:
        raise TraceError(f"{directory}: {error.strerror or error}") from error
    return sorted(traces, key=lambda child: ((child / LOG).stat().st_mtime_ns, child.name))


def path_in_trace(root: Path, *names: str) -> Path | None:
    """The path ``root/names…`` if each name is a plain one and no link leads out of ``root``, else None.

    A trace is data from elsewhere: a name in it may be ``..``, absolute, or that of a link.
    """
    path = path_text_in_trace(root, *names)
    return None if path is None else Path(path)


def path_text_in_trace(root: Path, *names: str) -> str | None:
    """Return a path in the trace as a text; None if it leads out. A Path takes longer to make than a file to find."""
    path = str(root)
    for name in names:
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            return None
        path = f"{path}/{name}"
        if os.path.islink(path) and not _leads_inside(path, root):  # noqa: PTH114
            return None
    return path


def _leads_inside(link: str, root: Path) -> bool:
    try:
        return Path(link).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


class AddressedKernel(Protocol):
    """The properties of a kernel by which an address selects it."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def demangled(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a trace, a kernel of it, or a launch: ``TRACE``, ``TRACE:KERNEL@LAUNCH`` and parts of that.

    ``:KERNEL`` and ``@LAUNCH`` by themselves belong to the newest trace: ``path`` is None. ``kernel`` is an index or a
    word for ``name_test``, None for the whole trace. ``launch`` is the number of a launch, as the process counts them
    from 0.
    """

    path: Path | None = None
    kernel: str | None = None
    launch: int | None = None

    @property
    def is_whole(self) -> bool:
        """True if it names a trace, and no kernel or launch in it."""
        return self.kernel is None and self.launch is None

    def __str__(self) -> str:
        kernel = f":{self.kernel or ''}" if self.kernel is not None or self.path is None else ""
        launch = "" if self.launch is None else f"@{self.launch}"
        return f"{self.path or ''}{kernel}{launch}"

    def with_options(self, kernel: str | None, launch: int | None) -> Address:
        """Return the address with the values of options. Raises UsageError if both name a kernel or a launch, and
        differ.
        """
        for option, own_value, option_value in (("--kernel", self.kernel, kernel), ("--launch", self.launch, launch)):
            if None not in (own_value, option_value) and own_value != option_value:
                raise UsageError(f"{option} {option_value} contradicts {own_value} in {self}; omit one of them")
        return Address(
            self.path,
            self.kernel if kernel is None else kernel,
            self.launch if launch is None else launch,
        )


def parse_address(word: str, exists: Callable[[str], bool] = os.path.exists) -> Address:
    """The address that a word is. Raises UsageError for what follows an ``@`` and is not a number.

    Of several colons the one counts that the longest existing path ends at; without any such path the first.
    """
    if word and exists(word):
        return Address(Path(word))
    colons = [place for place, character in enumerate(word) if character == ":"]
    colon = next((place for place in reversed(colons) if place and exists(word[:place])), None)
    if colons[:1] == [0] and colon is None:
        colon = 0
    if colon is None:
        path, launch = _without_launch(word)
        if launch is not None and (not colons or exists(path)):
            return Address(Path(path) if path else None, None, launch)
        colon = colons[0] if colons else None
    if colon is None:
        return Address(Path(word) if word else None)
    kernel, launch = _without_launch(word[colon + 1 :])
    if launch is None and "@" in kernel:
        raise UsageError(f"{word}: expected the number of a launch after @")
    return Address(Path(word[:colon]) if colon else None, kernel or None, launch)


_LAUNCH: Final = re.compile(r"(.*)@([0-9]{1,18})", re.DOTALL)


def _without_launch(word: str) -> tuple[str, int | None]:
    """Split ``@NUMBER`` at the end off a word."""
    match = _LAUNCH.fullmatch(word)
    return (match[1], int(match[2])) if match else (word, None)


REGEX: Final = "regex:"
"""Begins a word that is a regular expression, and no part of a name."""
_PART_END: Final = re.compile(r"(?<!:):(?!:)")


def name_test(word: str) -> Callable[[str], bool]:
    """Return a test for names of kernels: ``a:b`` is in those that contain a or b, ``regex:RE`` in those that RE fits.

    A word without ``regex:`` that is a regular expression is one, too. ``::`` is part of a C++ name. Raises ChoiceError
    if what follows ``regex:`` is not a regular expression.
    """
    parts = [] if word.startswith(REGEX) else [part for part in _PART_END.split(word) if part]
    try:
        search = re.compile(word.removeprefix(REGEX)).search
    except re.error as error:
        if not parts:
            raise ChoiceError(f"{word}: not a regular expression: {error}") from error
        return lambda name: any(part in name for part in parts)
    return lambda name: any(part in name for part in parts) or search(name) is not None


def kernel_filter(kernel: str | None) -> Callable[[AddressedKernel], bool]:
    """Return a test for the kernels of a word: an index, or what ``name_test`` finds in either form of a name; None:
    any.
    """
    if kernel is None:
        return lambda _: True
    if kernel.isdecimal():
        return lambda candidate: candidate.index == int(kernel)
    fits = name_test(kernel)
    return lambda candidate: fits(candidate.name) or fits(candidate.demangled)
