"""``tui-probe run``: a command under the hook, under Nsight Compute (``--ncu``), or with random delays (``--shake``).

``--again`` reruns the command of a trace with its options.
"""

from __future__ import annotations

import os
import shlex
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.errors import ImportFileError, LaunchError, UsageError
from tui_probe.launcher.ncu import BYTE_METRICS, find_ncu, needs_root, run_ncu
from tui_probe.launcher.options import again_command, option_name, repeated_options
from tui_probe.probe_files.choices import split_choice
from tui_probe.probe_files.loading import built_in_files
from tui_probe.probe_files.option_probes import (
    PHASES_PREFIX,
    limited_probe,
    line_range_of,
    line_range_probe,
    phase_records,
    phases_probe,
    records_phases,
)
from tui_probe.trace.locate import parse_address
from tui_probe.trace.run_info import recorded_run
from tui_probe.trace.user_state import is_own_command

from .arguments import resolve_name, self_profiling_advice, trace_dir, trace_folder_of
from .output import ExitStatus, inform, is_utf8, shell_word, warn, write_stdout
from .run_options import add_arguments, options_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from tui_probe.integrations.shake import Race

__all__ = ["add_arguments", "run"]

KERNEL_OPTIONS: Final = ("kernel", "exclude")
"""Options that select kernels: a new selection replaces all of the former one."""
HOOK_OPTIONS: Final = (
    "benchmark", "replay", "wait", "memusage", "detail", "machine_code", "kernel", "exclude", "launches",
    "max_trace_bytes", "max_result_files", "max_log_bytes", "max_write_rate", "min_free_disk", "max_probe_memory",
    "max_host_memory", "keep_launch", "max_kept_bytes",
    "after", "duration", "watchdog", "nvtx", "tensors", "driver", "sim", "sim_arch", "no_check", "name",
)  # fmt: skip
"""Options that need the hook, which ``--ncu`` does not have, by their names in the arguments."""


def confirm_command(trace: Path, folder: Path, command: str) -> None:
    """Show the command whole, and ask on the terminal. UsageError where it is not to run, or no one can be asked."""
    change_directory = f"cd {shell_word(folder)}"
    if not (os.isatty(0) and os.isatty(2)):
        raise UsageError(
            f"{trace}: you have not run this trace's command on this machine, so --again needs a terminal to ask for"
            f" confirmation. To run the command yourself: {change_directory} && {command}"
        )
    with suppress(termios.error):
        termios.tcflush(0, termios.TCIFLUSH)  # keys that were pressed before the question do not answer it
    sys.stderr.write(f"You have not run this command of {shell_word(trace)} on this machine:\n\n")
    sys.stderr.write(f"  {change_directory}\n  {command}\n\nRun it? Type yes: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != "yes":
        raise UsageError(f"{trace}: the command was not run")


def take_again(arguments: argparse.Namespace) -> Path:
    """Fill in what the command line leaves open with what the run of a trace was asked for.

    Asks first if this user has not run that command. Returns the folder where that ran; traces of the new run lie
    next to the trace. UsageError where the trace does not say what ran, or the folder is gone, or the user refuses;
    TraceError where there is no trace.
    """
    trace = trace_folder_of(resolve_name(parse_address(arguments.again))).absolute()
    overrides = [word for probe in arguments.probe or () for word in ("-p", probe)]
    overrides += ["--watchdog", f"{arguments.watchdog:g}s"] if arguments.watchdog else []
    info, folder = recorded_run(trace, lambda info: again_command(info, overrides))
    if not is_own_command(info):
        confirm_command(trace, folder, again_command(info, overrides))
    _make_paths_absolute(arguments)
    arguments.command = list(info.command)
    arguments.tracedir = trace.parent if arguments.tracedir == trace_dir() else arguments.tracedir.absolute()
    arguments.sim = arguments.sim or (info.simulated and arguments.driver is None)
    _fill_open_options(arguments, repeated_options(info, overrides))
    if not arguments.probe and info.probe:
        if arguments.callback is True:
            raise UsageError(
                "--callback: probes in a trace cannot run a callback; pass --callback FILE.py, or pass the probe"
                " with -p"
            )
        arguments.probe = info.probe.split(", ")
    return folder


def _make_paths_absolute(arguments: argparse.Namespace) -> None:
    """Files that the command line names are meant as seen from here, not from the folder of the former run."""
    for name in ("callback", "driver"):
        path = getattr(arguments, name)
        setattr(arguments, name, path.absolute() if isinstance(path, Path) else path)

    def is_generated(name: str) -> bool:
        return bool(line_range_of(name) or name.startswith(PHASES_PREFIX) or limited_probe(name))

    choices = [split_choice(text) for text in arguments.probe or ()]
    files = [
        str(Path(name).absolute()) if not is_generated(name) and ("/" in name or Path(name).is_file()) else name
        for name, _ in choices
    ]
    arguments.probe = [f"{name}:{part}" if part else name for name, (_, part) in zip(files, choices, strict=True)]


def _fill_open_options(arguments: argparse.Namespace, recorded_options: dict[str, Any]) -> None:
    """Set the options that the command line leaves open."""
    overridden_options = KERNEL_OPTIONS if arguments.kernel or arguments.all_kernels else ()
    gpu_options = ("sim_arch",) if arguments.driver else ()
    for name, value in recorded_options.items():
        option = getattr(arguments, name)
        is_open = option is None or (option is False and name != "detail")
        if is_open and name not in (*overridden_options, *gpu_options):
            setattr(arguments, name, value)
    arguments.save_results = arguments.save_results and arguments.benchmark


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, 128 + n if signal n ended it."""
    if arguments.between:
        arguments.probe = [*(arguments.probe or ()), *map(line_range_probe, arguments.between)]
    _choose_phases(arguments)
    if arguments.again is not None:
        os.chdir(take_former_run(arguments))
    return start(arguments)


def _choose_phases(arguments: argparse.Namespace) -> None:
    """Add the probe of ``--phase`` and ``--phase-records``, in place of probes that record phases by themselves."""
    records = phase_records(arguments.phase_records or "first")
    if not arguments.phase and not records:
        return
    replaced_choices = [choice for choice in arguments.probe or () if _records_phases(split_choice(choice)[0])]
    samples = [f":{sample}" for _, sample in map(split_choice, replaced_choices) if sample]
    other_choices = [choice for choice in arguments.probe or () if choice not in replaced_choices]
    arguments.probe = [*other_choices, phases_probe(arguments.phase or (), records) + "".join(samples[-1:])]


def _records_phases(name: str) -> bool:
    """Return whether a probe of the run records phases by itself, which ``--phase`` then replaces."""
    file = built_in_files().get(name)
    return file is not None and records_phases(file)


def take_former_run(arguments: argparse.Namespace) -> Path:
    """Take the command and the options of the run that ``--again`` names. Returns the directory where it ran."""
    if arguments.command:
        arguments.refuse("--again runs the command of a trace; omit COMMAND or --again")
    if arguments.ncu:
        arguments.refuse("--ncu needs a command: tui-probe run --ncu -- COMMAND...")
    return take_again(arguments)


def start(arguments: argparse.Namespace) -> int:
    """Run the command in the current folder."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        arguments.refuse("pass a command: tui-probe run [options] -- COMMAND..., or --again")
    if problem := self_profiling_advice(command):
        arguments.refuse(problem)
    refuse_combinations(arguments)
    if arguments.ncu:
        return profile_with_ncu(arguments, command)
    if arguments.shake:
        return shake(arguments, command)
    from .profiling import profile  # its code takes three times as long to read as the options

    return profile(options_of(arguments, command), arguments)


def refuse_combinations(arguments: argparse.Namespace) -> None:
    """Refuse options that exclude each other with status 2."""
    if arguments.all_kernels and (arguments.kernel or arguments.exclude):
        arguments.refuse("--all-kernels cannot be combined with -k or --exclude")
    if arguments.memusage and arguments.benchmark:
        arguments.refuse("--memusage and --benchmark cannot be combined; omit one of them")
    if arguments.save_results and not arguments.benchmark:
        arguments.refuse("--save-results needs --benchmark; other runs save results anyway")
    if arguments.watchdog and (arguments.benchmark or arguments.memusage or arguments.replay or arguments.sample):
        arguments.refuse("--watchdog cannot be combined with --benchmark, --memusage, --replay or --sample")
    if arguments.sim_arch and arguments.driver:
        arguments.refuse("--sim-arch and --driver cannot be combined; omit one of them")


def profile_with_ncu(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the command under ncu and report. Returns the exit status of ncu, which passes on the command's."""
    refuse_hook_options(arguments)
    metrics = arguments.ncu
    ncu = find_ncu(os.environ)
    if needs_root():
        warn("only root may read performance counters on this machine, so ncu will run the command without measuring")
    log = log_path(arguments.tracedir)
    inform(f"ncu writes {log}")
    from tui_probe.launcher.signals import tidy_end
    from tui_probe.launcher.target import exit_status

    with tidy_end():
        status = exit_status(run_ncu(ncu, log, metrics, command, capture_range=arguments.capture_range))
    if not arguments.no_report:
        report_ncu_log(log, metrics, arguments)
    return status


def refuse_hook_options(arguments: argparse.Namespace) -> None:
    """Refuse options of the hook with --ncu, under which there is no hook and they have no effect."""
    values = {name: getattr(arguments, name) for name in HOOK_OPTIONS}
    hook_options = [name for name, value in values.items() if value is not None and value is not False]
    if hook_options:
        arguments.refuse(f"--ncu runs the command without the hook; omit {', '.join(map(option_name, hook_options))}")


def log_path(folder: Path) -> Path:
    """A new file for the table."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"{folder}: {error.strerror}; choose another directory with --tracedir") from error
    return (folder / f"{time.strftime('%b%d_%H%M%S')}_{os.getpid()}.ncu.csv").absolute()


def report_ncu_log(log: Path, metrics: Sequence[str], arguments: argparse.Namespace) -> None:
    """Write the page of what ncu measured; its failures do not change the exit status."""
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.opening import NcuSources, ncu_page
    from tui_probe.pages.table_page import page_lines

    from .import_command import text_width

    try:
        table = read_ncu([log])
    except ImportFileError as error:
        warn(f"no report: {error}")
        return
    page = ncu_page("traffic" if metrics == BYTE_METRICS else "metrics", NcuSources(table))
    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    write_stdout(("", *page_lines(page, "table", width=text_width(), ascii_only=ascii_only)))
    inform(f"other pages: tui-probe import ncu {shell_word(log)} --page kernels")


def shake(arguments: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the command with each seed, and print what was found. Returns 1 if a race was found."""
    if arguments.probe or arguments.benchmark or arguments.memusage or arguments.replay or arguments.watchdog:
        arguments.refuse("--shake cannot be combined with -p, --benchmark, --memusage, --replay or --watchdog")
    from tui_probe.integrations.shake import Shaker  # brings NumPy, which a probed run starts without

    shaker = Shaker(_shake_options(arguments), command, arguments.compare_file or (), arguments.compare_memory or ())
    seeds = range(arguments.seed, arguments.seed + arguments.shake)
    race = shaker.find(seeds, inform)
    write_stdout(_race_lines(race) if race else [f"no difference in {units.counted(len(seeds), 'run')} with delays"])
    write_stdout(f"{kernel} is not delayed: {reason}" for kernel, reason in shaker.unprobed.items())
    if arguments.sim and not race:
        inform("delays seldom change the order of warps on the simulated GPU; to find races, use --sim without --shake")
    if race:
        command_line = f"tui-probe run --shake 1 --seed {race.seed} -- {shlex.join(command)}"
        write_stdout(f"{shaker.runs} runs in total; to reproduce the difference: {command_line}")
    return ExitStatus.FAILED if race else ExitStatus.OK


def _shake_options(arguments: argparse.Namespace) -> list[str]:
    """Return the options of each run with delays."""
    options = {
        "-k": arguments.kernel, "--exclude": arguments.exclude, "--machine-code": arguments.machine_code,
        "--sim-arch": arguments.sim_arch, "--driver": arguments.driver,
    }  # fmt: skip
    return [*(["--sim"] if arguments.sim else []), *(f"{name}={value}" for name, value in options.items() if value)]


def _race_lines(race: Race) -> Iterator[str]:
    yield f"seed {race.seed} changes the results of the program: {race.difference}"
    counts = f"{race.differing_runs} of {race.tried_runs}"
    yield f"{counts} runs that delay only these instructions had different results, too:"
    for site in race.sites:
        yield f"  {site.kernel}: PTX line {site.line} {site.text}"
