"""The probes that there are, as ``tui-probe probes`` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_probe.probe_files.folders import built_in_files, installed_files
from tui_probe.probe_files.loading import load_probe

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.model import Map, Probe, ProbePoint


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What a person chooses a probe by.

    ``weight`` is ``light`` or ``heavy``, of which fewer launches are probed. ``checked`` tells against what its numbers
    are tested, ``records`` what is kept in each map, ``saved`` how many bytes of each are in the result of a launch,
    ``places`` where each part of it runs; ``source`` is the file's text.
    """

    name: str
    title: str
    measures: str
    unit: str
    cost: str
    weight: str
    checked: str
    records: tuple[str, ...]
    saved: tuple[str, ...]
    places: tuple[str, ...]
    path: Path
    source: str


def known_probes() -> list[CatalogueEntry]:
    """All built-in and installed probes, by name. Raises ProbeFileError if one of them is damaged."""
    return [describe(load_probe(name)) for name in sorted({**installed_files(), **built_in_files()})]


def describe(probe: Probe) -> CatalogueEntry:
    """A probe, built-in or one's own, as the catalogue shows it."""
    about = probe.about
    records = tuple(_records(own_map) for own_map in probe.maps)
    several = len(probe.maps) > 1
    saved = tuple((f"{own_map.name}: " if several else "") + _saved(own_map) for own_map in probe.maps)
    places = tuple(_places(point) for point in probe.points)
    told = (about.title, about.measures, about.unit, about.cost, probe.weight, about.checked)
    return CatalogueEntry(probe.name, *told, records, saved, places, probe.path, probe.source)


def _places(point: ProbePoint) -> str:
    """``load: before ld.global, atom.global``, ``whole: at the kernel's entry and its exits``."""
    sides = [side for side, snippet in (("before", point.before), ("after", point.after)) if snippet]
    ends = [end for end, snippet in (("entry", point.before), ("exits", point.after)) if snippet]
    instructions = [str(position) for position in point.positions if not position.is_kernel]
    told = [f"at the kernel's {' and '.join(ends)}"] if len(instructions) < len(point.positions) else []
    told += [f"{' and '.join(sides)} {', '.join(instructions)}"] if instructions else []
    return f"{point.name}: {'; '.join(told)}"


def _records(own_map: Map) -> str:
    """``lifetime: 1 record per warp of 16 bytes (start u64, elapsed u32, smid u32)``."""
    fields = ", ".join(f"{field.name} {field.type}" for field in own_map.fields)
    number = "any number of records" if own_map.cap is None else f"{own_map.cap} record{'s' if own_map.cap > 1 else ''}"
    return f"{own_map.name}: {number} per {own_map.level.name.lower()} of {own_map.record_bytes} bytes ({fields})"


def _saved(own_map: Map) -> str:
    """``16 bytes per block, with --detail 16 bytes per warp``: what a launch takes of the trace."""
    size = "any number of records" if own_map.cap is None else f"{own_map.cap * own_map.record_bytes} bytes"
    if own_map.cap is None:
        size += f" of {own_map.record_bytes} bytes"
    whole = f"{size} per {own_map.level.name.lower()}"
    kept = own_map.reduction
    return whole if kept is None else f"{kept.record_bytes} bytes per {kept.group}, with --detail {whole}"
