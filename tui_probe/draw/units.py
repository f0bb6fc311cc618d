"""Quantities as text with units. What was not measured is ``–``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NOT_MEASURED = "–"
_MIN_SHARE_FOR_ETA = 0.02
"""The share of the work from which on its time tells how long all of it takes."""
_MAX_RANGES = 4
"""Ranges of numbers that a text names."""
_BUDGET_UNITS = {"T": 1 << 40, "G": 1 << 30, "M": 1 << 20, "K": 1 << 10}


def size(count: float | None) -> str:
    """Bytes: ``512 B``, ``1.2 kB``, ``34.6 MB`` (powers of 1000)."""
    if count is None:
        return NOT_MEASURED
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 999.5 or unit == "TB":
            break
    return f"{count:.{_decimals(count)}f} {unit}"


def budget(count: int) -> str:
    """Bytes of a limit as a user types them: ``10M``, ``1.5G`` (powers of 1024); others as :func:`size`."""
    for suffix, scale in _BUDGET_UNITS.items():
        number = f"{count / scale:.2f}".rstrip("0").rstrip(".")
        if count >= scale and round(float(number) * 100) * scale // 100 == count:
            return f"{number}{suffix}"
    return size(count)


def rate(bytes_per_second: float | None) -> str:
    """Return ``4.02 TB/s``; powers of 1000."""
    return NOT_MEASURED if bytes_per_second is None else f"{size(bytes_per_second)}/s"


def duration(seconds: float | None) -> str:
    """Return a measured time: ``850 ns``, ``12.3 µs``, ``4.56 ms``, ``1.20 s``."""
    if seconds is None:
        return NOT_MEASURED
    for scale, unit in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms")):
        if seconds * scale < 999.5:
            value = seconds * scale
            return f"{value:.0f} ns" if unit == "ns" else f"{value:.{_decimals(value)}f} {unit}"
    return f"{seconds:.2f} s"


def elapsed(seconds: float) -> str:
    """Format a run time: ``12 s``, ``2 min 05 s``, ``3 h 07 min``."""
    total = int(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02} s"
    return f"{total // 3600} h {total % 3600 // 60:02} min"


def eta_suffix(share: float, seconds: float) -> str:
    """Return ``, 12 s left`` where a ``share`` took that many ``seconds``, "" as long as that would be a guess."""
    return f", {elapsed(seconds * (1 - share) / share)} left" if share >= _MIN_SHARE_FOR_ETA else ""


def count(number: int | None) -> str:
    """A count with thin groups: ``12 345``."""
    return NOT_MEASURED if number is None else f"{number:,}".replace(",", " ")


def difference(number: int) -> str:
    """A difference of counts with its sign and thin groups: ``+1 752``."""
    return f"{number:+,}".replace(",", " ")


def decimal(number: float | None, decimals: int = 2) -> str:
    """Return a number that is not a count, with thin groups: ``1 616.25``."""
    return NOT_MEASURED if number is None else f"{number:,.{decimals}f}".replace(",", " ")


def short_count(number: int) -> str:
    """A count in at most four cells: ``999``, ``6.1k``, ``118k``, ``1.2M`` (powers of 1000)."""
    value, unit = float(number), ""
    for unit in ("", "k", "M", "G", "T"):
        if value < (1000 if not unit else 999.5) or unit == "T":
            break
        value /= 1000
    return f"{value:.1f}{unit}" if unit and value < 9.95 else f"{value:.0f}{unit}"


def position(first: int, last: int, total: int) -> str:
    """Return the visible part of many: ``1–20 of 2 727``."""
    return f"{count(first)}–{count(last)} of {count(total)}"


def counted(number: int, noun: str) -> str:
    """Return ``1 kernel``, ``2 kernels``, ``2 passes``, ``2 copies``."""
    if number == 1:
        return f"{count(number)} {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count(number)} {noun[:-1]}ies"
    return f"{count(number)} {noun}{'es' if noun.endswith(('s', 'ch')) else 's'}"


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each run of consecutive numbers, in order."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = ranges[-1][0], number
        else:
            ranges.append((number, number))
    return ranges


def number_ranges(numbers: Iterable[int]) -> str:
    """Return ``0-2, 5``: distinct numbers in order; of many ranges the first ones, and the number of numbers."""
    ranges = runs(numbers)
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MAX_RANGES]]
    total = sum(last - first + 1 for first, last in ranges)
    total_text = f", … ({count(total)})" if len(ranges) > _MAX_RANGES else ""
    return ", ".join(texts) + total_text


def numbered(noun: str, numbers: Sequence[int]) -> str:
    """Return ``warp 0``, ``warps 0-2``."""
    return f"{noun if len(numbers) == 1 else f'{noun}s'} {number_ranges(numbers)}"


def listed(texts: Sequence[str], max_texts: int) -> str:
    """``a, b and 3 more``: at most ``max_texts`` of the texts, and the number of the others."""
    omitted = len(texts) - max_texts
    return ", ".join(texts[:max_texts]) + (f" and {count(omitted)} more" if omitted > 0 else "")


def ordinal(number: int) -> str:
    """Return ``1st``, ``12th``, ``1 022nd``."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{count(number)}{ending}"


def extent(dim: Iterable[int] | None) -> str:
    """Return a grid or block: ``32768``, ``16×16``; trailing ones are left out."""
    if dim is None:
        return NOT_MEASURED
    sides = list(dim)
    while len(sides) > 1 and sides[-1] == 1:
        sides.pop()
    return "×".join(map(str, sides))


def tenths(mean: float) -> str:
    """A mean of counts: ``3.7``, ``4``."""
    return f"{mean:.1f}".removesuffix(".0")


def percents(parts: Sequence[float], decimals: int = 0) -> list[str]:
    """Return the parts of one whole in percent, so rounded that they add up: ``["60%", "8%", "32%"]``.

    ``<1%`` is more than nothing, ``>99%`` less than all; ``–`` where there is no whole.
    """
    total, steps = sum(parts), 100 * 10**decimals
    if not total:
        return [NOT_MEASURED] * len(parts)
    unrounded = [part / total * steps for part in parts]
    step_counts = [int(share) for share in unrounded]
    # Rounded, so that equal rests stay equal: from Python 3.12 on, the last bit of the sum differs.
    by_rest = sorted(range(len(parts)), key=lambda place: round(step_counts[place] - unrounded[place], 9))
    for place in by_rest[: steps - sum(step_counts)]:
        step_counts[place] += 1
    smallest_text = f"{10**-decimals:.{decimals}f}"
    bounds = {0: f"<{smallest_text}%", steps: f">{100 - float(smallest_text):.{decimals}f}%"}
    is_at_bound = [0 < part < total and number in bounds for part, number in zip(parts, step_counts, strict=True)]
    return [
        bounds[number] if at_bound else f"{number / 10**decimals:.{decimals}f}%"
        for number, at_bound in zip(step_counts, is_at_bound, strict=True)
    ]


def _decimals(value: float) -> int:
    """Decimals that leave three digits."""
    return 0 if value >= 99.95 else 1 if value >= 9.995 else 2


def share(value: float | None) -> str:
    """Return a part of a whole, ``91 %``; ``<0.1 %`` is more than nothing."""
    if value is None:
        return NOT_MEASURED
    if 0 < value < 0.0005:
        return "<0.1 %"
    return f"{100 * value:.0f} %" if value >= 0.0995 else f"{100 * value:.1f} %"


def percentage(value: float | None, decimals: int = 1) -> str:
    """Return a part of a whole with fixed decimals, for columns whose values are compared: ``9.1%``."""
    return NOT_MEASURED if value is None else f"{value:.{decimals}%}"


def ratio(value: float | None) -> str:
    """Return a value as a multiple of another: ``1.04×``."""
    return NOT_MEASURED if value is None else f"{value:.2f}×"
