"""Estimates from sampled launches: planted times come out, and every value keeps within what it is made of."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.make import TraceWriter
from tui_probe.trace.follow import open_trace
from tui_probe.trace.gpu_time import GpuTime, TimeSamples, gpu_time, typical_ns, weighted_quantile
from tui_probe.trace.launches import TimeColumns

Sample = tuple[int, int, bool, int, int]
"""Nanoseconds, weight, probed, key and the host's nanoseconds, -1 for none."""


def samples_of(*rows: Sample) -> TimeSamples:
    ns, weight, probed, key, host = np.array(rows, dtype=np.int64).T
    samples = TimeSamples()
    zeros = np.zeros(len(rows), dtype=np.uint64)
    samples.extend(
        TimeColumns(zeros, zeros, key, probed != 0, ns.astype(np.uint64), weight.astype(np.uint64), host)
    )  # fmt: skip
    return samples


def time_of(launches: int, *rows: Sample) -> GpuTime:
    time = gpu_time(samples_of(*rows), launches)
    assert time is not None
    return time


def original(ns: int, weight: int = 1, key: int = 0, host: int = -1) -> Sample:
    return ns, weight, False, key, host


def probed(ns: int, weight: int = 1, key: int = 0) -> Sample:
    return ns, weight, True, key, -1


def test_no_samples_are_no_estimate() -> None:
    assert gpu_time(TimeSamples(), 10) is None


def test_samples_count_for_the_launches_that_they_stand_for() -> None:
    time = time_of(20, original(100), original(100), original(400, weight=8))
    shown = time.preferred_variant
    assert (shown.mean_ns, shown.median_ns, shown.p99_ns) == (340, 400, 400)
    assert (shown.least_ns, shown.most_ns, shown.samples, shown.host_bound) == (100, 400, 3, 0)
    assert time.total_ns == 6800
    assert not time.only_probed


def test_the_last_times_are_those_of_one_kind_and_less_the_call() -> None:
    samples = samples_of(
        original(100), (900, 1, True, 0, -1), original(300, host=50), original(200), original(9, host=20)
    )
    assert samples.last_times(3, probed=False) == (250, 200, 0)
    assert samples.last_times(3, probed=True) == (900,)
    assert TimeSamples().last_times(3, probed=False) == ()


def test_all_launches_timed_leave_no_doubt() -> None:
    time = time_of(3, original(100), original(200), original(300))
    assert (time.total_ns, time.total_stderr_ns, time.preferred_variant.mean_stderr_ns) == (600, 0, 0)


def test_one_sample_of_many_launches_leaves_the_doubt_unknown() -> None:
    time = time_of(50, original(100, weight=50))
    assert (time.total_ns, time.total_stderr_ns, time.preferred_variant.mean_stderr_ns) == (5000, None, None)


def test_the_doubt_is_the_standard_error_of_a_sample_without_putting_back() -> None:
    time = time_of(40, *[original(ns, weight=10) for ns in (90, 100, 110, 100)])
    error = sqrt(200 / 3 / 4 * (1 - 4 / 40))
    assert time.preferred_variant.mean_stderr_ns == pytest.approx(error)
    assert time.total_stderr_ns == pytest.approx(40 * error)


def test_shapes_are_sampled_each_by_itself() -> None:
    """A shape that is launched often has as few samples as one that is not."""
    often = [original(10, weight=50, key=1)] * 2
    seldom = [original(1000, weight=1, key=2)] * 2
    time = time_of(102, *often, *seldom)
    assert time.total_ns == pytest.approx(100 * 10 + 2 * 1000)
    assert time.preferred_variant.mean_ns == pytest.approx(3000 / 102)
    assert time.total_stderr_ns == 0


def test_typical_time_is_the_median_of_each_shape() -> None:
    """A first launch that takes ten times as long moves the mean only; a shape counts by its launches."""
    often = [original(1000, key=1), *[original(100, weight=9, key=1)] * 3]
    seldom = [original(400, weight=4, key=2)] * 3
    assert typical_ns(samples_of(*often, *seldom), 40) == (28 * 100 + 12 * 400) / 40
    assert typical_ns(TimeSamples(), 0) is None


def test_one_sample_of_a_shape_varies_as_those_of_other_shapes() -> None:
    known = [original(ns, weight=50, key=1) for ns in (90, 110)]
    time = time_of(110, *known, original(1000, weight=10, key=2))
    spread = 200 / 100**2  # relative variance of one launch
    expected = 100**2 * 200 / 2 * (1 - 2 / 100) + 10**2 * spread * 1000**2 * (1 - 1 / 10)
    assert time.total_stderr_ns == pytest.approx(sqrt(expected))


def test_late_host_call_is_subtracted() -> None:
    time = time_of(3, original(9000, host=5000), original(4000), original(3000, host=3500))
    assert (time.preferred_variant.host_bound, time.total_ns, time.preferred_variant.least_ns) == (2, 8000, 0)


def test_samples_with_host_time_are_excluded_if_others_suffice() -> None:
    late = original(90_000, host=80_000)
    clean = [original(100), original(110), original(120)]
    assert time_of(4, late, *clean).preferred_variant.mean_ns == 110
    assert time_of(4, late, *clean).preferred_variant.host_bound == 0
    assert time_of(4, late, *clean).total_ns == 440, "the launches that it stands for count as the others"
    assert time_of(3, late, *clean[:2]).preferred_variant.host_bound == 1


def test_probed_launches_are_kept_apart() -> None:
    time = time_of(10, probed(300), original(100), probed(260, weight=4), original(120, weight=4))
    assert time.original is not None
    assert time.probed is not None
    assert time.original.mean_ns == 116
    assert time.probed.mean_ns == 268
    assert time.slowdown == pytest.approx(268 / 116)
    assert time.total_ns == pytest.approx(1160), "as if none had been probed"


def test_the_slowdown_has_the_doubts_of_both_times() -> None:
    originals = [original(ns, weight=100) for ns in (90, 110)]
    both = time_of(400, *originals, *[probed(ns, weight=100) for ns in (180, 220)])
    relative = 10 / 100 * sqrt(1 - 2 / 400)
    assert both.slowdown == pytest.approx(2)
    assert both.slowdown_stderr == pytest.approx(2 * sqrt(2) * relative)
    assert time_of(300, *originals, probed(200, weight=100)).slowdown_stderr is None
    assert time_of(200, *originals).slowdown is None


def test_a_slowdown_compares_the_same_shapes() -> None:
    same = [original(100, key=1), probed(200, key=1)]
    time = time_of(4, *same, original(5000, key=2), probed(40_000, key=3))
    assert time.slowdown == 2
    assert time.total_ns == pytest.approx(2 * 100 + 5000 + 40_000 / 2)


def test_a_kernel_that_was_only_timed_with_the_probe_says_so() -> None:
    time = time_of(1, probed(300))
    assert time.only_probed
    assert (time.preferred_variant.mean_ns, time.total_ns, time.slowdown) == (300, 300, None)


rows = st.lists(
    st.tuples(
        st.integers(0, 10**18), st.integers(0, 10**18), st.booleans(), st.integers(-1, 3), st.integers(-1, 10**6)
    ),
    min_size=1,
    max_size=12,
)


@given(rows, st.integers(0, 10**9))
def test_figures_keep_within_the_samples(found: list[Sample], launches: int) -> None:
    time = time_of(launches, *found)
    for kind in filter(None, (time.original, time.probed)):
        assert kind.least_ns <= kind.median_ns <= kind.p99_ns <= kind.most_ns
        assert kind.least_ns * 0.999999 <= kind.mean_ns <= kind.most_ns * 1.000001
        assert kind.mean_stderr_ns is None or kind.mean_stderr_ns >= 0
        assert 0 <= kind.host_bound <= kind.samples
    assert time.total_ns >= 0
    assert time.total_stderr_ns is None or time.total_stderr_ns >= 0
    taken = sum(kind.samples for kind in (time.original, time.probed) if kind)
    bound = sum(host >= 0 for *_, host in found)  # those may be left out, where there are enough others
    assert len(found) - bound <= taken <= len(found)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_equal_weights_are_as_none(values: list[int]) -> None:
    array = np.array(values, dtype=np.float64)
    for part in (0.01, 0.5, 0.99):
        assert weighted_quantile(array, np.full(len(array), 7.0), part) == np.quantile(
            array, part, method="inverted_cdf"
        )


@given(st.integers(0, 2**32), st.integers(1000, 5000))
def test_a_sample_that_thins_out_estimates_the_total_within_its_doubt(seed: int, launches: int) -> None:
    """Sampled as the hook does: the first launches, then ever fewer; the truth is within five standard errors."""
    random = np.random.default_rng(seed)
    times = np.rint(random.normal(10_000, 1_000, launches)).astype(int)
    found, launch, last = [], 0, -1
    while launch < launches:
        found.append(original(int(times[launch]), weight=launch - last))
        step = 1 + launch // 8
        last, launch = launch, launch + step + int(random.integers(step))
    time = time_of(launches, *found)
    assert time.total_stderr_ns is not None
    assert abs(time.total_ns - times.sum()) <= 5 * time.total_stderr_ns + 0.05 * times.sum()
    assert time.total_stderr_ns < 0.1 * times.sum()


def write_timed(directory: Path, device: str = "NVIDIA H200") -> None:
    writer = TraceWriter(directory)
    writer.start(device=device)
    for index, ns in enumerate((3000, 1000)):
        writer.kernel(index, f"k{index}")
        writer.launch(index)
        writer.launch(index)
        writer.time(index, 2 * index, 2 * ns, probed=True)
        writer.time(index, 2 * index + 1, ns)
    writer.kernel(2, "untimed")
    writer.exit()


def test_shares_of_a_trace(tmp_path: Path) -> None:
    write_timed(tmp_path / "t")
    first, second, untimed = open_trace(tmp_path / "t").kernels
    assert (first.time_share, second.time_share, untimed.time_share) == (0.75, 0.25, None)
    assert (first.slowdown, first.slowdown_stderr, first.time_ms, first.time_probed_ms) == (2, None, 0.003, 0.006)
    assert (untimed.gpu_time, untimed.slowdown, untimed.time_ms) == (None, None, None)


def test_simulated_cycles_are_no_times(tmp_path: Path) -> None:
    write_timed(tmp_path / "t", device="Simulated GPU")
    for kernel in open_trace(tmp_path / "t").kernels:
        assert (kernel.gpu_time, kernel.time_share, kernel.slowdown, kernel.time_ms) == (None,) * 4


def test_a_benchmark_knows_the_slowdown_better(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "t")
    writer.start()
    writer.kernel(0, "k")
    writer.launch(0)
    writer.time(0, 0, 1000)
    writer.time(0, 0, 5000, probed=True)
    writer.benchmark(0, 0, original=2.0, probed=3.0)
    (kernel,) = open_trace(writer.directory).kernels
    assert (kernel.slowdown, kernel.slowdown_stderr, kernel.time_ms) == (1.5, None, 2.0)


def test_a_sample_that_is_being_added_is_not_counted_yet() -> None:
    """The log is followed by one thread, and read by others: a column after the other grows."""
    samples = TimeSamples()
    for number in range(5):
        for name, value in (("launch", number), ("key", 0), ("probed", 0), ("ns", 1000), ("weight", 1), ("host", -1)):
            if (number, name) not in ((4, "ns"), (4, "weight"), (4, "host")):
                getattr(samples, name).extend(np.array([value]))
    time = gpu_time(samples, 5)
    assert time is not None
    assert (time.preferred_variant.samples, time.preferred_variant.mean_ns) == (4, 1000.0)
