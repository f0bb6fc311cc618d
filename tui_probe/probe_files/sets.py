"""Sets of probes.

A set is a TOML file with ``probes = ["NAME", "NAME:SAMPLE", …]``, perhaps ``benchmark = "NAME"`` and ``[about]``. The
files of built-in sets are in the directory of the probes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tui_probe.errors import ProbeFileError
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.probe_files.loading import built_in_files, built_in_set_files, installed_files
from tui_probe.probe_files.stored_facts import stored_value
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Collection


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
        values = stored_value([path], [b"set", data], lambda: parse_toml(data.decode("utf-8")), _table)
    except (OSError, ValueError):
        return None
    if "probes" not in values:
        return None
    names, about = values["probes"], values.get("about", {})
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        raise ProbeFileError(f'{path}: probes must be a list of names, such as ["NAME", "NAME:1/16"], not {names!r}')
    return ProbeSet(
        name=path.stem,
        title=_text_in(about, "title"),
        choices=tuple(names),
        path=path,
        measures=_text_in(about, "measures"),
        cost=_text_in(about, "cost"),
        benchmark=_text_in(values, "benchmark"),
    )


def _table(stored: bytes) -> dict[str, Any]:
    return dict(json.loads(stored))


def _text_in(table: object, key: str) -> str:
    """The text of a key; "" where there is none."""
    text = table.get(key) if isinstance(table, dict) else None
    return text if isinstance(text, str) else ""
