"""Reads timelines: an sqlite export of Nsight Systems, CSV files of ``nsys stats``, or Chrome traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import ImportFileError
from tui_probe.nsight.importers.chrome_file import chrome_files
from tui_probe.nsight.importers.text_file import first_bytes
from tui_probe.nsight.importers.which_tool import SQLITE_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tui_probe.nsight.importers.nsys_model import NsysReport


def read_nsys(paths: Iterable[Path | str], progress: Callable[[float], object] = lambda _: None) -> NsysReport:
    """One profile. ImportFileError names the file that cannot be used, and what to do. ``progress`` is told the share
    that was read.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise ImportFileError("no file: name an sqlite export of Nsight Systems, or CSV files of nsys stats")
    if chrome_files(files):
        from tui_probe.nsight.importers.chrome import read_chrome

        return read_chrome(files, progress)
    starts = [first_bytes(path, len(SQLITE_MARK)) for path in files]
    databases = [path for path, start in zip(files, starts, strict=True) if start == SQLITE_MARK]
    if databases and len(files) > 1:
        raise ImportFileError(f"{databases[0]}: an sqlite export is imported by itself: name it alone")
    for path in files:
        if path.suffix in (".nsys-rep", ".qdrep"):
            raise ImportFileError(
                f"{path}: a report of Nsight Systems, which only nsys can read: nsys export --type sqlite {path}"
            )
    if databases:
        from tui_probe.nsight.importers.nsys_sqlite import read_sqlite

        return read_sqlite(files[0], progress)
    from tui_probe.nsight.importers.nsys_csv import read_csv

    return read_csv(files, progress)
