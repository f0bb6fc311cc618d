"""Lines of launches, results, kernels and GPU times, read as arrays from a block of lines.

Each function takes a block of lines of which some are ``left`` to be read, reads those that are exactly as a hook
driver of tui-probe writes them, and takes them away from ``left``.
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


def probed_launches(block: LineBlock, left: NDArray[np.bool_]) -> LaunchColumns:
    """Probed launches: a line of parameters, one of the launch, one per map, one of their memory, and the answer."""
    grid = block.begin_with(b"[exec] grid ")
    timed = _with_number(block, grid - 1) & (grid > 0)
    at = grid[timed]
    memory, complete = _line_after_maps(block, at, grid[~timed])
    at, memory = at[complete], memory[complete]
    launch = LineFields(block, at, 15, behind=b"[exec] grid ")
    launch.words(block=3, shared=7, kernel=9, launch=11, stream=13)
    launch.expect(launch.end(14) == launch.ends)
    *shape, kernel, number = launch.numbers({**_SHAPE, 10: 9, 12: 18})
    time, timed = _times(block, at - 1)
    size, sized = _fields_between(block, memory, b"[exec] probe-mem ", 18, b" (bytes)")
    status, answered = _fields_between(block, memory + 1, b"[exec] succeed ", 9)
    launch.expect(timed & sized & answered)
    columns = LaunchColumns(
        line=at,
        kernel=kernel,
        number=number,
        time=time,
        shape=_shapes(shape),
        stream=launch.hexadecimal(14),
        probed=np.ones(len(at), dtype=np.bool_),
        reason=np.full(len(at), UNKNOWN, dtype=np.int32),
        probe_bytes=size.astype(np.int64),
        status=status.astype(np.int64),
    )
    _mark_read(left, at[launch.good] - 1, memory[launch.good] + 1)
    return columns.part(launch.good)


def _fields_between(
    block: LineBlock, at: NDArray[np.int64], before: bytes, digits: int, behind: bytes = b""
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The numbers that such lines have between words, and which of the lines are such ones."""
    end = block.ends[at] - len(behind)
    value, good = block.bytes.decimal(block.starts[at] + len(before), end, digits)
    good &= block.bytes.same(block.starts[at], before)
    if behind:
        good &= block.bytes.same(end, behind)
    return value, good


def _with_number(block: LineBlock, at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Select the lines that begin with ``[exec] `` and a digit."""
    heads = block.heads[at]
    return groups_begin_with(heads, b"[exec] ") & ((heads >> np.uint64(56)) - np.uint64(ord("0")) < 10)


def _times(block: LineBlock, at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The time in lines of parameters, ``[exec] EPOCH_NS param``, and which of these lines are such ones."""
    begin = block.starts[at] + len("[exec] ")
    end = np.where(begin + _TIME_DIGITS < block.ends[at], begin + _TIME_DIGITS, begin)
    times, good = block.bytes.decimal(begin, end, _TIME_DIGITS)
    good &= block.bytes.same(end, b" param")
    return times, good


def _line_after_maps(
    block: LineBlock, at: NDArray[np.int64], others: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The line behind those of the maps of each launch, and whether there are two lines from there on.

    ``others`` are the lines that begin as launches and maps do and are not launches.
    """
    fields = LineFields(block, others, 1, behind=b"[exec] grid ")
    fields.expect(fields.bytes.same(fields.end(0), b" warp  ") | fields.bytes.same(fields.end(0), b" block  "))
    maps = np.zeros(len(block) + 1, dtype=np.bool_)
    maps[others[fields.good]] = True
    behind = at + 1
    for _ in range(_MAX_MAPS):
        more = maps[behind]
        if not more.any():
            break
        behind = behind + more
    return behind, behind + 1 < len(block)


def _mark_read(left: NDArray[np.bool_], first: NDArray[np.int64], last: NDArray[np.int64]) -> None:
    """Lines ``first`` to ``last`` of each launch are read; launches do not overlap."""
    inside = np.zeros(len(left) + 1, dtype=np.int8)
    inside[first] += 1
    inside[last + 1] -= 1
    left &= np.cumsum(inside[:-1], dtype=np.int8) == 0


def unprobed_launches(
    block: LineBlock, left: NDArray[np.bool_], reason_number: Callable[[Reason | None], int]
) -> LaunchColumns:
    """Launches of originals, but for those next to a line that says that a launch failed."""
    at = block.begin_with(b"[exec] backup ")
    failed = block.begin_with(b"[exec] failed ")
    at = at[(at > 0) & ~np.isin(at, np.concatenate((failed - 1, failed + 1)))]
    fields = LineFields(block, at, 16, behind=b"[exec] backup ")
    fields.words(block=3, shared=7, kernel=9, launch=11, time=13, reason=15)
    fields.expect(fields.end(15) < fields.ends)
    *shape, kernel, number, time = fields.numbers({**_SHAPE, 10: 9, 12: 18, 14: 19})
    reasons = fields.in_text(np.minimum(fields.end(15) + 1, fields.ends))
    columns = LaunchColumns(
        line=at,
        kernel=kernel,
        number=number,
        time=time,
        shape=_shapes(shape),
        stream=np.full(len(at), NO_STREAM, dtype=np.uint64),
        probed=np.zeros(len(at), dtype=np.bool_),
        reason=_reason_numbers(block.text, reasons, block.ends[at], reason_number),
        probe_bytes=np.full(len(at), UNKNOWN, dtype=np.int64),
        status=np.full(len(at), UNKNOWN, dtype=np.int64),
    )
    left[at[fields.good]] = False
    return columns.part(fields.good)


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


def in_order(first: LaunchColumns, second: LaunchColumns) -> LaunchColumns:
    """Merge both by line."""
    if not len(first) or not len(second):
        return first if len(first) else second
    return first.followed_by(second).part(np.argsort(np.concatenate((first.line, second.line))))


def saved_results(block: LineBlock, left: NDArray[np.bool_]) -> ResultColumns:
    """Saved results with an ordinary name, ``result/<seconds>.<six digits>.bin``."""
    at = block.begin_with(b"[exec] save result/")
    fields = LineFields(block, at, 7, behind=b"[exec] save result/")
    fields.words(size=1, kernel=3, launch=5)
    fields.expect(fields.end(6) == fields.ends)
    size, kernel, number = fields.numbers({2: 18, 4: 9, 6: 18})
    begin, end = fields.bounds(0)
    point = end - len(".000000.bin")
    seconds, seconds_good = fields.bytes.decimal(begin, point, 12)
    micros, micros_good = fields.bytes.decimal(point + 1, point + 7, 6)
    fields.expect(seconds_good & micros_good & (~fields.bytes.same(begin, b"0") | (point - begin == 1)))
    fields.expect(fields.bytes.same(point, b".") & fields.bytes.same(point + 7, b".bin"))
    columns = ResultColumns(
        line=at, micros=seconds * np.uint64(1_000_000) + micros, size=size, kernel=kernel, number=number
    )
    left[at[fields.good]] = False
    return columns.part(fields.good)


class KernelLines:
    """Reads ``[kernel]`` and ``[probe] rename`` lines into a recorder; ``read_line`` gets those of another form."""

    def __init__(self, recorder: Recorder, read_line: Callable[[bytes], None]) -> None:
        self._recorder = recorder
        self._read_line = read_line

    def read(self, block: LineBlock, left: NDArray[np.bool_]) -> None:
        """Read all such lines and take them away from those ``left``."""
        folders, kernels = block.begin_with(_FOLDER_LINE), block.begin_with(_KERNEL_LINE)
        left[folders] = left[kernels] = False
        self._read_folders(block, folders)
        if len(kernels):
            self._read_kernels(block, kernels)

    def _read_folders(self, block: LineBlock, at: NDArray[np.int64]) -> None:
        """Lines ``[probe] rename NAME INDEX_HASH``."""
        text = block.text
        for start, end in zip(block.starts[at].tolist(), block.ends[at].tolist(), strict=True):
            blank = text.rfind(b" ", start, end)
            folder = text[blank + 1 : end]
            index = folder.partition(b"_")[0]
            if blank < start + len(_FOLDER_LINE) or folder.split() != [folder] or not index.isdigit() or len(index) > 9:
                self._read_line(text[start:end])
            else:
                self._recorder.folder(int(index), text_of(folder))

    def _read_kernels(self, block: LineBlock, at: NDArray[np.int64]) -> None:
        """Lines ``[kernel] INDEX WORD`` and values; behind these, those whose word is an outcome have its reason."""
        fields = LineFields(block, at, 10, behind=_KERNEL_LINE)
        fields.words(registers=2, local=4, shared=6, blocks=8)
        (index,) = fields.numbers({0: 9})
        columns = (
            [None if value < 0 else value for value in column.tolist()]
            for column in fields.numbers_or_none(_KERNEL_FIELDS)
        )
        kinds = np.select(
            [fields.good & fields.is_word(1, word) for word in _KERNEL_WORDS], range(len(_KERNEL_WORDS)), -1
        )
        text_starts = fields.in_text(np.minimum(fields.end(9) + 1, fields.ends))
        numbers = (column.tolist() for column in (kinds, block.starts[at], text_starts, block.ends[at], index))
        for kind, start, text_start, end, kernel, resources in zip(
            *numbers, map(FunctionResources, *columns), strict=True
        ):
            if kind == 0:
                self._recorder.probed_function(kernel, resources, _probe_mode(block.text[text_start:end]))
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


def gpu_times(block: LineBlock, left: NDArray[np.bool_]) -> TimeColumns:
    """Lines ``[time] launch N kernel I key K original|probed ns T for W (host H)``, taken away from ``left``.

    Others that begin so are left to be read one by one.
    """
    at = block.begin_with(_TIME_LINE)
    fields = LineFields(block, at, 12, behind=_TIME_LINE)
    fields.words(kernel=1, key=3, ns=6, **{"for": 8})
    probed = fields.is_word(5, b"probed")
    fields.expect(probed | fields.is_word(5, b"original"))
    launch, kernel, key, ns, weight = fields.numbers({0: 18, 2: 9, 4: 9, 7: 18, 9: 18})
    good, host = _host_times(fields, 9)
    left[at[good]] = False
    columns = TimeColumns(
        kernel=kernel, launch=launch, key=key.astype(np.int64), probed=probed, ns=ns, weight=weight, host=host
    )
    return columns.part(good)


def _host_times(fields: LineFields, last: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Select the lines that end with word ``last``, or with ``host H`` behind it, and read that number."""
    good = fields.good.copy()
    plain = fields.end(last) == fields.ends
    named = fields.is_word(last + 1, b"host") & (fields.end(last + 2) == fields.ends)
    fields.good = good & named
    (host,) = fields.numbers({last + 2: 18})
    named = fields.good
    return good & plain | named, np.where(named, host.astype(np.int64), NOT_TIMED)
