"""What a run is asked to do: its options from the command line, the environment and the settings."""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any, cast

from tui_probe.errors import ProbeFileError
from tui_probe.launcher.options import AUTO, RunOptions
from tui_probe.probe_files.choices import ChosenProbe, choose
from tui_probe.probe_files.folders import DEFAULT, built_in_files, in_folder, installed_files

from .chosen import chosen_settings, default_launches
from .values import count, limit, min_free, size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence


def options_of(arguments: argparse.Namespace, command: Sequence[str]) -> RunOptions:
    """What the run is asked to do."""
    return RunOptions(
        command=tuple(command),
        probes=probes_of(arguments),
        trace_root=arguments.tracedir,
        kernels=arguments.kernel,
        excluded=arguments.exclude,
        launches=arguments.launches or default_launches(every=arguments.benchmark or arguments.memusage),
        sample=arguments.sample,
        benchmark=arguments.benchmark,
        save_results=arguments.save_results,
        memusage=arguments.memusage,
        detail=wants_detail(arguments),
        machine_code=arguments.machine_code or chosen_settings().machine_code or AUTO,
        times=not arguments.no_times,
        driver=arguments.driver,
        simulated=arguments.sim or arguments.sim_arch is not None,
        simulated_architecture=arguments.sim_arch,
        **limits_of(arguments),
        min_free_disk=least_free(arguments),
        after=arguments.after or 0.0,
        duration=arguments.duration,
        capture_range=arguments.capture_range,
        nvtx=arguments.nvtx,
        tensors=arguments.tensors,
        cache=not arguments.no_cache,
        sources=not arguments.no_source,
        keep_secrets=arguments.keep_secrets,
    )


def probes_of(arguments: argparse.Namespace) -> tuple[str, ...]:
    """What was written behind ``-p``, or is run where nothing was."""
    return tuple(arguments.probe or (chosen_settings().probe or DEFAULT,))


def limits_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The limits of RunOptions: what the command line says, else the settings, else what holds anyway."""
    readers: dict[str, Callable[[str], int]] = {
        "max_trace_bytes": limit, "max_result_files": count, "max_log_bytes": limit, "max_write_rate": limit,
        "max_probe_memory": size, "max_host_memory": size,
    }  # fmt: skip
    found = {}
    for name, reader in readers.items():
        told = getattr(arguments, name)
        if told is None and (setting := getattr(chosen_settings(), name)) is not None:
            told = reader(setting)
        if told is not None:
            found[name] = told
    return found | {"shares": "max_trace_bytes" not in found}


def known_probes(options: RunOptions) -> tuple[ChosenProbe, ...]:
    """The probes to run; what they mean is known then, too, though no package brings them. Raises ProbeFileError."""
    chosen = choose(options.probes, options.sample or "")
    if options.benchmark and len(chosen) > 1:
        raise ProbeFileError(f"--benchmark times one probe, not {len(chosen)}: choose one with -p")
    for own in chosen:
        if in_folder(own.path) and own.path not in {**installed_files(), **built_in_files()}.values():
            from tui_probe.probekit.registry import add_folder

            add_folder(own.path.parent)
    return chosen


def wants_detail(arguments: argparse.Namespace) -> bool:
    """Whether all records are to be saved, as the command line or else the settings say."""
    return bool(chosen_settings().detail if arguments.detail is None else arguments.detail)


def least_free(arguments: argparse.Namespace) -> str | None:
    """What is to stay free of the trace's disk; None if neither the command line nor the environment says."""
    told = os.environ.get("TUI_PROBE_MIN_FREE_DISK")
    if arguments.min_free_disk:
        return cast("str", arguments.min_free_disk)
    if not told:
        setting = chosen_settings().min_free_disk
        return None if setting is None else min_free(setting)
    try:
        return min_free(told)
    except ArgumentTypeError as error:
        arguments.refuse(f"TUI_PROBE_MIN_FREE_DISK: {error}")
        raise  # not reached: refusing ends the process
