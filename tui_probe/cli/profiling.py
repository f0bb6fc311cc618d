"""A program under the hook from its start to its end, on the screen or without, and what is told of it then."""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.launcher.held_target import HeldTarget
from tui_probe.launcher.outcome import Outcome
from tui_probe.launcher.own_umask import keep_owner_access
from tui_probe.launcher.passing import run_passing_on
from tui_probe.launcher.scarcity import become_program
from tui_probe.launcher.session import Session
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.streams import is_pumped
from tui_probe.launcher.target import SCARCE, exit_status
from tui_probe.trace.recent import remember

from .chosen import tell_problems
from .messages import on_person, tell_of, tell_what_failed
from .output import inform, let_go_of_lost_terminal, shell_word, warn, write_behind_output
from .processes import TOLD, TraceTeller, reported
from .run_callback import callback_of, named_callback, run_callback
from .run_options import known_probes
from .run_pictures import write_pictures
from .screen import show, wants_screen
from .status import ExitStatus
from .text import get_ready_to_report, report_after_run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tui_probe.launcher.options import RunOptions
    from tui_probe.probe_files.choices import ChosenProbe

HURRIED_REPORT = 0.3
"""Seconds in which the report of a run that was asked to end reads results."""


def profile(options: RunOptions, arguments: argparse.Namespace) -> int:
    """Run a target, on the screen or without, and report. Returns the target's exit status."""
    try:
        probes = known_probes(options)
        callback = callback_of(arguments.callback, options.probes)
    except (ProbeFileError, UsageError) as error:
        arguments.refuse(str(error))
    keep_owner_access()
    with tidy_end():
        if wants_screen(arguments):
            status, outcome = run_on_screen(options, probes, arguments)
        else:
            status, outcome = run_plainly(options, probes, report=not (arguments.no_report or arguments.png))
            if on_person():  # doctor tells them, too
                tell_problems()
    for trace in reported(outcome.traces):
        remember(trace)
    if callback is not None and not outcome.asked_to_end:
        run_callback(callback, outcome.traces)
    elif callback is None and outcome.traces and (named := named_callback(options.probes)) is not None:
        tell_of(outcome.traces[0], named.not_run_message)
    if arguments.png:
        write_pictures(reported(outcome.traces), [each.name for each in probes])
    elif not arguments.no_report:
        seconds = HURRIED_REPORT if outcome.asked_to_end else None
        write_behind_output()
        report_after_run(outcome.traces, arguments.ascii, seconds, outcome.untraced)
    return status


def run_plainly(options: RunOptions, probes: Sequence[ChosenProbe], *, report: bool) -> tuple[int, Outcome]:
    """Without a screen: streams passed on. Returns the exit status and what the run left, for a ``report``.

    Where there are too few descriptors, processes or memory to start it, the program runs without us.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    session: Session | None = None
    try:
        # On a terminal the first line is written by the new process, where descriptor 2 is the target's already. Nor is
        # it seen what the target writes there first where it is the target's own.
        stderr = os.dup(2)
        early = os.isatty(stderr) or not is_pumped(stderr)
        with Session(options, probes, announce=TraceTeller(stderr), early=early) as session:
            tell_no_trace(session.spool.problem)
            returncode = run_passing_on(session, get_ready_to_report) if report else run_passing_on(session)
            outcome = session.outcome()
    except OSError as error:
        if error.errno not in SCARCE or (session is not None and session.target is not None):
            raise
        tell_no_trace(error.strerror)
        become_program(options, limits)
    tell_outcome(outcome)
    return exit_status(returncode) or (ExitStatus.FAILED if outcome.lost_output else ExitStatus.OK), outcome


def run_on_screen(
    options: RunOptions, probes: Sequence[ChosenProbe], arguments: argparse.Namespace
) -> tuple[int, Outcome]:
    """Under the live screen. Returns the exit status and what the run left; nothing, and 0, if it goes on."""
    target = HeldTarget(options, probes)
    tell_no_trace(target.no_trace)
    received = 0
    try:
        shown = show(arguments, target=target)
        received = shown - 128 if shown > 128 else 0
        if leave_running(target):
            return ExitStatus.OK, Outcome()
    except SystemExit as end:  # a signal before the screen, or after it
        received = signal_of(end)
    wait_for_end(target, received)
    return exit_status(target.returncode), target.outcome


def leave_running(target: HeldTarget) -> bool:
    """Let go of a target that the user has left, if it still runs, and say how to look at it again."""
    if not target.is_left or target.poll() is not None:
        return False
    traces = target.trace_paths()
    for trace in traces:
        remember(trace)
    target.detach()
    inform(f"trace in {target.first_trace}")
    shown = shell_word(traces[0] if traces else target.root)
    inform(f"{target.command[0]} (process {target.pid}) goes on; to look at it again: tui-probe watch {shown}")
    return True


def wait_for_end(target: HeldTarget, received: int) -> None:
    """Wait for a target that no screen shows any more, after forwarding a signal that was ``received``; tell of it."""
    if target.runs:  # asking would take time in which a signal could end us
        warn(f"waiting for {target.command[0]} (process {target.pid}) to end")
    wait_and_forward(target, received)
    let_go_of_lost_terminal()
    tell_trace = TraceTeller()
    for trace in target.outcome.traces:
        tell_trace(trace)
    tell_outcome(target.outcome)


def wait_and_forward(target: HeldTarget, received: int) -> None:
    """Wait for the end. The target gets those signals, too, that come before we hold them back."""
    while not target.is_complete:
        try:
            target.wait(received)
        except SystemExit as end:
            received = signal_of(end)


def signal_of(end: SystemExit) -> int:
    """The signal that ``tidy_end`` made an exit of."""
    return int(end.code or 0) - 128


def tell_outcome(outcome: Outcome) -> None:
    """Lines on stderr for what a person must know; at most one after an ordinary run."""
    tell_cache_hits(outcome)
    tell_what_failed(outcome, TOLD)


def tell_cache_hits(outcome: Outcome) -> None:
    """A line on a terminal if kernels did not have to be prepared; run.json has the counts for scripts."""
    counts = outcome.cache_counts
    if counts and counts["hits"] and on_person():
        inform(
            f"{units.count(counts['hits'])} of {units.counted(sum(counts.values()), 'kernel')} reused from the cache"
        )


def tell_no_trace(problem: str | None) -> None:
    """A line on stderr, before the program starts, if nothing of it can be recorded."""
    if problem:
        warn(f"nothing is recorded: {problem}")
