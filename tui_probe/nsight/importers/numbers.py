"""Numbers as Nsight Compute prints them: with separators of thousands, in the locale of whoever ran it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER: Final = re.compile(r"[+-]?\d[\d.,'’ \u00a0\u202f_]*(?:[eE][+-]?\d+)?")
_BLANK_SEPARATORS: Final = str.maketrans("", "", "'’ \u00a0\u202f_")
_INSTANCES: Final = re.compile(r"(\S+) [({].*[)}]")
ABSENT: Final = frozenset({"", "n/a", "no data", "nan", "-nan", "(!) nan", "(!) n/a", "inf", "-inf"})
"""What stands where nothing was measured."""
_LARGEST: Final = 1e30
"""Beyond what any counter holds; sums and products of numbers up to here stay numbers."""


def point_of(texts: Iterable[str]) -> str:
    """The decimal sign of a file, ``.`` or ``,``, told by the values in it.

    ``1,234,567`` and ``1.50`` speak for the point, ``1.234.567`` and ``1,50`` for the comma. ``1,024`` speaks for the
    point too, but only where nothing else speaks: ncu prints two decimals, so three digits are a group of thousands.
    """
    spoken = Counter(map(_sign_of, texts))
    if spoken["."] == spoken[","]:
        return "," if spoken["weak ,"] > spoken["weak ."] else "."
    return "," if spoken[","] > spoken["."] else "."


def _sign_of(text: str) -> str:
    """The decimal sign for which one value speaks, empty if for none."""
    if not _NUMBER.fullmatch(text):
        return ""
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        return "." if point > comma else ","
    sign = "," if comma >= 0 else "." if point >= 0 else ""
    if not sign:
        return ""
    other = "." if sign == "," else ","
    if text.count(sign) > 1:
        return other
    whole, fraction = text.lstrip("+-").split(sign)
    grouped = len(fraction) == 3 and fraction.isdigit() and 1 <= len(whole) <= 3 and whole.lstrip("0")
    return f"weak {other}" if grouped else sign


def number_of(text: str, point: str = ".") -> float | None:
    """The value of a cell; None if it holds no number, or one that was never measured.

    ``4 (1; 3)``, a value with its instances, is 4.
    """
    instances = _INSTANCES.fullmatch(text)
    if instances is not None:
        text = instances[1]
    if not _NUMBER.fullmatch(text):
        return None
    plain = text.translate(_BLANK_SEPARATORS)
    plain = plain.replace(",", "") if point == "." else plain.replace(".", "").replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if abs(value) <= _LARGEST else None
