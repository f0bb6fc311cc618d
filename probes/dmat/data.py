"""A picture of accesses as data, and on matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw.canvas import CYCLES, label_x_axis

from .frame import DOTS_ACROSS, DOTS_DOWN
from .picture import row_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .axes import Band
    from .frame import Frame
    from .moves import PictureState

_HEADINGS: Final = (
    "band", "address", "address_end", "cycle", "cycle_end", "accesses", "loads", "stores", "sectors_per_request",
    "box_sectors",
)  # fmt: skip
_MAPS: Final = ("Blues", "Oranges", "Greens", "Purples", "YlOrBr", "Reds", "PuBu", "Greys")
"""Colour maps of matplotlib in the order of the hues on the screen."""


def record(view: PictureState, frame: Frame | None) -> dict[str, Any]:
    """Axes, bands, and the accesses of each cell, row by row. Addresses are in bytes, times in cycles."""
    accesses, survey = view.map.accesses, view.map.survey
    clocks, place = accesses.clocks, view.selection.block
    block = None if place is None else view.block_number(place)
    return {
        "simulated": view.found.simulated,
        "kept": survey.kept,
        "accesses": accesses.made,
        "capacity": accesses.capacity,
        "boxes": None if view.map.boxes is None else view.map.boxes.record(),
        "blocks": view.found.result.header.blocks,
        "blocks_measured": len(view.found.result.blocks),
        "selection": {"block": block, "warp": view.selection.warp, "ptx_line": view.selection.line},
        "colouring": view.colouring,
        "clocks": {
            "basis": clocks.basis,
            "domains": clocks.domains,
            "error": clocks.error,
            "cycles_per_ns": accesses.cycles_per_ns,
        },
        "bands": [_band(band) for band in view.map.bands],
        "exact": None if frame is None else frame.exact,
        "cursor": None if frame is None else view.read_out(frame).record(),
        "cycle_edges": None if frame is None else frame.grid.column_edges()[::DOTS_ACROSS].tolist(),
        "rows": [] if frame is None else [_row(view, frame, row) for row in range(len(frame.cell_counts))],
    }


def _band(band: Band) -> dict[str, Any]:
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


def _name(view: PictureState, address: int) -> str | None:
    number = view.space.band_of(address)
    return None if number is None else view.map.bands[number].name


def _row(view: PictureState, frame: Frame, row: int) -> dict[str, Any]:
    low, high = frame.addresses(row)
    sectors = None if frame.sectors is None else frame.sectors[row].tolist()
    copied = 0 if frame.boxes is None else frame.boxes[row]
    return {
        "band": _name(view, low),
        "start": low,
        "end": high,
        "accesses": (frame.cell_counts[row] - copied).tolist(),
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
    counts, others = frame.cell_counts, (frame.loads, frame.stores, frame.sectors, frame.boxes)
    for row, column in np.argwhere(counts).tolist():
        low, high = frame.addresses(row)
        values = [None if other is None else other[row, column].item() for other in others]
        accesses = int(counts[row, column]) - int(values[-1] or 0)
        yield (_name(view, low), low, high, *frame.times(column), accesses, *values)


def _row_labels(view: PictureState, frame: Frame) -> dict[int, str]:
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
    most, at = float(np.log1p(frame.counts.max(initial=1))), 0
    for strip in frame.strips:
        counts = frame.counts[at * DOTS_DOWN : (at + strip.rows) * DOTS_DOWN]
        at += strip.rows
        axes.imshow(
            np.ma.masked_equal(np.log1p(counts), 0),
            aspect="auto",
            interpolation="nearest",
            extent=(frame.grid.start, frame.grid.end, strip.top + strip.rows, strip.top),
            cmap=_MAPS[strip.band % len(_MAPS)],
            vmin=-most / 2,  # so that a single access can be seen
            vmax=most,
        )
    axes.set_xlim(frame.grid.start, frame.grid.end)
    axes.set_ylim(max(strip.top + strip.rows for strip in frame.strips), 0)
    labels = _row_labels(view, frame)
    axes.set_yticks(list(labels), list(labels.values()))
    label_x_axis(axes, float(frame.grid.start), float(frame.grid.end), CYCLES)
    axes.set_xlabel("cycles, simulated" if view.found.simulated else "cycles")
    axes.set_title(view.title)
