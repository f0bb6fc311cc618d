"""Times of matrix products, as the program wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from tui_probe.errors import TraceError
from tui_probe.json_data import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PRODUCT: Final = '{"product": '
"""How a line begins."""


@dataclass(frozen=True, slots=True)
class Product:
    """``(m, k) @ (k, n)``; ``milliseconds`` of each launch."""

    shape: tuple[int, int, int]
    dtype: str
    device: str
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.milliseconds)

    @property
    def spread(self) -> float:
        """(most - least) / median."""
        return (max(self.milliseconds) - min(self.milliseconds)) / self.median

    @property
    def operations_per_second(self) -> float:
        """Multiplications and additions."""
        m, k, n = self.shape
        return 2e3 * m * k * n / self.median

    @property
    def words(self) -> str:
        m, k, n = self.shape
        return f"[{m}, {k}] @ [{k}, {n}]"


def products_in(text: str, path: Path) -> Iterator[Product]:
    """Those of a program's output; TraceError for a line that is broken."""
    for line in text.splitlines():
        if not line.startswith(PRODUCT):
            continue
        try:
            data = parse_json(line)
            m, k, n = map(int, data["product"])
            times = tuple(float(time) for time in data["milliseconds"])
            if not times or min(times) <= 0:
                raise ValueError("it has no times")
            yield Product((m, k, n), str(data["dtype"]), str(data["device"]), times)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise TraceError(f"{path}: a line of products cannot be read ({error}): collect it again") from error
