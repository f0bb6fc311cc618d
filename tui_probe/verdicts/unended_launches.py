"""Launches that do not end: their numbers, their findings, and the answer to the question where a kernel is stuck.

The hook knows only the time of a launch that it does not watch. With ``--watchdog``, it also records the places of the
warps: the pages of the watchdog's probe show these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw.printable import printable, shell_word
from tui_probe.draw.shorten import shorten
from tui_probe.probekit.finding import Finding, counted, timed
from tui_probe.probekit.registry import watchdog_page
from tui_probe.reproducer.kept_launch import unended_launches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.finding import Evidence, Number
    from tui_probe.trace.event_types import LaunchStuck
    from tui_probe.trace.model import KernelFacts, Run, Trace

WATCHDOG_OPTION: Final = "--watchdog 10s"
"""Option of a run that shows where the warps of a launch are."""
_NAME_CELLS: Final = 24
"""Cells of a kernel's name in a message."""
_REPORTED_AFTER: Final = 10.0
"""Seconds after which the hook reports a launch without a watchdog. Shorter ones ran when the process ended."""


@dataclass(frozen=True, slots=True)
class StuckAnswer:
    """Answer to the question where a kernel is stuck: a page with its warps, a run that records them, or a message."""

    message: str = ""
    """Reason why there are no warps to show; "" with a page or a run."""
    kernel: int | None = None
    """Index of the kernel whose launch does not end; None if there is no such launch."""
    page: str = ""
    """Name of the page with the warps of that launch."""
    rerun_option: str = ""
    """Option of a further run of the program, which records the warps."""


def stuck_answer(trace: Trace, *, is_running: bool) -> StuckAnswer:
    """Return the warps of the last launch that does not end; if the run has no watchdog, how to run with one."""
    watchdog = _watchdog_seconds(trace)
    if not watchdog:
        return StuckAnswer(_no_watchdog_text(trace)) if is_running else StuckAnswer(rerun_option=WATCHDOG_OPTION)
    if not trace.state.stuck:
        return StuckAnswer(f"no launch has run longer than {watchdog:g} s")
    last_event = trace.state.stuck[-1]
    if last_event.reason is not None:
        return StuckAnswer(f"launch {last_event.launch} does not end: {last_event.reason.sentence}", last_event.kernel)
    return StuckAnswer(kernel=last_event.kernel, page=watchdog_page())


def _watchdog_seconds(trace: Run) -> float | None:
    """Return the limit of ``--watchdog`` in seconds; None for a run without one."""
    seconds: float | None = trace.run_info.options.get("watchdog") if trace.run_info is not None else None
    return seconds


def _no_watchdog_text(trace: Trace) -> str:
    """Return why a run without a watchdog shows no warps while it runs, and the launch that does not end."""
    unwatched = [event for kernel in trace.kernels for event in _unwatched_launches(kernel)]
    last_event = max(unwatched, key=lambda event: event.launch, default=None)
    if last_event is None:
        return f"this run has no watchdog; after the run, press K to run the program again with {WATCHDOG_OPTION}"
    name = shorten(trace.kernels[last_event.kernel].demangled, _NAME_CELLS)
    return (
        f"launch {last_event.launch} of {name} has run for over {last_event.seconds:.0f} s."
        " End the program (Ctrl-C twice, t);"
        f" then press K to run it with {WATCHDOG_OPTION}"
    )


def unended_numbers(trace: Run) -> set[int]:
    """Return the numbers of launches that had not ended when they were reported, or when their process ended."""
    return {event.launch for event in trace.state.stuck} | {launch.number for launch in unended_launches(trace)}


def kernels_with_unended_launches(trace: Trace) -> set[int]:
    """Return the indices of kernels with a launch that did not end, and whose warps are unknown."""
    unwatched = {event.kernel for event in trace.state.stuck if event.reason is not None}
    return unwatched | {launch.index for launch in unended_launches(trace)}


def _unwatched_launches(kernel: KernelFacts) -> list[LaunchStuck]:
    """Return the launches of a kernel that had not ended when they were reported, and whose warps are unknown."""
    stuck = [event for event in kernel.trace.state.stuck if event.kernel == kernel.index and event.reason is not None]
    ended_launches = set(kernel.samples.snapshot().column("launch").tolist()) if stuck else set()
    return [event for event in stuck if event.launch not in ended_launches]


def unended_finding(kernel: KernelFacts) -> Iterator[Finding]:
    """Yield the last launch that does not end, of those that were reported, else of those that were saved."""
    saved_launches = [launch.number for launch in unended_launches(kernel.trace) if launch.index == kernel.index]
    reported = _unwatched_launches(kernel)
    if reported:
        yield _reported_finding(kernel, reported[-1], is_saved=reported[-1].launch in saved_launches)
    elif saved_launches:
        text = f"launch {saved_launches[-1]} had not ended when the process ended or was interrupted"
        values: dict[str, Number | Evidence] = {"launch": counted(saved_launches[-1]), "seconds": timed(None, "s")}
        yield _finding("not complete", text, _extract_advice(kernel, saved_launches[-1]), values)


def _reported_finding(kernel: KernelFacts, event: LaunchStuck, *, is_saved: bool) -> Finding:
    watchdog = _watchdog_seconds(kernel.trace)
    is_long = event.seconds >= (watchdog or _REPORTED_AFTER)
    end = "and had not ended" if is_long else "when the process ended or was interrupted"
    text = f"launch {event.launch} had run for {event.seconds:.1f} s {end}"
    if is_saved:
        advice = _extract_advice(kernel, event.launch)
    elif watchdog:
        reason = "" if event.reason is None else event.reason.sentence
        advice = f"the warps of the launch are not known: {reason}"
    else:
        rerun_command = f"tui-probe run --again {shell_word(kernel.trace.directory)} {WATCHDOG_OPTION}"
        advice = f"to see where the warps of the launch are, run again: {rerun_command}"
    values: dict[str, Number | Evidence] = {"launch": counted(event.launch), "seconds": timed(event.seconds, "s")}
    return _finding("does not end" if is_long else "not complete", text, advice, values)


def _finding(label: str, text: str, advice: str, values: dict[str, Number | Evidence]) -> Finding:
    return Finding(
        "unfinished",
        label,
        text,
        stands_out=True,
        values=values,
        advice=printable(advice),
        brief=text,
        wrong_result=True,
    )


def _extract_advice(kernel: KernelFacts, launch: int) -> str:
    """Return the commands that run a saved launch without its program, with a watchdog."""
    address = shell_word(f"{kernel.trace.directory}:{kernel.index}@{launch}")
    simulated = "--sim " if kernel.trace.state.simulated else ""
    return (
        f"run this launch alone to see where its warps are: tui-probe extract {address} DIR, then tui-probe run"
        f" {simulated}{WATCHDOG_OPTION} -- python3 DIR/launch.py"
    )
