"""Object files of a build: their symbols, and the sources of the hook that a C program needs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from .conftest import HOOK_INCLUDES, ROOT, Build

STUBS = "stubs.c"  # of the simulated GPU: a weak definition of every exported function
GLOBAL = "ABCDGRSTVW"  # the kinds of symbols, as nm prints them, that other files can refer to


def symbols(units: Iterable[Path]) -> dict[Path, tuple[set[str], set[str]]]:
    """Return the symbols that each object file defines for others, and those that it takes from them."""
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    table: dict[Path, tuple[set[str], set[str]]] = {unit: (set(), set()) for unit in units}
    listing = subprocess.run(["nm", "-A", "-P", *table], check=True, capture_output=True, text=True).stdout
    for line in listing.splitlines():
        file, _, symbol = line.partition(": ")
        name, kind, *_ = symbol.split()
        defined, taken = table[Path(file)]
        if kind in GLOBAL:
            defined.add(name)
        if kind in "Uw":
            taken.add(name)
    return table


def references(units: Iterable[Path]) -> dict[Path, set[Path]]:
    """Return the other object files that each refers to; of several definitions the last one counts."""
    known = symbols(units)
    stubs_first = sorted(known.items(), key=lambda item: item[0].stem != STUBS)  # others win over weak definitions
    home = {symbol: unit for unit, (defined, _) in stubs_first for symbol in defined}
    return {unit: {home[symbol] for symbol in taken & home.keys()} - {unit} for unit, (_, taken) in known.items()}


def hook_objects(built: Build) -> list[Path]:
    """Return the object files of the hook."""
    return sorted((built.hook.parent.parent / "CMakeFiles" / "hook.dir").rglob("*.o"))


def compile_with_hook(built: Build, program: Path, output: Path, *flags: str) -> None:
    """Compile a C program with the sources of the hook that it needs, found by their symbols."""
    command = ["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", *HOOK_INCLUDES]
    unit = output.with_suffix(".o")
    subprocess.run([*command, "-c", "-o", unit, program], check=True)
    needed = _closure(unit, references([*hook_objects(built), unit]))
    sources = [_source(built, path) for path in sorted(needed - {unit})]
    subprocess.run([*command, *flags, "-o", output, program, *sources, "-lpthread", "-ldl"], check=True)


def _closure(start: Path, graph: dict[Path, set[Path]]) -> set[Path]:
    reached, waiting = set[Path](), [start]
    while waiting:
        if (unit := waiting.pop()) not in reached:
            reached.add(unit)
            waiting += graph[unit]
    return reached


def _source(built: Build, unit: Path) -> Path:
    """Return the source of an object file of the hook; some are generated."""
    name = unit.relative_to(built.hook.parent.parent / "CMakeFiles" / "hook.dir").with_suffix("")
    return path if (path := ROOT / "hook" / name).exists() else built.hook.parent.parent / name
