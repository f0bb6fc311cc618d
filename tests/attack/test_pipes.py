"""A pipe instead of any file of a trace: it is refused, and holds up neither a page nor a reader."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType

import pytest

from tests.recorded import H200, unpacked
from tui_probe.errors import ProbeError
from tui_probe.evals.dmat.raster import read_page_map
from tui_probe.pages.code.code_lines import read_lines
from tui_probe.pages.event_log import log_rows
from tui_probe.pages.views import kinds
from tui_probe.probekit.page_kinds import ViewSource
from tui_probe.trace.follow import open_trace
from tui_probe.trace.kernel_files import read_kernel_info, read_process_log
from tui_probe.trace.log_index import LogIndex, LogTail
from tui_probe.trace.plain_file import open_plain, read_plain
from tui_probe.trace.recent import exit_counts, summarize_trace
from tui_probe.trace.results import read_result
from tui_probe.trace.run_info import read_run_info

NAMES = (
    ("event.log",), ("run.json", "tensor.trace", "stdout.log", "process.log"), ("kernel.info", "original.bin"),
    ("sites.json", "probed.ptx", "original.ptx"), ("pruned.ptx", "pruned.bin", "probed.bin"), ("*.bin",),
)  # fmt: skip
"""Names of files; those of one entry are pipes at the same time."""
IN_FOLDERS = ("kernel.info", "sites.json", "original.bin", "original.ptx", "probed.ptx", "pruned.bin", "probed.bin")
PATIENCE = 20
"""Seconds. Without the tool's care a read of a pipe lasts for ever; with it, it takes no time."""


@pytest.fixture(autouse=True)
def _no_wait_is_without_end() -> Iterator[None]:
    def give_up(_: int, __: FrameType | None) -> None:
        raise AssertionError("a pipe held us up")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(H200 / "attention_sectors", tmp_path_factory.mktemp("recorded"))


@pytest.mark.parametrize("names", NAMES, ids=" ".join)
def test_no_page_waits_for_a_pipe(recorded: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    """All files of these names, in the trace, its kernels' folders and its results."""
    trace = tmp_path / "trace"
    shutil.copytree(recorded, trace)
    folder = next((trace / "kernel").iterdir())
    for name in names:
        there = list(trace.glob("result/*.bin")) if name == "*.bin" else list(trace.rglob(name))
        for place in there or [(folder if name in IN_FOLDERS else trace) / name]:
            place.unlink(missing_ok=True)
            os.mkfifo(place)
    with contextlib.suppress(ProbeError):
        summarize_trace(trace)
        opened = open_trace(trace)
        for kernel in islice((probed for probed in opened.kernels if probed.status == "probed"), 1):
            for kind in kinds():
                with contextlib.suppress(ProbeError):
                    source = ViewSource(opened, kernel)
                    if kind.missing_reason(source) is None:
                        kind.open(source, lambda _: None).record()


READERS: dict[str, Callable[[Path], object]] = {
    "kernel.info": read_kernel_info,
    "process.log": read_process_log,
    "run.json": read_run_info,
    "event.log": lambda path: (list(LogTail(path).slices()), LogIndex(path).refresh()),
    "end of event.log": lambda path: exit_counts(path.parent),
    "lines of PTX": read_lines,
    "result": read_result,
    "page map": read_page_map,
    "part of a file": lambda path: read_plain(path, 10),
    "file": open_plain,
}


@pytest.mark.parametrize("name", READERS)
def test_no_reader_waits_for_a_pipe(tmp_path: Path, name: str) -> None:
    """Nor where no one looked before what kind of file it is: it may have become a pipe since."""
    pipe = tmp_path / "event.log"
    os.mkfifo(pipe)
    with contextlib.suppress(ProbeError, OSError):
        READERS[name](pipe)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_irregular_files_are_reported_as_such(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(OSError, match="not a regular file"):
        open_plain(tmp_path / "x")


def test_rows_of_a_log_that_is_a_pipe(recorded: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    shutil.copytree(recorded, trace)
    opened = open_trace(trace)
    (trace / "event.log").unlink()
    os.mkfifo(trace / "event.log")
    assert list(log_rows(opened)) == []
