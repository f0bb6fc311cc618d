"""A program under the hook from start to end, and the use of its results: callback, pictures, report."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.errors import ProbeError, ProbeFileError, UsageError
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.launcher.passthrough import is_pumped, run_with_passthrough
from tui_probe.launcher.run_record import Outcome
from tui_probe.launcher.scarcity import become_program
from tui_probe.launcher.session import Session
from tui_probe.launcher.signals import tidy_end
from tui_probe.launcher.supervised_target import SupervisedTarget
from tui_probe.launcher.target import SCARCE, exit_status, keep_owner_access
from tui_probe.probe_files.choices import find_set, split_choice
from tui_probe.probe_files.loading import built_in_files, installed_files, probe_files_in
from tui_probe.trace.locate import Address, is_trace
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.recent import remember

from .arguments import warn_about_settings
from .output import ExitStatus, inform, let_go_of_lost_terminal, shell_word, warn, write_behind_output
from .run_display import (
    MAX_LISTED,
    TraceAnnouncer,
    get_ready_to_report,
    report_after_run,
    report_failures,
    report_message,
    show,
    stderr_is_terminal,
    traces_to_report,
    wants_screen,
)
from .run_options import known_probes
from .show import write_page

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from tui_probe.launcher.options import RunOptions
    from tui_probe.pages.page_registry import PageEntry
    from tui_probe.probe_files.choices import ChosenProbe

# Analyses of the user's own: a Python file that is run on each result that a run saved.
#
# It is called as ``python FILE.py TRACE/result/0.486795.bin``, in a process of its own, after the program's end; what
# it prints is printed. It runs only if the command line has ``--callback``: with a file, or without one for the
# callback of a probe file that ``-p`` names by its path. Probe files are shared, so theirs has to be in their
# directory.

CALLBACK_SECONDS: Final = 600.0
"""Seconds that one result may take."""
_CALLBACK_KEYS: Final = ("callback", "CALLBACK", "analyze_hook")
HURRIED_REPORT = 0.3
"""Seconds in which the report of a run that was asked to end reads results."""


class NamedCallback(NamedTuple):
    """A Python file that a probe file names, relative to its directory."""

    probe: Path
    file: str

    @property
    def refusal(self) -> str:
        """Reason why ``--callback`` without a file does not run it; "" if it does."""
        folder = self.probe.parent.resolve()
        if is_trace(folder) or is_trace(folder.parent):
            return "the probe file is in a trace"
        if Path(self.file).is_absolute() or not self.path.resolve().is_relative_to(folder):
            return "the callback is not in the directory of the probe file"
        return ""

    @property
    def path(self) -> Path:
        return self.probe.parent / self.file

    @property
    def not_run_message(self) -> str:
        """Return the report's note on a callback that did not run without ``--callback``."""
        reason = f" ({self.refusal})" if self.refusal else ""
        option = f"--callback {self.file}" if reason else "--callback"
        return f"{self.probe}: its callback {self.file} was not run{reason}; to run it, pass {option}"


def callback_of(asked: Path | bool | None, probes: Sequence[str]) -> Path | None:
    """Return the file to run: the one given, or if ``asked`` is True the one that a probe file names; else None.

    Raises UsageError where there is no such file, or it may not be run.
    """
    if isinstance(asked, Path):
        if not asked.is_file():
            raise UsageError(f"--callback {asked}: no such file")
        return asked.absolute()
    if not asked:
        return None
    callback = named_callback(probes)
    if callback is None:
        raise UsageError(
            "--callback: no probe file passed to -p as a path has a Python callback; pass --callback FILE.py"
        )
    if callback.refusal:
        raise UsageError(
            f"{callback.probe}: callback {callback.file} is not run: {callback.refusal};"
            " pass --callback FILE.py to run a file that you trust"
        )
    return callback.path.resolve()


def named_callback(probes: Sequence[str]) -> NamedCallback | None:
    """Return the first callback of these probes that is a Python file, if one is."""
    return next((callback for word in probes if (callback := _callback_of(word)) is not None), None)


def _callback_of(word: str) -> NamedCallback | None:
    """Return the callback of a probe file; None for built-in and installed probes, sets, and names of analyses."""
    try:
        name, _ = split_choice(word)
        probe = next(iter(probe_files_in(Path(name)).values()), Path(name))
        known = {*built_in_files().values(), *installed_files().values()}
        if name in (built_in_files() | installed_files()) or find_set(name) or probe.resolve() in known:
            return None
        values = parse_toml(read_within(probe, PROBE_FILE).decode("utf-8", "replace"))
    except (OSError, ValueError, ProbeFileError):
        return None
    files = [file for key in _CALLBACK_KEYS if isinstance(file := values.get(key), str) and file.endswith(".py")]
    callbacks = [NamedCallback(probe, file) for file in files]
    return next((callback for callback in callbacks if callback.path.is_file()), None)


def run_callback(callback: Path, traces: Sequence[Path]) -> None:
    """Run the callback on every result of the traces, the oldest first. Failures are reported once per trace."""
    for trace in traces:
        failures, results = [], _results_of(trace)
        for result in results:
            failed = _run_file(callback, result)
            if failed is not None:
                failures.append(f"{result.name}: {failed}")
        if failures:
            report_message(
                trace, f"{callback.name} failed for {len(failures)} of {len(results)} results, first {failures[0]}"
            )


def _results_of(trace: Path) -> list[Path]:
    return sorted((trace / "result").glob("*.bin"), key=lambda path: (len(path.name), path.name))


def _run_file(callback: Path, result: Path) -> str | None:
    """Run the callback on a result. Return why it failed, the last line of its stderr; None if it did not."""
    sys.stdout.flush()
    try:
        done = subprocess.run(
            [sys.executable, str(callback), str(result)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=CALLBACK_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"did not finish within {CALLBACK_SECONDS:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return None
    return next(_last_output(done.stderr), f"exit status {done.returncode}")


def _last_output(text: bytes) -> Iterator[str]:
    lines = text.decode("utf-8", "backslashreplace").splitlines()
    return (line.strip() for line in reversed(lines) if line.strip())


def write_pictures(traces: Sequence[Path], probes: Sequence[str]) -> None:
    """Write a picture per trace in which a view of the probes has something to show; print the paths, a line each.

    A failure does not change the run's exit status.
    """
    for trace in traces:
        for page in _drawn_pages(probes):
            try:
                status = write_page(page, Address(trace), _picture_arguments(page, trace))
            except (ProbeError, OSError) as error:
                report_message(trace, f"no picture of {page.name}: {error}")
                continue
            if status == ExitStatus.OK:
                break
        else:
            report_message(trace, "no picture: the pages have no data")


def _drawn_pages(probes: Sequence[str]) -> Iterator[PageEntry]:
    """Yield the views that only these probes have, then those that all share and that are drawn."""
    from tui_probe.pages.page_registry import require_page
    from tui_probe.probekit.registry import probe_named

    known = [probe for name in probes if (probe := probe_named(name)) is not None]
    names = [view.name for probe in known for view in probe.views]
    if any(probe.timeline for probe in known):
        names.append("timeline")
    return (require_page(name) for name in dict.fromkeys([*names, "summary"]))


def _picture_arguments(page: PageEntry, trace: Path) -> Namespace:
    return Namespace(
        page=page.name, png=trace / f"{page.name}.png", perfetto=None, svg=None, do="", ascii=False, width=None,
        height=None, format="text", quiet=not stderr_is_terminal(),
    )  # fmt: skip


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
        remember(trace)
    if callback is not None and not outcome.asked_to_end:
        run_callback(callback, outcome.traces)
    elif callback is None and outcome.traces and (named := named_callback(options.probes)) is not None:
        report_message(outcome.traces[0], named.not_run_message)
    if arguments.png:
        write_pictures(traces_to_report(outcome.traces), [probe.name for probe in probes])
    elif not arguments.no_report:
        seconds = HURRIED_REPORT if outcome.asked_to_end else None
        write_behind_output()
        report_after_run(outcome, arguments.ascii, seconds)
    return status


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
        early = os.isatty(stderr) or not is_pumped(stderr)
        with Session(options, probes, announce=TraceAnnouncer(stderr), early=early, ends_stuck=True) as session:
            warn_no_trace(session.spool.problem)
            returncode = run_with_passthrough(session, get_ready_to_report) if report else run_with_passthrough(session)
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
    target = SupervisedTarget(options, probes)
    warn_no_trace(target.no_trace)
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


def leave_running(target: SupervisedTarget) -> bool:
    """Let go of a target that the user has left, if it still runs, and say how to look at it again."""
    if not target.is_left or target.poll() is not None:
        return False
    traces = target.trace_paths()
    for trace in traces:
        remember(trace)
    target.detach()
    inform(f"trace in {target.first_trace}")
    shown = shell_word(traces[0] if traces else target.root)
    inform(f"{target.command[0]} (process {target.pid}) is still running; reattach: tui-probe watch {shown}")
    return True


def wait_for_end(target: SupervisedTarget, received: int) -> None:
    """Wait for a target that no screen shows any more, after forwarding a signal that was ``received``; report it."""
    if target.runs:  # asking would take time in which a signal could end us
        warn(f"waiting for {target.command[0]} (process {target.pid}) to end")
    wait_and_forward(target, received)
    let_go_of_lost_terminal()
    tell_trace = TraceAnnouncer()
    for trace in target.outcome.traces:
        tell_trace(trace)
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
    """Lines on stderr for what a user must know; at most one after an ordinary run."""
    report_cache_hits(outcome)
    report_failures(outcome, MAX_LISTED)


def report_cache_hits(outcome: Outcome) -> None:
    """A line on a terminal if kernels did not have to be prepared; run.json has the counts for scripts."""
    counts = outcome.cache_counts
    if counts and counts["hits"] and stderr_is_terminal():
        inform(
            f"{units.count(counts['hits'])} of {units.counted(sum(counts.values()), 'kernel')} reused from the cache"
        )


def warn_no_trace(problem: str | None) -> None:
    """A line on stderr, before the program starts, if nothing of it can be recorded."""
    if problem:
        warn(f"recording is off: {problem}")


class BackgroundRuns:
    """Targets, each of which a process of its own holds."""

    def __init__(self) -> None:
        self._targets: list[SupervisedTarget] = []

    def start(self, options: RunOptions, probes: Sequence[ChosenProbe]) -> SupervisedTarget:
        """Start a program. Raises LaunchError and its kind."""
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
                remember(trace)
