"""Raster of memory accesses over addresses and time, from traces or ``.dmat`` files, and the figure that draws it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import ASCII_SHADES, CYCLES, SHADES, Canvas, draw_x_axis, grades, label_x_axis, shaded
from tui_probe.draw.spans import clip
from tui_probe.draw.view import Drawing
from tui_probe.errors import TraceError
from tui_probe.input_limits import PAGE_MAP
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tui_probe.draw.spans import Line

SUFFIX: Final = ".dmat"
"""Suffix of a page map, a file of existing systems with the accesses to each page at each clock of a launch."""
PAGE: Final = 1 << 16
"""Bytes of a page."""
_HEAD: Final = struct.Struct("<QQ")
_ENTRIES: Final = tuple(np.dtype([("page", "<u8"), ("count", count)]) for count in ("<u4", "<u8"))
_STEP: Final = 1 << 14
"""Clocks between two words of progress."""
RASTER_COLUMNS: Final = 240
RASTER_ROWS: Final = 120
_GAP_BYTES: Final = 2 << 20
"""Bytes between two pages that are not known to belong together."""
_NAME_CELLS: Final = 14
"""Cells of the names of bands, left of the raster."""
_AXIS_LINES: Final = 3
"""Lines of the axis of time, below the raster."""
_HUES: Final = 6
"""Number of colors; the bands have them alternately."""


@dataclass(frozen=True, slots=True)
class PageMap:
    """Entries by clock: ``clocks``, ``pages`` (addresses) and ``counts`` are u8 arrays of shape (entries,)."""

    clocks: NDArray[np.uint64]
    pages: NDArray[np.uint64]
    counts: NDArray[np.uint64]


def read_page_map(path: Path, progress: Callable[[float], object] = lambda _: None) -> PageMap:
    """Read a page map. Raises TraceError for one that cannot be read, or is none or cut off.

    Little-endian: u64 number of pages, u64 number of clocks, the pages' addresses as u64; then per clock u64 clock, u64
    number of entries, and per entry u64 page and a count of 4 bytes (in files of some versions 8). Neither pages nor
    clocks are in order.
    """
    try:
        data = read_within(path, PAGE_MAP)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from error
    if len(data) < _HEAD.size:
        raise TraceError(f"{path}: {len(data)} bytes are not a page map")
    pages, clocks = _HEAD.unpack_from(data)
    begin = _HEAD.size + 8 * pages
    if begin + _HEAD.size * clocks > len(data):
        raise TraceError(f"{path}: not a page map, or truncated: too small for {pages} pages and {clocks} clocks")
    for entry in _ENTRIES:
        groups = _read_groups(data, begin, clocks, entry, progress)
        if groups is not None:
            return groups
    raise TraceError(f"{path}: not a page map, or truncated: the file does not end after {clocks} clocks")


def _read_groups(
    data: bytes, begin: int, clocks: int, entry: np.dtype[np.void], progress: Callable[[float], object]
) -> PageMap | None:
    """Return the page map; None if the groups of entries of that form do not end where the file does."""
    offset, times, sizes, parts = begin, [], [], []
    for number in range(clocks):
        if offset + _HEAD.size > len(data):
            return None
        clock, count = _HEAD.unpack_from(data, offset)
        offset += _HEAD.size
        end = offset + count * entry.itemsize
        if end > len(data):
            return None
        times.append(clock)
        sizes.append(count)
        parts.append(data[offset:end])
        offset = end
        if number % _STEP == 0:
            progress(offset / len(data))
    if offset != len(data):
        return None
    entries = np.frombuffer(b"".join(parts), entry)
    clock = np.repeat(np.array(times, "u8"), np.array(sizes, "i8"))
    by_clock = np.argsort(clock, kind="stable")
    return PageMap(clock[by_clock], entries["page"][by_clock], entries["count"][by_clock].astype("u8"))


@dataclass(frozen=True, slots=True)
class AddressRow:
    """Addresses ``start`` to before ``end``, in a band."""

    band: str
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Raster:
    """``counts`` has shape (rows, columns), i8; ``edges`` are the cycles between columns, f8 of shape (columns + 1,).

    ``access_count`` is the number of all accesses, None where that is not known; ``shapes`` are those of bands that
    are tensors, in words.
    """

    counts: NDArray[np.int64]
    rows: tuple[AddressRow, ...]
    edges: NDArray[np.float64]
    access_count: int | None
    shapes: Mapping[str, str]

    @property
    def counted_accesses(self) -> int:
        """Accesses that are counted."""
        return int(self.counts.sum())

    @property
    def touched(self) -> int:
        """Bytes of rows in which something was accessed."""
        return int(self._sizes()[self.counts.any(axis=1)].sum())

    @property
    def in_use(self) -> float | None:
        """Bytes of rows that are accessed in one column, mean over the columns in which something is."""
        bytes_in_use = (self.counts > 0).T @ self._sizes()
        return float(bytes_in_use[bytes_in_use > 0].mean()) if bytes_in_use.any() else None

    def _sizes(self) -> NDArray[np.int64]:
        return np.array([row.size for row in self.rows], np.int64)


def raster_of_record(record: Mapping[str, Any], source: str) -> Raster:
    """The raster in the data of a picture of accesses (``show dmat --format json``). TraceError for other data."""
    try:
        lines, edges = record["rows"], np.array(record["cycle_edges"], np.float64)
        rows = tuple(AddressRow(str(line["band"] or ""), int(line["start"]), int(line["end"])) for line in lines)
        counts = np.array([line["accesses"] for line in lines], np.int64)
        shapes = {str(band["name"]): _shape(band) for band in record["bands"] if band.get("shape")}
        made = None if record["accesses"] is None else int(record["accesses"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        reason = f"not the JSON data of page dmat ({type(error).__name__}: {error})"
        raise TraceError(f"{source}: {reason}; to write this data: tui-probe show dmat TRACE --format json") from error
    if not rows or counts.shape != (len(rows), len(edges) - 1):
        shape = " × ".join(map(str, counts.shape))
        raise TraceError(
            f"{source}: counts are {shape}, expected {len(rows)} rows × {len(edges) - 1} intervals of cycles"
        )
    return Raster(counts, rows, edges, made, shapes)


def _shape(band: Mapping[str, Any]) -> str:
    return " × ".join(str(side) for side in band["shape"]) + (f" {band['dtype']}" if band.get("dtype") else "")


def raster_of_pages(pages: PageMap, source: str) -> Raster:
    """The raster of a page map: pages that lie together are a band. TraceError for an empty one."""
    if not len(pages.clocks):
        raise TraceError(f"{source}: the page map has no accesses")
    rows = _address_rows(np.unique(pages.pages))
    begin, end = int(pages.clocks[0]), int(pages.clocks[-1]) + 1
    edges = np.linspace(begin, end, RASTER_COLUMNS + 1)
    row_starts = np.array([row.start for row in rows], np.uint64)
    row = np.searchsorted(row_starts, pages.pages, side="right") - 1
    column = np.minimum(np.searchsorted(edges, pages.clocks.astype(np.float64), side="right") - 1, RASTER_COLUMNS - 1)
    place = row * RASTER_COLUMNS + column
    counts = np.bincount(place, weights=pages.counts.astype(np.float64), minlength=len(rows) * RASTER_COLUMNS)
    shape = len(rows), RASTER_COLUMNS
    return Raster(counts.astype(np.int64).reshape(shape), rows, edges, int(pages.counts.sum()), {})


def _address_rows(pages: NDArray[np.uint64]) -> tuple[AddressRow, ...]:
    """Return up to about ``RASTER_ROWS`` rows of whole pages; no row reaches over a gap."""
    addresses = pages.astype(np.int64)
    cuts = np.flatnonzero(np.diff(addresses) > _GAP_BYTES) + 1
    bands = [(int(group[0]), int(group[-1]) + PAGE) for group in np.split(addresses, cuts)]
    size = max(PAGE, -(-sum(end - begin for begin, end in bands) // RASTER_ROWS // PAGE) * PAGE)
    return tuple(
        AddressRow(f"range {number}", start, min(start + size, end))
        for number, (begin, end) in enumerate(bands)
        for start in range(begin, end, size)
    )


class AccessFigure(Drawing):
    """Drawing of a raster as a whole; pages of a trace have a window that moves."""

    def __init__(self, title: str, raster: Raster) -> None:
        self.title, self.raster = title, raster
        self.bands = [
            (name, [place for place, _ in rows])
            for name, rows in groupby(enumerate(raster.rows), key=lambda pair: pair[1].band)
        ]

    def draw(self, width: int, height: int, *, ascii_only: bool = False) -> list[Line]:
        """The title, the raster brought to the size of the window, the axis of time."""
        canvas = Canvas(width, height)
        cells, rows = max(width - _NAME_CELLS, 1), max(height - _AXIS_LINES - 1, 1)
        canvas.text(0, 0, clip(self.title, width), "title")
        counts = resized(self.raster.counts, rows, cells)
        ramp = ASCII_SHADES if ascii_only else SHADES
        codes = shaded(grades(counts, len(ramp.strip())), " " + ramp.strip())
        roles = np.zeros(counts.shape, np.uint16)
        for number, (name, places) in enumerate(self.bands):
            top = places[0] * rows // len(self.raster.rows)
            end = max((places[-1] + 1) * rows // len(self.raster.rows), top + 1)
            roles[top:end] = canvas.role(f"hue{number % _HUES}")
            canvas.text(0, top + 1, clip(name, _NAME_CELLS - 1), f"hue{number % _HUES}")
        canvas.paint(_NAME_CELLS, 1, codes, roles)
        draw_x_axis(
            canvas, _NAME_CELLS, rows + 1, cells, float(self.raster.edges[0]), float(self.raster.edges[-1]), CYCLES
        )
        return canvas.lines(ascii_only=ascii_only)

    def record(self) -> Mapping[str, Any]:
        """Rows of memory with the accesses of each column."""
        rows = zip(self.raster.rows, self.raster.counts.tolist(), strict=True)
        return {
            "title": self.title,
            "cycle_edges": self.raster.edges.tolist(),
            "rows": [{"band": row.band, "start": row.start, "end": row.end, "accesses": line} for row, line in rows],
        }

    def cells(self) -> Iterator[Sequence[object]]:
        """Yield a row per cell that has accesses."""
        yield "band", "address", "address_end", "cycle", "cycle_end", "accesses"
        for place, column in np.argwhere(self.raster.counts).tolist():
            row, edges = self.raster.rows[place], self.raster.edges
            times = float(edges[column]), float(edges[column + 1])
            yield row.band, row.start, row.end, *times, int(self.raster.counts[place, column])

    def plot(self, axes: Any) -> None:
        """Plot on matplotlib axes; darker is denser, on a logarithmic scale."""
        densities = np.ma.masked_equal(np.log1p(self.raster.counts), 0)
        begin, end = float(self.raster.edges[0]), float(self.raster.edges[-1])
        axes.imshow(densities, aspect="auto", interpolation="nearest", extent=(begin, end, len(self.raster.rows), 0))
        names = [f"{name} {self.raster.shapes.get(name, '')}".strip() for name, _ in self.bands]
        axes.set_yticks([places[0] for _, places in self.bands], names)
        label_x_axis(axes, begin, end, CYCLES)
        axes.set_xlabel("cycles")
        axes.set_title(self.title)


def resized(counts: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.int64]:
    """Resize counts to another grid: sums where it is coarser, repeated where it is finer."""
    return _resized_along(_resized_along(counts, rows, 0), columns, 1)


def _resized_along(counts: NDArray[np.int64], new_size: int, axis: int) -> NDArray[np.int64]:
    size = counts.shape[axis]
    group_starts = np.arange(new_size) * size // new_size
    result = np.take(counts, group_starts, axis) if new_size >= size else np.add.reduceat(counts, group_starts, axis)
    return result.astype(np.int64)


def size_text(value: float | None) -> str:
    """Format a number of bytes."""
    return units.NOT_MEASURED if value is None else units.size(round(value))
