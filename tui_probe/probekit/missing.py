"""Why a kernel or launch has no result that a view can show, and what to do."""

from __future__ import annotations

import os
import shlex
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.draw.table import safe
from tui_probe.probe_files.folders import SUFFIXES
from tui_probe.probekit.probe_results import aimed, probe_of
from tui_probe.probekit.registry import probe_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probekit.kind import Source
    from tui_probe.trace.model import Kernel
    from tui_probe.trace.run_info import RunInfo

_MOST_PROBES: Final = 3


def missing(source: Source, *probes: str) -> str | None:
    """Why there is no result of one of these probes, and what to do; None if there is one."""
    source = aimed(source, *probes)
    kernel, wanted = source.kernel, _one_of(probes)
    if kernel.probings and kernel.status == "probed":
        return f"the kernel was probed with {', '.join(kernel.probings)}: run with {wanted}"
    if kernel.status in ("skipped", "failed", "excluded"):
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    probe = probe_of(kernel)
    if probe is None and (own := _own_probe(kernel.trace.run_info)):
        return f"the kernel was probed with {safe(own)}: run with {wanted}"
    if probe is None:
        return f"the trace does not say which probe the kernel had: name it with --probe NAME, or run with {wanted}"
    if probe not in probes and probe_named(probe) is None:
        return not_known(kernel)
    if probe not in probes:
        return f"the kernel was probed with {probe}: run with {wanted}"
    if source.launch is not None and source.launch.result is None:
        return f"launch {source.launch.number} has no result: {source.launch.reason or 'it was not saved'}"
    return None if kernel.result_rows else _saved_none(kernel.trace.run_info)


def _own_probe(run: RunInfo | None) -> str:
    """The file of the probe that the run named, "" where that was no file."""
    path = PurePath(run.probe if run is not None and run.probe else "")
    return path.name if path.suffix in SUFFIXES else ""


def _saved_none(run: RunInfo | None) -> str:
    options = {} if run is None else run.options
    if options.get("memusage"):
        return "--memusage probes nothing: run without it"
    if options.get("benchmark") and options.get("save_results") is False:
        return "--benchmark saves no results: run with --benchmark --save-results, or without both"
    return "no result was saved yet"


def _one_of(probes: Sequence[str]) -> str:
    """``-p A or -p B``; of more than three only the first ones."""
    words = " or ".join(f"-p {probe}" for probe in probes[:_MOST_PROBES])
    more = len(probes) - _MOST_PROBES
    return f"{words} or {units.counted(more, 'other')} (tui-probe probes)" if more > 0 else words


def not_known(kernel: Kernel) -> str | None:
    """What to do about a kernel's probe of which only the records can be shown; None if the probe is known."""
    name = probe_of(kernel)
    if name is None or probe_named(name) is not None:
        return None
    return (
        f"the probe {safe(name)} is not installed, so only its maps are shown, on the page of results: install the"
        f" package that has it, or name its folder: --probe {safe(_folder_of(kernel.trace.run_info))}"
    )


def _folder_of(run: RunInfo | None) -> str:
    """The folder that the run named, as a word for a shell; FOLDER where it named none. It is not looked at."""
    if run is None or run.probe is None or "/" not in run.probe:
        return "FOLDER"
    path = PurePath(run.cwd or "", run.probe)
    return shlex.quote(os.path.normpath(path.parent if path.suffix in SUFFIXES else path))
