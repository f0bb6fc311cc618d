"""``tui-probe home``: the screen at the start, and what is looked at and started from it, until the user quits."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import LaunchError, NoDriverError, ProbeError
from tui_probe.launcher.driver import find_driver
from tui_probe.launcher.options import RunOptions
from tui_probe.launcher.signals import tidy_end
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.probe_files.catalogue import default_choice, known_choices
from tui_probe.probe_files.choices import choose_probes
from tui_probe.trace.recent import RecentTraces
from tui_probe.trace.user_state import remember_opened
from tui_probe.verdicts.run_verdict import VerdictCache

from . import open as open_command
from .arguments import default_launches, launches, self_profiling_advice, trace_dir, user_settings
from .demo import example
from .profiling import BackgroundRuns
from .screen import add_screen_options, appearance_of, show, show_session, wants_screen

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.ui.session import HomeSources, StartForm
    from tui_probe.verdicts.run_verdict import RunVerdict

    from .machine_checks import Item

MAX_LISTED = 500
"""Traces in the list at home, the newest: each costs a read of its log."""
CRASHED = 1
"""Exit status of a screen that crashed: home does not follow it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the screen."""
    add_screen_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Show home, a trace or a run, and home again, until the user quits. Raises LaunchError without a terminal."""
    if not wants_screen(arguments):
        raise LaunchError("the home screen needs a terminal; without one, use tui-probe list, run, report or show")
    from tui_probe.ui.session import HomeSources, StartForm

    arguments.next_request, arguments.from_home = None, True
    form = StartForm(probe=user_settings().probe or DEFAULT_PROBE)
    recent = RecentTraces(dict.fromkeys([trace_dir(), Path("trace")]), MAX_LISTED)
    home = HomeSources(recent, verdict_reader(), findings, known_choices, form)
    with tidy_end():
        runs = BackgroundRuns()
        status = show_screens(arguments, home, runs)
        runs.end(received=status - 128 if status > 128 else 0)
    return status


def show_screens(arguments: argparse.Namespace, home: HomeSources, runs: BackgroundRuns) -> int:
    """Show home and what is chosen there in turn. Returns what the last screen returned."""
    from tui_probe.ui.session import OpenPath, OpenTrace, Session, StartProgram

    appearance = appearance_of(arguments)
    while True:
        session = Session(home=home)
        status = show_session(session, appearance)
        arguments.next_request = session.next_request
        if status or home.choice is None:
            return status
        if isinstance(home.choice, OpenTrace):
            trace = home.choice.trace
            remember_opened(trace)
            status = show(arguments, target=runs.target_of(trace), traces=(trace,))
        elif isinstance(home.choice, OpenPath):
            status = open_path(arguments, home, home.choice.name)
        else:
            form = home.form if isinstance(home.choice, StartProgram) else form_of_demo(home.form)
            status = start(arguments, home, form, runs)
        if status == CRASHED or status > 128 or arguments.next_request is not None:
            return status


def open_path(arguments: argparse.Namespace, home: HomeSources, name: str) -> int:
    """Open a path that was typed at home, as ``tui-probe open`` does. An error is shown at home."""
    parser = argparse.ArgumentParser()
    open_command.add_arguments(parser)
    vars(arguments).update(vars(parser.parse_args([])) | vars(arguments) | {"trace": unquoted_path(name)})
    try:
        return open_command.run(arguments)
    except ProbeError as error:
        home.notice = str(error)
        return 0


def unquoted_path(text: str) -> str:
    """Return a typed path: as it is if it exists, else without the quotes and escapes of a shell."""
    if Path(text).exists():
        return text
    try:
        path = " ".join(shlex.split(text))
    except ValueError:
        path = text
    return os.path.expanduser(path)  # noqa: PTH111 - never raises


def form_of_demo(form: StartForm) -> StartForm:
    """Return a form for the bundled example, with the probe and the GPU of this one."""
    from tui_probe.ui.session import StartForm

    return StartForm(shlex.join(example((), brief=False, slow=True)), probe=form.probe, simulated=form.simulated)


def start(arguments: argparse.Namespace, home: HomeSources, form: StartForm, runs: BackgroundRuns) -> int:
    """Start the program of a form under the live screen. An error is shown at home."""
    try:
        options = options_of(form)
        target = runs.start(options, choose_probes(options.probes, options.sample or ""))
    except (ProbeError, ValueError, argparse.ArgumentTypeError) as error:
        home.notice = str(error)
        return 0
    return show(arguments, target=target)


def options_of(form: StartForm) -> RunOptions:
    """Return the options of ``run`` for a form. Raises ValueError and ArgumentTypeError for invalid fields."""
    try:
        command = shlex.split(form.command)
    except ValueError as error:
        raise ValueError(f"cannot parse the command: {error}") from error
    if not command:
        raise ValueError("enter a command")
    if problem := self_profiling_advice(command):
        raise ValueError(problem)
    return RunOptions(
        command=tuple(command),
        probes=(default_choice(form.probe, benchmark=form.benchmark),),
        trace_root=trace_dir(),
        kernels=form.kernels or None,
        excluded=form.excluded or None,
        launches=launches(form.launches) if form.launches else default_launches(each_timed=form.benchmark),
        benchmark=form.benchmark,
        detail=bool(user_settings().detail),
        simulated=has_no_driver() if form.simulated is None else form.simulated,
    )


def has_no_driver() -> bool:
    """Return whether there is no real driver. A form may be submitted before the screen has found out."""
    try:
        find_driver(None, simulated=False, environment=os.environ)
    except NoDriverError:
        return True
    return False


def verdict_reader() -> Callable[[Path], RunVerdict]:
    """Return a function that reads the findings of a run and caches them."""
    verdicts = VerdictCache()

    def verdict(trace: Path) -> RunVerdict:
        verdict_of_run = verdicts.verdict_of(trace)
        verdicts.keep()
        return verdict_of_run

    return verdict


def findings() -> list[Item]:
    """Return the items of ``doctor``."""
    from .doctor import CHECKS

    return [item for check in CHECKS for item in check()]
