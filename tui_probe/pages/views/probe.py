"""The file of the probe that a kernel had: where each line that it put into the kernel comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tui_probe.analysis.alignment import align_probed
from tui_probe.draw import units
from tui_probe.draw.spans import clip
from tui_probe.draw.spot import Spot
from tui_probe.draw.view import Document
from tui_probe.errors import TraceError
from tui_probe.pages.probe_text import file_of, probe_names, read_text
from tui_probe.pages.source_text import drawn, read_lines
from tui_probe.probekit.kind import Kind
from tui_probe.trace.offset import Offset, where_in_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.analysis.alignment import Pair
    from tui_probe.draw.spans import Line
    from tui_probe.draw.view import Progress
    from tui_probe.pages.probe_text import Part, ProbeText
    from tui_probe.probekit.kind import Source

_COLUMNS: Final = ("probe", "line", "table", "sites", "text")


class ProbeSource(Document):
    """One file after another, each below its name; ``pairs`` align ``pruned.ptx`` with the lines ``probed``."""

    counted_as = "row"

    def __init__(self, title: str, texts: Sequence[ProbeText], pairs: Sequence[Pair], probed: Sequence[str]) -> None:
        self.title = title
        self.texts = texts
        self._pairs, self._probed = pairs, probed
        self._rows = [(text, line) for text in texts for line in range(-1, len(text.lines))]
        self._digits = max(5, len(str(max((len(text.lines) for text in texts), default=0))) + 1)

    def lines(self, width: int) -> Sequence[Line]:
        """Numbered lines, the headings of what puts lines into kernels set out."""
        return [self._line(text, line, width) for text, line in self._rows]

    def _line(self, text: ProbeText, line: int, width: int) -> Line:
        if line < 0:
            return (clip(f" {text.name}", width), "title"), (clip(f"  {text.where}", width), "dim")
        words, part = drawn(text.lines[line]), text.part_at(line)
        is_head = part is not None and part.first == line
        role = "dim" if words.lstrip().startswith("#") else "head" if is_head else ""
        note = f"  ▸ at {units.counted(len(part.sites), 'place')}" if is_head and part and part.sites else ""
        return (f"{line + 1:>{self._digits}}  ", "dim"), (words, role), (note, "note")

    def gutter(self, width: int) -> int:
        """The numbers."""
        del width
        return self._digits + 2

    def _parts(self) -> Iterator[tuple[ProbeText, Part]]:
        return ((text, part) for text in self.texts for part in text.parts)

    def _part(self, number: int) -> Part | None:
        text, line = self._rows[number]
        return text.part_at(line)

    # -- places

    def about(self, number: int, width: int) -> list[str]:
        """Where the table is in the kernel."""
        del width
        part = self._part(number)
        if part is None or not part.sites:
            return []
        return [f"{part.name}: at {units.counted(len(part.sites), 'place')}, first {where_in_full(part.sites[0])}"]

    def ptx_line(self, number: int, width: int) -> int | None:
        """The first line that the table is at."""
        return next(iter(self.here(number, width).ptx), None)

    def here(self, number: int, width: int) -> Spot:
        """All lines that the table is at."""
        del width
        part = self._part(number)
        return Spot() if part is None else Spot(part.sites)

    def place_of(self, ptx_line: int, width: int) -> int | None:
        """The heading of the first table that is there."""
        del width
        return next(
            (self._row(text, part) for text in self.texts for part in text.parts if ptx_line in part.sites), None
        )

    def place_of_spot(self, spot: Spot, width: int) -> int | None:
        """Also the heading of the table that put a line of the probe there."""
        if spot.probed is None or not 0 < spot.probed <= len(self._probed):
            return super().place_of_spot(spot, width)
        owner = next((pair.owner for pair in self._pairs if pair.right == spot.probed - 1), "")
        own = [text for text in self.texts if text.name == owner] or self.texts
        found = ((text, text.origin(self._pairs, spot.probed - 1, self._probed[spot.probed - 1])) for text in own)
        return next((self._row(text, part) for text, part in found if part is not None), None)

    def _row(self, text: ProbeText, part: Part) -> int:
        return self._rows.index((text, part.first))

    def lacks(self, spot: Spot) -> str:
        """The engine has lines of its own, and the probe is not at every line."""
        if spot.probed is not None:
            return f"line {spot.probed} of probed.ptx is the engine's: it keeps what the probe saves"
        return f"the probe is not at {where_in_full(spot.ptx[0])}" if spot.ptx else ""

    def anchors(self, width: int) -> Sequence[int]:
        """The headings of tables that are somewhere in the kernel."""
        del width
        return [self._row(text, part) for text, part in self._parts() if part.sites]

    def stops(self) -> str:
        return "table with places in the kernel"

    def leads_to(self) -> str:
        """The code."""
        of_code = any(isinstance(site, Offset) for _, part in self._parts() for site in part.sites)
        return "sass" if of_code else "ptx"

    def nowhere(self, number: int, width: int) -> str:
        """Maps, comments, and what is at the kernel's entry."""
        del number, width
        return "this part is at no instruction of the kernel: . goes to the next that is"

    # -- data

    def record(self) -> dict[str, Any]:
        """The files, and where their tables are in the kernel."""
        files = []
        for text in self.texts:
            parts = [
                {
                    "table": part.name,
                    "line": part.first + 1,
                    "in_code": part.point is not None,
                    "sites": list(part.sites),
                }
                for part in text.parts
            ]
            files.append({"probe": text.name, "file": str(text.path), "tables": parts, "text": "\n".join(text.lines)})
        return {"probes": files}

    def cells(self) -> Iterator[Sequence[object]]:
        """One row per line."""
        yield _COLUMNS
        for text, line in self._rows:
            if line >= 0:
                part = text.part_at(line)
                told = (part.name, len(part.sites)) if part else (None, None)
                yield text.name, line + 1, *told, text.lines[line]


def missing(source: Source) -> str | None:
    """Why there is no file of a probe."""
    kernel = source.kernel
    if kernel.status != "probed":
        return f"no probe was put into it: {kernel.reason or kernel.status}"
    if any(file_of(kernel, name) is not None for name in probe_names(kernel)):
        return None
    return "the trace has no copy of its probe, and no known one has that name"


def _open(source: Source, progress: Progress) -> ProbeSource:
    progress(0.0)
    kernel = source.kernel
    named = [(name, path) for name in probe_names(kernel) if (path := file_of(kernel, name)) is not None]
    texts = [read_text(kernel, name, path) for name, path in named]
    progress(0.5)
    pairs: Sequence[Pair] = ()
    pruned, probed = kernel.file("pruned.ptx"), kernel.file("probed.ptx")
    lines: list[str] = []
    if pruned is not None and probed is not None:
        try:
            lines = read_lines(probed)
            pairs = align_probed(read_lines(pruned), lines).pairs
        except OSError as error:
            raise TraceError(f"{probed}: {error.strerror or error}") from error
    return ProbeSource(f"Probe of {kernel.demangled}", texts, pairs, lines)


KIND: Final = Kind(
    "probe",
    "Probe",
    "the file of the probe, and where in the kernel each part of it is",
    missing,
    _open,
    explanation=(
        "The probe's own file as it was used. A table with a position puts its lines at each instruction that it means:"
        " its heading says at how many places of this kernel. From a line of the probe on another page p leads here, to"
        " the table that put it there; Enter goes from a table to the first line that it is at.",
    ),
    order=97,
)
