"""What a report says first: which run it is of, on what, and what was kept of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.draw.table import safe
from tui_probe.pages.budgets import budget_lines, budget_record
from tui_probe.pages.failures import failure_lines
from tui_probe.pages.launch_counts import launches_in_words
from tui_probe.trace.failures import ended_context
from tui_probe.trace.source_files import copied

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.trace.model import Kernel, Trace
    from tui_probe.trace.process_events import ContextFailed

SIMULATED: Final = "simulated GPU: clocks and cycles come from a model, and nothing here is a time"
NO_PTXAS: Final = (
    "no ptxas: spills are unknown, and registers are those that the driver reports; install the wheel"
    " nvidia-cuda-nvcc, or set CUDA_HOME to a CUDA toolkit"
)
_UNSAVED: Final = "the process was killed or exited past its exit handlers (help limits)"
_HALTS: Final = ("save-full ", "save-paused ", "save-resumed ")
_LABEL: Final = 10
_LEAST: Final = 20
_NAME: Final = 40
"""Cells of a kernel's name within a sentence."""


def head_lines(trace: Trace, cells: int | None = None) -> list[str]:
    """``label  words``, the words broken to fit ``cells`` cells if given."""
    lines = []
    for label, words in _head(trace):
        parts = [words] if cells is None else wrap(words, max(_LEAST, cells - _LABEL))
        lines += [f"{label if i == 0 else '':<{_LABEL}}{part}" for i, part in enumerate(parts)]
    return lines


def _head(trace: Trace) -> Iterator[tuple[str, str]]:
    state = trace.state
    yield from _failed(kernel for kernel in trace.kernels if ended_context(kernel.failures))
    yield "trace", safe(str(trace.directory))
    yield "command", safe(state.command) or units.NOT_MEASURED
    yield "outcome", _outcome(trace)
    for device in state.devices.values():
        yield "device", f"{safe(device.name)}, {units.counted(device.sms, 'SM')}, cc {device.capability}"
    if state.simulated:
        yield "", SIMULATED
    if (sample := sample_of(trace)) is not None:
        yield "sample", f"{_sample_words(sample)} of each grid: everything measured is of these only"
    launches = launches_in_words(state.launches, state.launches_probed)
    results = f"{units.counted(state.results, 'result')}, {units.size(state.bytes_written)}"
    yield "seen", f"{units.counted(state.kernels, 'kernel')}, {launches}, {results}"
    if trace.run_info is not None and trace.run_info.ptxas is None and state.kernels:
        yield "", NO_PTXAS
    if trace.log_cut:
        yield "log", _cut_words(trace)
    yield from _failed(kernel for kernel in trace.kernels if not ended_context(kernel.failures))
    if state.context_failed is not None:
        yield "context", context_words(trace, state.context_failed)
    for words in _missing_results(trace):
        yield "", words
    for words in budget_lines(trace):
        yield "", words
    if halted := _halted(trace):
        yield "", f"results stopped: {safe(halted)}"
    if names := copied(trace.directory):
        yield "sources", f"{units.counted(len(names), 'file')} copied into the trace: {', '.join(map(safe, names))}"


def _missing_results(trace: Trace) -> Iterator[str]:
    """Numbers of probed launches without a result, with the reason."""
    state = trace.state
    if state.launches_dropped:
        why = f": {safe(state.dropped_reason)}" if state.dropped_reason else ""
        yield f"{units.counted(state.launches_dropped, 'result')} not kept{why}"
    if unsaved := trace.results_unsaved:
        yield f"at least {units.counted(unsaved, 'result')} not saved: {_UNSAVED}"


def _cut_words(trace: Trace) -> str:
    """That the log is not whole, and how many results lie in the trace that it does not name."""
    unnamed = trace.results_unnamed
    results = f", among it {units.counted(unnamed, 'result')} in result/" if unnamed else ""
    return f"event.log breaks off before the program's end: what came after is not counted here{results}"


def _failed(kernels: Iterable[Kernel]) -> Iterator[tuple[str, str]]:
    for place, words in enumerate(failure_lines(kernels)):
        yield "" if place else "failed", words


def context_words(trace: Trace, failed: ContextFailed) -> str:
    """What is known of the error that ended the program's GPU context, and what finds its cause.

    Kernels that ran unprobed are not among those named: only of probed launches is it known what had a result.
    """
    known = len(trace.kernels)
    names = [shorten(safe(trace.kernels[index].demangled), _NAME) for index in failed.kernels if index < known]
    launched = f" Launched since the last result: {', '.join(names)}." if names else ""
    command = safe(trace.state.command) or "PROGRAM"
    return (
        f"{failed.name} ({failed.error}) ended the GPU context, and the program received it.{launched} Probes write"
        f" only to their own maps; check the program's kernels: compute-sanitizer {command}"
    )


def _halted(trace: Trace) -> str:
    """Why launches are not recorded since the last result, as far as that holds for all; "" while they are."""
    told = [text.partition(" ") for text in trace.state.troubles if text.startswith(_HALTS)]
    word, _, why = told[-1] if told else ("", "", "")
    return "" if word == "save-resumed" else why.partition(": ")[0]


def head_record(trace: Trace) -> dict[str, Any]:
    """The same as data. Times are seconds since 1970; None is not known."""
    state = trace.state
    device = state.device
    return {
        "trace": str(trace.directory).encode("utf-8", "backslashreplace").decode(),
        "run": {
            "pid": state.pid,
            "command": state.command,
            "started": state.started,
            "ended": state.ended,
            "running": state.running,
            "exit_status": state.exit_status,
            "signal": state.signal,
            "device": None if device is None else device.name,
            "capability": None if device is None else device.capability,
            "sms": None if device is None else device.sms,
            "simulated": state.simulated,
            "benchmark": state.benchmark,
            "sample": sample_of(trace),
            "kernels": state.kernels,
            "launches": state.launches,
            "launches_probed": state.launches_probed,
            "launches_dropped": state.launches_dropped,
            "dropped_reason": state.dropped_reason,
            "dropped_reason_code": state.dropped_reason_code,
            "results": state.results,
            "bytes_written": state.bytes_written,
            "log_cut": trace.log_cut,
            "context_failed": None if state.context_failed is None else asdict(state.context_failed),
            "budgets": budget_record(trace),
            "sources": copied(trace.directory),
            "results_unsaved": trace.results_unsaved,
        },
    }


def sample_of(trace: Trace) -> str | None:
    """``run --sample``: which blocks of each grid were measured, as the user wrote it; None: all."""
    sample = None if trace.run_info is None else trace.run_info.options.get("sample")
    return sample if isinstance(sample, str) else None


def _sample_words(sample: str) -> str:
    """``one block in 16``, ``blocks 0 to 131``, ``64 blocks``."""
    one, slash, step = sample.partition("/")
    first, dash, last = sample.partition("-")
    if slash:
        return f"one block in {step}"
    return f"blocks {first} to {last}" if dash else f"{one} blocks"


def ending_of(trace: Trace) -> str:
    """How the process ended: ``exit status 0``, ``ended by signal 9``."""
    state = trace.state
    if state.running:
        return "still running"
    if state.signal is not None:
        return f"ended by signal {state.signal}"
    if state.exit_status is not None:
        return f"exit status {state.exit_status}"
    if trace.broke_off:
        return "unknown: event.log breaks off; killed, crashed, or no room on the disk"
    return "ended, exit status not known"


def _outcome(trace: Trace) -> str:
    """How the process ended, and how long it took where that is a time."""
    state, words = trace.state, ending_of(trace)
    if state.started is None or state.ended is None:
        return words
    return f"{words} after {units.elapsed(state.ended - state.started)}"
