"""Data in the words of a schema: 2 is today's, 1 has the words of the time before statuses and rates were renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Schema = Literal[1, 2]
SCHEMAS: Final = cast("tuple[Schema, ...]", get_args(Schema))
NEWEST: Final[Schema] = 2

_STATUS: Final = {"excluded": "filtered"}
_MEASURES: Final = {
    "sectors_per_request": "sectors_a_request",
    "lanes_per_execution": "lanes_an_execution",
    "passes_per_access": "passes_an_access",
    "cycles_per_visit": "cycles_a_visit",
    "cycles_per_iteration": "cycles_an_iteration",
    "cycles_per_wait": "cycles_a_wait",
}
"""What was measured of a line. Results had figures of some of these names before, and have them in both schemas."""
_LATENCY: Final = {
    "one_block": "a_block",
    "one_gap": "a_gap",
    "one_warp": "a_warp_waits",
    "one_barrier": "at_a_barrier",
}
_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("lines", "source", "ptx", "diff", "sass"), _MEASURES),
    "latency": _LATENCY,
}
"""For each page the keys that schema 1 calls otherwise."""
ADDED: Final = frozenset((
    "time_share", "time_of", "time_samples", "time_samples_host_bound", "time_total_ms", "time_total_doubt_ms",
    "time_mean_ms", "time_mean_doubt_ms", "time_median_ms", "time_p99_ms", "time_min_ms", "time_max_ms",
    "slowdown_doubt", "way",
))  # fmt: skip
"""What only schema 2 says of a kernel."""
_OF_KERNELS: Final = ("kernels", "summary")
_NAMES: Final = {new.replace("_", " "): old.replace("_", " ") for new, old in _LATENCY.items()}
"""The same as they name rows of CSV."""


def in_schema(record: Any, page: str, schema: Schema) -> Any:
    """A record, or anything in one, in the words of a schema."""
    return record if schema == NEWEST else _older(record, _KEYS.get(page, {}), _added(page))


def _added(page: str) -> frozenset[str]:
    return ADDED if page in _OF_KERNELS else frozenset()


def _older(value: Any, keys: Mapping[str, str], added: frozenset[str]) -> Any:
    if isinstance(value, dict):
        kept = ((key, each) for key, each in value.items() if key not in added)
        return {keys.get(key, key): _status(key, _older(each, keys, added)) for key, each in kept}
    return [_older(each, keys, added) for each in value] if isinstance(value, list) else value


def _status(key: str, value: Any) -> Any:
    return _STATUS.get(value, value) if key == "status" and isinstance(value, str) else value


def rows_in_schema(rows: Iterable[Sequence[object]], page: str, schema: Schema) -> Iterator[Sequence[object]]:
    """The rows of a table in CSV, the headings first."""
    if schema == NEWEST:
        yield from rows
        return
    keys, added = _KEYS.get(page, {}), _added(page)
    headings: list[str] = []
    kept: list[int] = []
    for row in rows:
        if not kept:
            kept = [i for i, name in enumerate(row) if name not in added]
            headings = [str(row[i]) for i in kept]
            yield [keys.get(name, name) for name in headings]
            continue
        row = [row[i] for i in kept]
        first = str(row[0])
        if first in added:
            continue
        names = [headings[0], *(first if first == "status" else name for name in headings[1:])]
        values = [_status(name, value) for name, value in zip(names, row, strict=True)]
        yield [_NAMES.get(first, values[0]) if page == "latency" else values[0], *values[1:]]
