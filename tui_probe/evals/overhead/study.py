"""A study: kernels, the programs that launch them, and the probes whose cost is wanted; a small TOML file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tui_probe.errors import TraceError
from tui_probe.input_limits import PROBE_FILE
from tui_probe.toml_data import parse_toml
from tui_probe.trace.plain_file import read_within

PUBLISHED: Final = Path(__file__).with_name("published.study.toml")
SMALL: Final = Path(__file__).with_name("small.study.toml")
SUFFIX: Final = ".toml"
_MOST_REPEATS: Final = 100
_FORM: Final = 'probes = ["block_sched"], repeats = 3, and for each kernel [[kernel]] with name, kernel and command'


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. ``kernel`` is a part of the kernel's name, ``A:B`` either; "" any of the program.

    Rows of one ``run`` are measured together, in one run of the program that all of them name.
    """

    name: str
    command: tuple[str, ...]
    kernel: str = ""
    group: str = ""
    modules: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    run: str = ""

    @property
    def key(self) -> str:
        """Its part of the names of traces."""
        return re.sub(r"[^A-Za-z0-9]+", "_", self.run or self.name)


@dataclass(frozen=True, slots=True)
class Study:
    """The rows in their order, the probes, and how often each is measured."""

    rows: tuple[Row, ...]
    probes: tuple[str, ...]
    repeats: int = 1

    def runs(self) -> list[list[Row]]:
        """The rows that one run measures, in their order."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.key, []).append(row)
        return list(found.values())


def own_studies() -> Study:
    """The rows of those that come with the package, to know their traces by name."""
    small, published = read_study(SMALL), read_study(PUBLISHED)
    return Study((*small.rows, *published.rows), published.probes)


def read_study(path: Path) -> Study:
    """Raises TraceError, with the file's name and what is wrong, for one that is no study."""
    try:
        study = _study(parse_toml(read_within(path, PROBE_FILE).decode("utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise TraceError(f"{path}: no study: {what}. A study has {_FORM}") from error
    return study


def _study(data: dict[str, Any]) -> Study:
    rows = data["kernel"]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("kernel is no list of tables ([[kernel]])")
    study = Study(tuple(map(_row, rows)), _words(data, "probes"), data.get("repeats", 1))
    names = [re.sub(r"[^A-Za-z0-9]+", "_", row.name) for row in study.rows]
    twice = next((row.name for row, name in zip(study.rows, names, strict=True) if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two kernels are named {twice}")
    for of_run in study.runs():
        _check_run(of_run)
    if not isinstance(study.repeats, int) or not 1 <= study.repeats <= _MOST_REPEATS:
        raise ValueError(f"repeats is {study.repeats!r}, not a number from 1 to {_MOST_REPEATS}")
    if not study.rows or not study.probes:
        raise ValueError("it has no kernels, or no probes")
    return study


def _check_run(rows: list[Row]) -> None:
    """ValueError where rows of one run could not be told apart, or are of different programs."""
    first = rows[0]
    for row in rows[1:]:
        if not (row.run and first.run):
            raise ValueError(f"{row.name} and {first.name} are a run of the same name")
        if row.command != first.command:
            raise ValueError(f"{row.name} and {first.name} are of the run {row.run}, and have different commands")
    if len(rows) > 1 and not all(row.kernel for row in rows):
        raise ValueError(f"several kernels of the run {first.run}: each must say a part of its kernel's name")


def _row(data: dict[str, Any]) -> Row:
    unknown = data.keys() - {"name", "command", "kernel", "group", "modules", "tools", "run"}
    if unknown:
        raise ValueError(f"a kernel has {', '.join(sorted(unknown))}, which means nothing")
    name, kernel, group, run = (_text(data, key) for key in ("name", "kernel", "group", "run"))
    command, modules, tools = (_words(data, key) for key in ("command", "modules", "tools"))
    if not name or not command:
        raise ValueError("a kernel has no name, or no command")
    return Row(name, command, kernel, group, modules, tools, run)


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} is {value!r}, not a text")
    return value


def _words(data: dict[str, Any], key: str) -> tuple[str, ...]:
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError(f"{key} is {value!r}, not a list of texts")
    return tuple(value)
