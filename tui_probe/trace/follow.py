"""Read the log of a trace as it grows: single lines, and whole blocks of launches.

Most of a long log is launches and saved results, a few lines each, one after another. Their numbers are read as arrays.
What is not exactly such lines, cut and interleaved ones among it, is left to be read a line at a time, in its place.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.bulk_lines import (
    KernelLines,
    gpu_times,
    merge_by_line,
    probed_launches,
    saved_results,
    unprobed_launches,
)
from tui_probe.trace.events import parse_line
from tui_probe.trace.line_block import LineBlock
from tui_probe.trace.locate import LOG, find_trace
from tui_probe.trace.log_index import LogTail
from tui_probe.trace.model import Trace
from tui_probe.trace.recorder import Recorder
from tui_probe.trace.reduce import Reducer
from tui_probe.trace.run_info import is_alive, read_run_json
from tui_probe.trace.unprobed import LINE_PREFIX, match_line, read_packed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.trace.launches import LaunchColumns, ResultColumns

_IGNORED_PREFIXES: Final = (b"[mem] ", b"[mod] ", b"[bin] ", b"[probe] find ", b"[probe] mkdir ", b"[probe] write ",
                   b"[probe] engine ", b"[probe] read ", b"[probe] finish ", b"[exec] funcmap-")  # fmt: skip
"""Lines that tell nothing which the trace model keeps, in logs that have ``[kernel]`` lines."""

_INDEPENDENT_PREFIXES: Final = (
    b"[benchmark] ", b"[nvtx] ", b"[time] ", b"[budget] ", b"[key] ", b"[reason] ", b"[passed] lost ", b"[graph] ",
    b"[node] ",
)  # fmt: skip
"""Lines that say the same wherever they be among launches."""
_HEAD_BYTES: Final = 1 << 14
"""Bytes that are read line by line to learn whether the log is one of tui-probe."""
_MAX_ASSEMBLY_SECONDS: Final = 60.0
"""Seconds after which a kernel's assembler is no longer waited for."""


class BulkReader:
    """Reads slices of a log of tui-probe into a recorder; ``read_line`` gets each line that is not a part of a whole
    launch.
    """

    def __init__(self, recorder: Recorder, read_line: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_line = read_line
        self._kernels = KernelLines(recorder, read_line)

    def read(self, text: bytes, offset: int = 0) -> int:
        """``text`` is whole lines that follow those of the last call, ``offset`` in the log; how many they are."""
        if not text:
            return 0
        block = LineBlock(text)
        is_unread = np.ones(len(block), dtype=np.bool_)
        for prefix in _IGNORED_PREFIXES:
            is_unread[block.lines_with_prefix(prefix)] = False
        self._kernels.read(block, is_unread)
        self._recorder.record_times(gpu_times(block, is_unread))
        unprobed_columns = unprobed_launches(block, is_unread, self._recorder.trace.launches.reason_number)
        launches = merge_by_line(probed_launches(block, is_unread), unprobed_columns)
        results = saved_results(block, is_unread)
        self._record_packed(block, is_unread, offset)
        self._record(block, np.flatnonzero(is_unread), launches, results)
        return len(block)

    def _record_packed(self, block: LineBlock, is_unread: NDArray[np.bool_], offset: int) -> None:
        """Launches that only have a key, many to a line. The others of the same slice may come before or after them."""
        matches = []
        for line in block.lines_with_prefix(LINE_PREFIX).tolist():
            match = match_line(block.text, block.line_starts[line], block.line_ends[line])
            if match is not None:
                matches.append((offset + match.start(), match))
                is_unread[line] = False
        if matches:
            self._recorder.record_packed(*read_packed(matches))

    def _record(
        self, block: LineBlock, unread_lines: NDArray[np.int64], launches: LaunchColumns, results: ResultColumns
    ) -> None:
        """Record everything in the order of the log: ``unread_lines`` are the lines that are read one by one.

        Lines that do not depend on launches come first: the log would otherwise be cut into as many parts.
        """
        is_independent = np.zeros(len(block), dtype=np.bool_)
        for prefix in _INDEPENDENT_PREFIXES:
            is_independent[block.lines_with_prefix(prefix)] = True
        independent_lines = unread_lines[is_independent[unread_lines]]
        for start, end in zip(
            block.line_starts[independent_lines].tolist(), block.line_ends[independent_lines].tolist(), strict=True
        ):
            self._read_line(block.text[start:end])
        unread_lines = unread_lines[~is_independent[unread_lines]]
        launch = result = 0
        launches_before = np.searchsorted(launches.line, unread_lines).tolist()
        results_before = np.searchsorted(results.line, unread_lines).tolist()
        for line, launch_end, result_end in zip(unread_lines.tolist(), launches_before, results_before, strict=True):
            if (launch_end, result_end) != (launch, result):
                self._record_parts(launches.part(slice(launch, launch_end)), results.part(slice(result, result_end)))
                launch, result = launch_end, result_end
            self._read_line(block.text[block.line_starts[line] : block.line_ends[line]])
        self._record_parts(launches.part(slice(launch, None)), results.part(slice(result, None)))

    def _record_parts(self, launches: LaunchColumns, results: ResultColumns) -> None:
        """Results come last: one may be of a launch before it, never of one after it."""
        if len(launches):
            self._recorder.record_launches(launches)
        if len(results):
            self._recorder.record_results(results)


class TraceFollower:
    """Keeps ``trace`` up to date with a trace directory, which need not exist yet.

    ``poll`` reads what was appended since the last one; ``has_changed`` then holds the indices of the kernels that it
    touched. Memory goes with the number of kernels: no line is kept, and older launches are in a file.
    """

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self._tail = LogTail(self.directory / LOG)
        self._run_info_stamp: tuple[int, int] | None = None
        self._start()

    def _start(self) -> None:
        self.trace = Trace(self.directory)
        self._recorder = Recorder(self.trace)
        self._reducer = Reducer(self.trace, self._recorder)
        self._bulk = BulkReader(self._recorder, self._read_line)
        self.changed_kernels: set[int] = set()
        self._assembling: dict[int, float] = {}

    def poll(self, progress: Callable[[float], object] = lambda _: None) -> bool:
        """Read what is new; return whether anything changed. Raises TraceError if the log exists and cannot be read.

        ``progress`` receives the share of the log that was read.
        """
        was_replaced = self._tail.was_replaced()
        if was_replaced:
            self._start()
            self._run_info_stamp = None
        offset_before = self._tail.offset
        for lines in self._tail.slices():
            self._read_slice(lines, self._tail.start)
            self._recorder.count_many_pending()
            progress(self._tail.share)
        self._recorder.count_pending()
        self.changed_kernels = self._recorder.changed_kernels.copy()
        self._recorder.changed_kernels.clear()
        state = self.trace.state
        state.kernels = len(self.trace.kernels)
        self.trace.log_ends_inside_line = self._tail.ends_inside_line
        grew = self._tail.offset != offset_before
        has_changed = self._read_run_info()
        has_changed |= self._update_running()
        self._watch_assemblies()
        return was_replaced or grew or has_changed or bool(self.changed_kernels)

    def _read_slice(self, lines: bytes, offset: int) -> None:
        """Take in whole lines. Until a log shows that it is one of tui-probe, they have to be read one by one."""
        end = 0
        if self._reducer.older is not None:
            end = lines.find(b"\n", _HEAD_BYTES) + 1 or len(lines)
            self.trace.state.lines += self._read_lines(lines[:end], offset)
        read_rest = self._bulk.read if self._reducer.older is None else self._read_lines
        self.trace.state.lines += read_rest(lines[end:], offset + end)

    def _read_lines(self, lines: bytes, offset: int) -> int:
        """Read them one by one, and say how many there were; the first begins at this offset of the log."""
        single_lines = lines.split(b"\n")[:-1]
        self._recorder.offset = offset
        for line in single_lines:
            self._read_line(line)
            self._recorder.offset += len(line) + 1
        return len(single_lines)

    def _read_line(self, line: bytes) -> None:
        self._reducer.apply(parse_line(line))

    def _watch_assemblies(self) -> None:
        """Look for what assemblers write after a kernel's outcome is known, for as long as one may take."""
        now = monotonic()
        if self.trace.state.is_running:
            self._assembling |= dict.fromkeys(self._recorder.decided_kernels, now + _MAX_ASSEMBLY_SECONDS)
        self._recorder.decided_kernels.clear()
        for index, deadline in list(self._assembling.items()):
            kernel = self.trace.kernels.get(index)
            if kernel is None or kernel.process_log.complete or now > deadline:
                del self._assembling[index]
            elif kernel.refresh():
                self.changed_kernels.add(index)

    def _read_run_info(self) -> bool:
        path = self.directory / "run.json"
        try:
            status = path.stat()
        except OSError:
            return False
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._run_info_stamp:
            return False
        self._run_info_stamp = stamp
        info, self.trace.run_json_problem = read_run_json(path)
        if info is None:
            return bool(self.trace.run_json_problem)
        self.trace.run_info = info
        state = self.trace.state
        state.command = state.command or " ".join(info.command)
        state.simulated |= info.simulated
        state.started = state.started or info.started
        if info.ended is not None and info.is_of(state.pid):
            state.ended = info.ended
            state.exit_status = info.exit_status
            state.signal = info.signal
        return True

    def _update_running(self) -> bool:
        """A process runs until the launcher or the log says that it ended, or it is no longer there."""
        state = self.trace.state
        has_ended = state.ended is not None or state.launches_dropped is not None or state.pid is None
        is_running = not has_ended and is_alive(state.pid, state.command)
        has_changed = is_running != state.is_running
        state.is_running = is_running
        return has_changed


def open_trace(path: Path | str, progress: Callable[[float], object] = lambda _: None) -> Trace:
    """Read the trace that ``path`` means (see ``find_trace``); TraceError if there is none."""
    follower = TraceFollower(find_trace(Path(path)))
    follower.poll(progress)
    return follower.trace
