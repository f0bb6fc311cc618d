"""Measured bandwidth: saved results, the sweep over blocks and bytes in flight, and findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.bandwidth.rates import Bandwidth, GpuCard, Rate
from tui_probe.draw import units
from tui_probe.errors import ImportFileError
from tui_probe.input_limits import BANDWIDTH_RESULT, parse_json
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_SWEEP_NAME: Final = "to_shared"
"""The value that is measured for many blocks: the best comes first, and again among all that were tried."""
_MAX_NUMBER: Final = 1e18
_MIN_NUMBER: Final = 1e-18
"""Range of plausible values: others, apart from 0, were never measured, and would overflow in a ratio."""
SUFFICIENT_SHARE: Final = 0.9
"""The part of the best from which on there are enough bytes in flight."""
_NO_LOSS: Final = 0.01
"""Part of the best bandwidth: a smaller loss is not distinguished from noise."""


class _InvalidFile(Exception):  # noqa: N818 - never leaves this module
    """Problem of the file, in words."""


def read_bandwidth(path: Path) -> Bandwidth:
    """One result. ImportFileError names the file, and says how to make one."""
    try:
        data = read_within(path, BANDWIDTH_RESULT)
    except OSError as error:
        raise ImportFileError(f"{path}: {error.strerror or error}; pass a readable file") from error
    return parse_bandwidth(data, path)


def parse_bandwidth(data: bytes, path: Path) -> Bandwidth:
    """Parse what was read of a file, perhaps only a part. Raises ImportFileError."""
    try:
        record = parse_json(data.decode("utf-8"))
        if not isinstance(record, dict) or not isinstance(record.get("bandwidth"), list):
            raise _InvalidFile("no list “bandwidth”")
        rates = [_rate(rate_record) for rate_record in record["bandwidth"]]
        if not rates:
            raise _InvalidFile("no values")
        card = None if record.get("device") is None else _card(record["device"])
    except (_InvalidFile, ValueError, RecursionError) as error:
        raise ImportFileError(
            f"{path}: not a result of tui-probe bandwidth ({error}); create a result with"
            " tui-probe bandwidth --auto --format json > FILE"
        ) from error
    swept = [rate for rate in rates if rate.key == _SWEEP_NAME][1:]
    return Bandwidth(card, [rate for rate in rates if not any(rate is other for other in swept)], swept)


def _rate(record: object) -> Rate:
    if not isinstance(record, dict):
        raise _InvalidFile("a value is not an object")
    key, rate = _text(record, "key"), _number(record, "bytes_per_second")
    if not rate:
        raise _InvalidFile(f"“{key}” has no bytes_per_second")
    return Rate(
        key=key,
        what=_text(record, "what") if "what" in record else key,
        size=_integer(record, "bytes"),
        seconds=_number(record, "seconds"),
        repeats=_integer(record, "repeats"),
        spread=_number(record, "spread"),
        blocks=_integer(record, "blocks"),
        in_flight=_integer(record, "bytes_in_flight"),
        limit=_number(record, "specified_bytes_per_second"),
        bytes_per_second=rate,
    )


def _card(record: object) -> GpuCard:
    if not isinstance(record, dict):
        raise _InvalidFile("“device” is not an object")
    names = ("sms", "l2_bytes", "memory_bytes", "memory_clock_khz", "memory_bus_bits")
    values = {name: _integer(record, name) or 0 for name in names}
    return GpuCard(name=_text(record, "name"), memory_bandwidth=_number(record, "memory_bytes_per_second"), **values)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise _InvalidFile(f"“{name}” is not a string")
    return value


def _number(record: Mapping[str, Any], name: str) -> float | None:
    """A number that is not negative; None where there is none."""
    value = record.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (value == 0 or _MIN_NUMBER < value < _MAX_NUMBER)
    ):
        raise _InvalidFile(f"“{name}” is not a valid number")
    return float(value)


def _integer(record: Mapping[str, Any], name: str) -> int | None:
    value = _number(record, name)
    return None if value is None else round(value)


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rates that were tried over blocks and bytes in flight per block; each has both.

    By Little's law bytes in flight = bandwidth × latency: a GPU reaches its bandwidth once enough bytes are in flight,
    however they are divided among blocks.
    """

    rates: Sequence[Rate]

    @property
    def blocks(self) -> list[int]:
        """The numbers of blocks, ascending."""
        return sorted({rate.blocks or 0 for rate in self.rates})

    @property
    def flights(self) -> list[int]:
        """Bytes in flight in a block, ascending."""
        return sorted({rate.in_flight or 0 for rate in self.rates})

    @property
    def best(self) -> Rate:
        return max(self.rates, key=lambda rate: rate.bytes_per_second)

    def rate_for(self, blocks: int, in_flight: int) -> Rate | None:
        """Return the rate measured with that many blocks and bytes, if it was."""
        return next((rate for rate in self.rates if (rate.blocks, rate.in_flight) == (blocks, in_flight)), None)

    def best_of(self, blocks: int) -> Rate | None:
        """The best rate of that many blocks, if any was tried."""
        return max(
            (rate for rate in self.rates if rate.blocks == blocks), key=lambda rate: rate.bytes_per_second, default=None
        )

    def share(self, rate: Rate) -> float:
        """Return the rate as a share of the best."""
        return rate.bytes_per_second / self.best.bytes_per_second

    @property
    def most_crowded(self) -> Rate | None:
        """The slowest of those with more bytes in flight than the best; None if none has."""
        best_bytes = bytes_on_card(self.best)
        crowded = (rate for rate in self.rates if bytes_on_card(rate) > best_bytes)
        return min(crowded, key=lambda rate: rate.bytes_per_second, default=None)

    @property
    def sufficient_rate(self) -> Rate:
        """Rate with the fewest bytes in flight on the GPU that reaches ``ENOUGH`` of the best."""
        return min((rate for rate in self.rates if self.share(rate) >= SUFFICIENT_SHARE), key=bytes_on_card)


def bytes_on_card(rate: Rate) -> int:
    """Bytes in flight in all blocks, if all run at the same time."""
    return (rate.blocks or 0) * (rate.in_flight or 0)


def sweep_from_rates(rates: Sequence[Rate]) -> Sweep | None:
    """The sweep, None where nothing was swept."""
    tried = [rate for rate in rates if rate.blocks and rate.in_flight]
    return Sweep(tried) if tried else None


def cache_findings(bandwidth: Bandwidth) -> Iterator[str]:
    """Return the error of a test that L2 serves."""
    memory, cache, card = bandwidth.rate("memory_read"), bandwidth.rate("l2_read"), bandwidth.card
    if memory is not None and cache is not None and card is not None:
        times = cache.bytes_per_second / memory.bytes_per_second
        yield (
            f"caches: L2 delivers {units.rate(cache.bytes_per_second)}, {times:.2f} × memory; a test with data that"
            f" fits in {units.size(card.l2_bytes)} overstates memory bandwidth by this factor"
        )


def sweep_findings(sweep: Sweep, card: GpuCard | None) -> Iterator[str]:
    """The best, what one block reaches, what one per SM, how much must be in flight, and what too many blocks cost."""
    best, fewest = sweep.best, sweep.best_of(sweep.blocks[0])
    yield f"best: {units.rate(best.bytes_per_second)} with {_pair_text(best)}"
    if fewest is not None and fewest is not best:
        yield f"few blocks: {_reached_text(sweep, fewest)}"
    one_each = None if card is None else sweep.best_of(card.sms)
    if one_each is not None and one_each not in (best, fewest):
        yield f"one block per SM: {_reached_text(sweep, one_each)}"
    sufficient = sweep.sufficient_rate
    latency = bytes_on_card(sufficient) / sufficient.bytes_per_second
    yield (
        f"bytes in flight on the whole GPU: {units.size(bytes_on_card(sufficient))} are enough for"
        f" {SUFFICIENT_SHARE:.0%} of the best bandwidth; by Little's law, this is a memory latency of"
        f" {units.duration(latency)}"
    )
    worst = sweep.most_crowded
    if worst is not None:
        loss = 1 - sweep.share(worst)
        cost = f"contention costs up to {loss:.0%} ({units.rate(worst.bytes_per_second)} with {_pair_text(worst)})"
        effect = cost if loss >= _NO_LOSS else "the bandwidth stays the same"
        yield f"if more bytes are in flight than at the best bandwidth, {effect}"


def _pair_text(rate: Rate) -> str:
    return f"{units.counted(rate.blocks or 0, 'block')} × {units.size(rate.in_flight)} in flight"


def _reached_text(sweep: Sweep, rate: Rate) -> str:
    part = sweep.share(rate)
    share = f"{part:.1%}" if part < 0.0995 else f"{part:.0%}"
    reach = "reaches" if rate.blocks == 1 else "reach"
    return (
        f"{units.counted(rate.blocks or 0, 'block')} {reach} {units.rate(rate.bytes_per_second)}, {share} of the best"
    )
