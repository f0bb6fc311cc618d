"""A program under the hook from start to end, on the screen or without, and the report after it."""

from __future__ import annotations

import os
import resource
import shlex
from typing import TYPE_CHECKING

from tui_probe.draw import units
from tui_probe.errors import SCARCE, ProbeFileError, UsageError
from tui_probe.launcher.driver import outdated_build
from tui_probe.launcher.passthrough import is_pumped, run_with_passthrough
from tui_probe.launcher.run_traces import Outcome
from tui_probe.launcher.session import Session
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.target import become_program, exit_status, keep_owner_access
from tui_probe.trace.user_state import remember_opened

from .arguments import warn_about_settings
from .callbacks import callback_of, named_callback, run_callback
from .output import ExitStatus, close_lost_terminal, inform, seek_stdout_to_end, shell_word, warn, write_stdout
from .run_options import known_probes
from .screen import show, wants_screen
from .text_report import (
    MAX_LISTED,
    TraceAnnouncer,
    preload_report_code,
    report_after_run,
    report_failures,
    report_message,
    stderr_is_terminal,
    traces_to_report,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.launcher.options import RunOptions
    from tui_probe.launcher.supervised_target import SupervisedTarget
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
            if stderr_is_terminal():  # doctor tells them, too
                warn_about_settings()
    for trace in traces_to_report(outcome.traces):
        remember_opened(trace)
    report_kept_launches(options, outcome)
    if outcome.traces and (build_problem := outdated_build()) is not None:
        report_message(outcome.traces[0], "; ".join(build_problem))
    if callback is not None and not outcome.asked_to_end:
        run_callback(callback, outcome.traces)
    elif callback is None and outcome.traces and (unrun_callback := named_callback(options.probes)) is not None:
        report_message(outcome.traces[0], unrun_callback.not_run_message)
    if arguments.png:
        from .show import write_pictures

        write_pictures(traces_to_report(outcome.traces), [probe.name for probe in probes])
    elif not arguments.no_report:
        seconds = HURRIED_REPORT if outcome.asked_to_end else None
        seek_stdout_to_end()
        report_after_run(outcome, arguments.ascii, seconds)
        list_kept_launches(options, outcome)
    return status


def report_kept_launches(options: RunOptions, outcome: Outcome) -> None:
    """Report why launches of ``--keep-launch`` were not saved."""
    if not options.kept_launches:
        return
    from tui_probe.reproducer.kept_launch import keep_problems

    for trace, text in keep_problems(traces_to_report(outcome.traces), options.kept_launches):
        report_message(trace, text)


def list_kept_launches(options: RunOptions, outcome: Outcome) -> None:
    """Write, behind the report, the commands that extract the saved launches."""
    if not options.kept_launches:
        return
    from tui_probe.reproducer.kept_launch import outcome_text, saved_launches

    for trace, event in saved_launches(traces_to_report(outcome.traces)):
        address = shlex.quote(f"{trace}:{event.index}@{event.number}")
        write_stdout((f"{outcome_text(event)}: tui-probe extract {address} DIR",))


def run_plainly(options: RunOptions, probes: Sequence[ChosenProbe], *, report: bool) -> tuple[int, Outcome]:
    """Run without a screen, with streams passed on. Return the exit status and the outcome for a ``report``.

    Where there are too few descriptors, processes or memory to start it, the program runs without us.
    """
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    session: Session | None = None
    try:
        # On a terminal the first line is written by the new process, where descriptor 2 is the target's already. Nor is
        # it seen what the target writes there first where it is the target's own.
        stderr = os.dup(2)
        announces_early = os.isatty(stderr) or not is_pumped(stderr)
        announce = TraceAnnouncer(stderr)
        with Session(
            options,
            probes,
            announce=announce,
            announces_early=announces_early,
            ends_stuck=lambda text: inform(text, stderr),
        ) as session:
            warn_no_trace(session.spool.problem)
            returncode = run_with_passthrough(session, preload_report_code) if report else run_with_passthrough(session)
            outcome = session.outcome()
    except OSError as error:
        if error.errno not in SCARCE or (session is not None and session.target is not None):
            raise
        warn_no_trace(error.strerror)
        become_program(options, limits)
    report_outcome(outcome)
    return exit_status(returncode) or (ExitStatus.FAILED if outcome.lost_output else ExitStatus.OK), outcome


def run_on_screen(
    options: RunOptions, probes: Sequence[ChosenProbe], arguments: argparse.Namespace
) -> tuple[int, Outcome]:
    """Run under the live screen. Return the exit status and the outcome; 0 and an empty one if the run continues."""
    from tui_probe.launcher.supervised_target import SupervisedTarget  # other runs do not need it

    target = SupervisedTarget(options, probes)
    warn_no_trace(target.no_trace)
    received = 0
    try:
        screen_status = show(arguments, target=target)
        received = screen_status - 128 if screen_status > 128 else 0
        if leave_running(target):
            return ExitStatus.OK, Outcome()
    except SystemExit as end:  # a signal before the screen, or after it
        received = signal_of(end)
    wait_for_end(target, received)
    return exit_status(target.returncode), target.outcome


def leave_running(target: SupervisedTarget) -> bool:
    """Let go of a target that the user has left, if it still runs, and say how to look at it again."""
    if not target.is_left or target.poll() is not None:
        return False
    traces = target.trace_paths()
    for trace in traces:
        remember_opened(trace)
    target.detach()
    inform(f"trace in {target.first_trace}")
    address = shell_word(traces[0] if traces else target.root)
    inform(f"{target.command[0]} (process {target.pid}) is still running; reattach: tui-probe watch {address}")
    return True


def wait_for_end(target: SupervisedTarget, received: int) -> None:
    """Wait for a target that no screen shows any more, after forwarding a signal that was ``received``; report it."""
    if target.runs:  # asking would take time in which a signal could end us
        warn(f"waiting for {target.command[0]} (process {target.pid}) to end")
    wait_and_forward(target, received)
    close_lost_terminal()
    announce = TraceAnnouncer()
    for trace in target.outcome.traces:
        announce(trace)
    report_outcome(target.outcome)


def wait_and_forward(target: SupervisedTarget, received: int) -> None:
    """Wait for the end. The target gets those signals, too, that come before we hold them back."""
    while not target.is_complete:
        try:
            target.wait(received)
        except SystemExit as end:
            received = signal_of(end)


def signal_of(end: SystemExit) -> int:
    """The signal that ``tidy_end`` made an exit of."""
    return int(end.code or 0) - 128


def report_outcome(outcome: Outcome) -> None:
    """Write what a user must know to stderr; at most one line after an ordinary run."""
    report_cache_hits(outcome)
    report_failures(outcome, MAX_LISTED)


def report_cache_hits(outcome: Outcome) -> None:
    """Write a line on a terminal if kernels did not have to be prepared; run.json has the counts for scripts."""
    counts = outcome.cache_counts
    if counts and counts["hits"] and stderr_is_terminal():
        inform(
            f"{units.count(counts['hits'])} of {units.counted(sum(counts.values()), 'kernel')} reused from the cache"
        )


def warn_no_trace(problem: str | None) -> None:
    """Warn, before the program starts, if nothing of it can be recorded."""
    if problem:
        warn(f"recording is off: {problem}")


class BackgroundRuns:
    """Programs that run behind the screens, each supervised by a process of its own."""

    def __init__(self) -> None:
        self._targets: list[SupervisedTarget] = []

    def start(self, options: RunOptions, probes: Sequence[ChosenProbe]) -> SupervisedTarget:
        """Start a program. Raises LaunchError and its kind."""
        from tui_probe.launcher.supervised_target import SupervisedTarget

        target = SupervisedTarget(options, probes)
        self._targets.append(target)
        return target

    def target_of(self, trace: Path) -> SupervisedTarget | None:
        """The target that made a trace, if it was started here."""
        for target in self._targets:
            target.poll()
            if trace.absolute() in target.trace_directories():
                return target
        return None

    def end(self, received: int) -> None:
        """Wait for the runs that were not left to continue, after the last screen, and report all.

        ``received`` is the signal that ended the last screen, which is forwarded; 0 for none.
        """
        for target in self._targets:
            if not received and leave_running(target):
                continue
            wait_for_end(target, received)
            for trace in target.outcome.traces:
                remember_opened(trace)
