"""``tui-probe run``: a command under the hook; ``--again`` reruns the command of a trace."""

from __future__ import annotations

import os
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import UsageError
from tui_probe.launcher.options import RunOptions, why_not_itself
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
from tui_probe.trace.run_info import recorded_run, rerun_command
from tui_probe.trace.user_state import is_own_command

from .arguments import resolve_name, trace_dir, trace_folder_of
from .output import shell_word
from .profiling import profile
from .run_options import add_arguments, options_of

if TYPE_CHECKING:
    import argparse

    from tui_probe.trace.run_info import RunInfo

TEXTS: Final = {
    "kernel": "kernels", "exclude": "filter", "launches": "launches", "sample": "sample", "nvtx": "nvtx",
    "machine_code": "machine_code", "min_free_disk": "min_free_disk",
}  # fmt: skip
"""Options that are texts, and what run.json calls them."""
WHICH_KERNELS: Final = ("kernel", "exclude")
"""Options that select kernels: a new selection replaces all of the former one."""
NUMBERS: Final = {
    "after": "after", "duration": "for", "watchdog": "watchdog",
    "max_trace_bytes": "max_trace_bytes", "max_result_files": "max_result_files",
    "max_log_bytes": "max_log_bytes", "max_write_rate": "max_write_rate", "max_probe_memory": "max_probe_memory",
    "max_host_memory": "max_host_memory", "max_kept_bytes": "max_kept_bytes",
}  # fmt: skip
SWITCHES: Final = ("benchmark", "save_results", "memusage", "replay", "wait", "detail", "capture_range", "tensors")
PROBE_MODES: Final = ("benchmark", "save_results", "memusage")
"""Options of the use of a probe: dropped if another probe is given."""


def confirm_command(trace: Path, folder: Path, command: str) -> None:
    """Show the command whole, and ask on the terminal. UsageError where it is not to run, or no one can be asked."""
    where = f"cd {shell_word(folder)}"
    if not (os.isatty(0) and os.isatty(2)):
        raise UsageError(
            f"{trace}: you have not run this trace's command on this machine, so --again needs a terminal to ask for"
            f" confirmation. To run the command yourself: {where} && {command}"
        )
    with suppress(termios.error):
        termios.tcflush(0, termios.TCIFLUSH)  # keys that were pressed before the question do not answer it
    sys.stderr.write(f"You have not run this command of {shell_word(trace)} on this machine:\n\n")
    sys.stderr.write(f"  {where}\n  {command}\n\nRun it? Type yes: ")
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
    asked = [word for probe in arguments.probe or () for word in ("-p", probe)]
    info, folder = recorded_run(trace, asked)
    if not is_own_command(info):
        confirm_command(trace, folder, rerun_command(info, asked))
    _make_paths_absolute(arguments)
    arguments.command = list(info.command)
    arguments.tracedir = trace.parent if arguments.tracedir == trace_dir() else arguments.tracedir.absolute()
    arguments.sim = arguments.sim or (info.simulated and arguments.driver is None)
    _take_options(arguments, _recorded_options(info, anew=bool(arguments.probe)))
    if not arguments.probe and info.probe:
        if arguments.callback is True:
            raise UsageError(
                "--callback: probes in a trace cannot run a callback; pass --callback FILE.py, or the probe with -p"
            )
        arguments.probe = info.probe.split(", ")
    return folder


def _make_paths_absolute(arguments: argparse.Namespace) -> None:
    """Files that the command line names are meant as seen from here, not from the folder of the former run."""
    for name in ("callback", "driver"):
        path = getattr(arguments, name)
        setattr(arguments, name, path.absolute() if isinstance(path, Path) else path)

    def is_written(name: str) -> bool:
        return bool(line_range_of(name) or name.startswith(PHASES_PREFIX) or limited_probe(name))

    chosen = [split_choice(text) for text in arguments.probe or ()]
    files = [
        str(Path(name).absolute()) if not is_written(name) and ("/" in name or Path(name).is_file()) else name
        for name, _ in chosen
    ]
    arguments.probe = [f"{name}:{part}" if part else name for name, (_, part) in zip(files, chosen, strict=True)]


def _recorded_options(info: RunInfo, *, anew: bool) -> dict[str, Any]:
    """The options in run.json. With other probes (``anew``) times and sizes of the former are not taken again."""
    asked = dict(info.options)
    if anew and any(asked.get(name) for name in ("benchmark", "memusage")):
        asked |= dict.fromkeys((*PROBE_MODES, "launches"))  # there every launch is the default
    if not asked.get("benchmark"):
        asked["save_results"] = None  # all but these say so
    return asked


def _take_options(arguments: argparse.Namespace, asked: dict[str, Any]) -> None:
    """Set options from run.json; values of another type than it writes are ignored."""
    usual = RunOptions(()).record()
    chosen_anew = WHICH_KERNELS if arguments.kernel or arguments.all_kernels else ()
    for name, key in (*TEXTS.items(), *NUMBERS.items()):
        value = None if name in chosen_anew else asked.get(key)
        wanted = isinstance(value, str if name in TEXTS else (int, float)) and value != usual[key]
        if wanted and not getattr(arguments, name):
            setattr(arguments, name, value)
    for name in SWITCHES:
        given = getattr(arguments, name)  # None where there is a --no-... that was not said either
        if asked.get(name) is True and not given and (name != "detail" or given is None):
            setattr(arguments, name, True)
    arguments.save_results = arguments.save_results and arguments.benchmark  # run.json has it of all other runs, too
    arguments.no_times = arguments.no_times or asked.get("times") is False


__all__ = ["add_arguments", "run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns its exit status, 128 + n if signal n ended it."""
    if arguments.between:
        arguments.probe = [*(arguments.probe or ()), *map(line_range_probe, arguments.between)]
    records = phase_records(arguments.phase_records or "first")
    if arguments.phase or records:
        replaced = [choice for choice in arguments.probe or () if _records_phases(split_choice(choice)[0])]
        samples = [f":{sample}" for _, sample in map(split_choice, replaced) if sample]
        others = [choice for choice in arguments.probe or () if choice not in replaced]
        phases = phases_probe(arguments.phase or (), records)
        arguments.probe = [*others, phases + "".join(samples[-1:])]
    if arguments.again is not None:
        os.chdir(former_folder(arguments))
    return start(arguments)


def _records_phases(name: str) -> bool:
    """Return whether a probe of the run records phases by itself, which ``--phase`` then replaces."""
    file = built_in_files().get(name)
    return file is not None and records_phases(file)


def former_folder(arguments: argparse.Namespace) -> Path:
    """Take the command and the options of a former run; the folder where that ran."""
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
    if words := why_not_itself(command):
        arguments.refuse(words)
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
    if arguments.ncu or arguments.shake:
        from . import run_modes  # a probed run does not need it

        return run_modes.profile_with_ncu(arguments, command) if arguments.ncu else run_modes.shake(arguments, command)
    return profile(options_of(arguments, command), arguments)
