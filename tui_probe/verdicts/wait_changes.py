"""Waits of warps in baseline and candidate, by source line and class, over the instructions that both sides measured.

Launches take turns at the instructions of a kernel, so each run has measured some of them. Sides with the same code are
compared instruction by instruction, and the instructions are then added up by line and class. Sides with different code
are compared by line, since its instructions correspond to no others, and only lines that both sides have and of which
both measured all instructions. A line of one side has no waits on the other only if both are the same kernel and all
their instructions were measured. Other waits are shown and not compared.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.shorten import cut_middle
from tui_probe.draw.table import Column
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.probekit.lines import ShareValue
from tui_probe.probekit.measured import analyse_result, known_probe
from tui_probe.probekit.shown_results import joined_name, joined_sources, unjoined_sources
from tui_probe.verdicts.kernel_matching import result_shape
from tui_probe.verdicts.kernel_values import MAX_RESULTS, MIN_FOR_QUARTILES, KernelValue, median_over_launches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe import MeasuredWait, Probe
    from tui_probe.verdicts.kernel_matching import KernelMatch, LaunchShape

_NOTABLE: Final = 0.01
"""Part of warp life from which on a wait is compared."""
_SHARED_NOTE: Final = (
    "not compared: results that the pages of A and B have in common. Each launch measures only some instructions."
    " For the other instructions, the page of a launch shows the results of nearby launches"
)
_WAIT_VALUE: Final = KernelValue(
    "share", "measured waits, share of warp life", None, lambda share: f"{share:.1%}", is_time=True
)


@dataclass(frozen=True, slots=True)
class _Site:
    """Waits at one instruction: its share is the median over launches, with the quartiles of several."""

    wait: MeasuredWait
    share: KernelValue

    @property
    def place(self) -> str:
        """The line; without one the instruction."""
        return self.wait.place or self.wait.instruction

    @property
    def with_place(self) -> _Site:
        """The site with its offset as place, if it has no line."""
        place = self.wait.place or f"{self.wait.offset:#06x} {self.wait.instruction}"
        return replace(self, wait=replace(self.wait, place=place))


@dataclass(frozen=True, slots=True)
class _MeasuredWaits:
    """All measured sites of a kernel by offset, and the places of the others; None if these are not known."""

    sites: Mapping[int, _Site]
    unmeasured: Mapping[int, str] | None

    @property
    def offsets(self) -> frozenset[int]:
        """All known offsets at which the code may wait."""
        return frozenset({**self.sites, **(self.unmeasured or {})})

    @property
    def partial_lines(self) -> frozenset[str]:
        """Lines at which not all instructions were measured; "" stands for those without a line."""
        return frozenset((self.unmeasured or {}).values())

    @property
    def full_lines(self) -> frozenset[str]:
        """Lines at which all instructions were measured; none if the others are not known."""
        if self.unmeasured is None:
            return frozenset()
        return frozenset(site.wait.place for site in self.sites.values()) - self.partial_lines


@dataclass(frozen=True, slots=True)
class LineWait:
    """Waits at a line for one class: the sum over ``sites`` instructions."""

    place: str
    kind: str
    producer: str
    share: float
    sites: int


@dataclass(frozen=True, slots=True)
class WaitChange:
    """Waits at a line for one class. A side is None where it did not measure them, or has no such wait."""

    baseline: LineWait | None
    candidate: LineWait | None
    kernel: str = ""
    is_compared: bool = True
    """True if both sides measured the same instructions, or all of the line."""

    @property
    def latest(self) -> LineWait:
        """The wait of the candidate, else of the baseline."""
        wait = self.candidate or self.baseline
        assert wait is not None
        return wait

    @property
    def producers(self) -> str:
        """``LDG a.cu:4``, or ``LDG a.cu:4 → LDS a.cu:7`` where another instruction is awaited now."""
        names = [side.producer for side in (self.baseline, self.candidate) if side is not None]
        return " → ".join(dict.fromkeys(filter(None, names)))

    @property
    def shares(self) -> tuple[float | None, float | None]:
        """Shares of warp life; None where a side did not measure it, 0 where it has no such wait."""
        missing_share = 0.0 if self.is_compared else None
        baseline_share, candidate_share = (
            missing_share if side is None else side.share for side in (self.baseline, self.candidate)
        )
        return baseline_share, candidate_share

    @property
    def difference(self) -> float | None:
        """Growth of the share of warp life; None where the sides cannot be compared."""
        baseline_share, candidate_share = self.shares
        return (
            None
            if baseline_share is None or candidate_share is None or not self.is_compared
            else candidate_share - baseline_share
        )

    @property
    def change_text(self) -> str:
        """``-12 pp``, or the reason why the sides are not compared."""
        if self.difference is not None:
            points = round(100 * self.difference)
            return f"{points:+} pp" if points else "same"
        if self.baseline is not None and self.candidate is not None:
            return "not compared"
        return f"measured only in {'B' if self.baseline is None else 'A'}"


@dataclass(frozen=True, slots=True)
class WaitComparison:
    """Waits of a kernel on both sides, the largest first; ``values`` are the sums over all that can be compared."""

    changes: tuple[WaitChange, ...] = ()
    notes: tuple[str, ...] = ()
    values: tuple[KernelValue, KernelValue] | None = None
    measured_sides: str = ""
    """Letters of the sides that measured waits, compared or not."""


def compare_waits(match: KernelMatch, kernel: str = "") -> WaitComparison:
    """Compare the waits that take a notable part of warp life on one side. Reads results."""
    shared_results = _shared_results(match)
    baseline_by_probe, candidate_by_probe = (
        _waits_by_probe(side, match.shape, shared_results) for side in (match.baseline, match.candidate)
    )
    common_probes = [name for name in baseline_by_probe if name in candidate_by_probe]
    if not common_probes:
        only_side = "A" if baseline_by_probe else "B" if candidate_by_probe else ""
        reason = f"only {only_side} has measured waits" if only_side else _SHARED_NOTE if shared_results else ""
        return WaitComparison(notes=(reason,) if reason else (), measured_sides="AB" if shared_results else only_side)
    baseline, candidate = baseline_by_probe[common_probes[0]], candidate_by_probe[common_probes[0]]
    is_same_code = _is_same_code(baseline, candidate)
    is_whole = is_same_code or (baseline.unmeasured == candidate.unmeasured == {} and not match.names_differ)
    pairs = list(
        _same_code_pairs(baseline, candidate) if is_same_code else _line_pairs(baseline, candidate, is_whole=is_whole)
    )
    changes = [
        WaitChange(_line_wait(pair.baseline), _line_wait(pair.candidate), kernel, pair.is_compared) for pair in pairs
    ]
    notable = [change for change in changes if _largest_share(change) >= _NOTABLE]
    compared_sites = [(pair.baseline, pair.candidate) for pair in pairs if pair.is_compared]
    totals = [_total([site for sites in side for site in sites]) for side in zip(*compared_sites, strict=True)]
    notes = [*_notes(pairs, is_same_code=is_same_code, is_whole=is_whole), *([_SHARED_NOTE] if shared_results else [])]
    if totals and (reason := _no_verdict_reason(match, totals, is_whole=is_whole)):
        totals = [replace(total, better="neither") for total in totals]
        notes.append(f"no verdict: {reason}")
    ranked = sorted(notable, key=_largest_share, reverse=True)
    return WaitComparison(tuple(ranked), tuple(notes), (totals[0], totals[1]) if totals else None, "AB")


def _shared_results(match: KernelMatch) -> frozenset[int]:
    """Return the results that are the nearest ones of two different launches, so that they show no difference."""
    baseline, candidate = match.baseline, match.candidate
    if baseline.launch is None or candidate.launch is None or baseline.launch.row == candidate.launch.row:
        return frozenset()
    if baseline.trace.directory != candidate.trace.directory:
        return frozenset()
    rows = [
        {
            row
            for probe_source in unjoined_sources(side)
            for part in joined_sources(probe_source)
            for row in _rows(part, None)
        }
        for side in (baseline, candidate)
    ]
    return frozenset(rows[0] & rows[1])


def _largest_share(change: WaitChange) -> float:
    return max(share or 0 for share in change.shares)


def _no_verdict_reason(match: KernelMatch, totals: Sequence[KernelValue], *, is_whole: bool) -> str:
    """Return the reason why the sums of the waits are not judged; "" if they are."""
    if match.names_differ:
        return "the kernels differ"
    if any(side.trace.state.simulated for side in (match.baseline, match.candidate)):
        return "a simulated GPU has no times"
    if not is_whole:
        return "the code differs, and a wait may have moved to a line that is not compared"
    if any(total.low is None for total in totals):
        return (
            f"fewer than {MIN_FOR_QUARTILES} launches measured an instruction, so the variation between launches is"
            " unknown"
        )
    return ""


class _SitePair(NamedTuple):
    """Sites of both sides for one line and class, and whether they are compared."""

    baseline: list[_Site]
    candidate: list[_Site]
    is_compared: bool


def _is_same_code(baseline: _MeasuredWaits, candidate: _MeasuredWaits) -> bool:
    common_offsets = baseline.sites.keys() & candidate.sites.keys()
    is_same = all(
        baseline.sites[offset].wait.instruction == candidate.sites[offset].wait.instruction for offset in common_offsets
    )
    return is_same and baseline.offsets == candidate.offsets


def _same_code_pairs(baseline: _MeasuredWaits, candidate: _MeasuredWaits) -> Iterator[_SitePair]:
    """Yield the instructions that both sides measured, by line and class, then those of one side."""
    common_offsets = baseline.sites.keys() & candidate.sites.keys()
    for sites in _sites_by_line(
        candidate.sites[offset].with_place for offset in candidate.sites if offset in common_offsets
    ).values():
        shares = [baseline.sites[site.wait.offset].share for site in sites]  # lines have names of their own in each run
        yield _SitePair([replace(site, share=share) for site, share in zip(sites, shares, strict=True)], sites, True)
    for sites in _sites_by_line(
        site.with_place for offset, site in baseline.sites.items() if offset not in common_offsets
    ).values():
        yield _SitePair(sites, [], False)
    for sites in _sites_by_line(
        site.with_place for offset, site in candidate.sites.items() if offset not in common_offsets
    ).values():
        yield _SitePair([], sites, False)


def _line_pairs(baseline: _MeasuredWaits, candidate: _MeasuredWaits, *, is_whole: bool) -> Iterator[_SitePair]:
    """Yield the sites by line and class; they are compared on lines of which both sides measured all instructions.

    If the whole kernel was measured, a line of one side has no waits on the other.
    """
    full_lines = baseline.full_lines & candidate.full_lines
    baseline_lines, candidate_lines = _sites_by_line(baseline.sites.values()), _sites_by_line(candidate.sites.values())
    for key in {**baseline_lines, **candidate_lines}:
        baseline_sites, candidate_sites = baseline_lines.get(key, []), candidate_lines.get(key, [])
        place = (baseline_sites or candidate_sites)[0].wait.place
        yield _SitePair(baseline_sites, candidate_sites, is_whole or place in full_lines)


def _sites_by_line(sites: Iterable[_Site]) -> dict[tuple[str, str], list[_Site]]:
    lines: defaultdict[tuple[str, str], list[_Site]] = defaultdict(list)
    for site in sites:
        lines[site.place, site.wait.kind].append(site)
    return lines


def _line_wait(sites: Sequence[_Site]) -> LineWait | None:
    if not sites:
        return None
    largest = max(sites, key=lambda site: site.share.value or 0)
    share = sum(site.share.value or 0 for site in sites)
    return LineWait(largest.place, largest.wait.kind, largest.wait.producer, share, len(sites))


def _total(sites: Sequence[_Site]) -> KernelValue:
    """Return the sum of the shares, and of their quartiles where all notable ones have some."""
    shares = [_with_quartiles(site.share) for site in sites]
    low, high = (
        None if any(bound is None for bound in bounds) else sum(bound or 0 for bound in bounds)
        for bounds in ([share.low for share in shares], [share.high for share in shares])
    )
    total = sum(share.value or 0 for share in shares)
    launches = round(fmean(share.launches for share in shares)) if shares else 1
    return replace(_WAIT_VALUE, value=total, low=low, high=high, launches=launches, pages=("stalls",))


def _with_quartiles(share: KernelValue) -> KernelValue:
    """Return a share that is too small to matter as its own quartiles: few launches measure such sites."""
    is_small = share.low is None and (share.value or 0) < _NOTABLE
    return replace(share, low=share.value, high=share.value) if is_small else share


def _notes(pairs: Sequence[_SitePair], *, is_same_code: bool, is_whole: bool) -> Iterator[str]:
    compared_counts = [max(len(pair.baseline), len(pair.candidate)) for pair in pairs if pair.is_compared]
    uncompared = [pair for pair in pairs if not pair.is_compared]
    if is_same_code:
        yield f"compared: {units.counted(sum(compared_counts), 'SASS instruction')} that A and B measured"
    else:
        yield (
            "the code differs, so waits are compared by source line. A line is compared only if A and B measured all"
            " its SASS instructions at which warps wait"
        )
    if uncompared:
        cause = "or measured only a part of their line"
        if not is_same_code:
            cause += ", or has no such line"
        baseline_count, candidate_count = (
            sum(len(pair.baseline) for pair in uncompared),
            sum(len(pair.candidate) for pair in uncompared),
        )
        yield (
            f"not compared: {units.counted(baseline_count, 'instruction')} of A, {candidate_count} of B. The other side"
            f" did not measure these instructions, {cause}. More launches measure more instructions"
        )
    if not compared_counts:
        noun = "instruction" if is_same_code else "line"
        yield f"no total of measured waits: no {noun} was measured completely in both A and B"
    elif not is_whole:
        yield "“measured waits” is the sum over the compared lines; the pages of A and B have sums over all lines"


def _waits_by_probe(
    source: ViewSource, shape: LaunchShape | None, excluded: frozenset[int]
) -> dict[str, _MeasuredWaits]:
    """Return the waits by the name of the probe that measures some: of the launch, or over the newest launches."""
    sides = {}
    for probe_source in unjoined_sources(source):
        probe = known_probe(probe_source.kernel)
        if probe.measured_waits is None:
            continue
        rounds = _analysis_rounds(joined_sources(probe_source), shape, excluded)
        if (side := _measured_side(probe, rounds)) is not None:
            sides[joined_name(probe_source.kernel)] = side
    return sides


def _measured_side(probe: Probe, analyses_by_round: Iterable[list[Any]]) -> _MeasuredWaits | None:
    assert probe.measured_waits is not None
    rounds = [
        probe.measured_waits(analyses[0] if probe.group is None else probe.group.join(analyses))
        for analyses in analyses_by_round
    ]
    if not rounds:
        return None
    newest: dict[int, MeasuredWait] = {}
    shares: defaultdict[int, list[float]] = defaultdict(list)
    for wait in (wait for measured in rounds for wait in measured.waits):
        newest.setdefault(wait.offset, wait)
        shares[wait.offset].append(wait.share)
    sites = {at: _Site(wait, median_over_launches(_WAIT_VALUE, shares[at])) for at, wait in newest.items()}
    return _MeasuredWaits(sites, rounds[0].unmeasured)


def _analysis_rounds(
    parts: Sequence[ViewSource], shape: LaunchShape | None, excluded: frozenset[int]
) -> Iterator[list[Any]]:
    """Yield the analyses of the newest result of each part, then of the one before it."""
    columns = []
    for part in parts:
        results = (analyse_result(part.trace, part.kernel, row) for row in _rows(part, shape) if row not in excluded)
        columns.append([result.analysis for result in results if result.analysis is not None])
    for analyses in zip_longest(*columns):
        yield [analysis for analysis in analyses if analysis is not None]


def _rows(part: ViewSource, shape: LaunchShape | None) -> Sequence[int]:
    """Return the result of the launch, or the newest results of the kernel, of one shape if given."""
    if part.launch is not None:
        row = part.launch.result  # that of another probe, if this one left none
        return [row] if row is not None and row in part.kernel.result_rows else []
    rows = (row for row in reversed(part.kernel.result_rows) if shape in (None, result_shape(part.trace, row)))
    return list(islice(rows, MAX_RESULTS))


def _share_text(share: float | None) -> str:
    return NOT_MEASURED if share is None else ShareValue(share).text if share else "none"


WAIT_COLUMNS: Final[tuple[Column[WaitChange], ...]] = (
    Column("kernel", lambda row: row.kernel or None),
    Column("line", lambda row: row.latest.place, "waits at", lambda row: row.latest.place, right=False),
    Column(
        "waits_for",
        lambda row: row.latest.kind or None,
        "for",
        lambda row: row.latest.kind or NOT_MEASURED,
        right=False,
    ),
    Column(
        "producer",
        lambda row: row.producers or None,
        "producer",
        lambda row: row.producers or "",
        right=False,
        rank=2,
        narrow=12,
        shorten=cut_middle,
    ),
    Column("before", lambda row: row.shares[0], "A", lambda row: _share_text(row.shares[0])),
    Column("after", lambda row: row.shares[1], "B", lambda row: _share_text(row.shares[1])),
    Column("difference", lambda row: row.difference, "change", lambda row: row.change_text, right=False, rank=1),
    Column("compared", lambda row: row.is_compared),
    Column("sites", lambda row: [side.sites if side else 0 for side in (row.baseline, row.candidate)]),
)


def wait_records(changes: Iterable[WaitChange]) -> list[dict[str, Any]]:
    """Return the JSON records."""
    columns = [column for column in WAIT_COLUMNS if column.value is not None]
    return [{column.key: column.value(change) for column in columns if column.value} for change in changes]
