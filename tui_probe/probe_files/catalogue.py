"""Catalogue of what a user may choose with ``-p``: sets of probes, and all probes with what is read to choose one.

Probes are built-in, installed, or the user's own. A set is a TOML file with ``probes = ["NAME", "NAME:SAMPLE", …]``,
perhaps ``benchmark = "NAME"`` and ``[about]``. The files of built-in sets are in the directory of the probes.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.errors import ProbeFileError
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.probe_files.loading import built_in_files, built_in_set_files, installed_files, load_probe
from tui_probe.probe_files.stored_facts import stored_value
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Collection

    from tui_probe.probe_model.probe import Map, Probe, ProbePoint

_RESIDENT_SETTING: Final = re.compile(r"^resident\s*=\s*true", re.MULTILINE)
"""Pattern of files that may have a resident map: to parse every probe would take 70 ms of the start of a run."""


class ProbeSet(NamedTuple):
    """A named set: ``choices`` are what a user would write behind ``-p`` instead.

    ``benchmark`` is the one that ``--benchmark`` times where the set is the default, "" for none.
    """

    name: str
    title: str
    choices: tuple[str, ...]
    path: Path
    measures: str = ""
    cost: str = ""
    benchmark: str = ""


def find_set(text: str) -> ProbeSet | None:
    """The set of this name, or in the file at this path; None if it is not a set. Raises ProbeFileError if damaged."""
    if text in built_in_files():
        return None
    if text in built_in_sets():
        return built_in_sets()[text]
    if text in installed_files():  # last: it looks at each installed package
        return None
    path = Path(text)
    return _read_set(path) if path.suffix == ".toml" and path.is_file() else None


def default_choice(name: str, *, benchmark: bool) -> str:
    """The probe or set of a run that names none: ``name``, or the probe of that set that ``--benchmark`` times.

    Raises ProbeFileError if the set is damaged.
    """
    default = find_set(name) if benchmark else None
    return name if default is None else default.benchmark or name


@cache
def built_in_sets() -> dict[str, ProbeSet]:
    """The sets that come with the tool, by name: the default one first, then sorted."""
    sets = (_read_set(path) for path in built_in_set_files().values())
    return {probe_set.name: probe_set for probe_set in sets if probe_set is not None}


def set_within(probes: Collection[str]) -> str:
    """Return the name of the first built-in set of these probes only; "" for none."""
    sets = built_in_sets().items()
    return next(
        (name for name, probe_set in sets if {choice.partition(":")[0] for choice in probe_set.choices} <= set(probes)),
        "",
    )


def _read_set(path: Path) -> ProbeSet | None:
    """Read a set; None if the file is none: reading it as a probe reports the error."""
    try:
        data = read_within(path, PROBE_FILE)
        values = stored_value([path], [b"set", data], lambda: parse_toml(data.decode("utf-8")), _decode_table)
    except (OSError, ValueError):
        return None
    if "probes" not in values:
        return None
    names, description = values["probes"], values.get("about", {})
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise ProbeFileError(f'{path}: probes must be a list of names, such as ["NAME", "NAME:1/16"], not {names!r}')
    return ProbeSet(
        name=path.stem,
        title=_text_in(description, "title"),
        choices=tuple(names),
        path=path,
        measures=_text_in(description, "measures"),
        cost=_text_in(description, "cost"),
        benchmark=_text_in(values, "benchmark"),
    )


def _decode_table(data: bytes) -> dict[str, Any]:
    return dict(json.loads(data))


def _text_in(table: object, key: str) -> str:
    """The text of a key; "" where there is none."""
    text = table.get(key) if isinstance(table, dict) else None
    return text if isinstance(text, str) else ""


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
    resident_probes = (
        name for name, text in texts.items() if _RESIDENT_SETTING.search(text) and load_probe(name).is_resident
    )
    if (name := next(resident_probes, None)) is None:
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
        kernel_ends = [end for end, snippet in (("entry", point.before), ("exits", point.after)) if snippet]
        places.append(f"at the kernel's {' and '.join(kernel_ends)}")
    if instructions := [str(position) for position in point.positions if not position.is_kernel]:
        sides = [side for side, snippet in (("before", point.before), ("after", point.after)) if snippet]
        places.append(f"{' and '.join(sides)} {', '.join(instructions)}")
    return f"{point.name}: {'; '.join(places)}"


def _record_text(own_map: Map) -> str:
    """``lifetime: 1 record of 16 bytes per warp (start u64, elapsed u32, smid u32)``."""
    fields = ", ".join(f"{field.name} {field.type}" for field in own_map.fields)
    number = "any number of records" if own_map.cap is None else f"{own_map.cap} record{'s' if own_map.cap > 1 else ''}"
    condition = ", only in kernels that save a record" if own_map.optional else ""
    owner = own_map.level.name.lower()
    return f"{own_map.name}: {number} of {own_map.record_bytes} bytes per {owner}{condition} ({fields})"


def _saved_text(own_map: Map) -> str:
    """``16 bytes per block (with --detail: 16 bytes per warp)``: what a launch takes of the trace."""
    if own_map.cap is None:
        size = f"any number of records of {own_map.record_bytes} bytes"
    else:
        size = f"{own_map.cap * own_map.record_bytes} bytes"
    text = f"{size} per {own_map.level.name.lower()}"
    if own_map.reduction is None:
        return text
    return f"{own_map.reduction.record_bytes} bytes per {own_map.reduction.group} (with --detail: {text})"
