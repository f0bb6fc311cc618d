"""How lines of kernels become records: ``[mod]``, ``[bin]``, ``[probe]``, ``[kernel]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.trace.kernel_events import (
    EngineAnswer,
    EngineStarted,
    FileStep,
    FunctionFigures,
    Image,
    ImageFound,
    InfoRead,
    KernelFate,
    KernelFolder,
    KernelReady,
    ModuleCall,
    ProbedFunction,
    ProbingFate,
)
from tui_probe.trace.line_grammar import Pattern, maybe_hex, maybe_int, maybe_text, reason_of
from tui_probe.trace.text import text_of

if TYPE_CHECKING:
    from tui_probe.trace.event_types import Event
    from tui_probe.trace.kernel_events import Fate, Way
    from tui_probe.trace.line_grammar import Match, Readers


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


def _figures(*words: bytes) -> FunctionFigures:
    """Registers, local and shared bytes, and resident blocks."""
    return FunctionFigures(*map(maybe_int, words))


def _kernel_fate(m: Match) -> Event:
    index, status, registers, local, shared, blocks, name, reason = m.groups()
    figures = _figures(registers, local, shared, blocks)
    return KernelFate(int(index), FATES[status], figures, text_of(name), reason_of(reason))


def _probing_fate(m: Match) -> Event:
    index, status, registers, local, shared, blocks, probe, reason = m.groups()
    figures = _figures(registers, local, shared, blocks)
    return ProbingFate(int(index), FATES[status], figures, text_of(probe), reason_of(reason))


def _probed_function(m: Match) -> Event:
    figures = _figures(m[2], m[3], m[4], m[5])
    return ProbedFunction(int(m[1]), figures, WAYS.get(m[6]))


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


IMAGES: Final[Readers] = {
    b"type": ((Pattern(r"type (\w+),? size {COUNT}"), lambda m: Image(text_of(m[1]), int(m[2]))),)
}

FATES_OF_KERNELS: Final[Readers] = {
    b"*": ((Pattern(_FATE), _kernel_fate), (Pattern(_PROBED_FUNCTION), _probed_function))
}

FATES_OF_PROBINGS: Final[Readers] = {b"*": ((Pattern(_PROBING), _probing_fate),)}
