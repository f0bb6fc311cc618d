"""``run --again``: the program of a trace once more, with what the trace says was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import UsageError
from tui_probe.launcher.options import RunOptions
from tui_probe.probe_files.between import lines_of
from tui_probe.probe_files.choices import split_choice
from tui_probe.trace.address import parse_address
from tui_probe.trace.former_run import command_of, former_run
from tui_probe.trace.own_commands import is_own_command

from .addresses import place_of
from .chosen import trace_dir
from .foreign_command import confirm_command

if TYPE_CHECKING:
    import argparse

    from tui_probe.trace.run_info import RunInfo

TEXTS: Final = {
    "kernel": "kernels", "exclude": "filter", "launches": "launches", "sample": "sample", "nvtx": "nvtx",
    "machine_code": "machine_code", "min_free_disk": "min_free_disk",
}  # fmt: skip
"""Options that are texts, and what run.json calls them."""
WHICH_KERNELS: Final = ("kernel", "exclude")
"""Which kernels are probed: where it is said anew, nothing of what was said before holds."""
NUMBERS: Final = {
    "after": "after", "duration": "for", "max_trace_bytes": "max_trace_bytes", "max_result_files": "max_result_files",
    "max_log_bytes": "max_log_bytes", "max_write_rate": "max_write_rate", "max_probe_memory": "max_probe_memory",
    "max_host_memory": "max_host_memory",
}  # fmt: skip
SWITCHES: Final = ("benchmark", "save_results", "memusage", "detail", "capture_range", "tensors")
OF_THE_PROBE: Final = ("benchmark", "save_results", "memusage")
"""What says how a run's probe was used: not meant where another probe is asked for."""


def take_again(arguments: argparse.Namespace) -> Path:
    """Fill in what the command line leaves open with what the run of a trace was asked for.

    Asks first if this user has not run that command. Returns the folder where that ran; traces of the new run lie
    beside the trace. UsageError where the trace does not say what ran, or the folder is gone, or the user refuses;
    TraceError where there is no trace.
    """
    trace = place_of(parse_address(arguments.again)).absolute()
    asked = [word for probe in arguments.probe or () for word in ("-p", probe)]
    info, folder = former_run(trace, asked)
    if not is_own_command(info):
        confirm_command(trace, folder, command_of(info, asked))
    _name_from_anywhere(arguments)
    arguments.command = list(info.command)
    arguments.tracedir = trace.parent if arguments.tracedir == trace_dir() else arguments.tracedir.absolute()
    arguments.sim = arguments.sim or (info.simulated and arguments.driver is None)
    _take_options(arguments, _asked(info, anew=bool(arguments.probe)))
    if not arguments.probe and info.probe:
        if arguments.callback is True:
            raise UsageError(
                "--callback: the probe is that of the trace; pass --callback FILE.py, or the probe with -p"
            )
        arguments.probe = info.probe.split(", ")
    return folder


def _name_from_anywhere(arguments: argparse.Namespace) -> None:
    """Files that the command line names are meant as seen from here, not from the folder of the former run."""
    for name in ("callback", "driver"):
        path = getattr(arguments, name)
        setattr(arguments, name, path.absolute() if isinstance(path, Path) else path)
    chosen = [split_choice(text) for text in arguments.probe or ()]
    files = [
        str(Path(name).absolute()) if not lines_of(name) and ("/" in name or Path(name).is_file()) else name
        for name, _ in chosen
    ]
    arguments.probe = [f"{name}:{part}" if part else name for name, (_, part) in zip(files, chosen, strict=True)]


def _asked(info: RunInfo, *, anew: bool) -> dict[str, Any]:
    """The options in run.json. With other probes (``anew``) times and sizes of the former are not taken again."""
    asked = dict(info.options)
    if anew and any(asked.get(name) for name in ("benchmark", "memusage")):
        asked |= dict.fromkeys((*OF_THE_PROBE, "launches"))  # there every launch is the default
    if not asked.get("benchmark"):
        asked["save_results"] = None  # all but these say so
    return asked


def _take_options(arguments: argparse.Namespace, asked: dict[str, Any]) -> None:
    """What run.json says in another type than it writes counts as not said."""
    usual = RunOptions(()).record()
    chosen_anew = WHICH_KERNELS if arguments.kernel or arguments.all_kernels else ()
    for name, key in (*TEXTS.items(), *NUMBERS.items()):
        value = None if name in chosen_anew else asked.get(key)
        wanted = isinstance(value, str if name in TEXTS else (int, float)) and value != usual[key]
        if wanted and not getattr(arguments, name):
            setattr(arguments, name, value)
    for name in SWITCHES:
        said = getattr(arguments, name)  # None where there is a --no-... that was not said either
        if asked.get(name) is True and not said and (name != "detail" or said is None):
            setattr(arguments, name, True)
    arguments.save_results = arguments.save_results and arguments.benchmark  # run.json has it of all other runs, too
    arguments.no_times = arguments.no_times or asked.get("times") is False
