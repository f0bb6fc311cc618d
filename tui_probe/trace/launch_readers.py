"""How lines of launches become records: ``[exec]``, ``[key]``, ``[passed]``, ``[benchmark]``, ``[time]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.reasons import read_reason
from tui_probe.trace.kernel_events import Alternating, FunctionFound, FunctionMissing
from tui_probe.trace.launch_events import (
    Benchmark,
    Counted,
    EmptyPair,
    GpuTimed,
    KeyNamed,
    LaunchEnded,
    LaunchStarted,
    LaunchTimes,
    MapSize,
    Packed,
    Parameters,
    PassedLost,
    PassedThrough,
    ProbeMemory,
    Saved,
)
from tui_probe.trace.line_grammar import (
    TROUBLE,
    Pattern,
    maybe_float,
    maybe_hex,
    maybe_int,
    maybe_text,
    reason_of,
    shape_of,
)
from tui_probe.trace.packed_lines import match_line
from tui_probe.trace.process_events import BenchmarkEnabled, ContextFailed, Unknown
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.line_grammar import Match, Readers


def _launch_started(m: Match) -> Event:
    shape, kernel, number, stream = m.groups()
    return LaunchStarted(shape_of(shape), maybe_int(kernel), maybe_int(number), maybe_hex(stream))


def _passed_through(m: Match) -> Event:
    shape, kernel, number, time_ns, reason = m.groups()
    return PassedThrough(shape_of(shape), maybe_int(kernel), maybe_int(number), maybe_int(time_ns), reason_of(reason))


def _map_size(m: Match) -> Event:
    return MapSize(int(m[1]), "warp" if m[2] == b"warp" else "thread", int(m[3]), int(m[4]), int(m[5]))


def _benchmark(m: Match) -> Event:
    times = (maybe_float(m[1]), maybe_float(m[2]), maybe_float(m[3]), maybe_float(m[4]), maybe_float(m[5]))
    return Benchmark(*times, int(m[6]), maybe_int(m[7]), maybe_int(m[8]))


def _gpu_timed(m: Match) -> Event:
    number, kernel, key, kind, ns, weight, host = m.groups()
    return GpuTimed(
        int(number), int(kernel), maybe_int(key), kind == b"probed", int(ns), int(weight), maybe_int(host)
    )  # fmt: skip


def _key(m: Match) -> Event:
    x, y, z = map(int, m[4].split()) if m[4] else (0, 0, 0)
    return KeyNamed(int(m[1]), int(m[2]), shape_of(m[3]), (x, y, z) if x else None, None)


def _shared_key(m: Match) -> Event:
    return KeyNamed(int(m[1]), int(m[2]), None, None, (int(m[3]), int(m[4])))


def _packed(m: Match) -> Event:
    return Packed(m.string) if match_line(m.string) else Unknown(m.string)


_LAUNCH: Final = "grid {SHAPE}(?: kernel {INDEX} launch {COUNT}(?: stream {POINTER})?)?"

_BACKUP: Final = "backup {SHAPE}(?: kernel {INDEX} launch {COUNT}(?: time {NS})?(?: reason (.*))?)?"

_BENCHMARK: Final = (
    "prologue {MS} kernel {MS} epilogue {MS} original {MS} impact {MS} {CODE}(?: kernel {INDEX} launch {COUNT})?"
)

_TIME: Final = (
    "launch {COUNT} kernel {INDEX}(?: key {INDEX})? (original|probed) ns {COUNT} for {COUNT}(?: host {COUNT})?"
)

_FAULTS: Final = "70[02]|71[04-9]"
"""Errors of kernels, which a context does not survive. Others are of programs that end or reset theirs."""

LAUNCHES: Final[Readers] = {
    b"grid": (
        (Pattern(_LAUNCH), _launch_started),
        (
            Pattern("grid {COUNT} (warp|block)  {COUNT} probe {COUNT} total {COUNT}"),
            _map_size,
        ),
    ),
    b"*": ((Pattern("{NS} param(?: (.*))?"), lambda m: Parameters(int(m[1]), m[2] or b"")),),
    b"probe-mem": (
        (
            Pattern(r"probe-mem {COUNT} \(bytes\)(?: device {COUNT} launch {COUNT}(?: probe (\S+))?)?"),
            lambda m: ProbeMemory(int(m[1]), maybe_int(m[2]), maybe_int(m[3]), maybe_text(m[4])),
        ),
    ),
    b"succeed": ((Pattern("succeed {CODE}"), lambda m: LaunchEnded(True, int(m[1]))),),
    b"failed": ((Pattern("failed {CODE}"), lambda m: LaunchEnded(False, int(m[1]))),),
    b"save": (
        (
            Pattern(r"save (.*?) size {COUNT}(?: kernel {INDEX} launch {COUNT}(?: probe (\S+))?)?"),
            lambda m: Saved(text_of(m[1]), int(m[2]), maybe_int(m[3]), maybe_int(m[4]), maybe_text(m[5])),
        ),
    ),
    b"backup": ((Pattern(_BACKUP), _passed_through),),
    b"funcmap-find": (
        (
            Pattern("funcmap-find {POINTER} (success|fail)"),
            lambda m: FunctionFound(maybe_hex(m[1]) or 0, m[2] == b"success"),
        ),
    ),
    b"funcmap-not-find": ((Pattern("funcmap-not-find {POINTER}"), lambda m: FunctionMissing(maybe_hex(m[1]) or 0)),),
    b"drain-failed": (
        (
            Pattern(rf"drain-failed ({_FAULTS}) (CUDA_ERROR_\w+) kernels ([0-9,]+|-)(?: fault (.*))?"),
            lambda m: ContextFailed(
                int(m[1]),
                text_of(m[2]),
                tuple(int(n) for n in m[3].split(b",") if n.isdigit()),
                text_of(m[4] or b""),
            ),
        ),
        *TROUBLE,
    ),
    **dict.fromkeys((b"save-failed", b"descriptors-closed", b"can't-save", b"graft"), TROUBLE),
    **dict.fromkeys((b"save-full", b"save-paused", b"save-resumed"), TROUBLE),
    b"prologue": (
        (
            Pattern("prologue {MS} kernel {MS} epilogue {MS} ratio {MS}"),
            lambda m: LaunchTimes(maybe_float(m[1]), maybe_float(m[2]), maybe_float(m[3]), maybe_float(m[4])),
        ),
    ),
}

COUNTS: Final[Readers] = {b"size:": ((Pattern("size: {COUNT}"), lambda m: Counted(int(m[1]))),)}

BENCHMARKS: Final[Readers] = {
    b"prologue": ((Pattern(_BENCHMARK), _benchmark),),
    b"alternate": (
        (
            Pattern("alternate kernel {INDEX} reason (.*)"),
            lambda m: Alternating(int(m[1]), read_reason(text_of(m[2]))),
        ),
    ),
    b"ENABLED": ((Pattern("ENABLED L2 Flush Size {COUNT}"), lambda m: BenchmarkEnabled(int(m[1]))),),
}

TIMES: Final[Readers] = {
    b"launch": ((Pattern(_TIME), _gpu_timed),),
    b"empty": ((Pattern("empty {COUNT}"), lambda m: EmptyPair(int(m[1]))),),
}

KEYS: Final[Readers] = {
    b"*": (
        (Pattern(r"{INDEX} kernel {INDEX} grid {SHAPE}(?: cluster (\d{1,9} \d{1,9} \d{1,9})(?!\S))?"), _key),
        (Pattern("{INDEX} kernel {INDEX} blocks {NS} {NS}"), _shared_key),
    )
}

PASSED: Final[Readers] = {
    b"lost": ((Pattern("lost {INDEX} {COUNT}"), lambda m: PassedLost(int(m[1]), int(m[2]))),),
    b"*": ((Pattern(r"\d"), _packed),),
}
