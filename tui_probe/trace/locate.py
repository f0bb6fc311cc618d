"""Finding a trace from what a person names, and files in a trace from what its log names."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tui_probe.errors import TraceError

LOG = "event.log"
_OF_OTHERS = (".csv", ".sqlite")
"""How files of ncu and nsys end."""


def find_trace(path: Path) -> Path:
    """The trace directory that ``path`` means.

    ``path`` may be a trace directory, its ``event.log``, or a folder of traces: then the newest is meant. TraceError
    says what to do if there is none.
    """
    if path.name == LOG and path.is_file():
        return path.parent
    if not path.is_dir():
        if path.suffix in _OF_OTHERS and path.is_file():
            word = shlex.quote(str(path))
            raise TraceError(
                f"{path} is a file, not a trace directory: one of ncu or nsys opens with tui-probe open {word}"
            )
        kind = "is a file, not a trace directory" if path.exists() else "does not exist"
        raise TraceError(f"{path} {kind}: name a trace directory (the one that holds {LOG})")
    if is_trace(path):
        return path
    traces = traces_in(path)
    if not traces:
        raise TraceError(f"{path} holds no trace (no {LOG} in it or in a folder of it): name the directory of a run")
    return traces[-1]


def trace_of_result(path: Path) -> Path | None:
    """The trace that a result file, ``TRACE/result/0.486795.bin``, is of; None for anything else."""
    trace = path.absolute().parent.parent
    found = path.suffix == ".bin" and path.parent.name == "result" and path.is_file() and is_trace(trace)
    return (path.parent.parent if path.parent.parent.name else trace) if found else None


def is_trace(directory: Path) -> bool:
    return (directory / LOG).is_file()


def traces_in(directory: Path) -> list[Path]:
    """The traces in a folder, the oldest first, by the time of the last event."""
    try:
        found = [child for child in directory.iterdir() if child.is_dir() and is_trace(child)]
    except OSError as error:
        raise TraceError(f"{directory}: {error.strerror or error}") from error
    return sorted(found, key=lambda child: ((child / LOG).stat().st_mtime_ns, child.name))


def inside(root: Path, *names: str) -> Path | None:
    """The path ``root/names…`` if each name is a plain one and no link leads out of ``root``, else None.

    A trace is data from elsewhere: a name in it may be ``..``, absolute, or that of a link.
    """
    path = path_inside(root, *names)
    return None if path is None else Path(path)


def path_inside(root: Path, *names: str) -> str | None:
    """The same as a text, for thousands of files: a Path takes longer to make than a file to find."""
    path = str(root)
    for name in names:
        if not name or name in (".", "..") or "/" in name or "\0" in name:
            return None
        path = f"{path}/{name}"
        if os.path.islink(path) and not _leads_inside(path, root):  # noqa: PTH114
            return None
    return path


def _leads_inside(link: str, root: Path) -> bool:
    try:
        return Path(link).resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False
