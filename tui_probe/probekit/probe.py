"""Probe: the question it answers, the analysis of its results, and the pages that show them.

A probe's folder holds its file (``probe.toml``, or ``.py`` in the tracing language; ``NAME.toml`` next to it is a
variant, called FOLDER_NAME) and a module whose ``PROBES`` are objects of this class. Nothing outside the folder names
it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_probe.probekit.metric import metric_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tui_probe.draw.view import Progress
    from tui_probe.probekit.finding import Finding
    from tui_probe.probekit.lines import LineSpec
    from tui_probe.probekit.metric import Metric, MetricValue
    from tui_probe.probekit.page_kinds import TracePage, ViewKind
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.probekit.timelines.launch import LaunchTimeline
    from tui_probe.records.distribution import Waits
    from tui_probe.trace.results import Result


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a user that the probe answers.

    ``key`` is its name in findings and other probes. ``rank`` orders questions, the one asked most first.
    ``code_pattern`` is a regular expression that occurs in the PTX of the kernels for which the question means
    something.
    """

    key: str
    text: str
    rank: int
    code_pattern: str = ""
    search_words: str = ""
    """More words that a search matches, such as ``roofline``."""
    of_program: bool = False
    """True if it is asked of all kernels together, so that a run again is offered at any of them."""
    needs_gpu: bool = False
    """True if the probe needs SASS, which the simulated GPU does not execute."""
    is_for_latency: bool = False
    """True if it comes first for a latency-bound kernel."""

    def __post_init__(self) -> None:
        """Raise ValueError if ``code_pattern`` is not a regular expression."""
        try:
            re.compile(self.code_pattern)
        except re.error as error:
            raise ValueError(f"question {self.key}: 'needs' is not a valid regular expression: {error}") from error


@dataclass(frozen=True, slots=True)
class Stamps:
    """Start and end of a launch in ns of %globaltimer; ``end_ns`` is None if only the start is known."""

    begin_ns: int
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class LatencyCause:
    """Reason why warps of a launch wait: the ``share`` of their lifetime, and text on the wait and its cause."""

    share: float
    text: str


@dataclass(frozen=True, slots=True)
class MeasuredWait:
    """Waits at the ``instruction`` at an ``offset``, for a class and a ``producer``, as ``share`` of the lifetime of
    warps. ``place`` is ``attn.py:31``, "" if it is not known. ``producer_offset`` is that of the producer, None without
    one.
    """

    offset: int
    instruction: str
    place: str
    kind: str
    producer: str
    share: float
    producer_offset: int | None = None


@dataclass(frozen=True, slots=True)
class MeasuredWaits:
    """The waits that launches measured; ``unmeasured`` has the places of the other instructions that may wait by
    offset, None if it is not known which these are.
    """

    waits: tuple[MeasuredWait, ...]
    unmeasured: Mapping[int, str] | None


@dataclass(frozen=True, slots=True)
class ProbeGroup:
    """Probes that measure parts of the same quantity, each in launches of its own.

    ``join`` returns one analysis of the parts that have a result, in the order of ``probes``.
    """

    probes: tuple[str, ...]
    join: Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe: the analysis of its results, and the values, findings and pages made from an analysis.

    ``analyse`` returns the analysis of a result, any object; it raises TraceError if another probe made the result.
    Functions that take an analysis get the return value of ``analyse`` for the same result.
    """

    name: str
    analyse: Callable[[ProbeResult], Any]
    metrics: Sequence[Metric] = ()
    question: Question | None = None
    answers: tuple[str, ...] = ()
    """Keys of questions that its results answer besides its own."""
    findings: Callable[[ProbeResult, Any], Iterable[Finding]] | None = None
    fault_in_any_launch: bool = False
    """True if a finding with ``wrong_result`` may be in any launch, so that all are checked: without a chosen launch
    findings and pages are of the newest launch with one.
    """
    lines: LineSpec | None = None
    """Measured values of single lines."""
    timeline: Callable[[ProbeResult, Progress], LaunchTimeline] | None = None
    """Timeline of blocks and warps, for a probe that records it."""
    stamps: Callable[[ProbeResult], Stamps] | None = None
    """Time span of a launch by the timer that all kernels share (%globaltimer), for a probe that reads it."""
    waits: Callable[[ProbeResult, Progress], Waits] | None = None
    views: tuple[ViewKind, ...] = ()
    """Views of this probe only."""
    pages: tuple[TracePage, ...] = ()
    """Pages about a whole trace."""
    launch_line: Callable[[Any], str] | None = None
    """Formats a launch in one line; by default the line lists the values."""
    line_caption: str = ""
    """Caption of ``line``, shown above the first lines of launches."""
    notes: Callable[[Any], Sequence[str]] | None = None
    """Notes on a launch's values in tables."""
    latency_cause: Callable[[Any], LatencyCause | None] | None = None
    """Returns the reason why a latency-bound kernel waits; None if the launch does not show it."""
    measured_waits: Callable[[Any], MeasuredWaits] | None = None
    """Returns the waits by instruction, which a comparison uses instead of metrics and findings, since each launch may
    measure other instructions.
    """
    group: ProbeGroup | None = None
    """Probes that measure parts of the same quantity: findings, lines and comparisons join their results."""
    values_of: Callable[[Any], tuple[MetricValue, ...]] | None = None
    """Returns the values of an analysis, if their set depends on the launch; ``metrics`` then lists all possible ones.
    """

    def metric_values_of(self, analysis: Any) -> tuple[MetricValue, ...]:
        """Return the values of a launch, in the order in which they are shown."""
        return metric_values(self.metrics, analysis) if self.values_of is None else self.values_of(analysis)


def analysis_of_result(analyse: Callable[[Result], Any]) -> Callable[[ProbeResult], Any]:
    """Return an analysis that needs a result file only."""
    return lambda probe_result: analyse(probe_result.result)


def analysis_of_sites(analyse: Callable[[Result, Sequence[int], Path | None], Any]) -> Callable[[ProbeResult], Any]:
    """Return an analysis by line: it also needs the sites of the records, and the kernel's directory for their code."""
    return lambda probe_result: analyse(probe_result.result, probe_result.sites, probe_result.kernel.folder)
