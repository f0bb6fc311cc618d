"""A frame of accesses: drawn on a canvas with bands, an axis of time and a legend, as data, and on matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.canvas import (
    ASCII_SHADES,
    BYTES,
    CYCLES,
    SHADES,
    TIME,
    draw_x_axis,
    grades,
    halftone,
    label_x_axis,
    shaded,
    ticks,
)
from tui_probe.draw.spans import clip, width
from tui_probe.trace.launch_shape import WARP_SIZE

from .frame import DOTS_ACROSS, DOTS_DOWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.draw.canvas import Canvas

    from .access_map import AccessMap
    from .axes import Band, Strip
    from .frame import Colouring, Frame
    from .moves import PictureState

HUES: Final = 8
"""Colours of bands."""
_HEATS: Final = 8
"""Colours of the heat ramp, from little to much."""
_DIGITS: Final = "123456789abcdefghijklmnopqrstuvw"
"""Sectors per request, from 1 to 32, as one character."""
_TENTHS: Final = "0123456789#"
"""The part of the moved sectors that is wasted, in tenths."""
_KINDS: Final = " lsx"
_DOTS: Final = "⡀⡄⡆⡇⣇⣧⣷⣿"
_KIND_ROLES: Final = ("", "hue0", "hue1", "hue2")
_MAX_CHANGES: Final = 700
"""Changes of colour in a picture: each costs some fifteen bytes on the line."""
_MAX_WIDE_CELLS: Final = 6000
"""Cells of a picture in characters of three bytes."""
_MIN_TICK_ROWS: Final = 4
"""Rows between two labels of offsets, at least."""
_HEADINGS: Final = (
    "band", "address", "address_end", "cycle", "cycle_end", "accesses", "loads", "stores", "sectors_per_request",
    "box_sectors",
)  # fmt: skip
_MAPS: Final = ("Blues", "Oranges", "Greens", "Purples", "YlOrBr", "Reds", "PuBu", "Greys")
"""Colour maps of matplotlib in the order of the hues on the screen."""


def gutter_of(source: AccessMap, cells: int) -> int:
    """Cells left of the picture, for names, totals and offsets."""
    texts = [text for number in range(len(source.bands)) for text in band_texts(source, number)]
    text_width = max(map(width, texts), default=0)
    return min(max(text_width + 2, 11), max(cells // 5, 11), 26)


def band_texts(source: AccessMap, number: int) -> list[str]:
    """The name of a band, shape and type of a tensor, and the accesses of the band."""
    band = source.bands[number]
    return [
        band.name,
        *filter(None, [band.tensor.text if band.tensor is not None else "", total_text(source, number)]),
    ]


def total_text(source: AccessMap, number: int) -> str:
    """``48 600 (46%)``: the number of its accesses, and the part of all; "" where there is no access at all."""
    count = source.totals[number]
    return f"{units.count(count)} ({count / source.total:.0%})" if source.total else ""


def draw_cells(canvas: Canvas, x: int, y: int, frame: Frame, colouring: Colouring, *, ascii_only: bool) -> None:
    """The cells of all strips; the first strip begins in row ``y``."""
    codes, roles = _codes_and_roles(canvas, frame, colouring, ascii_only=ascii_only)
    for strip, rows in frame.strip_rows:
        canvas.paint(x, y + strip.top, codes[rows.start : rows.stop], roles[rows.start : rows.stop])


_CodesAndRoles: TypeAlias = "tuple[NDArray[np.uint32], NDArray[np.uint16]]"
"""The character and the role of each cell: shape (rows, cells)."""


def _codes_and_roles(canvas: Canvas, frame: Frame, colouring: Colouring, *, ascii_only: bool) -> _CodesAndRoles:
    """The character and the role of each cell, without the rows between strips."""
    if colouring == "sectors" and frame.excessive_shares is not None:
        tenths = np.clip(10 * np.nan_to_num(frame.excessive_shares), 0, 10).round().astype(np.uint8)
        return _heat_cells(canvas, frame, tenths, tenths * (_HEATS - 1) // 10, _TENTHS)
    if colouring == "sectors" and frame.sectors is not None:
        sectors = np.clip(np.nan_to_num(frame.sectors), 1, WARP_SIZE).round().astype(np.uint8)
        return _heat_cells(canvas, frame, sectors - 1, (sectors - 1) * _HEATS // WARP_SIZE, _DIGITS)
    if colouring == "kinds" and frame.loads is not None and frame.stores is not None:
        return _kind_cells(canvas, frame.cell_counts, frame.loads > 0, frame.stores > 0)
    ramp = _ramp(frame, colouring, ascii_only=ascii_only)
    counts = frame.cell_counts
    roles = np.zeros(counts.shape, dtype=np.uint16)
    for strip, rows in frame.strip_rows:
        hue = "accent" if colouring == "density" else hue_of(strip.band)
        roles[rows.start : rows.stop] = canvas.role(hue)
    return halftone(frame.counts) if ramp == _DOTS else shaded(grades(counts, len(ramp)), " " + ramp), roles


def _heat_cells(
    canvas: Canvas, frame: Frame, level: NDArray[np.uint8], heat: NDArray[np.uint8], characters: str
) -> _CodesAndRoles:
    """A character per ``level``, from 0, in the colour of its ``heat``; cells without accesses are blank."""
    is_filled = frame.cell_counts > 0
    roles = np.array([canvas.role(f"ramp{step}") for step in range(_HEATS)], dtype=np.uint16)
    codes = shaded(np.where(is_filled, level + 1, 0).astype(np.uint8), " " + characters)
    return codes, limit_colour_changes(roles[np.where(is_filled, heat, 0)], is_filled)


def _kind_cells(
    canvas: Canvas, counts: NDArray[np.int64], loads: NDArray[np.bool_], stores: NDArray[np.bool_]
) -> _CodesAndRoles:
    """Letters of loads and stores, capitals where there are many; ``?`` for accesses of unknown kind."""
    kinds = (loads + 2 * stores.astype(np.uint8)).astype(np.uint8)
    codes = shaded(kinds, _KINDS)
    codes[(grades(counts, 2) == 2) & (kinds > 0)] -= ord("a") - ord("A")
    codes[(kinds == 0) & (counts > 0)] = ord("?")
    roles = np.array([canvas.role(name) for name in _KIND_ROLES], dtype=np.uint16)[kinds]
    return codes, limit_colour_changes(roles, counts > 0)


def hue_of(band: int) -> str:
    """The role of a band's colour."""
    return f"hue{band % HUES}"


def limit_colour_changes(
    roles: NDArray[np.uint16], is_filled: NDArray[np.bool_], max_changes: int = _MAX_CHANGES
) -> NDArray[np.uint16]:
    """Roles that change at most ``max_changes`` times along the rows, and not at all where nothing is.

    What changes too often is coloured in longer pieces, each as its first cell; characters stay as they are.
    """
    if not roles.size:
        return roles
    columns = np.arange(roles.shape[1])
    last_filled = np.maximum.accumulate(np.where(is_filled, columns, 0), axis=1)
    smoothed = np.take_along_axis(roles, last_filled, axis=1)
    piece = 1
    while np.count_nonzero(np.diff(smoothed, axis=1)) > max_changes and piece < roles.shape[1]:
        piece *= 2
        smoothed = smoothed[:, columns // piece * piece]
    return smoothed


def draw_gutter(canvas: Canvas, y: int, cells: int, frame: Frame, source: AccessMap, *, in_index: bool) -> None:
    """Names of bands, accesses of each, and offsets (of tensors, indices) of some rows; the gaps between bands."""
    for number, strip in enumerate(frame.strips):
        band, top = source.bands[strip.band], y + strip.top
        for row in range(strip.rows):
            canvas.text(cells - 1, top + row, "│", "rule")
        marks = row_labels(strip, band, in_index=in_index)
        for row, label in marks.items():
            canvas.text(cells - 1, top + row, "┤", "rule")
            if row:
                canvas.text(cells - 2 - width(label), top + row, label, "dim")
        name = band.name if 0 in marks or strip.start == band.start else f"… {band.name}"
        canvas.text(0, top, clip(name, cells - 2), hue_of(strip.band))
        unlabelled_rows = (row for row in range(1, strip.rows) if row not in marks)
        for row, text in zip(unlabelled_rows, band_texts(source, strip.band)[1:], strict=False):
            canvas.text(0, top + row, clip(text, cells - 2), "dim")
        if number and top > y + frame.strips[number - 1].top + frame.strips[number - 1].rows:
            gap = strip.start - frame.strips[number - 1].end
            canvas.text(cells + 1, top - 1, f"{units.size(gap)} apart" if gap else "", "dim")


def row_labels(strip: Strip, band: Band, *, in_index: bool) -> dict[int, str]:
    """Labels of offsets by row of a strip."""
    origin = band.origin
    labels = {}
    for tick in ticks(strip.start - origin, strip.end - origin, max(strip.rows // _MIN_TICK_ROWS, 1), BYTES):
        row = (int(tick.value) + origin - strip.start) * strip.rows // (strip.end - strip.start)
        index = band.tensor.index(int(tick.value)) if in_index and band.tensor is not None else None
        label = tick.label if index is None else f"[{','.join(map(str, index))}]"
        if row < strip.rows:
            labels[row] = label
    return labels


def draw_time(canvas: Canvas, x: int, y: int, frame: Frame, cycles_per_ns: float | None) -> None:
    """The axis of time, in cycles or, given what a nanosecond has, in time."""
    start, end, unit = float(frame.grid.start), float(frame.grid.end), CYCLES
    if cycles_per_ns is not None:
        start, end, unit = start / cycles_per_ns, end / cycles_per_ns, TIME
    draw_x_axis(canvas, x, y, frame.request.cells, start, end, unit)
    canvas.text(0, y + 1, clip(unit.name, x - 1), "dim")


def legend(frame: Frame, colouring: Colouring, *, ascii_only: bool) -> str:
    """Return the legend of the characters."""
    if colouring == "sectors" and frame.excessive_shares is not None:
        return "0-9: share of excessive sectors, in tenths; #: all sectors"
    if colouring == "sectors":
        return "1-9 a-w: mean sectors per request of a cell, 1 to 32"
    if colouring == "kinds":
        return "l load  s store  x both  ? unknown  capitals: many accesses"
    max_count = int(frame.cell_counts.max(initial=0))
    ramp = _ramp(frame, colouring, ascii_only=ascii_only)
    return f"{ramp} 1 to {units.count(max_count)} accesses per cell, log scale"


def _ramp(frame: Frame, colouring: Colouring, *, ascii_only: bool) -> str:
    """The characters for little to much. A picture without blanks has no shapes to see, so it is drawn in ASCII, of
    which each character is one byte on the line, and not three.
    """
    if ascii_only or np.count_nonzero(frame.cell_counts) > _MAX_WIDE_CELLS:
        return ASCII_SHADES.strip()
    return SHADES.strip() if colouring == "density" else _DOTS


def record(view: PictureState, frame: Frame | None) -> dict[str, Any]:
    """Axes, bands, and the accesses of each cell, row by row. Addresses are in bytes, times in cycles."""
    accesses, survey = view.map.accesses, view.map.survey
    clocks, block_position = accesses.clocks, view.selection.block
    block = None if block_position is None else view.block_number(block_position)
    return {
        "simulated": view.probe_result.simulated,
        "kept": survey.record_count if accesses.are_recorded else None,
        "accesses": accesses.total_accesses,
        "capacity": accesses.capacity if accesses.are_recorded else None,
        "boxes": None if view.map.boxes is None else view.map.boxes.record(),
        "blocks": view.probe_result.result.header.blocks,
        "blocks_measured": len(view.probe_result.result.blocks),
        "selection": {"block": block, "warp": view.selection.warp, "ptx_line": view.selection.line},
        "colouring": view.colouring,
        "clocks": {
            "basis": clocks.basis,
            "domains": clocks.domains,
            "error": clocks.error,
            "cycles_per_ns": accesses.cycles_per_ns,
        },
        "bands": [
            {**_band_record(band), "total": total} for band, total in zip(view.map.bands, view.map.totals, strict=True)
        ],
        "exact": None if frame is None else frame.is_exact,
        "cursor": None if frame is None else view.read_out(frame).record(),
        "cycle_edges": None if frame is None else frame.grid.column_edges()[::DOTS_ACROSS].tolist(),
        "rows": [] if frame is None else [_row_record(view, frame, row) for row in range(len(frame.cell_counts))],
    }


def _band_record(band: Band) -> dict[str, Any]:
    tensor = band.tensor
    return {
        "name": band.name,
        "start": band.start,
        "end": band.end,
        "origin": band.origin,
        "shape": None if tensor is None else list(tensor.shape),
        "dtype": None if tensor is None else tensor.dtype or None,
        "strides": None if tensor is None else list(tensor.strides) or None,
        "function": None if tensor is None else tensor.function or None,
        "place": None if tensor is None else tensor.place or None,
    }


def _band_name(view: PictureState, address: int) -> str | None:
    number = view.space.band_of(address)
    return None if number is None else view.map.bands[number].name


def _row_record(view: PictureState, frame: Frame, row: int) -> dict[str, Any]:
    start, end = frame.addresses(row)
    sectors = None if frame.sectors is None else frame.sectors[row].tolist()
    box_sectors = 0 if frame.boxes is None else frame.boxes[row]
    return {
        "band": _band_name(view, start),
        "start": start,
        "end": end,
        "accesses": (frame.cell_counts[row] - box_sectors).tolist(),
        "loads": None if frame.loads is None else frame.loads[row].tolist(),
        "stores": None if frame.stores is None else frame.stores[row].tolist(),
        "sectors_per_request": None if sectors is None else [None if np.isnan(mean) else mean for mean in sectors],
        "box_sectors": None if frame.boxes is None else frame.boxes[row].tolist(),
    }


def cells(view: PictureState, frame: Frame | None) -> Iterator[Sequence[object]]:
    """One row per cell that has accesses or sectors of bulk copies, the headings first."""
    yield _HEADINGS
    if frame is None:
        return
    counts, measures = frame.cell_counts, (frame.loads, frame.stores, frame.sectors, frame.boxes)
    for row, column in np.argwhere(counts).tolist():
        start, end = frame.addresses(row)
        values = [None if measure is None else measure[row, column].item() for measure in measures]
        accesses = int(counts[row, column]) - int(values[-1] or 0)
        yield (_band_name(view, start), start, end, *frame.times(column), accesses, *values)


def _axis_labels(view: PictureState, frame: Frame) -> dict[int, str]:
    """The name of each band where it begins, and below it offsets in bytes, by row."""
    labels: dict[int, str] = {}
    for strip in frame.strips:
        band = view.map.bands[strip.band]
        offsets = row_labels(strip, band, in_index=False)
        labels |= {strip.top + row: label for row, label in offsets.items() if row}
        labels[strip.top] = band.name
    return labels


def plot(view: PictureState, frame: Frame, axes: Any) -> None:
    """A picture a band, one below the other, on one scale of density."""
    max_level = float(np.log1p(frame.counts.max(initial=1)))
    for strip, rows in frame.strip_rows:
        counts = frame.counts[rows.start * DOTS_DOWN : rows.stop * DOTS_DOWN]
        axes.imshow(
            np.ma.masked_equal(np.log1p(counts), 0),
            aspect="auto",
            interpolation="nearest",
            extent=(frame.grid.start, frame.grid.end, strip.top + strip.rows, strip.top),
            cmap=_MAPS[strip.band % len(_MAPS)],
            vmin=-max_level / 2,  # so that a single access can be seen
            vmax=max_level,
        )
    axes.set_xlim(frame.grid.start, frame.grid.end)
    axes.set_ylim(max(strip.top + strip.rows for strip in frame.strips), 0)
    labels = _axis_labels(view, frame)
    axes.set_yticks(list(labels), list(labels.values()))
    label_x_axis(axes, float(frame.grid.start), float(frame.grid.end), CYCLES)
    axes.set_xlabel("cycles, simulated" if view.probe_result.simulated else "cycles")
    axes.set_title(view.title)
