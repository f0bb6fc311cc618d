"""Results of a user's own probe without an analysis: its maps, record counts, and ranges and values of fields.

    kept      records that were saved and found room        attempts  records that were to be saved
    written   slots with a record, in maps with one each    slots     slots of the measured blocks
    FIELD     sum over the records of a map that lanes add to; minimum, median and maximum in other maps

A reduced map has the same values over its reduced records: sums of fields that are sums, else minimum and maximum.
Fields of maps larger than ``MAX_READ_BYTES`` are not read: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import ProbeFileError, TraceError
from tui_probe.input_limits import PROBE_FILE
from tui_probe.probe_files.loading import read_probe
from tui_probe.probekit.metric import Metric, MetricValue
from tui_probe.records.distribution import distribution
from tui_probe.trace.locate import path_in_trace
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.probe_model.probe import Field, Map, Probe
    from tui_probe.trace.map_records import Reduced
    from tui_probe.trace.results import Result

_COUNT_FIELDS: Final = ("kept", "attempts", "written", "slots")
MAX_READ_BYTES: Final = 64 << 20
"""Maximum bytes of the records of a map whose fields are read."""
HISTOGRAM_BINS: Final = 10
MAX_VALUES: Final = 10
"""Number of slots listed with their values, the largest first."""


@dataclass(frozen=True, slots=True)
class CustomMap:
    """A map of the probe: the fields of its records, and whether they are ``sums`` that lanes add to.

    ``reduced`` are the fields of what a run keeps of it without ``--detail``, None if that is all of it;
    ``summed_fields`` are those of them that are sums. Kernels may lack an ``is_optional`` map.
    """

    name: str
    record: np.dtype[Any]
    sums: bool = False
    reduced: np.dtype[Any] | None = None
    summed_fields: frozenset[str] = frozenset()
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class CustomCounts:
    """The values of one launch, map by map. Missing threads are not known, so none are counted."""

    values: tuple[MetricValue, ...]
    threads_missing: int = 0

    def metric_values(self) -> tuple[MetricValue, ...]:
        return self.values

    @property
    def first_value(self) -> str:
        """``gap: median 10 576 cycles, most 12 004``, of sums ``gap: 96 hits``: the first field of the first map that
        has a value; "" where none has.
        """
        texts_by_key = {
            metric.key: units.count(int(metric.value)) for metric in self.values if metric.value is not None
        }
        for key, value in texts_by_key.items():
            name, _, field = key.partition(".")
            if field in _COUNT_FIELDS or field.endswith((".least", ".most")):
                continue
            maximum = texts_by_key.get(f"{key.removesuffix('.median')}.most")
            if maximum is None:
                return f"{name}: {value} {field}"
            return f"{name}: median {value} {field.removesuffix('.median')}, max {maximum}"
        return ""


def analyse_custom(result: Result, maps: Sequence[CustomMap]) -> CustomCounts:
    """Return metrics of all maps, in the order of the file. Raises TraceError if the file has other maps."""
    indices = map_indices(result, maps)
    values = (_map_metrics(result, index, custom_map) for index, custom_map in indices)
    return CustomCounts(tuple(chain.from_iterable(values)))


def map_indices(result: Result, maps: Sequence[CustomMap]) -> list[tuple[int, CustomMap]]:
    """Return the maps, each with its index in the file, where attempts follow a map of several records per slot.

    Optional maps that the kernel does not have are left out.
    Raises TraceError if the file has other maps.
    """
    indices: list[tuple[int, CustomMap]] = []
    index = 0
    for custom_map in maps:
        if index == len(result.maps) and custom_map.is_optional:
            break
        if index >= len(result.maps):
            raise TraceError(
                f"{result.path}: {len(result.maps)} maps are too few for this probe; another probe wrote the file"
            )
        indices.append((index, custom_map))
        index += 1 if result.attempts(index) is None else 2
    if index != len(result.maps):
        raise TraceError(
            f"{result.path}: the file has {len(result.maps)} maps instead of {index}; another probe wrote it"
        )
    return indices


def _map_metrics(result: Result, index: int, custom_map: CustomMap) -> Iterator[MetricValue]:
    reduced = None if custom_map.reduced is None else result.reduced(index, custom_map.reduced)
    if reduced is not None:
        yield from _reduced_metrics(custom_map, reduced)
        return
    sites = result.sites(index, custom_map.record)
    if sites is not None or custom_map.sums:
        yield from _sums(custom_map, result.records(index, custom_map.record) if sites is None else sites)
        return
    records, totals, written_slots = (
        result.records(index, custom_map.record),
        result.totals(index),
        result.written_mask(index),
    )
    if totals is not None:
        yield _count(custom_map, "kept", totals[0])
        yield _count(custom_map, "attempts", totals[1], label="of", is_shown=totals[0] != totals[1])
    elif written_slots is not None:
        number = int(np.count_nonzero(written_slots))
        yield _count(custom_map, "written", number)
        yield _count(custom_map, "slots", written_slots.size, label="of", is_shown=number != written_slots.size)
    yield from _ranges(custom_map, records, written_slots)


def _reduced_metrics(custom_map: CustomMap, reduced: Reduced) -> Iterator[MetricValue]:
    for name in reduced.records.dtype.names or ():
        if name in custom_map.summed_fields:
            yield _sum(custom_map, name, reduced.records)
        else:
            yield from _range(custom_map, name, reduced.records[name][reduced.saved] if reduced.saved.any() else None)


def _count(custom_map: CustomMap, key: str, value: int, *, label: str = "", is_shown: bool = True) -> MetricValue:
    return _undeclared_metric(f"{custom_map.name}.{key}", label or f"{custom_map.name} {key}", value, is_shown=is_shown)


def _sums(custom_map: CustomMap, records: NDArray[Any]) -> Iterator[MetricValue]:
    for name in custom_map.record.names or ():
        yield _sum(custom_map, name, records)


def _sum(custom_map: CustomMap, name: str, records: NDArray[Any]) -> MetricValue:
    return _undeclared_metric(
        f"{custom_map.name}.{name}", f"{custom_map.name} {name}", int(records[name].sum(dtype=np.uint64))
    )


def _ranges(
    custom_map: CustomMap, records: NDArray[Any], written_slots: NDArray[np.bool_] | None
) -> Iterator[MetricValue]:
    """Yield minimum, median and maximum of each field; None without records, or if it is unknown which were written."""
    has_values = written_slots is not None and records.nbytes <= MAX_READ_BYTES and bool(written_slots.any())
    for name in custom_map.record.names or ():
        yield from _range(custom_map, name, records[name][written_slots] if has_values else None)


def _range(custom_map: CustomMap, name: str, values: NDArray[Any] | None) -> Iterator[MetricValue]:
    picks = (("least", f"min {name}", np.min), ("median", "median", np.median), ("most", "max", np.max))
    for key, label, pick in picks:
        value = None if values is None else int(pick(values))
        yield _undeclared_metric(f"{custom_map.name}.{name}.{key}", label, value, is_shown=value is not None)


def _undeclared_metric(key: str, label: str, value: int | None, *, is_shown: bool = True) -> MetricValue:
    """Return the value of an undeclared metric: neither more nor less of it is better."""
    return MetricValue(Metric(key, label, over_launches="none"), value, is_shown)


@dataclass(frozen=True, slots=True)
class FieldValues:
    """The values of a field of a map (u8), one per record, with the block and the warp or thread of each (i8)."""

    map: str
    field: str
    level: str
    values: NDArray[np.uint64]
    blocks: NDArray[np.int64]
    slots: NDArray[np.int64]

    @property
    def largest_values(self) -> list[tuple[int, int, int]]:
        """Tuples of block, warp or thread, and value; the largest value first."""
        order = np.argsort(self.values, kind="stable")[::-1][:MAX_VALUES]
        return [(int(self.blocks[row]), int(self.slots[row]), int(self.values[row])) for row in order]

    def histogram(self) -> list[tuple[float, float, int]]:
        """Return start, end and count of each bin; fewer bins if there are fewer whole numbers."""
        minimum, maximum = float(self.values.min()), float(self.values.max())
        bins = max(1, min(HISTOGRAM_BINS, int(maximum - minimum) + 1))
        counts, edges = np.histogram(
            self.values.astype(np.float64), bins=bins, range=(minimum, max(maximum, minimum + 1))
        )
        return [(float(a), float(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)]

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        spread = distribution(self.values.astype(np.float64))
        return {
            "map": self.map,
            "field": self.field,
            "count": len(self.values),
            "least": int(self.values.min()),
            "median": None if spread is None else spread.median,
            "most": int(self.values.max()),
            "histogram": [{"from": low, "to": high, "count": number} for low, high, number in self.histogram()],
            "largest": [{"block": b, self.level: s, "value": v} for b, s, v in self.largest_values],
        }


def field_values(result: Result, maps: Sequence[CustomMap]) -> Iterator[FieldValues]:
    """Yield the values of each field whose records were all kept. Raises TraceError for a file of another probe."""
    for index, custom_map in map_indices(result, maps):
        yield from _map_values(result, index, custom_map)


def _map_values(result: Result, index: int, custom_map: CustomMap) -> Iterator[FieldValues]:
    if result.group(index) is not None or result.sites(index, custom_map.record) is not None:
        return
    records = result.records(index, custom_map.record)
    if records.nbytes > MAX_READ_BYTES:
        return
    written_slots = np.ones(records.shape, dtype=np.bool_) if custom_map.sums else result.written_mask(index)
    if written_slots is None or not written_slots.any():
        return
    block, slot = np.nonzero(written_slots)[:2]
    level = result.sections[index].level
    block_numbers = np.asarray(result.blocks, dtype=np.int64)[block]
    for name in custom_map.record.names or ():
        yield FieldValues(
            custom_map.name, name, level, records[name][written_slots].astype(np.uint64), block_numbers, slot
        )


def custom_maps(directory: Path, probe: str | None = None) -> tuple[CustomMap, ...]:
    """Return the maps in the order of result files; ``probe`` selects one of several probes of the run.

    Raises TraceError where the trace has no probe file that can be read.
    """
    parts = ("probe.toml",) if probe is None else ("probes", f"{probe}.toml")
    path = path_in_trace(directory, *parts) or directory / "probe.toml"
    try:
        return _read_maps(str(path), path.stat().st_mtime_ns)
    except OSError as error:
        raise TraceError(f"{path}: cannot read the maps of the probe: {error.strerror or error}") from error
    except ProbeFileError as error:
        raise TraceError(str(error)) from error


@lru_cache(maxsize=8)
def _read_maps(path: str, mtime_ns: int) -> tuple[CustomMap, ...]:
    del mtime_ns  # only a key of the cache: a file that was replaced is read again
    probe = read_probe(read_within(path, PROBE_FILE), Path(path))
    return tuple(_custom_map(probe, declared) for declared in probe.maps)


def _custom_map(probe: Probe, probe_map: Map) -> CustomMap:
    from tui_probe.probe_model.probe import Level  # the model of probes; traces of built-in ones do not need it
    from tui_probe.probe_model.storage import Layout, storage_of

    record = _record(probe_map.fields, probe_map.record_bytes)
    sums = probe_map.level is Level.SITE or storage_of(probe, probe_map).layout is Layout.PLAIN
    if probe_map.reduction is None:
        return CustomMap(probe_map.name, record, sums, is_optional=probe_map.optional)
    fields = probe_map.reduction.fields
    reduced = _record([declared.to for declared in fields], probe_map.reduction.record_bytes)
    summed_fields = frozenset(declared.to.name for declared in fields if declared.operation == "sum")
    return CustomMap(probe_map.name, record, sums, reduced, summed_fields)


def _record(fields: Sequence[Field], size: int) -> np.dtype[Any]:
    from tui_probe.probe_model.probe import FIELD_BYTES

    fields = sorted(fields, key=lambda field: field.offset)
    layout = {
        "names": [field.name for field in fields],
        "formats": [f"<u{FIELD_BYTES[field.type]}" for field in fields],
        "offsets": [field.offset for field in fields],
        "itemsize": size,
    }
    return np.dtype(layout)  # type: ignore[call-overload, no-any-return]
