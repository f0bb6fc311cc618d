"""Directories of probes: ``probe.toml`` or ``probe.py``, and variants beside it.

The folders of the built-in probes come with the package. Others are installed, named by an entry point of the group
``tui_probe.probes`` whose value is the folder's module; or a user names them by path.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ENTRY_POINT_GROUP: Final = "tui_probe.probes"
DEFAULT_PROBE: Final = "survey"
"""The set of probes of a run that names none: it answers what is slow, in which line, and why."""
PROBE_SUFFIXES: Final = (".toml", ".py")
MAIN_STEM: Final = "probe"
"""The file that makes a folder a probe."""


def built_in_directory() -> Path:
    """Return the directory of the built-in probes: inside the installed package, or ``probes`` of a source checkout."""
    spec = find_spec("tui_probe.probes")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(__file__).parents[2] / "probes"


def is_in_probe_folder(file: Path) -> bool:
    """Return whether a file is of a probe's folder: its ``probe.toml`` or ``probe.py``, or a variant beside that."""
    folder = file.resolve().parent
    return file.stem == MAIN_STEM or (
        file.suffix == ".toml" and any((folder / (MAIN_STEM + end)).is_file() for end in PROBE_SUFFIXES)
    )


def probe_name_of(file: Path) -> str:
    """The name of the probe in a file: of ``probe.toml`` its folder's, of a variant beside that FOLDER_VARIANT.

    A file that is of no probe's folder is called as it is.
    """
    folder = file.resolve().parent.name
    if not is_in_probe_folder(file):
        return file.stem
    return folder if file.stem == MAIN_STEM else f"{folder}_{file.stem}"


def probe_files_in(folder: Path) -> dict[str, Path]:
    """The files of a probe's folder by the names of the probes, the main one first; empty if it is no such folder."""
    mains = [file for suffix in PROBE_SUFFIXES if (file := folder / (MAIN_STEM + suffix)).is_file()]
    if not mains:
        return {}
    variants = sorted(file for file in folder.glob("*.toml") if file.stem != MAIN_STEM)
    return {probe_name_of(file): file for file in (mains[0], *variants)}


@cache
def built_in_files() -> dict[str, Path]:
    """The files of all built-in probes, by name, sorted."""
    folders = sorted(path for path in built_in_directory().iterdir() if path.is_dir())
    files = {name: file for folder in folders for name, file in probe_files_in(folder).items()}
    return dict(sorted(files.items()))


@cache
def built_in_set_files() -> dict[str, Path]:
    """The files that may hold the built-in sets of probes, by name: the default one first, then sorted."""
    files = {file.stem: file for file in built_in_directory().glob("*.toml")}
    return {name: files[name] for name in sorted(files, key=lambda name: (name != DEFAULT_PROBE, name))}


@cache
def installed_directories() -> dict[str, Path]:
    """The folders of probes that other packages bring, by the module that is each folder. None is imported."""
    from importlib.metadata import entry_points  # takes as long to import as all of this package, and is asked last

    directories = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            spec = find_spec(point.module)
        except (ImportError, ValueError):
            continue  # told by the registry, which tries to import it
        if spec is not None and spec.origin is not None:
            directories[point.module] = Path(spec.origin).parent
    return directories


def installed_files() -> dict[str, Path]:
    """The files of probes that other packages bring, by name."""
    return {name: file for folder in installed_directories().values() for name, file in probe_files_in(folder).items()}
