"""GPU time of a kernel: samples of its launches, and estimates for all of them with standard errors.

Launches with the probe and without it are kept apart. Each shape that a kernel is launched with (a key) is a stratum:
it is sampled by itself, and its launches are those that its samples stand for. All times are nanoseconds, estimates of
one launch unless they are totals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import nan, sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.ma

from tui_probe.trace.long_column import NarrowColumn

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from tui_probe.trace.launches import TimeColumns

NOT_TIMED = -1
"""Value of the column ``host`` if the GPU had work before the launch."""
_MIN_SAMPLES: Final = 3
"""Samples of a shape that hold nothing of the host, next to which those that hold some are not needed."""


@dataclass(slots=True)
class TimeSamples:
    """One number per timed launch in each column; some fifteen bytes. Each kernel has a few per second at most."""

    launch: NarrowColumn = field(default_factory=NarrowColumn)
    """Numbers of the process."""
    key: NarrowColumn = field(default_factory=NarrowColumn)
    """Index of the shape among those that the kernel is launched with; each is sampled by itself."""
    probed: NarrowColumn = field(default_factory=NarrowColumn)
    ns: NarrowColumn = field(default_factory=NarrowColumn)
    """Time from the event before the launch to that behind it, less that of an empty pair of events."""
    weight: NarrowColumn = field(default_factory=NarrowColumn)
    """The launches that it stands for: those since the last sample, itself included."""
    host: NarrowColumn = field(default_factory=NarrowColumn)
    """Nanoseconds of the call that launched, where the device had nothing to do before it returned."""

    def __len__(self) -> int:
        return len(self.ns)

    def extend(self, columns: TimeColumns) -> None:
        """Append samples that were read together."""
        for member in fields(self):
            column: NarrowColumn = getattr(self, member.name)
            column.extend(getattr(columns, member.name).astype(np.int64))

    def snapshot(self) -> TimeSamples:
        """A copy of those that all columns have: another thread may be adding some."""
        columns = [getattr(self, member.name) for member in fields(self)]
        common_length = min(map(len, columns))
        return TimeSamples(*(column.copy_first(common_length) for column in columns))

    def with_probed(self, launches: Collection[int | None]) -> TimeSamples:
        """Return the samples, of the probed launches only those of these numbers."""
        samples = self.snapshot()
        is_selected = (samples.column("probed") == 0) | np.isin(
            samples.column("launch"), [n for n in launches if n is not None]
        )
        result = TimeSamples()
        for member in fields(self):
            getattr(result, member.name).extend(samples.column(member.name)[is_selected])
        return result

    def column(self, name: str) -> NDArray[np.int64]:
        """A copy of one column."""
        column: NarrowColumn = getattr(self, name)
        return column.numbers()

    @property
    def mean_ns(self) -> float:
        """The mean of all samples by the launches that they stand for: no shapes, probed or not; there must be some."""
        host = self.column("host")  # the column that is extended last
        device_ns = _filled_part(self.column("ns")[: len(host)], host)
        return float(np.average(device_ns, weights=np.maximum(self.column("weight")[: len(host)], 1)))

    def last_times(self, count: int, *, probed: bool) -> tuple[float, ...]:
        """Device times of the last ``count`` probed, or original, launches that were timed, in ns."""
        host = self.column("host")  # the column that is extended last
        rows = np.flatnonzero((self.column("probed")[: len(host)] != 0) == probed)[-count:]
        return tuple(_filled_part(self.column("ns")[rows], host[rows]).tolist())

    @property
    def device_ns(self) -> NDArray[np.float64]:
        """Device times of all launches, in ns.

        Where the device had been idle (``host`` is known) the first event was over before the launch was even asked
        for, so that the pair holds the call that launches too: that is taken off.
        """
        return _filled_part(self.column("ns"), self.column("host"))


def _filled_part(ns: NDArray[np.int64], host: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.maximum(ns - np.maximum(host, 0), 0).astype(np.float64)


@dataclass(frozen=True, slots=True)
class VariantTime:
    """GPU time of launches without the probe, or with it. Every value is weighted by launches stood for."""

    samples: int
    host_bound: int
    """Samples for which the device had to wait: their time holds some of the host's. Those that were needed: of a shape
    with enough others they are left out, and not among ``samples``.
    """
    mean_ns: float
    mean_stderr_ns: float | None
    """None where a shape was timed once and launched more often."""
    median_ns: float
    p99_ns: float
    least_ns: float
    most_ns: float


@dataclass(frozen=True, slots=True)
class GpuTime:
    """GPU time of a kernel. ``total_ns`` is that of all launches as if none had been probed, if known."""

    launches: int
    original: VariantTime | None
    probed: VariantTime | None
    total_ns: float
    total_stderr_ns: float | None
    slowdown: float | None
    """Mean probed time / mean original time, over the shapes timed both ways."""
    slowdown_stderr: float | None

    @property
    def preferred_variant(self) -> VariantTime:
        """Launches without the probe, or with it where no other was timed."""
        variant = self.original or self.probed
        assert variant is not None
        return variant

    @property
    def only_probed(self) -> bool:
        """True if only probed launches were timed, so that the shown time includes the overhead of the probe."""
        return self.original is None


def gpu_time(samples: TimeSamples, launches: int) -> GpuTime | None:
    """Estimate the GPU time of a kernel with this number of launches; None without samples.

    The mean of a stratum k is m = sum(w x) / sum(w), for samples x that stand for w launches each. Its variance is
    sum(w (x - m)^2) / sum(w) * n / (n - 1) / n_eff * (1 - n / N), where n samples count as n_eff = sum(w)^2 / sum(w^2)
    equal ones; it is 0 where every launch was timed. One sample of many launches varies as those of other strata do,
    relative to m; without such its variance is unknown. The launches N of a stratum are its part of ``launches`` by the
    launches that all its samples stand for. The total is sum(N m) over the strata, its standard error the root of
    sum(N^2 variance). Of a stratum in which only probed launches were timed, m is their mean divided by the slowdown of
    the kernel where that is known.
    """
    samples = samples.snapshot()
    if not len(samples):
        return None
    strata = _Strata(samples, launches)
    slowdown, slowdown_stderr = strata.slowdown()
    total_ns, total_stderr_ns = strata.total(slowdown)
    return GpuTime(
        launches=launches,
        original=strata.variant(probed=False),
        probed=strata.variant(probed=True),
        total_ns=total_ns,
        total_stderr_ns=total_stderr_ns,
        slowdown=slowdown,
        slowdown_stderr=slowdown_stderr,
    )


def typical_ns(samples: TimeSamples, launches: int) -> float | None:
    """Return the mean over the shapes, by launches, of the median of their unprobed launches; None without any.

    A first launch takes longer, and sometimes one in between: they move a mean, and not the medians. What is compared
    between runs is therefore this.
    """
    samples = samples.snapshot()
    return _Strata(samples, launches).typical() if len(samples) else None


def weighted_times(samples: TimeSamples, *, probed: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The samples that values of a kind are of: ns, and the launches each stands for. There must be some."""
    return _Strata(samples.snapshot(), 0).times_and_weights(probed=probed)


class _Strata:
    """Means (2, strata) of originals and probed launches, NaN where there is no sample, and their variances."""

    def __init__(self, samples: TimeSamples, launches: int) -> None:
        weight = np.maximum(samples.column("weight"), 1).astype(np.float64)
        probed, has_host = samples.column("probed") != 0, samples.column("host") != NOT_TIMED
        keys, stratum = np.unique(samples.column("key"), return_inverse=True)
        launch_counts = np.bincount(stratum, weight, len(keys))
        self._launches = launch_counts * (launches / launch_counts.sum()) if launches else launch_counts
        is_needed = _needed_samples(stratum, probed, has_host)
        self._device_ns, self._weight = samples.device_ns[is_needed], weight[is_needed]
        self._is_probed, self._has_host, self._stratum = probed[is_needed], has_host[is_needed], stratum[is_needed]
        moments = [self._moments(self._is_probed == is_probed, len(keys)) for is_probed in (False, True)]
        self._mean = np.array([mean for mean, _ in moments])
        self._variance = np.array([variance for _, variance in moments])

    def _moments(self, is_chosen: NDArray[np.bool_], strata: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of the mean of the chosen samples of each stratum."""
        if not is_chosen.any():
            return np.full(strata, nan), np.full(strata, nan)
        sample_stratum, x, w = self._stratum[is_chosen], self._device_ns[is_chosen], self._weight[is_chosen]
        n, total_weight = np.bincount(sample_stratum, minlength=strata), np.bincount(sample_stratum, w, strata)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(sample_stratum, w * x, strata) / total_weight
            spread = np.bincount(sample_stratum, w * (x - mean[sample_stratum]) ** 2, strata) / total_weight
            effective = total_weight**2 / np.bincount(sample_stratum, w**2, strata)
            spread = spread * n / (n - 1)
            spread = np.where(n == 1, mean**2 * _pooled_variance(spread / mean**2, n - 1), spread)
            variance = spread / effective * (1 - n / self._launches)
        return mean, np.where((n >= self._launches - 0.5) & (n > 0), 0.0, variance)

    def times_and_weights(self, *, probed: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times of originals or of probed launches, and the launches that each stands for."""
        is_chosen = self._is_probed == probed
        return self._device_ns[is_chosen], self._weight[is_chosen]

    def variant(self, *, probed: bool) -> VariantTime | None:
        """The values of originals or of probed launches; None without any."""
        x, w = self.times_and_weights(probed=probed)
        if not len(x):
            return None
        mean, variance = self._mean[int(probed)], self._variance[int(probed)]
        is_sampled = ~np.isnan(mean)
        launches = self._launches[is_sampled]
        standard_error = _standard_error((launches**2 * variance[is_sampled]).sum())
        return VariantTime(
            samples=len(x),
            host_bound=int(self._has_host[self._is_probed == probed].sum()),
            mean_ns=float((launches * mean[is_sampled]).sum() / launches.sum()),
            mean_stderr_ns=None if standard_error is None else standard_error / float(launches.sum()),
            median_ns=weighted_quantile(x, w, 0.5),
            p99_ns=weighted_quantile(x, w, 0.99),
            least_ns=float(x.min()),
            most_ns=float(x.max()),
        )

    def typical(self) -> float | None:
        x, stratum = self._device_ns[~self._is_probed], self._stratum[~self._is_probed]
        shapes = np.unique(stratum)
        if not len(shapes):
            return None
        return float(np.average([np.median(x[stratum == shape]) for shape in shapes], weights=self._launches[shapes]))

    def slowdown(self) -> tuple[float | None, float | None]:
        """The ratio and its standard error, by the relative standard errors of its two parts."""
        has_both = ~np.isnan(self._mean).any(axis=0)
        launches = self._launches[has_both]
        original, probed = (self._mean[:, has_both] * launches).sum(axis=1).tolist()
        if not has_both.any() or original <= 0:
            return None, None
        variances = (self._variance[:, has_both] * launches**2).sum(axis=1).tolist()
        ratio = probed / original
        standard_error = _standard_error(variances[0] * ratio**2 + variances[1])
        return ratio, None if standard_error is None else standard_error / original

    def total(self, slowdown: float | None) -> tuple[float, float | None]:
        factor = 1 / slowdown if slowdown else 1.0
        original = ~np.isnan(self._mean[0])
        mean = np.where(original, self._mean[0], self._mean[1] * factor)
        variance = np.where(original, self._variance[0], self._variance[1] * factor**2)
        return float((self._launches * mean).sum()), _standard_error((self._launches**2 * variance).sum())


def _needed_samples(
    stratum: NDArray[np.int64], is_probed: NDArray[np.bool_], has_host: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mask of the samples that are needed: without those from which the host's part was subtracted, where a stratum has
    enough others.

    Such a sample is a bound rather than a time: the call may reach the device late, above all the first of a kernel.
    Launches that left-out samples stand for go to the others.
    """
    group = 2 * stratum + is_probed
    device_only_counts = np.bincount(group, ~has_host)
    return ~has_host | (device_only_counts[group] < _MIN_SAMPLES)


def _pooled_variance(spread: NDArray[np.float64], freedom: NDArray[np.int64]) -> float:
    """The mean of the spreads by their degrees of freedom; NaN without any."""
    is_known = (freedom > 0) & np.isfinite(spread)
    return float((spread[is_known] * freedom[is_known]).sum() / freedom[is_known].sum()) if is_known.any() else nan


def _standard_error(variance: Any) -> float | None:
    """The standard error; None where the variance is not known."""
    value = float(variance)
    return sqrt(value) if value >= 0 else None


def weighted_quantile(values: NDArray[np.float64], weights: NDArray[np.float64], part: float) -> float:
    """The least value that, with all below it, has at least this part of the weight; NaN of no values."""
    if not len(values):
        return nan
    order = np.argsort(values)
    cumulative_weights = np.cumsum(weights[order])
    return float(
        values[order][min(np.searchsorted(cumulative_weights, part * cumulative_weights[-1]), len(values) - 1)]
    )
