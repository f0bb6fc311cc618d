"""Source lines of failures and of spills of kernels, in words."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.errors import ImageError, UnsupportedKernelError
from tui_probe.input_limits import CUBIN, PTX_TEXT
from tui_probe.ptx.tree import INSERTED_MARK, REPLACED_MARK
from tui_probe.trace.plain_file import read_within, text_of
from tui_probe.trace.source_lines import SourceLines, lines_of_directives

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tui_probe.sass.accesses import SpillLine
    from tui_probe.trace.model import Kernel, KernelFacts
    from tui_probe.trace.source_lines import SourceLine

_MAX_LINES: Final = 8
_NAME_WIDTH: Final = 40
"""Cells of a kernel's name in a line."""
_PTX_LINE: Final = re.compile(r" at line (\d{1,9})\b")


def located_failure_texts(kernel: KernelFacts) -> tuple[str, ...]:
    """The failures of a kernel; a bad access with the line of source. Reads the kernel's PTX."""
    return tuple(printable(_locate(kernel, text)) for text in kernel.failures)


def failure_lines(kernels: Iterable[Kernel]) -> Iterator[str]:
    """A line per kernel with failures, up to ``_MAX_LINES``."""
    failed_kernels = [kernel for kernel in kernels if kernel.failures]
    for kernel in failed_kernels[:_MAX_LINES]:
        text = "; ".join(located_failure_texts(kernel))
        yield f"✘ #{kernel.index} {shorten(printable(kernel.demangled), _NAME_WIDTH)}: {text}"
    if len(failed_kernels) > _MAX_LINES:
        yield f"✘ {len(failed_kernels) - _MAX_LINES} more failed kernels: see the column status"


def _locate(kernel: KernelFacts, text: str) -> str:
    match = _PTX_LINE.search(text)
    if match is None:
        return text
    # The failure gives the line of one of several PTX files: a bad access must be at a line with an address [..].
    sign = "[" if "address" in text else ""
    names: dict[str, str] = {}
    for name, path in _executed_ptx(kernel):
        location = _source_location(path, int(match[1]), sign)
        if location is not None:
            names.setdefault(location, name)
    locations = " or".join(f" of {name}{location}" for location, name in names.items())
    return text[: match.end()] + locations + text[match.end() :]


def _executed_ptx(kernel: KernelFacts) -> Iterator[tuple[str, Path]]:
    """The PTX of each probe, and of launches that ran unprobed: the log does not name the probe of the last launch."""
    for probed_kernel in kernel.by_probe():
        if probed_kernel.status == "probed" and (path := probed_kernel.file("probed.ptx")) is not None:
            yield f"{probed_kernel.probe}/probed.ptx" if len(kernel.combined_probes) > 1 else "probed.ptx", path
    if kernel.launches_probed < kernel.launches and (path := kernel.file("original.ptx")) is not None:
        yield "original.ptx", path


def _source_location(path: Path, number: int, sign: str) -> str | None:
    """The line of source of a line of PTX, "" if it has none; None if that line does not have the sign."""
    try:
        ptx = text_of(read_within(path, PTX_TEXT))
    except OSError:
        return None
    lines = ptx.split("\n")
    if number > len(lines) or sign not in lines[number - 1]:
        return None
    place = lines_of_directives(ptx).get(number) or _place_in_table(path, lines[:number])
    return f" ({place.file}:{place.line})" if place else ""


def _place_in_table(path: Path, lines: list[str]) -> SourceLine | None:
    """The source of the last of these lines of ``probed.ptx``, by the line table of the cubin with the kernel's PTX."""
    if path.name != "probed.ptx":
        return None
    pruned = sum(INSERTED_MARK not in line or REPLACED_MARK in line for line in lines)
    return SourceLines.from_folder(path.parent).ptx_line(pruned)


def worst_spill(kernel: KernelFacts) -> SpillLine | None:
    """Return the source line with most loads and stores of the stack; None without SASS or line table."""
    path = kernel.file("pruned.bin")
    if path is None:
        return None
    try:
        lines = _spill_lines(path, path.stat().st_mtime_ns, kernel.name)
    except (ImageError, UnsupportedKernelError, OSError):
        return None
    return next((line for line in lines if line.place is not None), None)


@lru_cache(maxsize=64)
def _spill_lines(path: Path, mtime_ns: int, kernel: str) -> list[SpillLine]:
    # The model of SASS; most kernels spill no registers.
    from tui_probe.binaries.cubin import Cubin
    from tui_probe.binaries.line_tables import source_locations
    from tui_probe.sass.accesses import spills_by_line, stack_accesses
    from tui_probe.sass.target import GraftTarget

    del mtime_ns
    target = GraftTarget.from_cubin(Cubin.read(read_within(path, CUBIN)), kernel)
    return spills_by_line(stack_accesses(target), source_locations(target.cubin.image, target.name, target.code.size))


def spill_text(line: SpillLine) -> str:
    """``most at attn.py:31 (8 loads, 4 stores, in a loop)``."""
    file, number = line.place or ("", 0)
    counts = f"{units.counted(line.loads, 'load')}, {units.counted(line.stores, 'store')}"
    loop = ", in a loop" if line.depth else ""
    return f"most at {PurePath(file).name}:{number} ({counts}{loop})"
