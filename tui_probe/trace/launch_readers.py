"""Patterns of lines about kernels, launches and CUDA graphs, and how each becomes a record."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tui_probe.reasons import read_reason
from tui_probe.trace.event_types import BenchmarkEnabled, ContextFailed, Unknown
from tui_probe.trace.launch_events import (
    Alternating,
    Benchmark,
    EmptyPair,
    EngineAnswer,
    EngineStarted,
    FileStep,
    FunctionFound,
    FunctionMissing,
    FunctionResources,
    GpuTimed,
    GraphChanged,
    GraphInstantiated,
    GraphNode,
    GraphReplay,
    GraphReplayed,
    GraphTimed,
    Image,
    ImageFound,
    InfoRead,
    KernelFolder,
    KernelPrepared,
    KernelReady,
    LaunchEnded,
    LaunchKept,
    LaunchNotKept,
    LaunchStarted,
    LaunchTimes,
    LaunchUnprobed,
    MapSize,
    ModuleCall,
    NotReplayed,
    PackedLine,
    Parameters,
    ProbedFunction,
    ProbeMemory,
    ProbePrepared,
    ProbesFused,
    ResultSaved,
    ShapeGroupNamed,
    SlotsCounted,
    TurnsEnded,
    UnprobedDropped,
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
from tui_probe.trace.plain_file import text_of
from tui_probe.trace.unprobed import match_line

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.launch_events import GraphChange, PrepareResult, ProbeMode
    from tui_probe.trace.line_grammar import Match, Readers

PREPARE_RESULTS: Final[dict[bytes, PrepareResult]] = {
    b"probed": "probed",
    b"skipped": "skipped",
    b"failed": "failed",
    b"filtered": "excluded",
}
"""Words for a kernel in the log; ``filtered`` is how the hook writes that it was excluded."""

PROBE_MODES: Final[dict[bytes | None, ProbeMode]] = {b"ptx": "ptx", b"graft": "graft"}
"""Forms of a probe in a kernel, by their words in the log."""
_PROBED_FUNCTION: Final = (
    r"{INDEX} probed-function registers {MAYBE} local {MAYBE} shared {MAYBE} blocks {MAYBE}(?: way (\S+))?"
)
_PREPARED: Final = (
    "{INDEX} (probed|skipped|failed|filtered) registers {MAYBE} local {MAYBE} shared {MAYBE} blocks {MAYBE} "
    r"name (\S*)(?: reason (.*))?"
)
_PROBING: Final = (
    "{INDEX} (probed|skipped|failed) registers {MAYBE} local {MAYBE} shared {MAYBE} blocks {MAYBE} "
    r"probe (\S+) reason (.*)"
)
IMAGES: Final[Readers] = {
    b"type": ((Pattern(r"type (\w+),? size {COUNT}"), lambda m: Image(text_of(m[1]), int(m[2]))),)
}
_LAUNCH: Final = "grid {SHAPE}(?: kernel {INDEX} launch {COUNT}(?: stream {POINTER})?)?"
_BACKUP: Final = "backup {SHAPE}(?: kernel {INDEX} launch {COUNT}(?: time {NS})?(?: reason (.*))?)?"
_BENCHMARK: Final = (
    "prologue {MS} kernel {MS} epilogue {MS} original {MS} impact {MS} {CODE}(?: kernel {INDEX} launch {COUNT}"
    r"(?: probe (\S+))?)?"
)
_TIME: Final = "launch {COUNT} kernel {INDEX} key {INDEX} (original|probed) ns {COUNT} for {COUNT}(?: host {COUNT})?"
_FAULTS: Final = "70[02]|71[04-9]"
"""CUDA errors of kernels that destroy the context. Other errors are from programs that destroy or reset a context."""
COUNTS: Final[Readers] = {b"size:": ((Pattern("size: {COUNT}"), lambda m: SlotsCounted(int(m[1]))),)}
_GRAPH_CHANGES: Final[dict[bytes, GraphChange]] = {
    b"untwinned": "untwinned", b"passed": "passed", b"twin given back": "given back", b"destroyed": "destroyed",
}  # fmt: skip
_GRAPH_NODE: Final = (
    r"{INDEX} {INDEX} ([a-z-]{1,20}) in {MAYBE} after (-|\d{1,9}(?:,\d{1,9})*)(?!\S)"
    r"(?: bytes {COUNT})?(?: kernel {INDEX} grid {SHAPE} captured {MAYBE})?"
)
_COUNTS: Final = r"(-|\d{1,9}x\d{1,9}(?:,\d{1,9}x\d{1,9})*)(?!\S)"
_GRAPH_REPLAY: Final = "{INDEX} replay {COUNT} time {NS} launch {COUNT} count {INDEX} probed " + _COUNTS
REPLAY_TIMES: Final[Readers] = {
    b"graph": (
        (
            Pattern("graph {INDEX} replay {COUNT} (probed|original) ns {COUNT} for {COUNT} call {COUNT}( idle)?"),
            lambda m: GraphTimed(
                int(m[1]), int(m[2]), m[3] == b"probed", int(m[4]), int(m[5]), int(m[6]), m[7] is not None
            ),
        ),
    ),
}


def _function_resources(*words: bytes) -> FunctionResources:
    """Registers, local and shared bytes, and resident blocks."""
    return FunctionResources(*map(maybe_int, words))


def _kernel_prepared(m: Match) -> Event:
    index, status, registers, local_bytes, shared_bytes, blocks, name, reason = m.groups()
    resources = _function_resources(registers, local_bytes, shared_bytes, blocks)
    return KernelPrepared(int(index), PREPARE_RESULTS[status], resources, text_of(name), reason_of(reason))


def _probe_prepared(m: Match) -> Event:
    index, status, registers, local_bytes, shared_bytes, blocks, probe, reason = m.groups()
    resources = _function_resources(registers, local_bytes, shared_bytes, blocks)
    return ProbePrepared(int(index), PREPARE_RESULTS[status], resources, text_of(probe), reason_of(reason))


def _probed_function(m: Match) -> Event:
    resources = _function_resources(m[2], m[3], m[4], m[5])
    return ProbedFunction(int(m[1]), resources, PROBE_MODES.get(m[6]))


def _module_named(m: Match) -> Event:
    return ModuleCall(text_of(m[1]), maybe_int(m[2]), maybe_hex(m[3]), maybe_hex(m[4]), text_of(m[5]))


def _module(m: Match) -> Event:
    return ModuleCall(text_of(m[1]), maybe_int(m[2]), maybe_hex(m[3]), maybe_hex(m[4]), None)


def _module_alone(m: Match) -> Event:
    """A module from a file, whose name is the handle's name, or one that goes or is looked through."""
    return ModuleCall(text_of(m[1]), maybe_int(m[2]), maybe_hex(m[3]), None, maybe_text(m[4]))


def _engine_answer(m: Match) -> Event:
    outcome = {b"succeed": "ok"}.get(m[1], m[1].decode())
    return EngineAnswer(outcome, reason_of((m[2] or b"").strip() or None))


MODULES: Final[Readers] = {
    b"*": (
        (
            Pattern(r"(cu\w+)(?: {CODE})? (?:func|kernel) {POINTER} (?:mod|module|lib|library) {POINTER} name (.*)"),
            _module_named,
        ),
        (
            Pattern(r"(cu\w+)(?: {CODE})? (?:mod|module|lib|library) {POINTER} (?:image|code|lib|library) {POINTER}"),
            _module,
        ),
        (Pattern(r"(cu\w+)(?: {CODE})? (?:func )?(0x[0-9a-f]{1,16}) (?:kernel )?(0x[0-9a-f]{1,16})"), _module),
        (
            Pattern(r"(cu\w+)(?: {CODE})? (?:mod|module|lib|library) {POINTER}(?: fname (.*)|(?= count )|$)"),
            _module_alone,
        ),
    )
}

PREPARATION: Final[Readers] = {
    b"find": (
        (
            Pattern("find {POINTER} name (.*?) bin {POINTER} size {COUNT}"),
            lambda m: ImageFound(maybe_hex(m[1]) or 0, text_of(m[2]), int(m[4])),
        ),
    ),
    b"can't-find": ((Pattern("can't-find {POINTER}"), lambda m: ImageFound(maybe_hex(m[1]) or 0, None, None)),),
    b"rename": ((Pattern(r"rename (.*) (\S+)\s*$"), lambda m: KernelFolder(text_of(m[1]), text_of(m[2]))),),
    b"subproc": ((Pattern("subproc (.*)"), lambda m: EngineStarted(text_of(m[1]))),),
    b"engine": ((Pattern("engine (ok|skipped|failed)(?: (.*))?"), _engine_answer),),
    b"fused": (
        (
            Pattern(r"fused kernel {INDEX} probes (\S+) reason (.*)"),
            lambda m: ProbesFused(int(m[1]), tuple(text_of(m[2]).split(",")), reason_of(m[3])),
        ),
    ),
    b"not-replayed": (
        (
            Pattern("not-replayed kernel {INDEX} launch {COUNT} reason (.*)"),
            lambda m: NotReplayed(int(m[1]), int(m[2]), reason_of(m[3])),
        ),
    ),
    b"ended": (
        (
            Pattern(r"ended kernel {INDEX} launch {COUNT} probe (\S+)"),
            lambda m: TurnsEnded(int(m[1]), int(m[2]), text_of(m[3])),
        ),
    ),
    b"kept": (
        (
            Pattern(
                "kept kernel {INDEX} launch {COUNT} bytes {COUNT} regions {COUNT} unknown {COUNT}(?: reason (.*))?"
            ),
            lambda m: LaunchKept(int(m[1]), int(m[2]), int(m[3]), int(m[5]), reason_of(m[6]) if m[6] else None),
        ),
    ),
    b"not-kept": (
        (
            Pattern("not-kept kernel {INDEX} launch {COUNT} reason (.*)"),
            lambda m: LaunchNotKept(int(m[1]), int(m[2]), reason_of(m[3])),
        ),
    ),
    b"python": ((Pattern("python (succeed|failed)(?: (.*))?"), _engine_answer),),
    b"read": (
        (
            Pattern(r"read .*? name (.*?) n_param {INDEX}(?: n_probe {INDEX})?(?: (?:analyze_hook|callback) (\S*))?"),
            lambda m: InfoRead(text_of(m[1]), int(m[2]), maybe_int(m[3]), maybe_text(m[4]) or None),
        ),
    ),
    b"finish": (
        (
            Pattern("finish {POINTER} name (.*?) n_param"),
            lambda m: KernelReady(maybe_hex(m[1]) or 0, text_of(m[2])),
        ),
    ),
    b"*": ((Pattern(r"(mkdir|write|can't-\w+)(?: (.*))?"), lambda m: FileStep(m[1].decode(), text_of(m[2] or b""))),),
}


KERNELS: Final[Readers] = {
    b"*": ((Pattern(_PREPARED), _kernel_prepared), (Pattern(_PROBED_FUNCTION), _probed_function))
}

PROBINGS: Final[Readers] = {b"*": ((Pattern(_PROBING), _probe_prepared),)}


def _launch_started(m: Match) -> Event:
    shape, kernel, number, stream = m.groups()
    return LaunchStarted(shape_of(shape), maybe_int(kernel), maybe_int(number), maybe_hex(stream))


def _launch_unprobed(m: Match) -> Event:
    shape, kernel, number, time_ns, reason = m.groups()
    return LaunchUnprobed(shape_of(shape), maybe_int(kernel), maybe_int(number), maybe_int(time_ns), reason_of(reason))


def _map_size(m: Match) -> Event:
    return MapSize(int(m[1]), "warp" if m[2] == b"warp" else "thread", int(m[3]), int(m[4]), int(m[5]))


def _benchmark(m: Match) -> Event:
    times = (maybe_float(m[1]), maybe_float(m[2]), maybe_float(m[3]), maybe_float(m[4]), maybe_float(m[5]))
    return Benchmark(*times, int(m[6]), maybe_int(m[7]), maybe_int(m[8]), maybe_text(m[9]))


def _gpu_timed(m: Match) -> Event:
    number, kernel, key, kind, ns, weight, host = m.groups()
    return GpuTimed(
        int(number), int(kernel), int(key), kind == b"probed", int(ns), int(weight), maybe_int(host)
    )  # fmt: skip


def _shape_group(m: Match) -> Event:
    x, y, z = map(int, m[4].split()) if m[4] else (0, 0, 0)
    return ShapeGroupNamed(int(m[1]), int(m[2]), shape_of(m[3]), (x, y, z) if x else None, None)


def _unshaped_group(m: Match) -> Event:
    return ShapeGroupNamed(int(m[1]), int(m[2]), None, None, (int(m[3]), int(m[4])))


def _packed(m: Match) -> Event:
    return PackedLine(m.string) if match_line(m.string) else Unknown(m.string)


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
            lambda m: ResultSaved(text_of(m[1]), int(m[2]), maybe_int(m[3]), maybe_int(m[4]), maybe_text(m[5])),
        ),
    ),
    b"backup": ((Pattern(_BACKUP), _launch_unprobed),),
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
    **dict.fromkeys((b"save-failed", b"descriptors-closed", b"graft"), TROUBLE),
    **dict.fromkeys((b"save-paused", b"save-resumed"), TROUBLE),
    b"prologue": (
        (
            Pattern("prologue {MS} kernel {MS} epilogue {MS} ratio {MS}"),
            lambda m: LaunchTimes(maybe_float(m[1]), maybe_float(m[2]), maybe_float(m[3]), maybe_float(m[4])),
        ),
    ),
}


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
        (Pattern(r"{INDEX} kernel {INDEX} grid {SHAPE}(?: cluster (\d{1,9} \d{1,9} \d{1,9})(?!\S))?"), _shape_group),
        (Pattern("{INDEX} kernel {INDEX} blocks {NS} {NS}"), _unshaped_group),
    )
}

PACKED_LINES: Final[Readers] = {
    b"lost": ((Pattern("lost {INDEX} {COUNT}"), lambda m: UnprobedDropped(int(m[1]), int(m[2]))),),
    b"*": ((Pattern(r"\d"), _packed),),
}


def _graph_node(m: Match) -> Event:
    graph, index, kind, parent, dependencies_word, size, kernel, shape, captured = m.groups()
    dependencies = () if dependencies_word == b"-" else tuple(int(number) for number in dependencies_word.split(b","))
    return GraphNode(
        int(graph), int(index), text_of(kind), maybe_int(parent), dependencies, maybe_int(size), maybe_int(kernel),
        None if shape is None else shape_of(shape), maybe_int(captured),
    )  # fmt: skip


def _graph_replay(m: Match) -> Event:
    graph, replay, time_ns, first_launch, count, counts_word = m.groups()
    pairs = [] if counts_word == b"-" else [pair.split(b"x") for pair in counts_word.split(b",")]
    kernels: Counter[int] = Counter()
    for kernel, times in pairs:
        kernels[int(kernel)] += int(times)
    return GraphReplay(int(graph), int(replay), int(time_ns), int(first_launch), int(count), tuple(kernels.items()))


def _graph_changed(m: Match) -> Event:
    graph, change, _, reason = m.groups()
    return GraphChanged(int(graph), _GRAPH_CHANGES[change], reason_of(reason))


GRAPHS: Final[Readers] = {
    b"*": (
        (
            Pattern(r"{INDEX} executable \S+ nodes {INDEX} kernels {INDEX} flags {INDEX}"),
            lambda m: GraphInstantiated(int(m[1]), int(m[2]), int(m[3]), int(m[4])),
        ),
        (Pattern("{INDEX} replayed {COUNT}"), lambda m: GraphReplayed(int(m[1]), int(m[2]))),
        (Pattern(_GRAPH_REPLAY), _graph_replay),
        (Pattern(r"{INDEX} (untwinned|passed|twin given back|destroyed)(?!\S)( reason (.*))?"), _graph_changed),
    )
}

NODES: Final[Readers] = {b"*": ((Pattern(_GRAPH_NODE), _graph_node),)}
