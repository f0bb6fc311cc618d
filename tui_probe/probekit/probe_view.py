"""Views of a probe's own, why a kernel has no result for one, and the questions that another run answers."""

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

_MOST_PROBES: Final = 3
_KERNELS_KEPT: Final = 256
"""Kernels of whose code it is known whether it raises a question."""


def no_result_reason(source: ViewSource, *probes: str) -> str | None:
    """Return the reason for a missing result of these probes, and advice; None if there is one."""
    source = source.under(*probes)
    kernel, advice = source.kernel, _run_advice(source.kernel.trace, probes)
    if kernel.combined_probes and kernel.status == "probed":
        return f"the kernel was probed with {', '.join(kernel.combined_probes)}: {advice}"
    if kernel.status in ("skipped", "failed", "excluded"):
        return f"the kernel was not probed: {kernel.reason or kernel.status}"
    probe = analysis_name(kernel)
    if probe is None and (own := _own_probe(kernel.trace.run_info)):
        return f"the kernel was probed with {printable(own)}: {advice}"
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


def _own_probe(run: RunInfo | None) -> str:
    """The file of the probe that the run named, "" where that was not a file."""
    path = PurePath(run.probe if run is not None and run.probe else "")
    return path.name if path.suffix in PROBE_SUFFIXES else ""


def _nothing_saved_reason(trace: Run, advice: str) -> str:
    options = {} if trace.run_info is None else trace.run_info.options
    if options.get("memusage"):
        return "--memusage does not probe kernels: run without --memusage"
    if options.get("benchmark") and options.get("save_results") is False:
        return "--benchmark saves no results: add --save-results, or run without --benchmark"
    return "no result was saved yet" if trace.state.running else f"no launch has a result of this probe: {advice}"


def names_to_run(probes: Sequence[str]) -> Sequence[str]:
    """Return the names for ``run -p``: of the built-in set, if these probes are a set, else of the probes."""
    name = set_within(probes)
    return (name,) if name and len(built_in_sets()[name].choices) == len(probes) else probes


def needs_gpu(trace: Run, probes: Sequence[str]) -> bool:
    """Return whether the run was simulated, where none of these probes has a result."""
    questions = [probe.question for probe in map(probe_named, probes) if probe is not None and probe.question]
    return trace.state.simulated and bool(questions) and all(question.needs_gpu for question in questions)


def _run_advice(trace: Run, probes: Sequence[str]) -> str:
    """``run with -p A or -p B``; of more than three only the first ones."""
    names = names_to_run(probes)
    options = " or ".join(f"-p {name}" for name in names[:_MOST_PROBES])
    if needs_gpu(trace, probes):
        return f"run with {options} on a GPU; the simulated GPU has no SASS to measure"
    more = len(names) - _MOST_PROBES
    return f"run with {options}" + (f" or {units.counted(more, 'other')} (tui-probe probes)" if more > 0 else "")


def unknown_probe_advice(kernel: KernelFacts) -> str | None:
    """Return advice for a kernel whose probe is unknown, so that only records are shown; None for a known probe."""
    name = analysis_name(kernel)
    if name is None:
        return unnamed_probe_advice(kernel)
    if probe_named(name) is not None:
        return None
    return (
        f"the probe {printable(name)} is not installed; only the page Results shows its maps. Install the package with"
        f" the probe, or pass the probe directory: --probe {printable(_folder_of(kernel.trace.run_info))}"
    )


def _folder_of(run: RunInfo | None) -> str:
    """The folder that the run named, as a word for a shell; FOLDER where it named none. It is not looked at."""
    if run is None or run.probe is None or "/" not in run.probe:
        return "FOLDER"
    path = PurePath(run.cwd or "", run.probe)
    return shlex.quote(os.path.normpath(path.parent if path.suffix in PROBE_SUFFIXES else path))


def probe_view(
    name: str,
    title: str,
    about: str,
    opened: Callable[[ViewSource, Progress], View],
    *,
    explanation: tuple[str, ...],
    order: int = 50,
    short: str = "",
    grows: bool = False,
    drawn: bool = False,
) -> ViewKind:
    """The kind of such a view; arguments as those of ``ViewKind``. It is missing where another probe was used."""

    def has_view(probe: Probe) -> bool:
        return any(view.name == name for view in probe.views)

    def probes() -> tuple[str, ...]:
        return probe_names_where(has_view)

    def missing(source: ViewSource) -> str | None:
        return no_result_reason(source, *probes())

    return ViewKind(
        name, title, about, missing, opened, explanation,
        order=order, short=short, grows=grows, drawn=drawn, fed_by=probes,
    )  # fmt: skip


def answered_questions(kernel: KernelFacts) -> set[str]:
    """Keys of the questions that results of a kernel answer."""
    probes = (probe_named(analysis_name(probed)) for probed in kernel.by_probe() if _has_answer(probed))
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


def code_has(kernel: KernelFacts, needs: str) -> bool | None:
    """Return whether a regular expression occurs in the PTX of a kernel; None without PTX, or with too much of it."""
    path = kernel.file("pruned.ptx")
    if path is None:
        return None
    about = path.stat()
    return None if about.st_size > PTX_TEXT.most else _occurs(path, about.st_mtime_ns, needs)


@lru_cache(maxsize=_KERNELS_KEPT)
def _occurs(path: Path, changed_ns: int, needs: str) -> bool:
    del changed_ns  # another file of this name
    return re.search(needs, read_within(path, PTX_TEXT).decode("utf-8", "replace")) is not None


def option_of(probe: Probe) -> str:
    """``-p NAME``: the set of the probes that measure parts of one thing with it, or the probe."""
    return f"-p {names_to_run(probe.groups.probes)[0] if probe.groups else probe.name}"


class AskedQuestion(NamedTuple):
    """A question by its key, its words, and the option of a run that answers it."""

    key: str
    words: str
    option: str


def latency_question(kernel: KernelFacts) -> AskedQuestion | None:
    """The question that comes first of a kernel that no unit limits; None if a result answers it, or the code does not
    wait.
    """
    for probe in all_probes():
        question = probe.question
        if question is None or not question.of_latency or question.key in answered_questions(kernel):
            continue
        if code_has(kernel, question.needs):
            return AskedQuestion(question.key, question.words, option_of(probe))
    return None
