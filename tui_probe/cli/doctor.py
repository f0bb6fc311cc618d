"""``tui-probe doctor``: checks of this machine, with advice where something is missing."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw.printable import dump_json
from tui_probe.draw.units import budget, counted, size
from tui_probe.engine.cache import Cache, CacheUsage, default_cache_directory
from tui_probe.engine.grafting.graft_gate import stored_outcome
from tui_probe.errors import ProbeError
from tui_probe.launcher.environment import faulted_kernels, graft_faults_file
from tui_probe.own_python import cache_problem
from tui_probe.probe_files.choices import choose_probes
from tui_probe.verdicts.bandwidth import read_bandwidth
from tui_probe.version import __version__

from .arguments import setting_problems, user_settings
from .machine_checks import (
    Item,
    counter_items,
    driver_items,
    gpu_items,
    hook_items,
    package_items,
    simulator_items,
    tool_items,
)
from .output import MIN_COLUMNS, ExitStatus, Progress, inform, on_terminal, terminal_size, write_stdout

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from tui_probe.engine.grafting.graft_gate import TrialOutcome
    from tui_probe.settings import Settings

WITHOUT_CACHE = "without a cache, every run prepares its kernels again; set XDG_CACHE_HOME to a directory of your own"
SASS_ITEM: Final = "SASS mode"
SMALL_SIZE: Final = (80, 24)
"""Columns and rows of the smallest terminal without a warning."""
UNLIMITED: Final = 1 << 16
"""Columns where no terminal wraps lines: a program that reads them finds an item in one line."""
_MAX_NAMED: Final = 3
"""Kernels that an item names, of those that are not probed in SASS."""
_OUTCOME_FILE: Final = re.compile(r"(?P<driver>[\d.]+)-(?P<arch>sm_\d+)-\w+\.json")
_NOT_YET: Final = "SASS self-test not run yet; the first tui-probe run on a GPU starts the test"


def cache_items() -> list[Item]:
    """The cache that ``tui-probe run`` uses."""
    folder = default_cache_directory()
    if folder is None:
        return [Item("cache", "warn", cache_problem(), WITHOUT_CACHE)]
    if not can_write(folder):
        return [Item("cache", "warn", f"{folder} is not writable", WITHOUT_CACHE)]
    cache = Cache(folder)
    usage = cache.usage()
    contents = f"{usage_text(usage)} of at most {budget(cache.limit)}"
    advice = "to empty the cache: tui-probe doctor --clear-cache" if usage.entries else ""
    return [Item("cache", "ok", f"{contents}, {folder}", advice)]


def can_write(folder: Path) -> bool:
    """Return whether the folder, or its nearest existing parent, is writable."""
    ancestor = next(place for place in (folder, *folder.parents) if place.exists())
    return ancestor.is_dir() and os.access(ancestor, os.W_OK | os.X_OK)


def clear_cache() -> str:
    """Empty the cache. Returns a line that tells what was removed. Raises ProbeError where that is not possible."""
    folder = default_cache_directory()
    if folder is None:
        return f"nothing to remove: {cache_problem()}"
    try:
        usage = Cache(folder).clear()
    except OSError as error:
        raise ProbeError(f"{error.filename} cannot be removed: {error.strerror}") from error
    return f"removed {usage_text(usage)}, from {folder}"


def usage_text(usage: CacheUsage) -> str:
    """``12 entries, 3.4 MB``."""
    return f"{usage.entries} {'entry' if usage.entries == 1 else 'entries'}, {size(usage.size)}"


def machine_code_items() -> list[Item]:
    """The newest trial of each driver and architecture, and an item for kernels that are left unchanged."""
    folder = default_cache_directory("grafts")
    trials = [] if folder is None or not folder.is_dir() else list(_trials(folder))
    return [*(trials or [Item(SASS_ITEM, "ok", _NOT_YET)]), *_faulted_items()]


def _trials(folder: Path) -> Iterator[Item]:
    newest_paths: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime):
        if match := _OUTCOME_FILE.fullmatch(path.name):
            newest_paths[match["driver"], match["arch"]] = path
    for (driver, arch), path in sorted(newest_paths.items()):
        machine = f"on {arch}, driver {driver}"
        limitation = _limitation(stored_outcome(path), machine)
        if limitation:
            yield Item(SASS_ITEM, "warn", limitation, f"to try again, remove {path}")
        else:
            yield Item(SASS_ITEM, "ok", f"kernels without PTX can be probed {machine}")


def _limitation(trial: TrialOutcome | None, machine: str) -> str:
    """Return what cannot be probed after a trial, None for one that cannot be read; "" if it passed."""
    if trial is None:
        return f"kernels without PTX are not probed {machine}: the saved self-test result cannot be read"
    if trial.outcome != "passed":
        return f"kernels without PTX are not probed {machine}: {trial.words or trial.outcome}"
    for case in _trial_cases(trial):
        if not case.result:
            return f"unknown whether {case.ability} {machine}: the self-test did not try this"
        if case.result != "passed":
            return f"{case.limitation} {machine}: {case.result}"
    return ""


class _TrialCase(NamedTuple):
    """One case of the self-test: what kernels lack if it failed, what they have if it passed, and its result.

    ``result`` is "passed", the reason of a failure, or "" if the case was not tried.
    """

    limitation: str
    ability: str
    result: str


def _trial_cases(trial: TrialOutcome) -> tuple[_TrialCase, ...]:
    """Return the cases of a trial, that with the largest effect first.

    A GPU that lacks the code of the last two cases does not try them, and needs neither.
    """
    return (
        _TrialCase("only entry/exit probes work", "probes can be inserted at instructions", trial.instructions),
        _TrialCase("probes cannot record each access", "probes can record each access", trial.records),
        _TrialCase("probes cannot count basic blocks", "probes can count basic blocks", trial.blocks),
        _TrialCase(
            "phases of kernels with few free registers are not recorded",
            "phases of kernels with few free registers are recorded",
            trial.short_records or "passed",
        ),
        _TrialCase(
            "bulk copies of kernels with few free registers are not recorded",
            "bulk copies of kernels with few free registers are recorded",
            trial.copies or "passed",
        ),
    )


def _faulted_items() -> Iterator[Item]:
    path = graft_faults_file()
    names = [] if path is None else faulted_kernels(path)
    if names:
        listing = ", ".join(names[:_MAX_NAMED]) + (", ..." if len(names) > _MAX_NAMED else "")
        kernels = counted(len(names), "kernel")
        finding = (
            f"{kernels} will not be probed in SASS, because a GPU context failed while they had a probe: {listing}"
        )
        yield Item(SASS_ITEM, "warn", finding, f"to probe a kernel again, remove its line from {path}")


def terminal_items() -> list[Item]:
    if not on_terminal():
        return [Item("terminal", "warn", _obstacle(), "without a terminal, run and open print text reports")]
    return [screen_item(), character_item(), *link_items()]


def _obstacle() -> str:
    """Return why there can be no screen."""
    names = ("stdin", "stdout", "stderr")
    redirected_streams = [name for descriptor, name in enumerate(names) if not os.isatty(descriptor)]
    if redirected_streams:
        *leading_streams, last_stream = redirected_streams
        return (
            f"{', '.join(leading_streams)} and {last_stream} are not terminals"
            if leading_streams
            else f"{last_stream} is not a terminal"
        )
    return f"TERM={os.environ.get('TERM', '')!r} cannot move the cursor"


def screen_item() -> Item:
    columns, lines = shutil.get_terminal_size()
    finding = f"{os.environ['TERM']}, {columns}×{lines}, {colours()}"
    if columns < SMALL_SIZE[0] or lines < SMALL_SIZE[1]:
        return Item("terminal", "warn", finding, f"enlarge the terminal to at least {SMALL_SIZE[0]}×{SMALL_SIZE[1]}")
    return Item("terminal", "ok", finding)


def colours() -> str:
    """Return the number of colours of the terminal, as text."""
    if os.environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return "16 million colours"
    try:
        import curses  # not there on Windows
    except ImportError:
        return "colours unknown"
    try:
        curses.setupterm(fd=1)
    except curses.error:
        return "colours unknown"
    return f"{max(curses.tigetnum('colors'), 0)} colours"


def character_item() -> Item:
    stdout = sys.__stdout__  # under a screen ``sys.stdout`` is not a file
    encoding = (stdout.encoding if stdout else None) or "ascii"
    if "utf" in encoding.lower():
        return Item("characters", "ok", encoding)
    return Item("characters", "warn", encoding, "charts use ASCII characters only; for finer charts set LANG=C.UTF-8")


def link_items() -> list[Item]:
    """Return items for what lies between program and terminal: SSH, multiplexer."""
    items = []
    if os.environ.get("SSH_CONNECTION"):
        advice = "on a slow link use --low-bandwidth and compression (ssh -C)"
        items.append(Item("link", "ok", "SSH: no animation, no mouse", advice))
    if os.environ.get("TMUX"):
        advice = "in tmux.conf: set -g default-terminal tmux-256color (colors), set -g set-clipboard on (copying)"
        items.append(Item("tmux", "ok", "inside tmux", advice))
    return items


def setting_items() -> list[Item]:
    """The file, and an item for each thing in it that is not used, or that a command will fail with."""
    settings = user_settings()
    items = [
        Item("settings", "warn", problem, "remove the unknown variable; tui-probe help settings lists all variables")
        for problem in setting_problems()
    ]
    items += [
        Item("settings", "warn", f"{settings.path}: {problem}", "commands that need this file fail; fix or remove it")
        for problem in _unusable_values(settings)
    ]
    if not items:
        return [
            Item("settings", "ok", f"{settings.path}{'' if settings.exists else ' (no such file; none is needed)'}")
        ]
    return items


def _unusable_values(settings: Settings) -> Iterator[str]:
    """Yield a problem per setting that names a missing file, probe or directory."""
    if settings.probe:
        try:
            choose_probes([settings.probe])
        except ProbeError as error:
            yield f"probe: {error}"
    if settings.bandwidth:
        try:
            read_bandwidth(settings.bandwidth)
        except ProbeError as error:
            yield f"bandwidth: {error}"
    if settings.trace_dir and settings.trace_dir.exists() and not settings.trace_dir.is_dir():
        yield f"trace_dir: {settings.trace_dir} is not a directory"


CHECKS = (
    driver_items,
    gpu_items,
    counter_items,
    tool_items,
    hook_items,
    simulator_items,
    terminal_items,
    setting_items,
    package_items,
    cache_items,
    machine_code_items,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default %(default)s")
    parser.add_argument("--clear-cache", action="store_true", help="empty the cache of prepared kernels, and exit")


def run(arguments: argparse.Namespace) -> int:
    """0 if a command can be profiled here, on a GPU or on the simulated one; 3 if not."""
    if arguments.clear_cache:
        inform(clear_cache())
        return ExitStatus.OK
    items = check_machine()
    works = can_profile(items)
    columns = max(MIN_COLUMNS, terminal_size().columns) if os.isatty(1) else UNLIMITED
    write_stdout(as_json(items, works) if arguments.format == "json" else as_table(items, works, columns))
    return ExitStatus.OK if works else ExitStatus.NO_DRIVER


def check_machine() -> list[Item]:
    """Run all checks; takes seconds, since some start a process."""
    items: list[Item] = []
    with Progress("checking") as reading:
        for number, check in enumerate(CHECKS):
            reading(number / len(CHECKS))
            items += check()
    return items


def can_profile(items: list[Item]) -> bool:
    """Return whether the hook and a driver, real or simulated, work."""
    working = {item.name for item in items if item.state == "ok"}
    has_hook = any(item.name == "hook" and item.state != "missing" for item in items)
    return has_hook and not working.isdisjoint({"driver", "simulated GPU"})


def as_table(items: list[Item], works: bool, columns: int) -> str:
    """Return the version, a row per item, and what works; a word that is wider than a column is not broken."""
    width = max(len(item.name) for item in items)
    indent = " " * (width + 12)
    lines = [f"tui-probe {__version__}", ""]
    for item in items:
        row = f"{item.name:<{width}}  {item.state:<8}  {item.found}"
        lines += wrap_words(row, columns, indent)
        if item.advice:
            lines += wrap_words(f"{indent}→ {item.advice}", columns, f"{indent}  ")
    lines.append("")
    for line in works_here(items, works):
        lines += wrap_words(line, columns, "")
    return "\n".join(lines) + "\n"


def wrap_words(text: str, columns: int, indent: str) -> list[str]:
    """Return lines of at most ``columns``, from the second on behind ``indent``; paths stay whole, to be copied."""
    return textwrap.wrap(
        text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, expand_tabs=False
    )


def works_here(items: list[Item], works: bool) -> list[str]:
    """Return what can be done on this machine, a line each."""
    states = {item.name: item.state for item in items}
    if not works:
        missing_part = "the hook" if states.get("hook") == "missing" else "a driver or the simulated GPU"
        return [
            f"tui-probe cannot profile here: {missing_part} is missing."
            " These commands work: open, report, compare, import."
        ]
    if states.get("driver") != "ok":
        return ["tui-probe can profile here on the simulated GPU only: tui-probe demo, tui-probe run --sim."]
    lines = ["tui-probe can profile here on the GPU: tui-probe run -- COMMAND."]
    if states.get("simulated GPU") == "ok":
        lines.append("The simulated GPU works, too: tui-probe run --sim.")
    return lines


def as_json(items: list[Item], works: bool) -> str:
    """``{"version": 1, "tool": …, "can_profile": …, "items": [{"name", "state", "found", "advice"}, …]}``."""
    record = {"version": 1, "tool": __version__, "can_profile": works, "items": [asdict(item) for item in items]}
    return dump_json(record, indent=1) + "\n"
