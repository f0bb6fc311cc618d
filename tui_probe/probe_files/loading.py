"""Load a probe by name or path: find its file or directory, read its TOML dialect or Python, and verify it.

A directory of a probe has ``probe.toml`` or ``probe.py``, and variants next to it. Those of the built-in probes come
with the package. Others are installed: an entry point of the group ``tui_probe.probes`` names the directory's module. A
user names any other by its path.
"""

from __future__ import annotations

import contextlib
import os
import sys
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError, did_you_mean
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.option_probes import (
    LINE_RANGE_PREFIX,
    PHASES_PREFIX,
    limited_probe,
    write_limited_probe,
    write_line_range_probe,
    write_phases_probe,
)
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from tui_probe.probe_model.probe import Probe

ENTRY_POINT_GROUP: Final = "tui_probe.probes"
PROBE_SUFFIXES: Final = (".toml", ".py")
_METADATA_SUFFIXES: Final = (".dist-info", ".egg-info")
MAIN_STEM: Final = "probe"
"""The file that makes a folder a probe."""
_PYTHON_SUFFIX: Final = ".py"


def built_in_directory() -> Path:
    """Return the directory of the built-in probes: inside the installed package, or ``probes`` of a source checkout."""
    spec = find_spec("tui_probe.probes")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(__file__).parents[2] / "probes"


def is_in_probe_folder(file: Path) -> bool:
    """Return whether a file is of a probe's folder: its ``probe.toml`` or ``probe.py``, or a variant next to it."""
    folder = file.resolve().parent
    return file.stem == MAIN_STEM or (
        file.suffix == ".toml" and any((folder / (MAIN_STEM + end)).is_file() for end in PROBE_SUFFIXES)
    )


def probe_name_of(file: Path) -> str:
    """The name of the probe in a file: of ``probe.toml`` its folder's, of a variant next to it FOLDER_VARIANT.

    A file that is of no probe's folder is called as it is.
    """
    return _folder_probe_name(file.resolve().parent, file) if is_in_probe_folder(file) else file.stem


def _folder_probe_name(folder: Path, file: Path) -> str:
    return folder.name if file.stem == MAIN_STEM else f"{folder.name}_{file.stem}"


def probe_files_in(folder: Path) -> dict[str, Path]:
    """The files of a probe's folder by the names of the probes, the main one first; empty if it is no such folder."""
    mains = [file for suffix in PROBE_SUFFIXES if (file := folder / (MAIN_STEM + suffix)).is_file()]
    if not mains:
        return {}
    variants = sorted(file for file in folder.glob("*.toml") if file.stem != MAIN_STEM)
    resolved = folder.resolve()  # once: a run looks at all built-in probes before its program starts
    return {
        probe_name_of(file) if file.is_symlink() else _folder_probe_name(resolved, file): file
        for file in (mains[0], *variants)
    }


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


def has_installed_probes() -> bool:
    """Return whether some installed package names an entry point of probes, or one that cannot be read here may.

    Files are only searched for the name of the group: importing :mod:`importlib.metadata` takes 30 ms of the start.
    """
    group = ENTRY_POINT_GROUP.encode()
    for folder in map(Path, sys.path):
        if folder.is_file():  # an archive
            return True
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):  # noqa: PTH208 - names are enough
                if name.endswith(_METADATA_SUFFIXES):
                    with contextlib.suppress(OSError):
                        if group in (folder / name / "entry_points.txt").read_bytes():
                            return True
    return False


@cache
def installed_directories() -> dict[str, Path]:
    """The folders of probes that other packages bring, by the module that is each folder. None is imported."""
    if not has_installed_probes():
        return {}
    from importlib.metadata import entry_points

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


def built_in_names() -> list[str]:
    """The names of the built-in probes, sorted."""
    return list(built_in_files())


def find_probe(name_or_path: str) -> Path:
    """The file of a built-in or installed probe, or of one's own: a file, or a folder that holds one.

    The file of a probe that is named by lines or phases, or limited to lines, is written. Raises ProbeFileError, with
    the names that there are, if there is none, and UsageError for lines that cannot be.
    """
    if name_or_path.startswith(LINE_RANGE_PREFIX):
        return write_line_range_probe(name_or_path)
    if name_or_path.startswith(PHASES_PREFIX):
        return write_phases_probe(name_or_path, built_in_files().values())
    if limited := limited_probe(name_or_path):
        file = find_probe(limited[0])
        return write_limited_probe(file, probe_name_of(file), limited[1])
    for list_files in (built_in_files, installed_files):
        if name_or_path in list_files():
            return list_files()[name_or_path]
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.is_dir():
        inside = next(iter(probe_files_in(path.resolve()).values()), None)
        if inside is None:
            raise ProbeFileError(f"{name_or_path}: this directory has neither probe.toml nor probe.py")
        return inside
    names = {**built_in_set_files(), **installed_files(), **built_in_files()}
    names_in_text = [part.strip() for part in name_or_path.split(",")]
    if len(names_in_text) > 1 and any(part in names for part in names_in_text):
        options = " ".join(f"-p {part}" for part in names_in_text if part)
        raise ProbeFileError(f"{name_or_path}: -p takes one probe; for several probes, repeat the option: {options}")
    suggestion = did_you_mean(name_or_path, names) or f" (there are: {', '.join(names) or 'none'})"
    raise ProbeFileError(f"{name_or_path}: no such file, and no probe of that name{suggestion}")


def load_probe(name_or_path: str) -> Probe:
    """Find, read and verify a probe. Raises ProbeFileError that names file, table or line, and what to do."""
    path = find_probe(name_or_path)
    return read_probe(read_probe_file(path), path)


def read_probe_file(path: Path) -> bytes:
    """Read the contents of a probe file. Raises ProbeFileError."""
    try:
        return read_within(path, PROBE_FILE)
    except OSError as error:
        raise ProbeFileError(f"{path}: cannot be read: {error.strerror}") from error


@lru_cache(maxsize=128)
def read_probe(data: bytes, path: Path) -> Probe:
    """Read and verify the contents of a probe file; the same contents once per process. Raises ProbeFileError."""
    try:
        source = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProbeFileError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8 text") from error
    from tui_probe.probe_files.dialects import probe_of_tables  # brings the model of PTX, which names do not need

    name = probe_name_of(path)
    callback = name if is_in_probe_folder(path) else ""
    return probe_of_tables(_read_tables(source, path), path, name, source=source, callback=callback)


def _read_tables(source: str, path: Path) -> dict[str, object]:
    if path.suffix == _PYTHON_SUFFIX:
        from tui_probe.dsl.compiler import compile_tables  # most probes are not in this language

        return compile_tables(source, str(path))
    try:
        return parse_toml(source)
    except ValueError as error:  # a number of thousands of digits is not a TOMLDecodeError
        raise ProbeFileError(f"{path}: this is not TOML: {error}") from error
