"""Views of a single probe, the reason why a kernel has no result for one, and the questions that a run answers."""

from __future__ import annotations

import os
import re
import shlex
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.input_limits import PTX_TEXT
from tui_probe.probe_files.catalogue import built_in_sets, set_within
from tui_probe.probe_files.loading import PROBE_SUFFIXES
from tui_probe.probekit.page_kinds import ViewKind
from tui_probe.probekit.recognised import analysis_name, unnamed_probe_advice
from tui_probe.probekit.registry import all_probes, probe_named, probe_names_where
from tui_probe.trace.plain_file import read_within
from tui_probe.trace.result_file import compressed_result_advice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe import Probe
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Run
    from tui_probe.trace.run_info import RunInfo

_MAX_NAMED_PROBES: Final = 3
_MAX_CACHED_KERNELS: Final = 256
"""Kernels for which the search of their code is cached."""


def no_result_reason(source: ViewSource, *probes: str) -> str | None:
    """Return the reason for a missing result of these probes, and advice; None if there is one."""
    source = source.for_analyses(*probes)
    kernel, advice = source.kernel, _run_advice(source.kernel.trace, probes)
    if kernel.combined_probes and kernel.status == "probed":
        return f"the kernel was probed with {', '.join(kernel.combined_probes)}: {advice}"
    if kernel.status in ("skipped", "failed", "excluded"):
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    probe = analysis_name(kernel)
    if probe is None and (probe_file := _probe_file_name(kernel.trace.run_info)):
        return f"the kernel was probed with {printable(probe_file)}: {advice}"
    if probe is None:
        naming = unnamed_probe_advice(kernel) or "the trace does not name its probe: pass --probe NAME"
        return f"{naming}, or {advice}"
    if probe not in probes and probe_named(probe) is None:
        return unknown_probe_advice(kernel)
    if probe not in probes:
        return f"the kernel was probed with {probe}: {advice}"
    if source.launch is not None and source.launch.result is None:
        return f"launch {source.launch.number} has no result: {source.launch.reason or 'it was not saved'}"
    return _compressed_reason(source) if kernel.result_rows else _nothing_saved_reason(kernel.trace, advice)


def _compressed_reason(source: ViewSource) -> str | None:
    """Return the reason where the trace has the result of the launch, or the newest one, only compressed."""
    results = source.kernel.trace.results
    row = source.kernel.result_rows[-1] if source.launch is None else source.launch.result
    path = None if row is None else results.path(row)
    advice = "" if path is None else compressed_result_advice(path)
    return f"result/{path.name}: {advice}" if path is not None and advice else None


def _probe_file_name(run: RunInfo | None) -> str:
    """Return the name of the probe file of the run, "" if the run named no file."""
    path = PurePath(run.probe if run is not None and run.probe else "")
    return path.name if path.suffix in PROBE_SUFFIXES else ""


def _nothing_saved_reason(run: Run, advice: str) -> str:
    options = {} if run.run_info is None else run.run_info.options
    if options.get("memusage"):
        return "--memusage does not probe kernels: run without --memusage"
    if options.get("benchmark") and options.get("save_results") is False:
        return "--benchmark saves no results: add --save-results, or run without --benchmark"
    return "no result was saved yet" if run.state.is_running else f"no launch has a result of this probe: {advice}"


def names_to_run(probes: Sequence[str]) -> Sequence[str]:
    """Return the names for ``run -p``: of the built-in set, if these probes are a set, else of the probes."""
    name = set_within(probes)
    return (name,) if name and len(built_in_sets()[name].choices) == len(probes) else probes


def needs_gpu(trace: Run, probes: Sequence[str]) -> bool:
    """Return whether the run was simulated, where none of these probes has a result."""
    questions = [probe.question for probe in map(probe_named, probes) if probe is not None and probe.question]
    return trace.state.simulated and bool(questions) and all(question.needs_gpu for question in questions)


def _run_advice(trace: Run, probes: Sequence[str]) -> str:
    """Return ``run with -p A or -p B``; of more than three probes only the first three."""
    names = names_to_run(probes)
    options = " or ".join(f"-p {name}" for name in names[:_MAX_NAMED_PROBES])
    if needs_gpu(trace, probes):
        return f"run with {options} on a GPU; the simulated GPU has no SASS to measure"
    unnamed = len(names) - _MAX_NAMED_PROBES
    return f"run with {options}" + (f" or {units.counted(unnamed, 'other')} (tui-probe probes)" if unnamed > 0 else "")


def unknown_probe_advice(kernel: KernelFacts) -> str | None:
    """Return advice for a kernel whose probe is unknown, so that only records are shown; None for a known probe."""
    name = analysis_name(kernel)
    if name is None:
        return unnamed_probe_advice(kernel)
    if probe_named(name) is not None:
        return None
    return (
        f"the probe {printable(name)} is not installed; only the page Results shows its maps. Install the package with"
        f" the probe, or pass the probe directory: --probe {printable(_folder_argument(kernel.trace.run_info))}"
    )


def _folder_argument(run: RunInfo | None) -> str:
    """Return the probe directory of the run, quoted for a shell; FOLDER if it named none. It is not opened."""
    if run is None or run.probe is None or "/" not in run.probe:
        return "FOLDER"
    path = PurePath(run.cwd or "", run.probe)
    return shlex.quote(os.path.normpath(path.parent if path.suffix in PROBE_SUFFIXES else path))


def probe_view(
    name: str,
    title: str,
    description: str,
    open_view: Callable[[ViewSource, Progress], View],
    *,
    explanation: tuple[str, ...],
    order: int = 50,
    short_title: str = "",
    grows: bool = False,
    is_drawing: bool = False,
) -> ViewKind:
    """Return the kind of a view of the probes that list it; arguments as for ``ViewKind``."""

    def has_view(probe: Probe) -> bool:
        return any(view.name == name for view in probe.views)

    def probes() -> tuple[str, ...]:
        return probe_names_where(has_view)

    def missing_reason(source: ViewSource) -> str | None:
        return no_result_reason(source, *probes())

    return ViewKind(
        name, title, description, missing_reason, open_view, explanation,
        order=order, short_title=short_title, grows=grows, is_drawing=is_drawing, fed_by=probes,
    )  # fmt: skip


def answered_questions(kernel: KernelFacts) -> set[str]:
    """Return the keys of the questions that results of a kernel answer."""
    probes = (
        probe_named(analysis_name(probed_kernel)) for probed_kernel in kernel.by_probe() if _has_answer(probed_kernel)
    )
    return set().union(*map(_answered_keys, probes))


def _has_answer(kernel: ProbedKernel) -> bool:
    """Return whether a kernel has a result, or one probe only: a kernel launched once has the result of one of
    several.
    """
    return kernel.status == "probed" and (bool(kernel.result_rows) or not kernel.kernel.named_probes)


def _answered_keys(probe: Probe | None) -> set[str]:
    if probe is None:
        return set()
    return {*probe.answers, *((probe.question.key,) if probe.question else ())}


def has_code(kernel: KernelFacts, pattern: str) -> bool | None:
    """Return whether a regular expression occurs in the PTX of a kernel; None without PTX, or with too much of it."""
    path = kernel.file("pruned.ptx")
    if path is None:
        return None
    status = path.stat()
    return None if status.st_size > PTX_TEXT.maximum else _has_match(path, status.st_mtime_ns, pattern)


@lru_cache(maxsize=_MAX_CACHED_KERNELS)
def _has_match(path: Path, changed_ns: int, pattern: str) -> bool:
    del changed_ns  # another file of this name
    return re.search(pattern, read_within(path, PTX_TEXT).decode("utf-8", "replace")) is not None


def option_of(probe: Probe) -> str:
    """Return ``-p NAME`` of the set of the probe's group, or of the probe."""
    return f"-p {names_to_run(probe.group.probes)[0] if probe.group else probe.name}"


class RunQuestion(NamedTuple):
    """A question: its key, its text, and the option of a run that answers it."""

    key: str
    text: str
    option: str


def latency_question(kernel: KernelFacts) -> RunQuestion | None:
    """Return the question that comes first for a latency-bound kernel; None if a result answers it, or the code does
    not wait.
    """
    for probe in all_probes():
        question = probe.question
        if question is None or not question.is_for_latency or question.key in answered_questions(kernel):
            continue
        if has_code(kernel, question.code_pattern):
            return RunQuestion(question.key, question.text, option_of(probe))
    return None
