"""Page ``probe``: the probe file, and which of its parts inserted each line into the kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.spans import clip
from tui_probe.draw.view import Document, Spot
from tui_probe.errors import ProbeFileError, PtxError, TraceError
from tui_probe.input_limits import PROBE_FILE, PTX_TEXT
from tui_probe.pages.code.alignment import PARAMETER, align_probed
from tui_probe.pages.code.code_lines import printable_code, read_lines
from tui_probe.probe_files.loading import built_in_files, installed_files, read_probe
from tui_probe.probe_model.positions import matches
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.recognised import analysis_name
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import instructions_in
from tui_probe.trace.kernel_files import code_page, long_position
from tui_probe.trace.locate import path_in_trace
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.code.alignment import LinePair
    from tui_probe.probe_model.positions import Position
    from tui_probe.probe_model.probe import ProbePoint
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.model import KernelFacts

_HEADING: Final = re.compile(r"\s*\[+\s*([\w.\"'-]+)\s*\]+")
_MAP_PARAMETER: Final = re.compile(r"\btp_(?:map|cap)_(\w+)")
_CSV_COLUMNS: Final = ("probe", "line", "table", "sites", "text")


@dataclass(frozen=True, slots=True)
class ProbeFilePart:
    """A table of the file, such as ``probe.access``: its lines ``first_line`` to before ``end_line``, counted from 0.

    ``point`` is there of one that puts lines into kernels; ``sites`` are the lines of ``pruned.ptx``, or offsets in
    machine code, that it is at in this kernel, ascending.
    """

    name: str
    first_line: int
    end_line: int
    point: ProbePoint | None = None
    sites: tuple[int, ...] = ()

    @property
    def is_at_kernel(self) -> bool:
        """True if it is at the entry and the exits of the kernel."""
        return self.point is not None and any(position.is_kernel for position in self.point.positions)

    def has_snippet(self, *, is_before: bool) -> bool:
        """Return whether it puts lines before its positions, or behind them."""
        snippets = None if self.point is None else (self.point.after, self.point.before)
        return snippets is not None and snippets[is_before] is not None


@dataclass(frozen=True, slots=True)
class ProbeText:
    """A probe's file: where it is, in words, its lines, and its tables in their order."""

    name: str
    path: Path
    location: str
    lines: list[str]
    parts: tuple[ProbeFilePart, ...]

    def part_at(self, line: int) -> ProbeFilePart | None:
        """Return the table that a line, counted from 0, is in."""
        return next((part for part in self.parts if part.first_line <= line < part.end_line), None)

    def origin(self, pairs: Sequence[LinePair], probed_index: int, text: str) -> ProbeFilePart | None:
        """Return the origin of ``text``, the line ``probed_index`` from 0 of ``probed.ptx``, that the probe added.

        None where it comes from no part of the file: the engine itself adds the code that stores records.
        """
        place = next((place for place, pair in enumerate(pairs) if pair.right == probed_index), None)
        if place is None or pairs[place].change != "added":
            return None
        if pairs[place].owner == PARAMETER:
            map_match = _MAP_PARAMETER.search(text)
            table_name = f"map.{map_match[1]}" if map_match is not None else ""
            return next((part for part in self.parts if part.name == table_name), None)
        next_pruned = next((pair.left for pair in pairs[place:] if pair.left is not None), None)
        previous_pruned = next((pair.left for pair in reversed(pairs[:place]) if pair.left is not None), None)
        part_before, part_after = (
            self._part_at_index(next_pruned, is_before=True),
            self._part_at_index(previous_pruned, is_before=False),
        )
        return part_before or part_after or self._part_at_kernel(pairs[: place + 1], pairs[place].owner)

    def _part_at_index(self, pruned_index: int | None, *, is_before: bool) -> ProbeFilePart | None:
        """Return the part that is before, or behind, a line of ``pruned.ptx``, counted from 0."""
        at_line = (part for part in self.parts if pruned_index is not None and pruned_index + 1 in part.sites)
        return next((part for part in at_line if part.has_snippet(is_before=is_before)), None)

    def _part_at_kernel(self, pairs: Sequence[LinePair], owner: str) -> ProbeFilePart | None:
        """The part at the kernel's entry, where lines of the probe begin for the first time, else at its exits."""
        run_starts = sum(previous.owner != owner and current.owner == owner for previous, current in pairwise(pairs))
        return next(
            (part for part in self.parts if part.is_at_kernel and part.has_snippet(is_before=run_starts <= 1)), None
        )


def probe_names(kernel: KernelFacts) -> list[str]:
    """Return the probes that the kernel had."""
    names = [probed_kernel.probe for probed_kernel in kernel.by_probe() if probed_kernel.probe]
    run_info = kernel.trace.run_info
    name = kernel.probe or (run_info.probe if run_info is not None else None) or analysis_name(kernel)
    return names or ([name] if name else [])


def find_probe_file(kernel: KernelFacts, name: str) -> Path | None:
    """Return the file of a probe: the copy in the trace, as it was used, else that of the known probe of this name.

    None if there is neither.
    """
    copied_file = path_in_trace(kernel.trace.directory, "probes", f"{name}.toml")
    run_file = kernel.trace.file("probe.toml") if len(probe_names(kernel)) == 1 else None
    files = [path for path in (copied_file, run_file) if path is not None and path.is_file()]
    registered = {**installed_files(), **built_in_files()}.get(name)
    return next(iter(files), registered)


def read_probe_text(kernel: KernelFacts, name: str, path: Path) -> ProbeText:
    """Return the file of a probe, and where its parts are in this kernel. TraceError if it cannot be read."""
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
    is_in_trace = path.is_relative_to(directory)
    location = f"{path.relative_to(directory)} of the trace" if is_in_trace else f"{path}; the trace has no copy"
    return ProbeText(name, path, location, lines, tuple(_parts(lines, points, sites)))


def _parts(
    lines: Sequence[str], points: Mapping[str, ProbePoint], sites: Mapping[str, set[int]]
) -> Iterator[ProbeFilePart]:
    """Yield the tables. Those of points are called ``probe.NAME``, or in the older dialect ``NAME``."""
    heads = [(place, match[1]) for place, line in enumerate(lines) if (match := _HEADING.match(line))]
    end_lines = [place for place, _ in heads[1:]] + [len(lines)]
    for (first_line, table), end_line in zip(heads, end_lines, strict=True):
        name = table.removeprefix("probe.").strip("\"'")
        yield ProbeFilePart(table, first_line, end_line, points.get(name), tuple(sorted(sites.get(name, ()))))


def _sites(kernel: KernelFacts, name: str, points: Mapping[str, ProbePoint]) -> dict[str, set[int]]:
    """Return the places of each point: as the engine wrote down, else as ``pruned.ptx`` tells."""
    lines: dict[str, set[int]] = {}
    logged_sites = None if kernel.folder is None else read_sites(kernel.folder)
    for probe in logged_sites or ():
        for site in probe.sites if probe.probe == name or len(logged_sites or ()) == 1 else ():
            for point in site.points:
                lines.setdefault(point, set()).add(site.instruction.line)
    if logged_sites is None and (path := kernel.file("pruned.ptx")) is not None:
        _add_matching_lines(path, points, lines)
    return lines


def _is_at_instructions(position: Position) -> bool:
    return not position.is_kernel and not position.is_block and not position.is_source


def _add_matching_lines(path: Path, points: Mapping[str, ProbePoint], lines_by_point: dict[str, set[int]]) -> None:
    """Add the lines of instructions that the positions of each point match; none of a text that is damaged."""
    try:
        entries = parse(read_within(path, PTX_TEXT).decode("utf-8", "replace")).entries()
        body = list(instructions_in(entries[0].body or ())) if entries else []
    except (OSError, PtxError):
        return
    for name, point in points.items():
        positions = [position for position in point.positions if _is_at_instructions(position)]
        lines = {
            instruction.span.line
            for instruction in body
            if any(matches(position, instruction) for position in positions)
        }
        lines_by_point.setdefault(name, set()).update(lines)


class ProbeSource(Document):
    """One file after another, each below its name; ``pairs`` align ``pruned.ptx`` with the lines ``probed_lines``."""

    row_noun = "row"

    def __init__(
        self, title: str, texts: Sequence[ProbeText], pairs: Sequence[LinePair], probed_lines: Sequence[str]
    ) -> None:
        self.title = title
        self.texts = texts
        self._pairs, self._probed_lines = pairs, probed_lines
        self._rows = [(text, line) for text in texts for line in range(-1, len(text.lines))]
        self._digits = max(5, len(str(max((len(text.lines) for text in texts), default=0))) + 1)

    def lines(self, width: int) -> Sequence[Line]:
        """Numbered lines, the headings of what puts lines into kernels set out."""
        return [self._line(text, line, width) for text, line in self._rows]

    def _line(self, text: ProbeText, line: int, width: int) -> Line:
        if line < 0:
            return (clip(f" {text.name}", width), "title"), (clip(f"  {text.location}", width), "dim")
        code, part = printable_code(text.lines[line]), text.part_at(line)
        is_head = part is not None and part.first_line == line
        role = "dim" if code.lstrip().startswith("#") else "head" if is_head else ""
        note = f"  ▸ at {units.counted(len(part.sites), 'place')}" if is_head and part and part.sites else ""
        return (f"{line + 1:>{self._digits}}  ", "dim"), (code, role), (note, "note")

    def gutter(self, width: int) -> int:
        """Return the numbers."""
        del width
        return self._digits + 2

    def _parts(self) -> Iterator[tuple[ProbeText, ProbeFilePart]]:
        return ((text, part) for text in self.texts for part in text.parts)

    def _part(self, number: int) -> ProbeFilePart | None:
        text, line = self._rows[number]
        return text.part_at(line)

    # -- places

    def line_facts(self, number: int, width: int) -> list[str]:
        """Name the place of the table in the kernel."""
        del width
        part = self._part(number)
        if part is None or not part.sites:
            return []
        return [f"{part.name}: at {units.counted(len(part.sites), 'place')}, first {long_position(part.sites[0])}"]

    def ptx_line(self, number: int, width: int) -> int | None:
        """Return the first line that the table is at."""
        return next(iter(self.spot(number, width).ptx), None)

    def spot(self, number: int, width: int) -> Spot:
        """Return all lines that the table is at."""
        del width
        part = self._part(number)
        return Spot() if part is None else Spot(part.sites)

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """Return the heading of the first table that is there."""
        del width
        return next(
            (self._row(text, part) for text in self.texts for part in text.parts if ptx_line in part.sites), None
        )

    def place_of_spot(self, spot: Spot, width: int) -> int | None:
        """Also the heading of the table that put a line of the probe there."""
        if spot.probed_line is None or not 0 < spot.probed_line <= len(self._probed_lines):
            return super().place_of_spot(spot, width)
        owner = next((pair.owner for pair in self._pairs if pair.right == spot.probed_line - 1), "")
        owner_texts = [text for text in self.texts if text.name == owner] or self.texts
        origins = (
            (text, text.origin(self._pairs, spot.probed_line - 1, self._probed_lines[spot.probed_line - 1]))
            for text in owner_texts
        )
        return next((self._row(text, part) for text, part in origins if part is not None), None)

    def _row(self, text: ProbeText, part: ProbeFilePart) -> int:
        return self._rows.index((text, part.first_line))

    def missing_reason(self, spot: Spot) -> str:
        """The engine has lines of its own, and the probe is not at every line."""
        if spot.probed_line is not None:
            return f"line {spot.probed_line} of probed.ptx was added by the engine to store records"
        return f"the probe was not inserted at {long_position(spot.ptx[0])}" if spot.ptx else ""

    def anchors(self, width: int) -> Sequence[int]:
        """Return the headings of tables that are somewhere in the kernel."""
        del width
        return [self._row(text, part) for text, part in self._parts() if part.sites]

    def anchor_noun(self) -> str:
        return "TOML table inserted in the kernel"

    def target_view(self) -> str:
        """Return the code."""
        return code_page(site for _, part in self._parts() for site in part.sites)

    def no_target_reason(self, number: int, width: int) -> str:
        """Maps, comments, and what is at the kernel's entry."""
        del number, width
        return "this part was inserted at no instruction; press . for the next inserted part"

    # -- data

    def record(self) -> dict[str, Any]:
        """Return the files, and where their tables are in the kernel."""
        files = []
        for text in self.texts:
            parts = [
                {
                    "table": part.name,
                    "line": part.first_line + 1,
                    "in_code": part.point is not None,
                    "sites": list(part.sites),
                }
                for part in text.parts
            ]
            files.append({"probe": text.name, "file": str(text.path), "tables": parts, "text": "\n".join(text.lines)})
        return {"probes": files}

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per line."""
        yield _CSV_COLUMNS
        for text, line in self._rows:
            if line >= 0:
                part = text.part_at(line)
                origin = (part.name, len(part.sites)) if part else (None, None)
                yield text.name, line + 1, *origin, text.lines[line]


def unavailable_reason(source: ViewSource) -> str | None:
    """Return why there is no file of a probe."""
    kernel = source.kernel
    if kernel.status != "probed":
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    if any(find_probe_file(kernel, name) is not None for name in probe_names(kernel)):
        return None
    return "the trace has no copy of the probe, and no installed probe has the same name"


def _open_view(source: ViewSource, progress: Progress) -> ProbeSource:
    progress(0.0)
    kernel = source.kernel
    name_and_path = [
        (name, path) for name in probe_names(kernel) if (path := find_probe_file(kernel, name)) is not None
    ]
    texts = [read_probe_text(kernel, name, path) for name, path in name_and_path]
    progress(0.5)
    pairs: Sequence[LinePair] = ()
    pruned_path, probed_path = kernel.file("pruned.ptx"), kernel.file("probed.ptx")
    lines: list[str] = []
    if pruned_path is not None and probed_path is not None:
        try:
            lines = read_lines(probed_path)
            pairs = align_probed(read_lines(pruned_path), lines).pairs
        except OSError as error:
            raise TraceError(f"{probed_path}: {error.strerror or error}") from error
    return ProbeSource(f"Probe of {kernel.demangled}", texts, pairs, lines)


KIND: Final = ViewKind(
    "probe",
    "Probe",
    "the probe's file, and where its code was inserted",
    unavailable_reason,
    _open_view,
    explanation=(
        "The probe's file of this run. The code of a TOML table with a position was inserted at all matching"
        " instructions; the heading of the table shows their number in this kernel. If another page shows a line"
        " that the probe added, press p on this line to see its TOML table. Press Enter on a TOML table"
        " to see the first line at which its code was inserted.",
    ),
    order=97,
)
