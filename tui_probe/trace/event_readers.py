"""The grammar of ``event.log``: what each kind of line looks like, and the record that it becomes."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.reasons import read_reason
from tui_probe.trace.event_types import (
    Alternating,
    Benchmark,
    BenchmarkEnabled,
    BudgetTold,
    Callback,
    Command,
    Counted,
    Device,
    DriverOpened,
    EmptyPair,
    Ending,
    EngineAnswer,
    EngineStarted,
    Epoch,
    Event,
    Exited,
    Fate,
    FileStep,
    FunctionFigures,
    FunctionFound,
    FunctionMissing,
    GpuTimed,
    Image,
    ImageFound,
    InfoRead,
    Initialised,
    KernelFate,
    KernelFolder,
    KernelReady,
    KeyNamed,
    LaunchEnded,
    LaunchStarted,
    LaunchTimes,
    MapSize,
    MemoryCall,
    ModuleCall,
    NvtxRange,
    Packed,
    Parameters,
    PassedLost,
    PassedThrough,
    ProbedFunction,
    ProbeMemory,
    ProbingFate,
    ProcessStarted,
    ReasonNamed,
    Saved,
    Shape,
    Trouble,
    Unknown,
    Unlisted,
)
from tui_probe.trace.graph_events import GraphMade, GraphNodeTold, GraphReplay, GraphReplayed, GraphTimed, GraphTold
from tui_probe.trace.packed_lines import match_line
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.reasons import Reason
    from tui_probe.trace.event_types import Way
    from tui_probe.trace.graph_events import Told

Match: TypeAlias = re.Match[bytes]
Reader: TypeAlias = "tuple[Pattern, Callable[[Match], Event]]"


@lru_cache(maxsize=8192)
def shape_of(words: bytes) -> Shape:
    """``b"4096 1 1 block 128 1 1 shared 0"`` as numbers, which it is known to be."""
    x, y, z, bx, by, bz, shared = (min(int(word), _U32) for word in words.split() if word.isdigit())
    return x, y, z, bx, by, bz, shared


def _command(m: Match) -> Event:
    """The text is as long as the line says: older systems write what lay behind it in memory, too."""
    return Command(text_of(m[2][: int(m[1])].rstrip(b" \0\r")))


def _number(word: bytes | None) -> int | None:
    return None if word is None or word == b"-" else int(word)


def _hex(word: bytes | None) -> int | None:
    return None if word is None or word == b"(nil)" else int(word, 16)


def _decimal(word: bytes | None) -> float | None:
    return None if word is None or word == b"-" else float(word)


def _text(word: bytes | None) -> str | None:
    return None if word is None or word == b"-" else text_of(word)


def reason_of(words: bytes | None) -> Reason | None:
    """A reason at the end of a line; None for ``-``, and where the line has none."""
    return None if words is None or words == b"-" else read_reason(text_of(words))


_U32: Final = 0xFFFFFFFF

# Pieces of the grammar. Digits are bounded, so that every number fits a 64-bit column, and a number ends with its word,
# so that one with another line's text behind it is not taken for a whole one.
_PIECES: Final = {
    "COUNT": r"(\d{1,18})(?!\S)",
    "MAYBE": r"(\d{1,18}|-)(?!\S)",
    "INDEX": r"(\d{1,9})(?!\S)",
    "CODE": r"(-?\d{1,9})(?!\S)",
    "NS": r"(\d{1,19})(?!\S)",
    "POINTER": r"(?:0x)?([0-9a-fA-F]{1,16}|\(nil\))",
    "SHAPE": r"(\d{1,10} \d{1,10} \d{1,10} block \d{1,10} \d{1,10} \d{1,10} shared \d{1,18})(?!\S)",
    "MS": r"(-?\d{1,18}(?:\.\d{0,18})?(?:e[+-]?\d{1,2})?|-?nan|-?inf|-)",
}


class Pattern:
    """A pattern from a line template: capitals in braces are pieces, two blanks are one or more.

    It is compiled when it is first used: a log has few kinds of lines that are read one by one.
    """

    def __init__(self, template: str) -> None:
        self._template = template

    def match(self, line: bytes, start: int) -> Match | None:
        """How the line continues from there, if it does."""
        return self._compiled.match(line, start)

    @cached_property
    def _compiled(self) -> re.Pattern[bytes]:
        expression = self._template.replace("  ", " +")
        for name, piece in _PIECES.items():
            expression = expression.replace("{" + name + "}", piece)
        return re.compile(expression.encode(), re.DOTALL)


def _launch_started(m: Match) -> Event:
    shape, kernel, number, stream = m.groups()
    return LaunchStarted(shape_of(shape), _number(kernel), _number(number), _hex(stream))


def _passed_through(m: Match) -> Event:
    shape, kernel, number, time_ns, reason = m.groups()
    return PassedThrough(shape_of(shape), _number(kernel), _number(number), _number(time_ns), reason_of(reason))


FATES: Final[dict[bytes, Fate]] = {
    b"probed": "probed",
    b"skipped": "skipped",
    b"failed": "failed",
    b"excluded": "excluded",
    b"filtered": "excluded",
}
"""What a log says of a kernel; ``filtered`` is how the hook writes that it was excluded."""
WAYS: Final[dict[bytes | None, Way]] = {b"ptx": "ptx", b"graft": "graft"}
"""How a probe came into a kernel."""


def _kernel_fate(m: Match) -> Event:
    index, status, registers, local, shared, blocks, name, reason = m.groups()
    figures = FunctionFigures(_number(registers), _number(local), _number(shared), _number(blocks))
    return KernelFate(int(index), FATES[status], figures, text_of(name), reason_of(reason))


def _probing_fate(m: Match) -> Event:
    index, status, registers, local, shared, blocks, probe, reason = m.groups()
    figures = FunctionFigures(_number(registers), _number(local), _number(shared), _number(blocks))
    return ProbingFate(int(index), FATES[status], figures, text_of(probe), reason_of(reason))


def _probed_function(m: Match) -> Event:
    figures = FunctionFigures(_number(m[2]), _number(m[3]), _number(m[4]), _number(m[5]))
    return ProbedFunction(int(m[1]), figures, WAYS.get(m[6]))


def _memory_call(m: Match) -> Event:
    return MemoryCall(m[1].decode(), int(m[2]), _hex(m[3]) or 0, _number(m[4]))


def _ending(m: Match) -> Event:
    number = int(m[2])
    return Ending(number, None) if m[1] == b"status" else Ending(None, number)


def _exited(m: Match) -> Event:
    return Exited(int(m[1]), int(m[2]), int(m[3]), reason_of(m[4]))


def _map_size(m: Match) -> Event:
    return MapSize(int(m[1]), "warp" if m[2] == b"warp" else "thread", int(m[3]), int(m[4]), int(m[5]))


def _benchmark(m: Match) -> Event:
    times = (_decimal(m[1]), _decimal(m[2]), _decimal(m[3]), _decimal(m[4]), _decimal(m[5]))
    return Benchmark(*times, int(m[6]), _number(m[7]), _number(m[8]))


def _gpu_timed(m: Match) -> Event:
    number, kernel, key, kind, ns, weight, host = m.groups()
    return GpuTimed(
        int(number), int(kernel), _number(key), kind == b"probed", int(ns), int(weight), _number(host)
    )  # fmt: skip


def _graph_node(m: Match) -> Event:
    graph, index, kind, parent, after, size, kernel, shape, captured = m.groups()
    before = () if after == b"-" else tuple(int(one) for one in after.split(b","))
    return GraphNodeTold(
        int(graph), int(index), text_of(kind), _number(parent), before, _number(size), _number(kernel),
        None if shape is None else shape_of(shape), _number(captured),
    )  # fmt: skip


def _graph_replay(m: Match) -> Event:
    graph, replay, time_ns, first, count, probed = m.groups()
    pairs = [] if probed == b"-" else [pair.split(b"x") for pair in probed.split(b",")]
    kernels: Counter[int] = Counter()
    for kernel, times in pairs:
        kernels[int(kernel)] += int(times)
    return GraphReplay(int(graph), int(replay), int(time_ns), int(first), int(count), tuple(kernels.items()))


def _graph_told(m: Match) -> Event:
    graph, what, _, reason = m.groups()
    return GraphTold(int(graph), _GRAPH_TOLD[what], reason_of(reason))


_GRAPH_TOLD: Final[dict[bytes, Told]] = {
    b"untwinned": "untwinned", b"passed": "passed", b"twin given back": "given back", b"destroyed": "destroyed",
}  # fmt: skip


def _module_named(m: Match) -> Event:
    return ModuleCall(text_of(m[1]), _number(m[2]), _hex(m[3]), _hex(m[4]), text_of(m[5]))


def _module(m: Match) -> Event:
    return ModuleCall(text_of(m[1]), _number(m[2]), _hex(m[3]), _hex(m[4]), None)


def _module_alone(m: Match) -> Event:
    """A module from a file, whose name is the handle's name, or one that goes or is looked through."""
    return ModuleCall(text_of(m[1]), _number(m[2]), _hex(m[3]), None, _text(m[4]))


def _nvtx_range(m: Match) -> Event:
    number, parent, thread, start, end, launches, domain, text = m.groups()
    pairs = (part.split(b"-") for part in launches.split(b","))
    runs = tuple((int(pair[0]), max(int(pair[0]), int(pair[-1]))) for pair in pairs)
    return NvtxRange(
        int(number), int(parent) or None, int(thread) or None, int(start), _number(end), runs, _text(domain),
        text_of(text),
    )  # fmt: skip


def _budget(m: Match) -> Event:
    return BudgetTold(text_of(m[1]), m[2] == b"reached", int(m[3]), int(m[4]), text_of(m[5]))


def _key(m: Match) -> Event:
    x, y, z = map(int, m[4].split()) if m[4] else (0, 0, 0)
    return KeyNamed(int(m[1]), int(m[2]), shape_of(m[3]), (x, y, z) if x else None, None)


def _shared_key(m: Match) -> Event:
    return KeyNamed(int(m[1]), int(m[2]), None, None, (int(m[3]), int(m[4])))


def _packed(m: Match) -> Event:
    return Packed(m.string) if match_line(m.string) else Unknown(m.string)


def _trouble(m: Match) -> Event:
    return Trouble(text_of(m.string[m.start() :]))


def _engine_answer(m: Match) -> Event:
    outcome = {b"succeed": "ok"}.get(m[1], m[1].decode())
    return EngineAnswer(outcome, reason_of((m[2] or b"").strip() or None))


_LAUNCH: Final = "grid {SHAPE}(?: kernel {INDEX} launch {COUNT}(?: stream {POINTER})?)?"
_BACKUP: Final = "backup {SHAPE}(?: kernel {INDEX} launch {COUNT}(?: time {NS})?(?: reason (.*))?)?"
_MEMORY: Final = r"(cu\w+) {CODE} dptr {POINTER}(?: bytesize {COUNT})?"
_EXIT: Final = "launches {COUNT} probed {COUNT} dropped {COUNT}(?: reason (.*))?"
_PROBED_FUNCTION: Final = (
    r"{INDEX} probed-function registers {MAYBE} local {MAYBE} shared {MAYBE} blocks {MAYBE}(?: way (\S+))?"
)
_FATE: Final = (
    "{INDEX} (probed|skipped|failed|excluded|filtered) registers {MAYBE} local {MAYBE} shared {MAYBE} blocks {MAYBE} "
    r"name (\S*)(?: reason (.*))?"
)
_PROBING: Final = (
    "{INDEX} (probed|skipped|failed) registers {MAYBE} local {MAYBE} shared {MAYBE} blocks {MAYBE} "
    r"probe (\S+) reason (.*)"
)
_BENCHMARK: Final = (
    "prologue {MS} kernel {MS} epilogue {MS} original {MS} impact {MS} {CODE}(?: kernel {INDEX} launch {COUNT})?"
)

_GRAPH_NODE: Final = (
    r"{INDEX} {INDEX} ([a-z-]{1,20}) in {MAYBE} after (-|\d{1,9}(?:,\d{1,9})*)(?!\S)"
    r"(?: bytes {COUNT})?(?: kernel {INDEX} grid {SHAPE} captured {MAYBE})?"
)
_COUNTS: Final = r"(-|\d{1,9}x\d{1,9}(?:,\d{1,9}x\d{1,9})*)(?!\S)"
_GRAPH_REPLAY: Final = "{INDEX} replay {COUNT} time {NS} launch {COUNT} count {INDEX} probed " + _COUNTS
_TIME: Final = (
    "launch {COUNT} kernel {INDEX}(?: key {INDEX})? (original|probed) ns {COUNT} for {COUNT}(?: host {COUNT})?"
)
_BUDGET: Final = r"(trace-bytes|result-files|log-bytes|share) (reached|thins) limit {COUNT} used (\d{1,18}): (.*)"
_NVTX: Final = (
    r"range {COUNT} in {COUNT} thread {COUNT} start {NS} end (\d{1,19}|-) "
    r"launches (\d{1,18}(?:-\d{1,18})?(?:,\d{1,18}(?:-\d{1,18})?)*) domain (\S+) text (.*)"
)

_MODULE: Final[tuple[Reader, ...]] = (
    (
        Pattern(r"(cu\w+)(?: {CODE})? (?:func|kernel) {POINTER} (?:mod|module|lib|library) {POINTER} name (.*)"),
        _module_named,
    ),
    (
        Pattern(r"(cu\w+)(?: {CODE})? (?:mod|module|lib|library) {POINTER} (?:image|code|lib|library) {POINTER}"),
        _module,
    ),
    (Pattern(r"(cu\w+)(?: {CODE})? (?:func )?(0x[0-9a-f]{1,16}) (?:kernel )?(0x[0-9a-f]{1,16})"), _module),
    (Pattern(r"(cu\w+)(?: {CODE})? (?:mod|module|lib|library) {POINTER}(?: fname (.*)|(?= count )|$)"), _module_alone),
)

_TROUBLE: Final[tuple[Reader, ...]] = ((Pattern(""), _trouble),)

_EXEC: Final[dict[bytes, tuple[Reader, ...]]] = {
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
            lambda m: ProbeMemory(int(m[1]), _number(m[2]), _number(m[3]), _text(m[4])),
        ),
    ),
    b"succeed": ((Pattern("succeed {CODE}"), lambda m: LaunchEnded(True, int(m[1]))),),
    b"failed": ((Pattern("failed {CODE}"), lambda m: LaunchEnded(False, int(m[1]))),),
    b"save": (
        (
            Pattern(r"save (.*?) size {COUNT}(?: kernel {INDEX} launch {COUNT}(?: probe (\S+))?)?"),
            lambda m: Saved(text_of(m[1]), int(m[2]), _number(m[3]), _number(m[4]), _text(m[5])),
        ),
    ),
    b"backup": ((Pattern(_BACKUP), _passed_through),),
    b"funcmap-find": (
        (
            Pattern("funcmap-find {POINTER} (success|fail)"),
            lambda m: FunctionFound(_hex(m[1]) or 0, m[2] == b"success"),
        ),
    ),
    b"funcmap-not-find": ((Pattern("funcmap-not-find {POINTER}"), lambda m: FunctionMissing(_hex(m[1]) or 0)),),
    **dict.fromkeys((b"save-failed", b"descriptors-closed", b"drain-failed", b"can't-save", b"graft"), _TROUBLE),
    **dict.fromkeys((b"save-full", b"save-paused", b"save-resumed"), _TROUBLE),
    b"prologue": (
        (
            Pattern("prologue {MS} kernel {MS} epilogue {MS} ratio {MS}"),
            lambda m: LaunchTimes(_decimal(m[1]), _decimal(m[2]), _decimal(m[3]), _decimal(m[4])),
        ),
    ),
}

_PROBE: Final[dict[bytes, tuple[Reader, ...]]] = {
    b"find": (
        (
            Pattern("find {POINTER} name (.*?) bin {POINTER} size {COUNT}"),
            lambda m: ImageFound(_hex(m[1]) or 0, text_of(m[2]), int(m[4])),
        ),
    ),
    b"can't-find": ((Pattern("can't-find {POINTER}"), lambda m: ImageFound(_hex(m[1]) or 0, None, None)),),
    b"rename": ((Pattern(r"rename (.*) (\S+)\s*$"), lambda m: KernelFolder(text_of(m[1]), text_of(m[2]))),),
    b"subproc": ((Pattern("subproc (.*)"), lambda m: EngineStarted(text_of(m[1]))),),
    b"engine": ((Pattern("engine (ok|skipped|failed)(?: (.*))?"), _engine_answer),),
    b"python": ((Pattern("python (succeed|failed)(?: (.*))?"), _engine_answer),),
    b"read": (
        (
            Pattern(r"read .*? name (.*?) n_param {INDEX}(?: n_probe {INDEX})?(?: (?:analyze_hook|callback) (\S*))?"),
            lambda m: InfoRead(text_of(m[1]), int(m[2]), _number(m[3]), _text(m[4]) or None),
        ),
    ),
    b"finish": (
        (Pattern("finish {POINTER} name (.*?) n_param"), lambda m: KernelReady(_hex(m[1]) or 0, text_of(m[2]))),
    ),
    b"*": ((Pattern(r"(mkdir|write|can't-\w+)(?: (.*))?"), lambda m: FileStep(m[1].decode(), text_of(m[2] or b""))),),
}

_INIT: Final[dict[bytes, tuple[Reader, ...]]] = {
    b"pid": ((Pattern("pid {INDEX}"), lambda m: ProcessStarted(int(m[1]))),),
    b"cmd": ((Pattern("cmd {COUNT} (.*)"), _command),),
    b"dl": ((Pattern("dl {POINTER}"), lambda m: DriverOpened(_hex(m[1]) or 0)),),
    b"epoch": ((Pattern("epoch {NS}"), lambda m: Epoch(int(m[1]))),),
    b"device": (
        (
            Pattern(r"device {INDEX} sms {INDEX} clock {COUNT} cc (\d{1,4}\.\d{1,4}) name (.*)"),
            lambda m: Device(int(m[1]), int(m[2]), int(m[3]), m[4].decode(), text_of(m[5])),
        ),
    ),
    b"success": ((Pattern("success"), lambda _: Initialised()),),
    b"lost": _TROUBLE,
}

_CALLBACK: Final[dict[bytes, tuple[Reader, ...]]] = {
    b"*": ((Pattern(r"(subproc|succeed|failed)(?: (.*))?"), lambda m: Callback(m[1].decode(), text_of(m[2] or b""))),)
}

READERS: Final[dict[bytes, dict[bytes, tuple[Reader, ...]]]] = {
    b"[init]": _INIT,
    b"[pid]": {b"*": ((Pattern("{INDEX}"), lambda m: ProcessStarted(int(m[1]))),)},
    b"[cmd]": {b"*": ((Pattern("{COUNT} (.*)"), _command),)},
    b"[info]": {
        b"dl": _INIT[b"dl"],
        b"init": ((Pattern("init success"), lambda _: Initialised()),),
    },
    b"[mem]": {b"*": ((Pattern(_MEMORY), _memory_call),)},
    b"[mod]": {b"*": _MODULE},
    b"[bin]": {b"type": ((Pattern(r"type (\w+),? size {COUNT}"), lambda m: Image(text_of(m[1]), int(m[2]))),)},
    b"[probe]": _PROBE,
    b"[jit]": _PROBE,
    b"[kernel]": {b"*": ((Pattern(_FATE), _kernel_fate), (Pattern(_PROBED_FUNCTION), _probed_function))},
    b"[probing]": {b"*": ((Pattern(_PROBING), _probing_fate),)},
    b"[exec]": _EXEC,
    b"[count]": {b"size:": ((Pattern("size: {COUNT}"), lambda m: Counted(int(m[1]))),)},
    b"[benchmark]": {
        b"prologue": ((Pattern(_BENCHMARK), _benchmark),),
        b"alternate": (
            (
                Pattern("alternate kernel {INDEX} reason (.*)"),
                lambda m: Alternating(int(m[1]), read_reason(text_of(m[2]))),
            ),
        ),
        b"ENABLED": ((Pattern("ENABLED L2 Flush Size {COUNT}"), lambda m: BenchmarkEnabled(int(m[1]))),),
    },
    b"[time]": {
        b"launch": ((Pattern(_TIME), _gpu_timed),),
        b"graph": (
            (
                Pattern("graph {INDEX} replay {COUNT} (probed|original) ns {COUNT} for {COUNT} call {COUNT}( idle)?"),
                lambda m: GraphTimed(
                    int(m[1]), int(m[2]), m[3] == b"probed", int(m[4]), int(m[5]), int(m[6]), m[7] is not None
                ),
            ),
        ),
        b"empty": ((Pattern("empty {COUNT}"), lambda m: EmptyPair(int(m[1]))),),
    },
    b"[graph]": {
        b"*": (
            (
                Pattern(r"{INDEX} executable \S+ nodes {INDEX} kernels {INDEX} flags {INDEX}"),
                lambda m: GraphMade(int(m[1]), int(m[2]), int(m[3]), int(m[4])),
            ),
            (Pattern("{INDEX} replayed {COUNT}"), lambda m: GraphReplayed(int(m[1]), int(m[2]))),
            (Pattern(_GRAPH_REPLAY), _graph_replay),
            (Pattern(r"{INDEX} (untwinned|passed|twin given back|destroyed)(?!\S)( reason (.*))?"), _graph_told),
        )
    },
    b"[node]": {b"*": ((Pattern(_GRAPH_NODE), _graph_node),)},
    b"[key]": {
        b"*": (
            (Pattern(r"{INDEX} kernel {INDEX} grid {SHAPE}(?: cluster (\d{1,9} \d{1,9} \d{1,9})(?!\S))?"), _key),
            (Pattern("{INDEX} kernel {INDEX} blocks {NS} {NS}"), _shared_key),
        )
    },
    b"[reason]": {b"*": ((Pattern("{INDEX} (.+)"), lambda m: ReasonNamed(int(m[1]), read_reason(text_of(m[2])))),)},
    b"[passed]": {
        b"lost": ((Pattern("lost {INDEX} {COUNT}"), lambda m: PassedLost(int(m[1]), int(m[2]))),),
        b"*": ((Pattern(r"\d"), _packed),),
    },
    b"[nvtx]": {b"range": ((Pattern(_NVTX), _nvtx_range),)},
    b"[budget]": {
        **dict.fromkeys((b"trace-bytes", b"result-files", b"log-bytes", b"share"), ((Pattern(_BUDGET), _budget),)),
        b"unlisted": ((Pattern("unlisted kernel {INDEX} launches {COUNT}"), lambda m: Unlisted(int(m[1]), int(m[2]))),),
        b"*": _TROUBLE,
    },
    b"[callback]": _CALLBACK,
    b"[analyze]": _CALLBACK,
    b"[exit]": {
        b"status": ((Pattern("(status|signal) {COUNT}"), _ending),),
        b"signal": ((Pattern("(status|signal) {COUNT}"), _ending),),
        b"launches": ((Pattern(_EXIT), _exited),),
        b"gave": _TROUBLE,
    },
}
"""Tag -> second word, or ``*`` for any other -> the patterns to try from the second word on, and what they build."""
