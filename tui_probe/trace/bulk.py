"""Whole launches at once: most of a long log is launches and saved results, a few lines each, one after another.

Their numbers are read as arrays. What is not exactly such lines, cut and interleaved ones among it, is left to be read
a line at a time, in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.kernel_lines import KernelLines
from tui_probe.trace.launch_lines import in_order, passed_launches, probed_launches, saved_results
from tui_probe.trace.line_block import LineBlock
from tui_probe.trace.packed_lines import PREFIX, match_line, read_packed
from tui_probe.trace.time_lines import gpu_times

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.trace.columns import LaunchColumns, ResultColumns
    from tui_probe.trace.recorder import Recorder

_IGNORED: Final = (b"[mem] ", b"[mod] ", b"[bin] ", b"[probe] find ", b"[probe] mkdir ", b"[probe] write ",
                   b"[probe] engine ", b"[probe] read ", b"[probe] finish ", b"[exec] funcmap-")  # fmt: skip
"""Lines that tell nothing which the trace model keeps, in logs that have ``[kernel]`` lines."""

_ANYWHERE: Final = (
    b"[benchmark] ", b"[nvtx] ", b"[time] ", b"[budget] ", b"[key] ", b"[reason] ", b"[passed] lost ", b"[graph] ",
    b"[node] ",
)  # fmt: skip
"""Lines that say the same wherever they stand among launches."""


class BulkReader:
    """Reads slices of a log of ours into a recorder; ``read_line`` gets each line that is no part of a whole launch."""

    def __init__(self, recorder: Recorder, read_line: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_line = read_line
        self._kernels = KernelLines(recorder, read_line)

    def read(self, text: bytes, offset: int = 0) -> int:
        """``text`` is whole lines that follow those of the last call, ``offset`` in the log; how many they are."""
        if not text:
            return 0
        block = LineBlock(text)
        left = np.ones(len(block), dtype=np.bool_)
        for prefix in _IGNORED:
            left[block.begin_with(prefix)] = False
        self._kernels.read(block, left)
        self._recorder.timed(gpu_times(block, left))
        passed = passed_launches(block, left, self._recorder.trace.launches.reason_number)
        launches = in_order(probed_launches(block, left), passed)
        results = saved_results(block, left)
        self._packed(block, left, offset)
        self._record(block, np.flatnonzero(left), launches, results)
        return len(block)

    def _packed(self, block: LineBlock, left: NDArray[np.bool_], offset: int) -> None:
        """Launches that only have a key, many to a line. The others of the same slice may come before or after them."""
        found = []
        for line in block.begin_with(PREFIX).tolist():
            match = match_line(block.text, block.starts[line], block.ends[line])
            if match is not None:
                found.append((offset + match.start(), match))
                left[line] = False
        if found:
            self._recorder.packed(*read_packed(found))

    def _record(
        self, block: LineBlock, rest: NDArray[np.int64], launches: LaunchColumns, results: ResultColumns
    ) -> None:
        """Record everything in the order of the log: ``rest`` are the lines that are read one by one.

        Lines that do not depend on launches come first: the log would otherwise be cut into as many parts.
        """
        anywhere = np.zeros(len(block), dtype=np.bool_)
        for prefix in _ANYWHERE:
            anywhere[block.begin_with(prefix)] = True
        first = rest[anywhere[rest]]
        for start, end in zip(block.starts[first].tolist(), block.ends[first].tolist(), strict=True):
            self._read_line(block.text[start:end])
        rest = rest[~anywhere[rest]]
        launch = result = 0
        launches_before = np.searchsorted(launches.line, rest).tolist()
        results_before = np.searchsorted(results.line, rest).tolist()
        for line, *before in zip(rest.tolist(), launches_before, results_before, strict=True):
            if before != [launch, result]:
                self._record_parts(launches.part(slice(launch, before[0])), results.part(slice(result, before[1])))
                launch, result = before
            self._read_line(block.text[block.starts[line] : block.ends[line]])
        self._record_parts(launches.part(slice(launch, None)), results.part(slice(result, None)))

    def _record_parts(self, launches: LaunchColumns, results: ResultColumns) -> None:
        """Results come last: one may be of a launch before it, never of one after it."""
        if len(launches):
            self._recorder.ended_launches(launches)
        if len(results):
            self._recorder.saved_results(results)
