"""Metric declarations: one number of a launch, its unit, and whether less is better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from tui_probe.trace.kernel_files import Offset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Better = Literal["lower", "higher", "neither"]
OverLaunches = Literal["sum", "mean", "largest", "none"]
Quantity = Literal[
    "", "launch cycles", "bytes read", "bytes written", "tensor operations",
    "load requests", "load sectors", "store requests", "store sectors",
    "fp32 instructions", "fp64 instructions", "fp16 instructions", "bf16 instructions", "half instructions",
    "memory instructions", "instructions", "sectors", "shared requests", "shared wavefronts", "footprint",
    "tensor operations as half", "wgmma instructions", "fp32 operations", "fp64 operations", "fp16 operations",
]  # fmt: skip


def require_one_of(choices: Any, value: object, label: str) -> None:
    """Raise ValueError, with the possible values, for a value that is not in a Literal."""
    possible_values = get_args(choices)
    if value not in possible_values:
        raise ValueError(f"{label} is {value!r}; possible values are {', '.join(map(repr, possible_values))}")


def show_always(analysis: Any, value: float | None) -> bool:
    """Show any value."""
    del analysis, value
    return True


def show_known(analysis: Any, value: float | None) -> bool:
    """Show the value if it was measured."""
    del analysis
    return value is not None


def show_nonzero(analysis: Any, value: float | None) -> bool:
    """Show the value if it is neither 0 nor unknown."""
    del analysis
    return bool(value)


def show_never(analysis: Any, value: float | None) -> bool:
    """Show the value in data only; in text other values imply it."""
    del analysis, value
    return False


@dataclass(frozen=True, slots=True)
class Metric:
    """Declaration of a number.

    ``key`` names it in data, ``title`` in text; a count has no ``unit``: "". ``better`` says which way a change is for
    the better, ``over_launches`` how numbers of several launches make one. ``quantity`` names what it is an amount of,
    for pages that set numbers of any probe next to others; a probe has each at most once. A ``place`` says where
    something is (a line, a block): it has no size, so it is never compared. What is ``clocked`` is made of clock
    cycles, no matter what its unit; those of a simulated GPU are not time. ``read`` takes it from an analysis:
    None where it was not measured. Without ``read`` it is the attribute of that ``key``. What is not finite was
    not measured. A metric ``of_work`` grows with the amount of work, such as bytes read: less is better only for the
    same work, so a comparison does not judge it unless it is asked for by its key. ``ideal`` takes the value without
    any loss from an analysis, None where it is not known; then the metric is judged by what it has in excess.
    ``standalone_title`` names it among metrics of other probes; empty: its key in words. ``page`` is the view that
    shows it, where that is not to be seen from what it is: time in drawings, counts by line.
    """

    key: str
    title: str
    unit: str = ""
    better: Better = "neither"
    over_launches: OverLaunches = "sum"
    quantity: Quantity = ""
    place: bool = False
    clocked: bool = False
    read: Callable[[Any], float | None] | None = None
    is_shown: Callable[[Any, float | None], bool] = show_always
    standalone_title: str = ""
    page: str = ""
    of_work: bool = False
    ideal: Callable[[Any], float | None] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown ``better``, ``over_launches`` or ``quantity``."""
        require_one_of(Better, self.better, f"`better` of metric {self.key}")
        require_one_of(OverLaunches, self.over_launches, f"`over_launches` of metric {self.key}")
        require_one_of(Quantity, self.quantity, f"`quantity` of metric {self.key}")

    @property
    def is_time(self) -> bool:
        """True if the value is a duration, or a sum or mean of durations."""
        return self.clocked or self.unit in ("cycles", "ns")

    def value_in(self, analysis: Any) -> MetricValue:
        """Return its value in an analysis. Raises AttributeError and TypeError with the metric's name."""
        try:
            value = _number(getattr(analysis, self.key) if self.read is None else self.read(analysis))
            ideal = None if self.ideal is None else _number(self.ideal(analysis))
            return MetricValue(self, value, self.is_shown(analysis, value), ideal)
        except (AttributeError, TypeError) as error:
            raise type(error)(f"metric {self.key}: {error}") from error


def _number(value: Any) -> float | None:
    """Convert NumPy numbers to Python numbers, which JSON has; None for a number that is not finite, such as 0 / 0."""
    if value is None or type(value) is int or isinstance(value, Offset):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if isfinite(value) else None
    raise TypeError(f"{value!r} is not a number")


@dataclass(frozen=True, slots=True)
class MetricValue:
    """The value of a metric in one launch; ``value`` is None if it was not measured.

    Text leaves out a value if ``is_shown`` is False, since other values imply it.
    """

    metric: Metric
    value: float | None
    is_shown: bool = True
    ideal: float | None = None

    @property
    def key(self) -> str:
        """Key in JSON and CSV."""
        return self.metric.key

    @property
    def label(self) -> str:
        """Title in texts."""
        title = self.metric.title
        return title.replace("PTX line", "offset") if isinstance(self.value, Offset) else title

    @property
    def unit(self) -> str:
        """ "" for a count."""
        return self.metric.unit


BYTES_READ: Final = Metric(
    "read", "read", "B", better="lower", quantity="bytes read", of_work=True, standalone_title="global memory read"
)
"""Bytes that instructions read from global memory; like the next, for any probe whose analysis counts them."""
BYTES_WRITTEN: Final = Metric(
    "written",
    "written",
    "B",
    better="lower",
    quantity="bytes written",
    of_work=True,
    standalone_title="global memory written",
)


def metric_values(metrics: Iterable[Metric], analysis: Any) -> tuple[MetricValue, ...]:
    """Return the values of an analysis, in the order of their declarations."""
    return tuple(metric.value_in(analysis) for metric in metrics)


def leading_metrics(results: Iterable[Sequence[MetricValue]]) -> list[MetricValue]:
    """Select the main value of each result of a launch.

    It is the first value for which less or more is better, no matter how large the launch is. If no result has one, the
    only main value is the first mean, else the first value.
    """
    known_values = [
        [value for value in result if value.value is not None and value.is_shown and not value.metric.place]
        for result in results
    ]
    leading = [value for values in known_values if (value := next(filter(_is_judged, values), None)) is not None]
    if leading:
        return leading
    first_values = [
        sorted(values, key=lambda value: value.metric.over_launches != "mean")[0] for values in known_values if values
    ]
    return first_values[:1]


def _is_judged(value: MetricValue) -> bool:
    return value.metric.better != "neither" and not value.metric.of_work


def metrics_by_line(metrics: Iterable[Metric], reason: str) -> tuple[Metric, ...]:
    """The metrics of a probe's variant that tells lines apart: those of its sums, then the hotspot.

    ``reason`` is why it is the hotspot, such as ``most bytes``. The analysis is a ``CountsByLine``.
    """
    return (*_kernel_metrics(metrics), _worst_line(reason), _worst_value(reason))


def _kernel_metrics(metrics: Iterable[Metric]) -> Iterator[Metric]:
    for metric in metrics:
        ideal = None if metric.ideal is None else _ideal_reader(metric.ideal)
        yield replace(metric, read=_value_reader(metric), is_shown=_is_shown_rule(metric), ideal=ideal)


def _value_reader(metric: Metric) -> Callable[[Any], float | None]:
    return lambda analysis: metric.value_in(analysis.analysis).value


def _ideal_reader(ideal: Callable[[Any], float | None]) -> Callable[[Any], float | None]:
    return lambda analysis: ideal(analysis.analysis)


def _is_shown_rule(metric: Metric) -> Callable[[Any, float | None], bool]:
    return lambda analysis, value: metric.is_shown(analysis.analysis, value)


def _worst_line(words: str) -> Metric:
    return Metric(
        "worst_line",
        f"{words} at PTX line",
        over_launches="none",
        place=True,
        read=lambda analysis: analysis.worst[0].line if analysis.worst else None,
        is_shown=show_known,
    )


def _worst_value(words: str) -> Metric:
    return Metric(
        "worst_value",
        "value at this line",
        over_launches="none",
        standalone_title=f"worst line: {words}",
        read=lambda analysis: analysis.worst[1] if analysis.worst else None,
        is_shown=show_known,
    )
