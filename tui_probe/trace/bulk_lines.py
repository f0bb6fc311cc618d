"""Lines of launches, results, kernels and GPU times, read as arrays from a block of lines.

Each function takes a block of lines and ``is_unread``, the mask of those that are not read yet. It reads the lines that
are exactly as a hook driver of tui-probe writes them, and clears them in the mask.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.trace.gpu_time import NOT_TIMED
from tui_probe.trace.launch_events import FunctionResources
from tui_probe.trace.launch_readers import PREPARE_RESULTS, PROBE_MODES
from tui_probe.trace.launches import NO_STREAM, UNKNOWN, LaunchColumns, ResultColumns, TimeColumns
from tui_probe.trace.line_block import LineFields, groups_begin_with
from tui_probe.trace.line_grammar import reason_of
from tui_probe.trace.plain_file import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tui_probe.reasons import Reason
    from tui_probe.trace.launch_events import ProbeMode
    from tui_probe.trace.line_block import LineBlock
    from tui_probe.trace.recorder import Recorder

_U32: Final = np.uint64(0xFFFFFFFF)
_SHAPE: Final = {0: 10, 1: 10, 2: 10, 4: 10, 5: 10, 6: 10, 8: 18}
"""``X Y Z block X Y Z shared S``: where the numbers are, and the most digits of each."""
_MAX_MAPS: Final = 32
_TIME_DIGITS: Final = 19
"""Digits of nanoseconds since 1970, until the year 2286."""
_FOLDER_LINE: Final = b"[probe] rename "
_KERNEL_LINE: Final = b"[kernel] "
_KERNEL_FIELDS: Final = {3: 18, 5: 18, 7: 18, 9: 18}
"""``INDEX WORD registers R local L shared S blocks B``: where the values are, and the most digits of each."""
_PROBED_FUNCTION: Final = b"probed-function"
_PROBE_MODE: Final = re.compile(rb"way (\S+)")
_KERNEL_WORDS: Final = (_PROBED_FUNCTION, *PREPARE_RESULTS)
_TIME_LINE: Final = b"[time] launch "


def probed_launches(block: LineBlock, is_unread: NDArray[np.bool_]) -> LaunchColumns:
    """Probed launches: a line of parameters, one of the launch, one per map, one of their memory, and the answer."""
    grid = block.lines_with_prefix(b"[exec] grid ")
    has_parameters = _has_number(block, grid - 1) & (grid > 0)
    lines = grid[has_parameters]
    memory, complete = _line_after_maps(block, lines, grid[~has_parameters])
    lines, memory = lines[complete], memory[complete]
    launch = LineFields(block, lines, 15, prefix=b"[exec] grid ")
    launch.expect_words(block=3, shared=7, kernel=9, launch=11, stream=13)
    launch.expect(launch.word_end(14) == launch.line_ends)
    *shape, kernel, number = launch.numbers({**_SHAPE, 10: 9, 12: 18})
    time, has_time = _times(block, lines - 1)
    size, has_size = _numbers_between(block, memory, b"[exec] probe-mem ", 18, b" (bytes)")
    status, has_status = _numbers_between(block, memory + 1, b"[exec] succeed ", 9)
    launch.expect(has_time & has_size & has_status)
    columns = LaunchColumns(
        line=lines,
        kernel=kernel,
        number=number,
        time=time,
        shape=_shapes(shape),
        stream=launch.hexadecimal(14),
        probed=np.ones(len(lines), dtype=np.bool_),
        reason=np.full(len(lines), UNKNOWN, dtype=np.int32),
        probe_bytes=size.astype(np.int64),
        status=status.astype(np.int64),
    )
    _mark_read(is_unread, lines[launch.is_valid] - 1, memory[launch.is_valid] + 1)
    return columns.part(launch.is_valid)


def _numbers_between(
    block: LineBlock, lines: NDArray[np.int64], prefix: bytes, digits: int, suffix: bytes = b""
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the numbers between ``prefix`` and ``suffix``, and the mask of the lines that have this form."""
    end = block.line_ends[lines] - len(suffix)
    value, is_valid = block.bytes.decimal(block.line_starts[lines] + len(prefix), end, digits)
    is_valid &= block.bytes.has_text(block.line_starts[lines], prefix)
    if suffix:
        is_valid &= block.bytes.has_text(end, suffix)
    return value, is_valid


def _has_number(block: LineBlock, lines: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Select the lines that begin with ``[exec] `` and a digit."""
    heads = block.heads[lines]
    return groups_begin_with(heads, b"[exec] ") & ((heads >> np.uint64(56)) - np.uint64(ord("0")) < 10)


def _times(block: LineBlock, lines: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the times in ``[exec] EPOCH_NS param``, and the mask of the lines that have this form."""
    begin = block.line_starts[lines] + len("[exec] ")
    end = np.where(begin + _TIME_DIGITS < block.line_ends[lines], begin + _TIME_DIGITS, begin)
    times, is_valid = block.bytes.decimal(begin, end, _TIME_DIGITS)
    is_valid &= block.bytes.has_text(end, b" param")
    return times, is_valid


def _line_after_maps(
    block: LineBlock, launch_lines: NDArray[np.int64], candidates: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the line after the maps of each launch, and whether two lines follow from there on.

    ``candidates`` are lines that begin as those of launches do, and may be lines of maps.
    """
    fields = LineFields(block, candidates, 1, prefix=b"[exec] grid ")
    level = fields.word_end(0)
    fields.expect(fields.bytes.has_text(level, b" warp  ") | fields.bytes.has_text(level, b" block  "))
    is_map = np.zeros(len(block) + 1, dtype=np.bool_)
    is_map[candidates[fields.is_valid]] = True
    next_lines = launch_lines + 1
    for _ in range(_MAX_MAPS):
        is_next_map = is_map[next_lines]
        if not is_next_map.any():
            break
        next_lines = next_lines + is_next_map
    return next_lines, next_lines + 1 < len(block)


def _mark_read(is_unread: NDArray[np.bool_], first_lines: NDArray[np.int64], last_lines: NDArray[np.int64]) -> None:
    """Clear the lines from ``first_lines`` to ``last_lines`` of each launch; launches do not overlap."""
    depth_steps = np.zeros(len(is_unread) + 1, dtype=np.int8)
    depth_steps[first_lines] += 1
    depth_steps[last_lines + 1] -= 1
    is_unread &= np.cumsum(depth_steps[:-1], dtype=np.int8) == 0


def unprobed_launches(
    block: LineBlock, is_unread: NDArray[np.bool_], reason_number: Callable[[Reason | None], int]
) -> LaunchColumns:
    """Launches of originals, but for those next to a line that says that a launch failed."""
    lines = block.lines_with_prefix(b"[exec] backup ")
    failure_lines = block.lines_with_prefix(b"[exec] failed ")
    lines = lines[(lines > 0) & ~np.isin(lines, np.concatenate((failure_lines - 1, failure_lines + 1)))]
    fields = LineFields(block, lines, 16, prefix=b"[exec] backup ")
    fields.expect_words(block=3, shared=7, kernel=9, launch=11, time=13, reason=15)
    fields.expect(fields.word_end(15) < fields.line_ends)
    *shape, kernel, number, time = fields.numbers({**_SHAPE, 10: 9, 12: 18, 14: 19})
    reasons = fields.text_offsets(np.minimum(fields.word_end(15) + 1, fields.line_ends))
    columns = LaunchColumns(
        line=lines,
        kernel=kernel,
        number=number,
        time=time,
        shape=_shapes(shape),
        stream=np.full(len(lines), NO_STREAM, dtype=np.uint64),
        probed=np.zeros(len(lines), dtype=np.bool_),
        reason=_reason_numbers(block.text, reasons, block.line_ends[lines], reason_number),
        probe_bytes=np.full(len(lines), UNKNOWN, dtype=np.int64),
        status=np.full(len(lines), UNKNOWN, dtype=np.int64),
    )
    is_unread[lines[fields.is_valid]] = False
    return columns.part(fields.is_valid)


def _shapes(columns: list[NDArray[np.uint64]]) -> NDArray[np.uint32]:
    """Shape (launches, 7)."""
    return np.minimum(np.stack(columns, axis=1), _U32).astype(np.uint32)


class _ReasonNumbers(dict[bytes, int]):
    """The numbers of reasons, as the log writes them."""

    def __init__(self, number: Callable[[Reason | None], int]) -> None:
        self._number = number

    def __missing__(self, words: bytes) -> int:
        number = self[words] = self._number(reason_of(words.rstrip(b"\r")))
        return number


def _reason_numbers(
    text: bytes, begin: NDArray[np.int64], end: NDArray[np.int64], reason_number: Callable[[Reason | None], int]
) -> NDArray[np.int32]:
    """The numbers of what is between these offsets."""
    numbers = _ReasonNumbers(reason_number)
    values = [numbers[text[start:stop]] for start, stop in zip(begin.tolist(), end.tolist(), strict=True)]
    return np.array(values, dtype=np.int32)


def merge_by_line(probed_columns: LaunchColumns, unprobed_columns: LaunchColumns) -> LaunchColumns:
    """Merge probed and unprobed launches in the order of their lines."""
    if not len(probed_columns) or not len(unprobed_columns):
        return probed_columns if len(probed_columns) else unprobed_columns
    launches = probed_columns.followed_by(unprobed_columns)
    return launches.part(np.argsort(launches.line))


def saved_results(block: LineBlock, is_unread: NDArray[np.bool_]) -> ResultColumns:
    """Saved results with an ordinary name, ``result/<seconds>.<six digits>.bin``."""
    lines = block.lines_with_prefix(b"[exec] save result/")
    fields = LineFields(block, lines, 7, prefix=b"[exec] save result/")
    fields.expect_words(size=1, kernel=3, launch=5)
    fields.expect(fields.word_end(6) == fields.line_ends)
    size, kernel, number = fields.numbers({2: 18, 4: 9, 6: 18})
    begin, end = fields.bounds(0)
    point = end - len(".000000.bin")
    seconds, is_seconds = fields.bytes.decimal(begin, point, 12)
    micros, is_micros = fields.bytes.decimal(point + 1, point + 7, 6)
    fields.expect(is_seconds & is_micros & (~fields.bytes.has_text(begin, b"0") | (point - begin == 1)))
    fields.expect(fields.bytes.has_text(point, b".") & fields.bytes.has_text(point + 7, b".bin"))
    columns = ResultColumns(
        line=lines, micros=seconds * np.uint64(1_000_000) + micros, size=size, kernel=kernel, number=number
    )
    is_unread[lines[fields.is_valid]] = False
    return columns.part(fields.is_valid)


class KernelLines:
    """Reads ``[kernel]`` and ``[probe] rename`` lines into a recorder; ``read_line`` gets those of another form."""

    def __init__(self, recorder: Recorder, read_line: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_line = read_line

    def read(self, block: LineBlock, is_unread: NDArray[np.bool_]) -> None:
        """Read all such lines and take them away from those ``is_unread``."""
        folders, kernels = block.lines_with_prefix(_FOLDER_LINE), block.lines_with_prefix(_KERNEL_LINE)
        is_unread[folders] = is_unread[kernels] = False
        self._read_folders(block, folders)
        if len(kernels):
            self._read_kernels(block, kernels)

    def _read_folders(self, block: LineBlock, lines: NDArray[np.int64]) -> None:
        """Lines ``[probe] rename NAME INDEX_HASH``."""
        text = block.text
        for start, end in zip(block.line_starts[lines].tolist(), block.line_ends[lines].tolist(), strict=True):
            blank = text.rfind(b" ", start, end)
            folder = text[blank + 1 : end]
            index = folder.partition(b"_")[0]
            if blank < start + len(_FOLDER_LINE) or folder.split() != [folder] or not index.isdigit() or len(index) > 9:
                self._read_line(text[start:end])
            else:
                self._recorder.record_folder(int(index), text_of(folder))

    def _read_kernels(self, block: LineBlock, lines: NDArray[np.int64]) -> None:
        """Lines ``[kernel] INDEX WORD`` and values; behind these, those whose word is an outcome have its reason."""
        fields = LineFields(block, lines, 10, prefix=_KERNEL_LINE)
        fields.expect_words(registers=2, local=4, shared=6, blocks=8)
        (index,) = fields.numbers({0: 9})
        columns = (
            [None if value < 0 else value for value in column.tolist()]
            for column in fields.numbers_or_none(_KERNEL_FIELDS)
        )
        kinds = np.select(
            [fields.is_valid & fields.is_word(1, word) for word in _KERNEL_WORDS], range(len(_KERNEL_WORDS)), -1
        )
        text_starts = fields.text_offsets(np.minimum(fields.word_end(9) + 1, fields.line_ends))
        numbers = (
            column.tolist() for column in (kinds, block.line_starts[lines], text_starts, block.line_ends[lines], index)
        )
        for kind, start, text_start, end, kernel, resources in zip(
            *numbers, map(FunctionResources, *columns), strict=True
        ):
            if kind == 0:
                self._recorder.record_function(kernel, resources, _probe_mode(block.text[text_start:end]))
            elif kind < 0 or not self._read_outcome(kernel, _KERNEL_WORDS[kind], resources, block.text[text_start:end]):
                self._read_line(block.text[start:end])

    def _read_outcome(self, index: int, word: bytes, resources: FunctionResources, text: bytes) -> bool:
        """Read ``name NAME reason TEXT code CODE`` of a kernel; False for another text."""
        pieces = text.split(b" ", 3)
        if len(pieces) < 4 or pieces[0] != b"name" or pieces[2] != b"reason" or pieces[1].split() != pieces[1:2]:
            return False
        self._recorder.record_outcome(
            index, PREPARE_RESULTS[word], resources, text_of(pieces[1]), reason_of(pieces[3].rstrip(b"\r"))
        )
        return True


def _probe_mode(text: bytes) -> ProbeMode | None:
    """Read the mode in ``way MODE``, and ignore what a later version may say behind it."""
    match = _PROBE_MODE.match(text)
    return None if match is None else PROBE_MODES.get(match[1])


def gpu_times(block: LineBlock, is_unread: NDArray[np.bool_]) -> TimeColumns:
    """Lines ``[time] launch N kernel I key K original|probed ns T for W (host H)``, taken away from ``is_unread``.

    Others that begin so are left to be read one by one.
    """
    lines = block.lines_with_prefix(_TIME_LINE)
    fields = LineFields(block, lines, 12, prefix=_TIME_LINE)
    fields.expect_words(kernel=1, key=3, ns=6, **{"for": 8})
    is_probed = fields.is_word(5, b"probed")
    fields.expect(is_probed | fields.is_word(5, b"original"))
    launch, kernel, key, ns, weight = fields.numbers({0: 18, 2: 9, 4: 9, 7: 18, 9: 18})
    is_valid, host = _host_times(fields, 9)
    is_unread[lines[is_valid]] = False
    columns = TimeColumns(
        kernel=kernel, launch=launch, key=key.astype(np.int64), probed=is_probed, ns=ns, weight=weight, host=host
    )
    return columns.part(is_valid)


def _host_times(fields: LineFields, last_word: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Select the lines that end with word ``last_word``, or with ``host H`` behind it, and read that number."""
    is_valid = fields.is_valid.copy()
    ends_at_last = fields.word_end(last_word) == fields.line_ends
    has_host = fields.is_word(last_word + 1, b"host") & (fields.word_end(last_word + 2) == fields.line_ends)
    fields.is_valid = is_valid & has_host
    (host,) = fields.numbers({last_word + 2: 18})
    has_host = fields.is_valid
    return is_valid & ends_at_last | has_host, np.where(has_host, host.astype(np.int64), NOT_TIMED)
