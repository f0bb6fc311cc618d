"""The file of the probe that a kernel had, and which part of it put a line into the kernel.

The file is the copy in the trace, as it was used; of a trace without one, that of the known probe of that name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tui_probe.analysis.alignment import PARAMETER
from tui_probe.engine.positions import matches
from tui_probe.errors import ProbeFileError, PtxError, TraceError
from tui_probe.input_limits import PROBE_FILE, PTX_TEXT
from tui_probe.probe_files.folders import built_in_files, installed_files
from tui_probe.probe_files.loading import read_probe
from tui_probe.probekit.probe_results import probe_of
from tui_probe.ptx.instructions import instructions_in
from tui_probe.ptx.parser import parse
from tui_probe.trace.locate import inside
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.analysis.alignment import Pair
    from tui_probe.engine.model import ProbePoint
    from tui_probe.trace.model import Kernel

_HEADING: Final = re.compile(r"\s*\[+\s*([\w.\"'-]+)\s*\]+")
_OF_MAP: Final = re.compile(r"\btp_(?:map|cap)_(\w+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the file, such as ``probe.access``, and its lines ``first`` to before ``last``, counted from 0.

    ``point`` is there of one that puts lines into kernels; ``sites`` are the lines of ``pruned.ptx``, or offsets in
    machine code, that it is at in this kernel, ascending.
    """

    name: str
    first: int
    last: int
    point: ProbePoint | None = None
    sites: tuple[int, ...] = ()

    @property
    def at_kernel(self) -> bool:
        """Is it at the entry and the ways out of the kernel?"""
        return self.point is not None and any(position.is_kernel for position in self.point.positions)

    def has(self, *, before: bool) -> bool:
        """Does it put lines before its places, or behind them?"""
        snippets = None if self.point is None else (self.point.after, self.point.before)
        return snippets is not None and snippets[before] is not None


@dataclass(frozen=True, slots=True)
class ProbeText:
    """A probe's file: where it is, in words, its lines, and its tables in their order."""

    name: str
    path: Path
    where: str
    lines: list[str]
    parts: tuple[Part, ...]

    def part_at(self, line: int) -> Part | None:
        """The table that a line, counted from 0, is in."""
        return next((part for part in self.parts if part.first <= line < part.last), None)

    def origin(self, pairs: Sequence[Pair], right: int, text: str) -> Part | None:
        """What put a line, counted from 0 in ``probed.ptx``, between those of ``pruned.ptx``; ``text`` is the line.

        None where no part of the file did: what keeps the records is the engine's own.
        """
        place = next((place for place, pair in enumerate(pairs) if pair.right == right), None)
        if place is None or pairs[place].change != "added":
            return None
        if pairs[place].owner == PARAMETER:
            of_map = _OF_MAP.search(text)
            named = f"map.{of_map[1]}" if of_map is not None else ""
            return next((part for part in self.parts if part.name == named), None)
        below = next((pair.left for pair in pairs[place:] if pair.left is not None), None)
        above = next((pair.left for pair in reversed(pairs[:place]) if pair.left is not None), None)
        before, after = self._at(below, before=True), self._at(above, before=False)
        return before or after or self._at_kernel(pairs[: place + 1], pairs[place].owner)

    def _at(self, left: int | None, *, before: bool) -> Part | None:
        """The part that stands before, or behind, a line of ``pruned.ptx``, counted from 0."""
        there = (part for part in self.parts if left is not None and left + 1 in part.sites)
        return next((part for part in there if part.has(before=before)), None)

    def _at_kernel(self, above: Sequence[Pair], owner: str) -> Part | None:
        """The part at the kernel's entry, where lines of the probe begin for the first time, else at its ways out."""
        begun = sum(one.owner != owner and other.owner == owner for one, other in pairwise(above))
        return next((part for part in self.parts if part.at_kernel and part.has(before=begun <= 1)), None)


def probe_names(kernel: Kernel) -> list[str]:
    """The probes that the kernel had."""
    several = [one.probe for one in kernel.by_probe() if one.probe]
    run = kernel.trace.run_info
    one = kernel.probe or (run.probe if run is not None else None) or probe_of(kernel)
    return several or ([one] if one else [])


def file_of(kernel: Kernel, name: str) -> Path | None:
    """The file of a probe of this name; None where there is none."""
    own = inside(kernel.trace.directory, "probes", f"{name}.toml")
    whole = kernel.trace.file("probe.toml") if len(probe_names(kernel)) == 1 else None
    found = [path for path in (own, whole) if path is not None and path.is_file()]
    known = {**installed_files(), **built_in_files()}.get(name)
    return next(iter(found), known)


def read_text(kernel: Kernel, name: str, path: Path) -> ProbeText:
    """The file of a probe, and where its parts are in this kernel. TraceError if it cannot be read."""
    try:
        data = read_within(path, PROBE_FILE)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    lines = data.decode("utf-8", "replace").rstrip("\n").split("\n")
    try:
        points = {point.name: point for point in read_probe(data, path).points}
    except ProbeFileError:  # of another version, or a dialect that is not known here: its text is all there is
        points = {}
    sites = _sites(kernel, name, points)
    directory = kernel.trace.directory
    own = path.is_relative_to(directory)
    where = f"{path.relative_to(directory)} of the trace" if own else f"{path}; the trace has no copy"
    return ProbeText(name, path, where, lines, tuple(_parts(lines, points, sites)))


def _parts(lines: Sequence[str], points: Mapping[str, ProbePoint], sites: Mapping[str, set[int]]) -> Iterator[Part]:
    """The tables. Those of points are called ``probe.NAME``, or in the older dialect ``NAME``."""
    heads = [(place, match[1]) for place, line in enumerate(lines) if (match := _HEADING.match(line))]
    ends = [place for place, _ in heads[1:]] + [len(lines)]
    for (first, table), last in zip(heads, ends, strict=True):
        name = table.removeprefix("probe.").strip("\"'")
        yield Part(table, first, last, points.get(name), tuple(sorted(sites.get(name, ()))))


def _sites(kernel: Kernel, name: str, points: Mapping[str, ProbePoint]) -> dict[str, set[int]]:
    """The places of each point: as the engine wrote down, else as ``pruned.ptx`` tells."""
    found: dict[str, set[int]] = {}
    written = None if kernel.folder is None else read_sites(kernel.folder)
    for probe in written or ():
        for site in probe.sites if probe.probe == name or len(written or ()) == 1 else ():
            for point in site.points:
                found.setdefault(point, set()).add(site.instruction.line)
    if written is None and (path := kernel.file("pruned.ptx")) is not None:
        _match(path, points, found)
    return found


def _match(path: Path, points: Mapping[str, ProbePoint], found: dict[str, set[int]]) -> None:
    """The instructions that positions mean; nothing of a text that is damaged."""
    try:
        entries = parse(read_within(path, PTX_TEXT).decode("utf-8", "replace")).entries()
        body = list(instructions_in(entries[0].body or ())) if entries else []
    except (OSError, PtxError):
        return
    for name, point in points.items():
        wanted = [one for one in point.positions if not one.is_kernel and not one.is_block and not one.is_source]
        lines = {one.span.line for one in body if any(matches(position, one) for position in wanted)}
        found.setdefault(name, set()).update(lines)
