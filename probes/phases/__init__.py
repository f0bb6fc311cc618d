"""Phases: what each warp does over time, the roles of warps, and which role waits for which.

Modules of the analysis are imported by the functions that need them: reports import this one for its question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probekit.finding import SHARE, Finding, counted, percent, timed
from tui_probe.probekit.metric import Metric, show_known
from tui_probe.probekit.probe import Probe, Question
from tui_probe.probekit.probe_view import probe_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.draw.view import Progress, View
    from tui_probe.probekit.finding import Evidence, Number
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe_results import ProbeResult

    from .analysis import LaunchPhases
    from .waits import Wait

_NOTABLE_SHARE: Final = 0.1
"""Part of a role's life from which on a wait is worth a look."""
_NOTABLE_BLOCKED: Final = 0.02
"""Part of the partner's life for which it waits for a free stage, from which on more stages may help."""
_MAX_PHASES: Final = 3


def _warp_count(launch: LaunchPhases) -> int:
    return len(launch.warps.block)


def _waiting_share(launch: LaunchPhases) -> float | None:
    if any(phase.is_named for phase in launch.phases):
        return None  # names do not tell which phases wait
    from .tables import rows_of

    cycles = sum(row.cycles for row in rows_of(launch) if row.phase.activity == "wait")
    return cycles / launch.life if launch.life else None


def _computing_share(launch: LaunchPhases) -> float | None:
    from .tables import overlap_of

    overlap = overlap_of(launch)
    return overlap.compute if overlap is not None else None


def _kept_starts(launch: LaunchPhases) -> int | None:
    return launch.starts_kept if launch.starts_kept < launch.starts_seen else None


METRICS: Final = (
    Metric("warps", "warps", read=_warp_count, page="phases"),
    Metric(
        "waiting", "share of warp life spent waiting", better="lower", over_launches="mean", clocked=True,
        read=_waiting_share, standalone_title="share of warp life in phases that wait",
    ),
    Metric(
        "computing", "block time with a computing warp", better="higher", over_launches="mean", clocked=True,
        read=_computing_share, standalone_title="block time with a computing warp",
    ),
    Metric("starts_kept", "phase starts kept", read=_kept_starts, is_shown=show_known),
)  # fmt: skip


def findings(probe_result: ProbeResult, launch: LaunchPhases) -> Iterator[Finding]:
    """The longest wait for other warps, then the longest phases."""
    from .tables import rows_of
    from .waits import waits_of

    del probe_result
    waits = [wait for wait in waits_of(launch) if wait.late_share is not None]
    if waits:
        yield _wait_finding(_main_wait(waits))
    ranked = sorted(rows_of(launch), key=lambda row: -row.cycles)
    has_roles = len(launch.roles) > 1
    parts = [
        f"{percent(row.cycles, launch.life)} “{row.phase.name}”{f' of {row.role}' if has_roles else ''}"
        for row in ranked[:_MAX_PHASES]
    ]
    values = {"phases": counted(len(launch.phases)), "roles": counted(len(launch.roles))}
    yield Finding("phases", "phases", f"{', '.join(parts)} (shares of warp life)", "phases", values=values)
    if launch.kept_text:
        yield Finding("kept", "kept", launch.kept_text, "phases")
    if launch.sampled_text:
        yield Finding("recorded", "recorded", launch.sampled_text, "phases")


def _main_wait(waits: Sequence[Wait]) -> Wait:
    """The longest wait; that of a producer for a free stage only if no other role waits notably."""
    main_waits = [wait for wait in waits if wait.share >= _NOTABLE_SHARE and not _is_for_stage(wait)]
    return max(main_waits or waits, key=lambda wait: wait.share)


def _is_for_stage(wait: Wait) -> bool:
    return wait.partner is not None and wait.role.startswith("producer")


def _wait_finding(wait: Wait) -> Finding:
    from .sentences import wait_text

    values: dict[str, Number | Evidence] = {
        "share": timed(wait.share, SHARE, 0),
        "late_share": timed(wait.late_share, SHARE),
        "role": wait.role,
        "partner": wait.partner,
    }
    label = "role wait" if wait.partner else "barrier wait"
    return Finding(
        "longest_role_wait", label, wait_text(wait), "phases", wait.line or wait.phase.lines[0],
        stands_out=wait.share >= _NOTABLE_SHARE, values=values, advice=_advice(wait),
        brief=f"{wait.phase.work_text}: {percent(wait.share, 1)} of warp time",
    )  # fmt: skip


def _advice(wait: Wait) -> str:
    if wait.late_share is None:
        return ""
    if wait.partner is None:
        return "balance the work of the block's warps" if wait.late_share >= 0.5 else "use fewer barriers"
    if wait.stages_full:
        return f"all {wait.stages_full} stages are in use: add stages to the pipeline, or copy larger boxes"
    if wait.late_share < 0.5:
        return "start each copy more iterations before its wait (more stages), or copy larger boxes"
    if _is_for_stage(wait):
        return "all stages are in use: the consumers limit this kernel"
    balance_advice = f"the {wait.partner} is late: give the {wait.partner} less work per stage, or more warps"
    if wait.partner_blocked is None:
        return balance_advice
    if wait.partner_blocked < _NOTABLE_BLOCKED:
        return f"{balance_advice}. More stages do not help: the {wait.partner} hardly ever waits for a free stage"
    blocked_share = percent(wait.partner_blocked, 1)
    return (
        f"{balance_advice}, or use more stages: the {wait.partner} waits {blocked_share} of its time for a free stage"
    )


def _open_view(source: ViewSource, progress: Progress) -> View:
    from .view import open_view  # brings tables and drawing, which reports do not need

    return open_view(source, progress)


PHASES_VIEW: Final = probe_view(
    "phases",
    "Phases",
    "phases of warps over time, and which role waits",
    _open_view,
    explanation=(
        "Each row is one warp: of each role the first warp, and the warp that differs most from it. Time runs to the"
        " right. A letter stands for the phase that takes most of the time in"
        " the cell; the table lists the phases. The second group of rows shows some iterations of the main loop."
        " Warps that run the same loops have the same role.",
        "For a phase in a loop, the median is over iterations. For a phase outside loops, the median is over warps. A"
        " wait ends when the other role has signaled and the copies are complete. The notes and the sentence above"
        " the table show how much of the wait was before the signal.",
    ),
    order=18,
)


def _analyse(probe_result: ProbeResult) -> LaunchPhases:
    from .analysis import analyse_launch

    return analyse_launch(probe_result)


PROBES: Final = (
    Probe(
        name="phases",
        analyse=_analyse,
        metrics=METRICS,
        question=Question(
            "phases", "which warps wait, and for whom?", 48,
            r"\bmbarrier\.[a-z_.]*wait|\bcp\.async|\bbar\.(cta\.)?(sync|red)|\bbarrier\.",
            search_words="timeline roles producer consumer pipeline warp-specialized", is_for_latency=True,
        ),
        answers=("asynchronous work", "barriers"),
        findings=findings,
        views=(PHASES_VIEW,),
    ),
)  # fmt: skip
