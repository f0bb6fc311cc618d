"""How the clocks of SMs are put on one axis, and how well that is known.

``%clock64`` of two SMs may differ by any constant. On the GPU that was looked at (NVIDIA H200, 132 SMs), the SMs of one
cluster of the chip share a clock, and the clocks of clusters lie millions of cycles apart: the first starts of a launch
form eight *domains* of 16 or 18 SMs. In each of them they spread over 10 to 140 cycles, the time in which a launch
fills them. So times within a domain can be compared as they are, and domains are put beside each other by their
first starts, which errs by about that spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FARTHEST: Final = 4096
"""First starts of one domain follow each other within so many cycles (2 µs); in the data at hand, within 140, while
those of different domains lie 80 000 or more apart."""

Basis = Literal["shared", "first starts", "global timer"]


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where the first start of each SM lies on the axis, and how that is known.

    ``shift`` (i8) has one element per SM that ran a block, by ascending SM number; the least is 0. ``error`` is in
    cycles, between SMs of different domains; None where nothing tells it. ``assumed_rate`` says that times were made
    cycles at the device's highest clock.
    """

    shift: NDArray[np.int64]
    domains: int
    basis: Basis
    error: int | None
    assumed_rate: bool = False

    def words(self) -> str:
        """The alignment and its error in a few words."""
        if self.basis == "shared":
            return "SMs share one clock"
        known = "by an unknown error" if self.error is None else f"±{self.error} cycles"
        if self.basis == "global timer":
            assumed = ", assuming that they run at the highest clock or down to half of it" if self.assumed_rate else ""
            return f"SM clocks aligned by the global timer {known}{assumed}"
        if self.domains == 1:
            return "SM clocks in step"
        return f"{len(self.shift)} SMs on {self.domains} clocks, aligned by first starts {known}"


def shared_clock(sms: NDArray[np.int32], first: NDArray[np.uint64]) -> Clocks:
    """All SMs count with one clock. ``first`` (u8) is the first start on each of ``sms`` (i4)."""
    del sms
    return Clocks((first - first.min()).view(np.int64), 1, "shared", 0)


def clock_domains(sms: NDArray[np.int32], first: NDArray[np.uint64]) -> Clocks:
    """Domains by the distances of first starts, each beginning at 0.

    An SM that really began more than ``FARTHEST`` cycles after all others of its domain is taken for a domain of its
    own, and so shown too early. Two domains nearer than that are taken for one. The error is the largest spread of the
    first starts in a domain; None if no domain has two SMs.
    """
    del sms
    order = np.argsort(first, kind="stable")
    clock = first[order]
    begins = np.append(True, np.diff(clock) > FARTHEST)
    shift = np.empty(len(first), dtype=np.int64)
    shift[order] = (clock - clock[begins][np.cumsum(begins) - 1]).view(np.int64)
    domains = int(begins.sum())
    return Clocks(shift, domains, "first starts", int(shift.max()) if domains < len(first) else None)
