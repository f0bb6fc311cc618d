"""Reads what ``tui-probe bandwidth --format json`` wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.bandwidth.figures import Bandwidth
from tui_probe.errors import ImportFileError
from tui_probe.input_limits import BANDWIDTH_RESULT
from tui_probe.json_data import parse_json
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SWEPT: Final = "to_shared"
"""The figure that is measured for many blocks: the best comes first, and again among all that were tried."""
_LARGEST: Final = 1e18
_SMALLEST: Final = 1e-18
"""What lies outside of these, and is not 0, was never measured, and would overflow in a ratio."""


@dataclass(frozen=True, slots=True)
class SavedRate:
    """One figure as it was saved; see :class:`tui_probe.bandwidth.figures.Figure`."""

    key: str
    what: str
    size: int | None
    seconds: float | None
    repeats: int | None
    spread: float | None
    blocks: int | None
    in_flight: int | None
    limit: float | None
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class SavedCard:
    """The GPU as it was saved; see :class:`tui_probe.bandwidth.figures.Card`."""

    name: str
    sms: int
    l2_bytes: int
    memory_bytes: int
    memory_clock_khz: int
    memory_bus_bits: int
    memory_bandwidth: float | None


class _Unusable(Exception):  # noqa: N818 - never leaves this module
    """What is wrong with the file."""


def read_bandwidth(path: Path) -> Bandwidth:
    """One result. ImportFileError names the file, and says how to make one."""
    try:
        data = read_within(path, BANDWIDTH_RESULT)
    except OSError as error:
        raise ImportFileError(f"{path}: {error.strerror or error}: name a file that can be read") from error
    return parse_bandwidth(data, path)


def parse_bandwidth(data: bytes, path: Path) -> Bandwidth:
    """The same of what was read, or is a part of what was read, of a file."""
    try:
        record = parse_json(data.decode("utf-8"))
        if not isinstance(record, dict) or not isinstance(record.get("bandwidth"), list):
            raise _Unusable("it has no list “bandwidth”")
        rates = [_rate(each) for each in record["bandwidth"]]
        if not rates:
            raise _Unusable("it has no figures")
        card = None if record.get("device") is None else _card(record["device"])
    except (_Unusable, ValueError, RecursionError) as error:
        raise ImportFileError(
            f"{path}: no result of a bandwidth measurement ({error}): make one with"
            " tui-probe bandwidth --auto --format json > FILE"
        ) from error
    swept = [rate for rate in rates if rate.key == _SWEPT][1:]
    return Bandwidth(card, [rate for rate in rates if not any(rate is other for other in swept)], swept)


def looks_like_bandwidth(start: bytes) -> bool:
    """Whether a file that begins so may be one of ours: none of the profilers' tables begin with a brace."""
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _rate(record: object) -> SavedRate:
    if not isinstance(record, dict):
        raise _Unusable("a figure is not an object")
    key, rate = _text(record, "key"), _number(record, "bytes_per_second")
    if not rate:
        raise _Unusable(f"“{key}” has no bytes_per_second")
    return SavedRate(
        key=key,
        what=_text(record, "what") if "what" in record else key,
        size=_whole(record, "bytes"),
        seconds=_number(record, "seconds"),
        repeats=_whole(record, "repeats"),
        spread=_number(record, "spread"),
        blocks=_whole(record, "blocks"),
        in_flight=_whole(record, "bytes_in_flight"),
        limit=_number(record, "specified_bytes_per_second"),
        bytes_per_second=rate,
    )


def _card(record: object) -> SavedCard:
    if not isinstance(record, dict):
        raise _Unusable("its device is not an object")
    names = ("sms", "l2_bytes", "memory_bytes", "memory_clock_khz", "memory_bus_bits")
    whole = {name: _whole(record, name) or 0 for name in names}
    return SavedCard(name=_text(record, "name"), memory_bandwidth=_number(record, "memory_bytes_per_second"), **whole)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value:
        raise _Unusable(f"“{name}” is not a text")
    return value


def _number(record: Mapping[str, Any], name: str) -> float | None:
    """A number that is not negative; None where there is none."""
    value = record.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not (value == 0 or _SMALLEST < value < _LARGEST)
    ):
        raise _Unusable(f"“{name}” is no number that can be")
    return float(value)


def _whole(record: Mapping[str, Any], name: str) -> int | None:
    value = _number(record, name)
    return None if value is None else round(value)
