"""Patterns of all lines of ``event.log``: one line becomes one typed record.

``parse_line`` accepts any bytes and never raises: what it does not know is an :class:`Unknown`. Both tag dialects are
read (``[init] pid`` and ``[pid]``, ``[probe]`` and ``[jit]``, ``[callback]`` and ``[analyze]``), and words added at the
end of a line that is otherwise known do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.reasons import read_reason
from tui_probe.trace.event_types import (
    BudgetEvent,
    Callback,
    Command,
    Device,
    DriverOpened,
    Ending,
    Epoch,
    Event,
    Exited,
    Initialised,
    KernelFault,
    LaunchStuck,
    MemoryCall,
    MemoryHashed,
    NvtxRange,
    ProcessStarted,
    RankGiven,
    ReasonNamed,
    TensorMapLayout,
    TensorMapMade,
    Unknown,
)
from tui_probe.trace.launch_events import UnlistedLaunches
from tui_probe.trace.launch_readers import (
    BENCHMARKS,
    COUNTS,
    GRAPHS,
    IMAGES,
    KERNELS,
    KEYS,
    LAUNCHES,
    MODULES,
    NODES,
    PACKED_LINES,
    PREPARATION,
    PROBINGS,
    REPLAY_TIMES,
    TIMES,
)
from tui_probe.trace.line_grammar import TROUBLE, Pattern, maybe_hex, maybe_int, maybe_text, reason_of
from tui_probe.trace.plain_file import text_of

if TYPE_CHECKING:
    from tui_probe.trace.line_grammar import Match, Readers

_MEMORY: Final = r"(cu\w+) {CODE} dptr {POINTER}(?: bytesize {COUNT})?"
_LIST: Final = r"(\d{1,20}(?:,\d{1,20}){0,4}|-)"
_ENCODED_MAP: Final = (
    r"(cu\w+) {CODE} hash ([0-9a-f]{40}|-) address {POINTER} rank \d{1,9} type {CODE} dims "
    + _LIST
    + " strides "
    + _LIST
    + r"(?: box "
    + _LIST
    + "(?: steps "
    + _LIST
    + " interleave {CODE})?)?"
)
_READDRESSED_MAP: Final = r"(cu\w+) {CODE} hash ([0-9a-f]{40}|-) of ([0-9a-f]{40}|-) address {POINTER}"
_EXIT: Final = "launches {COUNT} probed {COUNT} dropped {COUNT} reason (.*)"
_BUDGETS: Final = ("trace-bytes", "result-files", "log-bytes", "share", "write-rate")
_BUDGET: Final = f"({'|'.join(_BUDGETS)})" + r" (reached|thins) limit {COUNT} used (\d{1,18}): (.*)"
_NVTX: Final = (
    r"range {COUNT} in {COUNT} thread {COUNT} start {NS} end (\d{1,19}|-) "
    r"launches (\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*) domain (\S+) text (.*)"
)
_HASH: Final = "launch {COUNT} kernel {INDEX} parameter {COUNT} offset {COUNT} bytes {COUNT} hash ([0-9a-f]{16})"
_STUCK: Final = (
    r"launch {INDEX} kernel {INDEX} seconds (\d{1,9}\.\d) warps {COUNT} left-out {COUNT}( deadlock|) reason (.+)"
)
_CALLBACK: Final[Readers] = {
    b"*": ((Pattern(r"(subproc|succeed|failed)(?: (.*))?"), lambda m: Callback(m[1].decode(), text_of(m[2] or b""))),)
}


def _command(m: Match) -> Event:
    """The text is as long as the line says: older systems write what lay behind it in memory, too."""
    return Command(text_of(m[2][: int(m[1])].rstrip(b" \0\r")))


def _memory_call(m: Match) -> Event:
    return MemoryCall(m[1].decode(), int(m[2]), maybe_hex(m[3]) or 0, maybe_int(m[4]))


def _numbers(words: bytes | None) -> tuple[int, ...]:
    return tuple(int(word) for word in words.split(b",")) if words and words != b"-" else ()


def _encoded_map(m: Match) -> Event:
    call, status, content, address, kind, sizes, strides, box, steps, interleave = m.groups()
    return TensorMapMade(
        text_of(call), int(status), maybe_text(content), maybe_hex(address) or 0, int(kind), _numbers(sizes),
        _numbers(strides), None if box is None else _numbers(box), steps=() if steps is None else _numbers(steps),
        interleave=int(interleave or 0),
    )  # fmt: skip


def _readdressed_map(m: Match) -> Event:
    call, status, content, origin, address = m.groups()
    return TensorMapMade(
        text_of(call), int(status), maybe_text(content), maybe_hex(address) or 0, origin=maybe_text(origin)
    )


def _ending(m: Match) -> Event:
    number = int(m[2])
    return Ending(number, None) if m[1] == b"status" else Ending(None, number)


def _exited(m: Match) -> Event:
    return Exited(int(m[1]), int(m[2]), int(m[3]), reason_of(m[4]))


def _nvtx_range(m: Match) -> Event:
    number, parent, thread, start, end, launches, domain, text = m.groups()
    pairs = (part.split(b"-") for part in launches.split(b","))
    runs = tuple((int(pair[0]), max(int(pair[0]), int(pair[-1]))) for pair in pairs)
    return NvtxRange(
        int(number), int(parent) or None, int(thread) or None, int(start), maybe_int(end), runs, maybe_text(domain),
        text_of(text),
    )  # fmt: skip


def _stuck(m: Match) -> Event:
    launch, kernel, seconds, warps, left_out, deadlock, reason = m.groups()
    return LaunchStuck(
        int(launch), int(kernel), float(seconds), int(warps), int(left_out), reason_of(reason), bool(deadlock)
    )


def _hash(m: Match) -> Event:
    launch, kernel, parameter, offset, size, number = m.groups()
    return MemoryHashed(int(launch), int(kernel), int(parameter), int(offset), int(size), number.decode())


def _budget(m: Match) -> Event:
    return BudgetEvent(text_of(m[1]), m[2] == b"reached", int(m[3]), int(m[4]), text_of(m[5]))


_INIT: Final[Readers] = {
    b"pid": ((Pattern("pid {INDEX}"), lambda m: ProcessStarted(int(m[1]))),),
    b"cmd": ((Pattern("cmd {COUNT} (.*)"), _command),),
    b"dl": ((Pattern("dl {POINTER}"), lambda m: DriverOpened(maybe_hex(m[1]) or 0)),),
    b"rank": ((Pattern("rank {COUNT} of {COUNT}"), lambda m: RankGiven(int(m[1]), int(m[2]))),),
    b"epoch": ((Pattern("epoch {NS}"), lambda m: Epoch(int(m[1]))),),
    b"device": (
        (
            Pattern(r"device {INDEX} sms {INDEX} clock {COUNT} cc (\d{1,4}\.\d{1,4}) name (.*)"),
            lambda m: Device(int(m[1]), int(m[2]), int(m[3]), m[4].decode(), text_of(m[5])),
        ),
    ),
    b"success": ((Pattern("success"), lambda _: Initialised()),),
    **dict.fromkeys((b"lost", b"python"), TROUBLE),
}


READERS: Final[dict[bytes, Readers]] = {
    b"[init]": _INIT,
    b"[pid]": {b"*": ((Pattern("{INDEX}"), lambda m: ProcessStarted(int(m[1]))),)},
    b"[cmd]": {b"*": ((Pattern("{COUNT} (.*)"), _command),)},
    b"[info]": {
        b"dl": _INIT[b"dl"],
        b"init": ((Pattern("init success"), lambda _: Initialised()),),
    },
    b"[mem]": {b"*": ((Pattern(_MEMORY), _memory_call),)},
    b"[tensor-map]": {
        b"layout": ((Pattern(r"layout (\S+)"), lambda m: TensorMapLayout(maybe_text(m[1]))),),
        b"*": ((Pattern(_ENCODED_MAP), _encoded_map), (Pattern(_READDRESSED_MAP), _readdressed_map)),
    },
    b"[mod]": MODULES,
    b"[bin]": IMAGES,
    b"[probe]": PREPARATION,
    b"[jit]": PREPARATION,
    b"[kernel]": KERNELS,
    b"[probing]": PROBINGS,
    b"[exec]": LAUNCHES,
    b"[count]": COUNTS,
    b"[benchmark]": BENCHMARKS,
    b"[time]": {**TIMES, **REPLAY_TIMES},
    b"[graph]": GRAPHS,
    b"[node]": NODES,
    b"[key]": KEYS,
    b"[reason]": {b"*": ((Pattern("{INDEX} (.+)"), lambda m: ReasonNamed(int(m[1]), read_reason(text_of(m[2])))),)},
    b"[passed]": PACKED_LINES,
    b"[sanitizer]": {b"*": ((Pattern("(.+)"), lambda m: KernelFault(text_of(m[1]))),)},
    b"[hash]": {b"*": ((Pattern(_HASH), _hash),)},
    b"[stuck]": {b"*": ((Pattern(_STUCK), _stuck),)},
    b"[nvtx]": {b"range": ((Pattern(_NVTX), _nvtx_range),)},
    b"[budget]": {
        **{name.encode(): ((Pattern(_BUDGET), _budget),) for name in _BUDGETS},
        b"unlisted": (
            (Pattern("unlisted kernel {INDEX} launches {COUNT}"), lambda m: UnlistedLaunches(int(m[1]), int(m[2]))),
        ),
        b"*": TROUBLE,
    },
    b"[callback]": _CALLBACK,
    b"[analyze]": _CALLBACK,
    b"[exit]": {
        b"status": ((Pattern("(status|signal) {COUNT}"), _ending),),
        b"signal": ((Pattern("(status|signal) {COUNT}"), _ending),),
        b"launches": ((Pattern(_EXIT), _exited),),
        b"gave": TROUBLE,
    },
}
"""Tag -> second word, or ``*`` for any other -> the patterns to try from the second word on, and what they build."""


def parse_line(line: bytes) -> Event:
    """The record of one line, with or without its end of line."""
    line = line.rstrip(b"\r\n")
    pieces = line.split(b" ", 2)
    by_word = READERS.get(pieces[0])
    if by_word is not None and len(pieces) > 1:
        for pattern, build in by_word.get(pieces[1]) or by_word.get(b"*", ()):
            match = pattern.match(line, len(pieces[0]) + 1)
            if match is not None:
                return build(match)
    return Unknown(line)


__all__ = ["Event", "parse_line"]
