"""Pipelines as CUTLASS writes them, from synthetic records: several tiles, and waits and signals in several phases.

A consumer waits for the first stage of a tile in front of its loop, and frees the last one behind it. Only one warp of
each group arrives at the barrier of free stages, but all run the code that arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from tui_probe.probes.phases.analysis import LaunchPhases, Spans, Warps
from tui_probe.probes.phases.kinds import number_loops, phases_of, roles_of
from tui_probe.probes.phases.sentences import Sentences, wait_text
from tui_probe.probes.phases.waits import Wait, match_of, waits_of
from tui_probe.trace.sites import Site, SiteInstruction, SitePhase

WARPS, IDLE, GROUP, LATENCY = 8, 2, 4, 600
PRODUCER_LOOP, TILE_LOOP, MAIN_LOOP = 10, 20, 30
FULL, EMPTY = "cutlass::smem+0[{}]", "cutlass::smem+48[{}]"


def site(line: int, work: str, loop: int | None, waits: str = "", signals: str = "") -> Site:
    """A phase that begins at a line."""
    stage = "epilogue" if loop is None else "loop"
    barriers, signaled = (waits,) if waits else (), ((signals, ()),) if signals else ()
    phase = SitePhase(work, stage, loop, 1, line in (11, 31), bool(signals), 4, 0, barriers=barriers, signaled=signaled)
    return Site("phase", ("start",), SiteInstruction(line, "", ""), phase=phase)


def sites(stages: int) -> tuple[Site, ...]:
    full, empty = FULL.format(stages), EMPTY.format(stages)
    return (
        site(11, "mbarrier wait", PRODUCER_LOOP, waits=empty, signals=full),
        site(14, "compute", PRODUCER_LOOP, signals=full),
        site(15, "compute", PRODUCER_LOOP, signals=full),
        site(12, "bulk copy", PRODUCER_LOOP, signals=full),
        site(13, "mbarrier wait", None, waits=empty),
        site(21, "mbarrier wait", TILE_LOOP, waits=full),
        site(22, "mma", TILE_LOOP),
        site(31, "mbarrier wait", MAIN_LOOP, waits=full),
        site(32, "mma", MAIN_LOOP),
        site(33, "integer", MAIN_LOOP, signals=empty),
        site(23, "integer", TILE_LOOP, signals=empty),
        site(24, "global store", TILE_LOOP),
        site(41, "barrier wait", None),
        site(42, "integer", None),
    )


@dataclass
class Block:
    """The starts of phases of the warps of a block, by the order of a pipeline. ``work`` are cycles of a consumer's
    product, for which a group of consumers meets. Its first warp arrives, the others come up to ``lag`` cycles later.
    ``before_copies`` are cycles of a phase in two parts in which the producer computes and arrives, before the copies.
    """

    stages: int
    work: int
    lag: int
    before_copies: int
    random: np.random.Generator
    starts: list[list[tuple[int, int]]] = field(default_factory=lambda: [[] for _ in range(WARPS + 1 + IDLE)])
    now: list[int] = field(default_factory=lambda: [0] * (WARPS + 1 + IDLE))
    full: list[int] = field(default_factory=list)
    freed: list[int] = field(default_factory=list)

    def enter(self, warp: int, line: int, cycles: int = 0, until: int = 0) -> None:
        """Let a warp spend these cycles in a phase, or wait until a time."""
        self.starts[warp].append((self.now[warp], line))
        self.now[warp] = max(self.now[warp] + max(cycles, 20), until)

    def run(self, tiles: int, steps: int) -> None:
        for number in range(tiles * steps):
            self._copy(number)
            self._multiply(number % steps == 0, number % steps == steps - 1)
        self.enter(WARPS, 13, until=self.freed[-1])
        for number in range(IDLE):  # the second one is late
            self.enter(WARPS + 1 + number, 42, cycles=100 + 100 * number)
            self.enter(WARPS + 1 + number, 41, until=220)

    def _copy(self, number: int) -> None:
        self.enter(WARPS, 11, until=self.freed[number - self.stages] if number >= self.stages else 0)
        if self.before_copies:
            self.enter(WARPS, 14, cycles=40)
            self.enter(WARPS, 15, cycles=self.before_copies)
        self.enter(WARPS, 12, cycles=60)
        self.full.append(self.now[WARPS] + LATENCY)

    def _multiply(self, is_first: bool, is_last: bool) -> None:
        freed = []
        for warp in range(WARPS):
            self.enter(warp, 21 if is_first else 31, until=self.full[-1])
        for warp in range(WARPS):
            group = slice(warp // GROUP * GROUP, warp // GROUP * GROUP + GROUP)
            if warp % GROUP == 0:
                self.now[group] = [max(self.now[group])] * GROUP
            self.enter(warp, 22 if is_first else 32, cycles=self.work)
            self.now[warp] += int(self.random.integers(self.lag + 1)) if warp % GROUP else 0
            if not is_first:
                freed.append(self._free(warp, 33))
        if not is_first:
            self.freed.append(max(freed[::GROUP]))
        if is_last:
            self.freed.append(max([self._free(warp, 23) for warp in range(WARPS)][::GROUP]))
            for warp in range(WARPS):
                self.enter(warp, 24, cycles=450)
                self.enter(warp, 24, cycles=450)

    def _free(self, warp: int, line: int) -> int:
        """The warp's time when it arrives, before the phase ends."""
        self.enter(warp, line, cycles=30)
        return self.now[warp] - 20


def launch_of(
    stages: int, tiles: int, steps: int, work: int, lag: int = 0, cap: int = 1 << 20, before_copies: int = 0
) -> LaunchPhases:
    """Two blocks whose warps keep their first ``cap`` records."""
    own_sites = sites(stages)
    phases, phase_of_site = phases_of(own_sites)
    site_of = {own.instruction.line: number for number, own in enumerate(own_sites)}
    random, seen = np.random.default_rng(7), 0
    rows: list[tuple[int, ...]] = []
    ends: list[int] = []
    for _ in range(2):
        block = Block(stages, work, lag, before_copies, random)
        block.run(tiles, steps)
        for starts, end in zip(block.starts, block.now, strict=True):
            records = starts[:cap]
            times = [time for time, _ in records] + [starts[cap][0] if len(starts) > cap else end]
            rows += [
                (len(ends), *pair, site_of[line]) for (_, line), *pair in zip(records, times, times[1:], strict=False)
            ]
            ends.append(end)
            seen += len(starts)
    warp, start, end, number = np.array(rows, np.int64).T
    phase = np.array(phase_of_site, np.int64)[number]
    role, roles, loops = roles_of(warp, phase, phases, len(ends))
    numbers, zeros = np.arange(len(ends)), np.zeros(len(ends), np.int64)
    warps = Warps(*np.divmod(numbers, WARPS + 1 + IDLE), zeros, np.array(ends, np.int64), role)
    spans = Spans(warp, start, end, phase, number)
    return LaunchPhases(number_loops(phases, loops), own_sites, spans, warps, roles, seen, len(rows))


def wait_at(launch: LaunchPhases, line: int) -> Wait:
    return next(wait for wait in waits_of(launch) if line in wait.phase.lines)


PIPELINES = pytest.mark.parametrize(
    ("stages", "tiles", "steps", "work", "lag", "cap"),
    [
        (6, 8, 64, 200, 0, 1 << 20),
        (6, 8, 64, 200, 150, 1 << 20),
        (6, 8, 64, 90, 150, 1100),
        (4, 12, 16, 20, 40, 1 << 20),
        (2, 3, 16, 400, 0, 1 << 20),
    ],
)


@PIPELINES
def test_no_more_stages_are_in_use_than_the_pipeline_has(
    stages: int, tiles: int, steps: int, work: int, lag: int, cap: int
) -> None:
    launch = launch_of(stages, tiles, steps, work, lag, cap)
    assert sorted(launch.roles) == ["consumer", "no loop", "producer"]
    free, filled, first = (wait_at(launch, line) for line in (11, 31, 21))
    for wait in (free, filled, first):
        assert wait.by_order
        assert wait.stages_in_use is not None
        assert 0 <= wait.stages_in_use <= stages
    assert (free.stages_ahead, filled.stages_ahead, first.stages_ahead) == (stages, 0, 0)
    assert (free.arrivals, filled.arrivals) == (WARPS, 1)
    assert filled.signal_count == wait_at(launch, 11).count, "the arrival and the copies behind it are one signal"
    assert f" of {stages} stages in use" in wait_text(free)
    assert {wait.stages_full for wait in waits_of(launch)} <= {0, stages}


@PIPELINES
def test_each_wait_has_the_signal_of_its_stage(
    stages: int, tiles: int, steps: int, work: int, lag: int, cap: int
) -> None:
    """Stage k of any tile is filled by copy k, and free when the consumers have freed stage k - N."""
    launch = launch_of(stages, tiles, steps, work, lag, cap)
    kinds = {11: "wait", 12: "copy", 21: "filled", 31: "filled", 33: "free", 23: "free"}
    lines = np.array([own.instruction.line for own in launch.sites])[launch.spans.site]
    starts = {}
    for warp in np.unique(launch.spans.warp).tolist():
        counts = dict.fromkeys(kinds.values(), 0)
        for place in np.flatnonzero(launch.spans.warp == warp).tolist():
            if kind := kinds.get(int(lines[place])):
                starts[kind, warp, int(launch.spans.start[place])] = counts[kind]
                counts[kind] += 1
    for line, kind, signal, ahead in (
        (11, "wait", "free", stages),
        (21, "filled", "copy", 0),
        (31, "filled", "copy", 0),
    ):
        match = match_of(launch, wait_at(launch, line))
        assert match is not None
        assert len(match.waits) > 0.6 * (lines == line).sum()
        for place, release in enumerate(match.release.tolist()):
            own = starts[kind, int(match.waits.warp[place]), int(match.waits.start[place])]
            assert (release >= 0) == (own >= ahead)
            if release >= 0:
                of = signal, int(match.signals.warp[release]), int(match.signals.start[release])
                assert starts[of] == own - ahead


def test_arrival_in_a_phase_before_the_copies_is_their_signal() -> None:
    """In SASS, a producer computes behind its wait and arrives; the loop that issues the copy is another phase."""
    launch = launch_of(4, 3, 16, 200, before_copies=3000)
    filled, free = wait_at(launch, 31), wait_at(launch, 11)
    assert (filled.partner, filled.by_order, filled.stages_ahead) == ("producer", True, 0)
    assert filled.signal_count == free.count, "one signal for each free stage"
    assert (filled.late_share or 0) > 0.5


def test_short_waits_of_warps_without_a_loop_are_in_no_sentence() -> None:
    """They wait for much of their own life, but exit early."""
    launch = launch_of(6, 8, 64, 200)
    short = wait_at(launch, 41)
    assert (short.role, short.last_warp) == ("no loop", WARPS + IDLE)
    assert short.share > 0.2
    assert wait_text(short).startswith("warps without a loop wait ")
    of = SimpleNamespace(kernel=SimpleNamespace(slowdown=None), simulated=False, products_per_clock=None)
    sentences = Sentences(of, launch, 0, None)  # type: ignore[arg-type]
    texts = [*sentences.longest_wait(), *sentences.other_notes()]
    assert any(text.startswith("producer waits ") for text in texts)
    assert not any("without a loop" in text for text in texts)


@pytest.mark.parametrize("peak", [1, None])
def test_phases_above_the_peak_rate_share_a_sentence(peak: int | None) -> None:
    launch = launch_of(6, 2, 64, 200)
    issuing = tuple(
        replace(own, phase=replace(own.phase, products=64 if own.phase.work == "mma" else 0))
        for own in launch.sites
        if own.phase is not None
    )
    of = SimpleNamespace(kernel=SimpleNamespace(slowdown=None), simulated=False, products_per_clock=peak)
    sentences = Sentences(of, replace(launch, sites=issuing), 0, None)  # type: ignore[arg-type]
    (text,) = (text for text in sentences.other_notes() if text.startswith("consumer: "))
    above = "faster than the tensor core executes them, so some execute later, in “loop 2: mma”, “loop 1: mma”"
    assert text.endswith(above) == (peak is not None)
    assert text.count(" in “loop ") == (1 if peak else 2)


def test_wait_for_all_stages_behind_the_loop_is_matched_by_time() -> None:
    """The producer waits there until the consumers have freed every stage: no round of signals is of this wait."""
    launch = launch_of(4, 3, 16, 200)
    last = wait_at(launch, 13)
    assert (last.partner, last.by_order, last.stages_ahead, last.stages_in_use) == ("consumer", False, None, None)
    assert wait_at(launch, 11).by_order


def test_signals_at_one_of_several_barriers_are_those_as_frequent_as_the_waits() -> None:
    """The code that frees a stage, and that which stores, has a pointer to one of two barriers."""
    launch, named = launch_of(6, 8, 64, 200), launch_of(6, 8, 64, 200)
    either = ((EMPTY.format(6), ()), ("cutlass::smem+96[4]", ()))
    ambiguous = tuple(
        replace(own, phase=replace(own.phase, signals=True, signaled=either))
        if own.phase is not None and own.instruction.line in (33, 23, 24)
        else own
        for own in launch.sites
    )
    launch = replace(launch, sites=ambiguous, phases=phases_of(ambiguous)[0])
    free, expected = (wait_at(own, 11) for own in (launch, named))
    assert (free.by_order, free.stages_ahead, free.signal_count) == (True, 6, expected.signal_count)
    assert (free.stages_in_use, free.late_cycles) == (expected.stages_in_use, expected.late_cycles)


@pytest.mark.parametrize("names", [(), ("other[6]",)])
def test_depth_is_unknown_where_the_barrier_of_signals_is(names: tuple[str, ...]) -> None:
    """Signals that may be for other barriers tell nothing of the stages of this one."""
    launch = launch_of(6, 8, 64, 200)
    unnamed = tuple(
        replace(own, phase=replace(own.phase, barriers=names if own.phase.barriers else (), signaled=()))
        for own in launch.sites
        if own.phase is not None
    )
    phases, _ = phases_of(unnamed)
    launch = replace(launch, sites=unnamed, phases=phases)
    for wait in waits_of(launch):
        assert wait.stages_in_use is None
        assert not wait.stages_ahead
        assert not wait.stages_full
        assert "stages in use" not in wait_text(wait)


def test_depth_is_unknown_where_the_number_of_barriers_is() -> None:
    launch = launch_of(6, 8, 64, 200)
    without = tuple(
        replace(
            own,
            phase=replace(
                own.phase,
                barriers=tuple(name.partition("[")[0] for name in own.phase.barriers),
                signaled=tuple((name.partition("[")[0], of) for name, of in own.phase.signaled),
            ),
        )
        for own in launch.sites
        if own.phase is not None
    )
    phases, _ = phases_of(without)
    free = wait_at(replace(launch, sites=without, phases=phases), 11)
    assert (free.by_order, free.stages_ahead, free.stages_full) == (True, None, 0)
    assert free.stages_in_use is not None
    assert free.stages_in_use <= 6
    assert " of " not in wait_text(free).partition("; on average")[2]
