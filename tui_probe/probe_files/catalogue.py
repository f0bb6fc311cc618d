"""Catalogue of probes: what a user reads to choose one, of all built-in and installed probes and of the user's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ProbeFileError
from tui_probe.input_limits import PROBE_FILE
from tui_probe.probe_files.loading import built_in_files, installed_files, load_probe
from tui_probe.probe_files.sets import built_in_sets
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probe_files.sets import ProbeSet
    from tui_probe.probe_model.probe import Map, Probe, ProbePoint

_RESIDENT: Final = re.compile(r"^resident\s*=\s*true", re.MULTILINE)
"""Pattern of files that may have a resident map: to parse every probe would take 70 ms of the start of a run."""


class CatalogueEntry(NamedTuple):
    """Facts by which a user chooses a probe.

    ``weight`` is ``light`` or ``heavy``, for which fewer launches are probed. ``checked`` tells against what its
    numbers are tested, ``records`` what is kept in each map, ``saved`` how many bytes of each are in the result of a
    launch, ``places`` where each part of it runs; ``source`` is the file's text.
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
    return [describe_probe(load_probe(name)) for name in sorted({**installed_files(), **built_in_files()})]


def known_choices() -> list[ProbeSet | CatalogueEntry]:
    """The built-in sets, then all probes, by name. Raises ProbeFileError if one of them is damaged."""
    return [*built_in_sets().values(), *known_probes()]


def watchdog_probe() -> str:
    """The name of the probe whose records the host reads while kernels run. Raises ProbeFileError if there is none."""
    files = {**installed_files(), **built_in_files()}
    texts = {name: read_within(path, PROBE_FILE).decode("utf-8", "replace") for name, path in sorted(files.items())}
    named = (name for name, text in texts.items() if _RESIDENT.search(text) and load_probe(name).is_resident)
    if (name := next(named, None)) is None:
        raise ProbeFileError(
            "--watchdog needs a probe that can be read while a kernel runs, and no such probe is installed; install"
            " tui-probe again"
        )
    return name


def describe_probe(probe: Probe) -> CatalogueEntry:
    """A probe, built-in or one's own, as the catalogue shows it."""
    about = probe.about
    has_many_maps = len(probe.maps) > 1
    return CatalogueEntry(
        name=probe.name,
        title=about.title,
        measures=about.measures,
        unit=about.unit,
        cost=about.cost,
        weight=probe.weight,
        checked=about.checked,
        records=tuple(map(_record_text, probe.maps)),
        saved=tuple(
            f"{own_map.name}: {_saved_text(own_map)}" if has_many_maps else _saved_text(own_map)
            for own_map in probe.maps
        ),
        places=tuple(map(_position_text, probe.points)),
        path=probe.path,
        source=probe.source,
    )


def _position_text(point: ProbePoint) -> str:
    """``load: before ld.global, atom.global``, ``whole: at the kernel's entry and its exits``."""
    places = []
    if any(position.is_kernel for position in point.positions):
        ends = [end for end, snippet in (("entry", point.before), ("exits", point.after)) if snippet]
        places.append(f"at the kernel's {' and '.join(ends)}")
    if instructions := [str(position) for position in point.positions if not position.is_kernel]:
        sides = [side for side, snippet in (("before", point.before), ("after", point.after)) if snippet]
        places.append(f"{' and '.join(sides)} {', '.join(instructions)}")
    return f"{point.name}: {'; '.join(places)}"


def _record_text(own_map: Map) -> str:
    """``lifetime: 1 record of 16 bytes per warp (start u64, elapsed u32, smid u32)``."""
    fields = ", ".join(f"{field.name} {field.type}" for field in own_map.fields)
    number = "any number of records" if own_map.cap is None else f"{own_map.cap} record{'s' if own_map.cap > 1 else ''}"
    where = ", only in kernels that save a record" if own_map.optional else ""
    owner = own_map.level.name.lower()
    return f"{own_map.name}: {number} of {own_map.record_bytes} bytes per {owner}{where} ({fields})"


def _saved_text(own_map: Map) -> str:
    """``16 bytes per block (with --detail: 16 bytes per warp)``: what a launch takes of the trace."""
    if own_map.cap is None:
        size = f"any number of records of {own_map.record_bytes} bytes"
    else:
        size = f"{own_map.cap * own_map.record_bytes} bytes"
    saved = f"{size} per {own_map.level.name.lower()}"
    if own_map.reduction is None:
        return saved
    return f"{own_map.reduction.record_bytes} bytes per {own_map.reduction.group} (with --detail: {saved})"
