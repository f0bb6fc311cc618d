"""Results of a probe of one's own, which has no analysis: how many records each map kept, and what is in their fields.

    kept      records that were saved and found room        attempts  records that were to be saved
    written   slots with a record, of maps with one each    slots     of the measured blocks
    FIELD     of a map that lanes add to, the sum over its records; of any other least, median and most of its values

Of a map that is reduced these are of what was kept of it: the sum where that is of sums, else least and most.

In a result larger than ``LARGEST`` fields of records are not looked at: None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.draw import units
from tui_probe.errors import TraceError
from tui_probe.probekit.metric import Figure, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tui_probe.trace.result_reduced import Reduced
    from tui_probe.trace.results import Result

_COUNTS: Final = ("kept", "attempts", "written", "slots")
LARGEST: Final = 64 << 20
"""Bytes."""


@dataclass(frozen=True, slots=True)
class OwnMap:
    """A map of the probe: the fields of its records, and whether they are ``sums`` that lanes add to.

    ``reduced`` are the fields of what a run keeps of it without ``--detail``, None if that is all of it; ``added`` are
    those of them that are sums.
    """

    name: str
    record: np.dtype[Any]
    sums: bool = False
    reduced: np.dtype[Any] | None = None
    added: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class OwnCounts:
    """The figures of one launch, map by map. Which threads are missing in them nobody can tell."""

    found: tuple[Figure, ...]
    threads_missing: int = 0

    def figures(self) -> tuple[Figure, ...]:
        return self.found

    @property
    def first_value(self) -> str:
        """``gap: median 10 576 cycles, most 12 004``, of sums ``gap: 96 hits``: the first field of the first map that
        has a value; "" where none has.
        """
        known = {one.key: units.count(int(one.value)) for one in self.found if one.value is not None}
        for key, value in known.items():
            name, _, field = key.partition(".")
            if field in _COUNTS or field.endswith((".least", ".most")):
                continue
            most = known.get(f"{key.removesuffix('.median')}.most")
            if most is None:
                return f"{name}: {value} {field}"
            return f"{name}: median {value} {field.removesuffix('.median')}, most {most}"
        return ""


def analyse(result: Result, maps: Sequence[OwnMap]) -> OwnCounts:
    """What is in the maps, in the order of the file. Raises TraceError if the file has others."""
    found: list[Figure] = []
    place = 0
    for own in maps:
        if place >= len(result.maps):
            raise TraceError(
                f"{result.path}: it has {len(result.maps)} maps, the probe keeps more: it is of another one"
            )
        found += _of_map(result, place, own)
        place += 1 if result.attempts(place) is None else 2
    if place != len(result.maps):
        raise TraceError(f"{result.path}: it has {len(result.maps)} maps, the probe {place}: it is of another one")
    return OwnCounts(tuple(found))


def _of_map(result: Result, place: int, own: OwnMap) -> Iterator[Figure]:
    left = None if own.reduced is None else result.reduced(place, own.reduced)
    if left is not None:
        yield from _of_reduced(own, left)
        return
    sites = result.sites(place, own.record)
    if sites is not None or own.sums:
        yield from _sums(own, result.records(place, own.record) if sites is None else sites)
        return
    records, totals, written = result.records(place, own.record), result.totals(place), result.written(place)
    if totals is not None:
        yield _count(own, "kept", totals[0])
        yield _count(own, "attempts", totals[1], label="of", shown=totals[0] != totals[1])
    elif written is not None:
        number = int(np.count_nonzero(written))
        yield _count(own, "written", number)
        yield _count(own, "slots", written.size, label="of", shown=number != written.size)
    yield from _ranges(own, records, written)


def _of_reduced(own: OwnMap, left: Reduced) -> Iterator[Figure]:
    for name in left.records.dtype.names or ():
        if name in own.added:
            yield _sum(own, name, left.records)
        else:
            yield from _range(own, name, left.records[name][left.saved] if left.saved.any() else None)


def _count(own: OwnMap, key: str, value: int, *, label: str = "", shown: bool = True) -> Figure:
    return _figure(f"{own.name}.{key}", label or f"{own.name} {key}", value, shown=shown)


def _sums(own: OwnMap, records: NDArray[Any]) -> Iterator[Figure]:
    for name in own.record.names or ():
        yield _sum(own, name, records)


def _sum(own: OwnMap, name: str, records: NDArray[Any]) -> Figure:
    return _figure(f"{own.name}.{name}", f"{own.name} {name}", int(records[name].sum(dtype=np.uint64)))


def _ranges(own: OwnMap, records: NDArray[Any], written: NDArray[np.bool_] | None) -> Iterator[Figure]:
    """Least, median and most of each field; None without a record, and where none says which there are."""
    known = written is not None and records.nbytes <= LARGEST and bool(written.any())
    for name in own.record.names or ():
        yield from _range(own, name, records[name][written] if known else None)


def _range(own: OwnMap, name: str, values: NDArray[Any] | None) -> Iterator[Figure]:
    picks = (("least", f"least {name}", np.min), ("median", "median", np.median), ("most", "most", np.max))
    for key, label, pick in picks:
        value = None if values is None else int(pick(values))
        yield _figure(f"{own.name}.{name}.{key}", label, value, shown=value is not None)


def _figure(key: str, label: str, value: int | None, *, shown: bool = True) -> Figure:
    """Of a number whose meaning nobody declared: neither more nor less of it is better."""
    return Figure(Metric(key, label, over_launches="none"), value, shown)
