"""Outcome of a run: command, device, exit, budgets that were reached, and results that are missing."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.draw.spans import wrap
from tui_probe.probekit.recognised import recognition_text
from tui_probe.probekit.record_counts import probed_launches_text
from tui_probe.trace.kernel_status import ended_context
from tui_probe.trace.source_lines import copied_names
from tui_probe.verdicts.code_places import failure_lines
from tui_probe.verdicts.probe_coverage import unmeasured_probes, unmeasured_texts, unused_probes
from tui_probe.verdicts.simulator_findings import faulty_kernels
from tui_probe.verdicts.unended_launches import unended_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.trace.event_types import BudgetEvent, ContextFailed
    from tui_probe.trace.model import Kernel, Run, State, Trace
    from tui_probe.verdicts.kernel_snapshot import KernelSnapshot

BUDGET_OPTIONS: Final = {
    "trace-bytes": "--max-trace-bytes",
    "result-files": "--max-result-files",
    "log-bytes": "--max-log-bytes",
    "share": "--max-trace-bytes",
    "write-rate": "--max-write-rate",
}
_BUDGET_REASONS: Final = ("trace-full", "results-full", "trace-share", "write-rate")
SIMULATED_NOTE: Final = "simulated GPU: clocks and cycles come from a model; no time is measured"
NO_PTXAS_NOTE: Final = (
    "no ptxas: spills are unknown and register counts come from the driver; install the wheel"
    " nvidia-cuda-nvcc or set CUDA_HOME to a CUDA toolkit"
)
_UNSAVED_REASON: Final = "the process was killed, or ended by a call such as _exit (tui-probe help limits)"
_STOP_EVENTS: Final = ("save-paused ", "save-resumed ")
_LABEL_WIDTH: Final = 10
_MIN_WIDTH: Final = 20
_KERNEL_NAME_WIDTH: Final = 40
"""Cells of a kernel's name within a sentence."""
_SELECTING: Final = ("kernels", "filter", "sample", "nvtx", "after", "for", "capture_range")
"""Options in run.json that select kernels or launches, with ``launches``."""
_MAX_COMMAND: Final = 200
"""Characters of a program's command up to which it is written out; a longer one is named by its trace."""


def program_command(trace: Run) -> str:
    """Return the program's command, quoted for a shell; COMMAND if the trace does not have it."""
    run = trace.run_info
    command = shlex.join(run.command) if run is not None and run.command else trace.state.command
    return printable(command or "") or "COMMAND"


def probing_command(trace: Run, probe: str) -> str:
    """``tui-probe run -p PROBE -- COMMAND``: the program of a trace with another probe."""
    command = program_command(trace)
    if len(command) > _MAX_COMMAND or _selects_launches(trace):
        return f"tui-probe run -p {probe} --again {shell_word(trace.directory)}"
    return f"tui-probe run{' --sim' if trace.state.simulated else ''} -p {probe} -- {command}"


def _selects_launches(trace: Run) -> bool:
    """Return whether options of the run select kernels or launches, which ``--again`` repeats."""
    options = trace.run_info.options if trace.run_info is not None else {}
    return any(options.get(name) for name in _SELECTING) or options.get("launches") not in (None, "auto")


def measuring_command(trace: Trace) -> str:
    """``tui-probe run --replay -p PROBES -- COMMAND``: the run, with launches for every probe; "" if all had some."""
    options = measuring_options(trace)
    if options and _selects_launches(trace):
        return f"tui-probe run {printable(shlex.join(options))} --again {shell_word(trace.directory)}"
    if not options:
        return ""
    simulated = ["--sim"] if trace.state.simulated else []
    return f"tui-probe run {printable(shlex.join([*simulated, *options]))} -- {program_command(trace)}"


def measuring_options(trace: Trace) -> list[str]:
    """Return the options of a run with launches for every probe; none if all had some, or one did not end.

    After a run with ``--replay`` they name one such probe only, so that every launch has that.
    """
    unmeasured = next((probe for kernel in trace.kernels for probe in unmeasured_probes(kernel)), None)
    run = trace.run_info
    if unmeasured is None or run is None or run.probe is None or trace.state.is_running or unended_numbers(trace):
        return []
    probe_options = [word for probe in run.probe.split(", ") for word in ("-p", probe)]
    return ["-p", unmeasured.probe] if run.options.get("replay") else ["--replay", *probe_options]


def budget_lines(trace: Trace) -> Iterator[str]:
    """A sentence for each budget that refused something."""
    for budget in _known_budgets(trace):
        yield f"{_budget_text(budget)}; raise with {BUDGET_OPTIONS[budget.name]}"
    if trace.state.budgets.keys() - {"log-bytes"} and (loss_text := _trace_loss_text(trace)):
        yield loss_text


def budget_record(trace: Trace) -> dict[str, Any]:
    """Return the JSON record of reached budgets and of launches whose records were saved.

    ``kept`` is that of the kernel that lost most launches, and in how many ``other_kernels`` not all were kept; None
    where no budget left launches out.
    """
    reached_budgets = [
        {
            "name": budget.name,
            "reached": budget.is_reached,
            "limit": budget.limit,
            "used": budget.usage,
            "option": BUDGET_OPTIONS[budget.name],
        }
        for budget in _known_budgets(trace)
    ]
    cut_kernels = _kernels_with_losses(trace) if trace.state.budgets.keys() - {"log-bytes"} else []
    worst = max(cut_kernels, key=_lost_launches, default=None)
    largest_loss = worst and {
        "kernel": worst.name,
        "results": worst.launches_saved,
        "launches": worst.launches,
        "other_kernels": len(cut_kernels) - 1,
    }
    return {"reached": reached_budgets, "kept": largest_loss}


def largest_loss_text(rows: Iterable[KernelSnapshot]) -> str:
    """Return the loss of the probed kernel that lost most launches, ``kept 64 of 20 000 launches of saxpy``; "" for
    none.
    """
    candidates = (row for row in rows if row.status == "probed" and row.launches > row.results)
    worst = max(candidates, key=lambda row: row.launches - row.results, default=None)
    return "" if worst is None else _kept_launches_text(worst.results, worst.launches, worst.name)


def _known_budgets(trace: Trace) -> list[BudgetEvent]:
    """Budgets that this version knows."""
    return [budget for budget in trace.state.budgets.values() if budget.name in BUDGET_OPTIONS]


def _budget_text(budget: BudgetEvent) -> str:
    match budget.name:
        case "trace-bytes":
            return f"the trace reached its limit of {units.budget(budget.limit)}, including logs and output"
        case "result-files":
            return f"the run reached its limit of {units.counted(budget.limit, 'result file')}"
        case "log-bytes":
            return f"event.log reached {units.budget(budget.limit)}: later launches are counted but not listed"
        case "write-rate":
            return (
                f"launches ran unprobed while results exceeded {units.budget(budget.limit)}/s or half of the disk's"
                " write rate"
            )
        case _:
            return (
                "launches that needed more than their share of the budget ran unprobed, or only some of their blocks"
                " were saved"
            )


def _trace_loss_text(trace: Trace) -> str:
    """Return how many launches were saved of the kernel that lost most; "" if none lost any."""
    cut_kernels = _kernels_with_losses(trace)
    if not cut_kernels:
        return ""
    worst = max(cut_kernels, key=_lost_launches)
    others_text = (
        f"; launches of {units.counted(len(cut_kernels) - 1, 'other kernel')} were dropped, too"
        if len(cut_kernels) > 1
        else ""
    )
    return _kept_launches_text(worst.launches_saved, worst.launches, worst.name) + others_text


def _kept_launches_text(results: int, launches: int, kernel: str) -> str:
    return f"kept {units.count(results)} of {units.counted(launches, 'launch')} of {printable(kernel)}"


def _kernels_with_losses(trace: Trace) -> list[Kernel]:
    return [kernel for kernel in trace.kernels if _lost_launches(kernel)]


def _lost_launches(kernel: Kernel) -> int:
    """Launches without a result of a kernel that was, or might have been, probed."""
    reason = kernel.stated_reason
    may_be_probed = kernel.status == "probed" or (reason is not None and reason.code in _BUDGET_REASONS)
    return kernel.launches - kernel.launches_saved if may_be_probed else 0


def head_lines(trace: Trace, cells: int | None = None) -> list[str]:
    """``label  words``, the words broken to fit ``cells`` cells if given."""
    lines = []
    for label, text in _head_entries(trace):
        parts = [text] if cells is None else wrap(text, max(_MIN_WIDTH, cells - _LABEL_WIDTH))
        lines += [f"{label if i == 0 else '':<{_LABEL_WIDTH}}{part}" for i, part in enumerate(parts)]
    return lines


def _unended_text(trace: Trace) -> str:
    """``, 1 more launch had not ended``: launches in no count, because their lines follow their end; "" for none."""
    unended = {number for number in unended_numbers(trace) if number >= trace.state.launches}
    return f", {units.counted(len(unended), 'more launch')} had not ended" if unended else ""


def _head_entries(trace: Trace) -> Iterator[tuple[str, str]]:
    state = trace.state
    yield from _failure_entries(kernel for kernel in trace.kernels if ended_context(kernel.failures))
    yield "trace", printable(str(trace.directory))
    yield "command", printable(state.command) or units.NOT_MEASURED
    yield from _outcome_entries(trace)
    for device in state.devices.values():
        yield "device", f"{printable(device.name)}, {units.counted(device.sms, 'SM')}, cc {device.capability}"
    if state.simulated:
        yield "", SIMULATED_NOTE
    for text in dict.fromkeys(filter(None, map(recognition_text, trace.kernels))):
        yield "probe", printable(text)
    if (sample := sampled_blocks(trace)) is not None:
        yield "sample", f"{_sample_text(sample)} of each grid; all values cover only these blocks"
    launches = probed_launches_text(state.launches, state.launches_probed)
    results = f"{units.counted(state.results, 'result')}, {units.size(state.bytes_written)}"
    yield "seen", f"{units.counted(state.kernels, 'kernel')}, {launches}{_unended_text(trace)}, {results}"
    if trace.run_info is not None and trace.run_info.ptxas is None and state.kernels:
        yield "", NO_PTXAS_NOTE
    yield from _damaged_file_entries(trace)
    yield from _failure_entries(kernel for kernel in trace.kernels if not ended_context(kernel.failures))
    if state.context_failed is not None:
        yield "context", context_error_text(trace, state.context_failed)
    for words in _missing_result_texts(trace):
        yield "", words
    yield from _unmeasured_entries(trace)
    for words in budget_lines(trace):
        yield "", words
    if halted := _stop_reason(trace):
        yield "", f"no further results were saved: {printable(halted)}"
    if names := copied_names(trace.directory):
        yield (
            "sources",
            f"{units.counted(len(names), 'file')} copied into the trace: {', '.join(map(printable, names))}",
        )


def _damaged_file_entries(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield the damage of the trace's log, of its ``run.json`` and of its results."""
    if trace.log_cut:
        yield "log", _truncated_log_text(trace)
    if trace.run_json_problem:
        advice = "copy run.json again from the machine that recorded the trace"
        yield "run.json", f"{printable(trace.run_json_problem)}; exit status and options are unknown: {advice}"
    if cut := trace.truncated_results:
        yield "results", _truncated_results_text(trace, cut)


def _unmeasured_entries(trace: Trace) -> Iterator[tuple[str, str]]:
    for text in unmeasured_texts(unused_probes(trace)):
        yield "probes", text
    if command := measuring_command(trace):
        yield "", f"to measure each kernel with all probes: {command}"


def _missing_result_texts(trace: Trace) -> Iterator[str]:
    """Numbers of probed launches without a result, with the reason."""
    state = trace.state
    if state.launches_dropped:
        reason = f": {printable(state.dropped_reason)}" if state.dropped_reason else ""
        yield f"{units.counted(state.launches_dropped, 'result')} not kept{reason}"
    if unsaved := trace.results_unsaved:
        yield f"at least {units.counted(unsaved, 'result')} not saved: {_UNSAVED_REASON}"


def _truncated_log_text(trace: Trace) -> str:
    """Say that the log is truncated, and count the results in the trace that it does not name."""
    unnamed = trace.results_unnamed
    results = f" and does not name {units.counted(unnamed, 'result file')} in result/" if unnamed else ""
    place_text = " in the middle of a line" if trace.log_ends_inside_line else ""
    return f"event.log is truncated{place_text}{results}; later events are not counted"


def _truncated_results_text(trace: Trace, cut: Mapping[int, int]) -> str:
    """``1 of 7 results is truncated``, with the first of them."""
    row, size = next(iter(cut.items()))
    name = f"result/{printable(trace.results.name(row))}"
    verb = "is" if len(cut) == 1 else "are"
    return (
        f"{units.count(len(cut))} of {units.counted(len(trace.results), 'result')} {verb} truncated: {name} has"
        f" {units.count(size)} of {units.counted(trace.results.size(row), 'byte')}; copy the trace again"
        " from the machine that recorded it"
    )


def _failure_entries(kernels: Iterable[Kernel]) -> Iterator[tuple[str, str]]:
    for place, text in enumerate(failure_lines(kernels)):
        yield "" if place else "failed", text


def context_error_text(trace: Trace, event: ContextFailed) -> str:
    """Explain the error that ended the program's GPU context, and name a tool that finds its cause.

    Kernels that ran unprobed are not among those named: only of probed launches is it known what had a result.
    """
    kernel_count = len(trace.kernels)
    names = [
        shorten(printable(trace.kernels[index].demangled), _KERNEL_NAME_WIDTH)
        for index in event.kernels
        if index < kernel_count
    ]
    launch_text = f" Launched since the last result: {', '.join(names)}." if names else ""
    command = printable(trace.state.command) or "PROGRAM"
    end_text = f"{event.name} ({event.error}) ended the GPU context; the program received the error.{launch_text}"
    if trace.state.simulated:
        return end_text + (" The findings describe the fault." if faulty_kernels(trace) else "")
    return (
        f"{end_text} A probe writes only to its own maps, so check the program's kernels: compute-sanitizer {command}"
    )


def _stop_reason(trace: Trace) -> str:
    """Return why launches are not recorded since the last result, where that holds for all; "" while they
    are.
    """
    stops = [text.partition(" ") for text in trace.state.troubles if text.startswith(_STOP_EVENTS)]
    word, _, reason = stops[-1] if stops else ("", "", "")
    return "" if word == "save-resumed" else reason.partition(": ")[0]


def head_record(trace: Trace) -> dict[str, Any]:
    """Return the JSON record of the run. Times are seconds since 1970; None is unknown."""
    return {
        "trace": str(trace.directory).encode("utf-8", "backslashreplace").decode(),
        "run": {**_process_record(trace.state), "sample": sampled_blocks(trace), **_amounts_record(trace)},
    }


def _process_record(state: State) -> dict[str, Any]:
    device = state.device
    return {
        "pid": state.pid,
        "command": state.command,
        "started": state.started,
        "ended": state.ended,
        "running": state.is_running,
        "exit_status": state.exit_status,
        "signal": state.signal,
        "device": None if device is None else device.name,
        "capability": None if device is None else device.capability,
        "sms": None if device is None else device.sms,
        "simulated": state.simulated,
        "benchmark": state.benchmark,
    }


def _amounts_record(trace: Trace) -> dict[str, Any]:
    """Return what was recorded, and what is missing, with reasons."""
    state = trace.state
    return {
        "kernels": state.kernels,
        "launches": state.launches,
        "launches_probed": state.launches_probed,
        "launches_dropped": state.launches_dropped,
        "dropped_reason": state.dropped_reason,
        "dropped_reason_code": state.dropped_reason_code,
        "results": state.results,
        "bytes_written": state.bytes_written,
        "log_cut": trace.log_cut,
        "run_json_problem": trace.run_json_problem or None,
        "results_truncated": [f"result/{trace.results.name(row)}" for row in trace.truncated_results],
        "context_failed": None if state.context_failed is None else state.context_failed._asdict(),
        "budgets": budget_record(trace),
        "sources": copied_names(trace.directory),
        "results_unsaved": trace.results_unsaved,
        "probes_not_measured": [probe.record() for probe in unused_probes(trace)],
    }


def sampled_blocks(trace: Trace) -> str | None:
    """``run --sample``: which blocks of each grid were measured, as the user wrote it; None: all."""
    sample = None if trace.run_info is None else trace.run_info.options.get("sample")
    return sample if isinstance(sample, str) else None


def _sample_text(sample: str) -> str:
    """``one block in 16``, ``blocks 0 to 131``, ``64 blocks``."""
    count, slash, step = sample.partition("/")
    first, dash, last = sample.partition("-")
    if slash:
        return f"one block in {step}"
    return f"blocks {first} to {last}" if dash else f"{count} blocks"


def exit_text(trace: Trace) -> str:
    """Describe the end of the process: ``exit status 0``, ``ended by signal 9``."""
    state = trace.state
    if state.is_running:
        return "still running"
    if state.signal is not None:
        return f"ended by signal {state.signal}"
    if state.exit_status is not None:
        return f"exit status {state.exit_status}"
    if trace.broke_off:
        return "unknown: event.log is truncated (process killed or crashed, or disk full)"
    return "ended, exit status unknown" + (": run.json is damaged" if trace.run_json_problem else "")


def _outcome_entries(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield the end of the process, and what failed in the program's environment."""
    yield "outcome", _outcome_text(trace)
    if trace.run_info is not None and trace.run_info.program_failure:
        yield "", printable(trace.run_info.program_failure)


def _outcome_text(trace: Trace) -> str:
    """Describe the end of the process, with its duration where that is known."""
    state, text = trace.state, exit_text(trace)
    if state.started is None or state.ended is None:
        return text
    return f"{text} after {units.elapsed(state.ended - state.started)}"
