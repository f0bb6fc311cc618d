"""Units of Nsight Compute, in base units and one spelling: ``byte``, ``ns``, ``hz``, ``byte/s``, ``inst/cycle``.

Times are in ns, rates in 1/s. Prefixes are powers of 1000, as ncu prints them with ``--print-units auto``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_TIMES: Final = {
    "nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "µs": 1e3, "μs": 1e3, "msecond": 1e6, "ms": 1e6,
    "second": 1e9, "s": 1e9, "sec": 1e9, "minute": 60e9, "min": 60e9,
}  # fmt: skip
_PREFIXES: Final = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_COUNTED: Final = frozenset({"byte", "hz", "inst", "sector", "cycle", "warp", "thread", "block", "request", "flop"})
_SPELLINGS: Final = {"bytes": "byte", "b": "byte", "cycles": "cycle", "sectors": "sector", "insts": "inst"}


@lru_cache(maxsize=4096)
def base_unit(unit: str) -> tuple[str, float]:
    """The base unit, and the factor that turns a value into it: ``Kbyte`` -> (``byte``, 1000).

    A unit that is not known stays as it is.
    """
    above, slash, below = unit.strip().partition("/")
    name, factor = _part(above)
    if not slash:
        return name, factor
    if below in _TIMES:
        rate = factor * 1e9 / _TIMES[below]
        return ("hz" if name == "cycle" else f"{name}/s"), rate
    divisor, scale = _part(below)
    return f"{name}/{divisor}", factor / scale


def _part(text: str) -> tuple[str, float]:
    if text in _TIMES:
        return "ns", _TIMES[text]
    lower = _SPELLINGS.get(text.lower(), text.lower())
    if lower in _COUNTED:
        return lower, 1.0
    rest = _SPELLINGS.get(lower[1:], lower[1:])
    if rest in _COUNTED and lower[0] in _PREFIXES:
        return rest, _PREFIXES[lower[0]]
    return text, 1.0
