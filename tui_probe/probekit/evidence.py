"""Evidence of a finding: a number with its unit, its ideal, and the way in which it was obtained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tui_probe.probekit.metric import require_one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Provenance = Literal["counted", "timed", "derived", "modelled", "simulated", "imported"]
"""Origin of a number.

``counted`` by a probe, the driver or the assembler; ``timed`` with a clock, also a share of such cycles; ``derived`` by
arithmetic on counts; ``modelled`` from the rates of a data sheet or another GPU; ``simulated`` by the clock of the
simulated GPU; ``imported`` from a file of another profiler.
"""
Number: TypeAlias = "int | float | str | None"
SHARE: Final = "share"
"""Unit of a part of a whole, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A ``value``, None if it was not measured. ``ideal`` is the value without the loss, None if it is not known.

    ``unit`` is "" for a count and for a name.
    """

    value: Number
    unit: str = ""
    ideal: float | None = None
    provenance: Provenance = "derived"

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown provenance."""
        require_one_of(Provenance, self.provenance, "provenance")

    def record(self, metric: str, *, simulated: bool) -> dict[str, Any]:
        """Return the JSON record. A simulated GPU counts as a real one does, but its clock is that of a model."""
        provenance = "simulated" if simulated and self.provenance == "timed" else self.provenance
        return {"metric": metric, "value": self.value, "unit": self.unit, "ideal": self.ideal, "provenance": provenance}


def counted(value: Number, unit: str = "", ideal: float | None = None) -> Evidence:
    """Return a count."""
    return Evidence(value, unit, ideal, "counted")


def derived(value: Number, unit: str = "", ideal: float | None = None) -> Evidence:
    """Return a number that follows from counts."""
    return Evidence(value, unit, ideal, "derived")


def timed(value: Number, unit: str = "cycles", ideal: float | None = None) -> Evidence:
    """Return a number that follows from a clock."""
    return Evidence(value, unit, ideal, "timed")


def modelled(value: Number, unit: str = "", ideal: float | None = None) -> Evidence:
    """Return a number that follows from a data sheet."""
    return Evidence(value, unit, ideal, "modelled")


def evidence_of(values: Mapping[str, Number | Evidence]) -> dict[str, Evidence]:
    """Return values with their units; a plain number, of a probe that states no unit, is derived."""
    return {name: value if isinstance(value, Evidence) else Evidence(value) for name, value in values.items()}


def numbers_of(values: Mapping[str, Number | Evidence]) -> dict[str, Number]:
    """Return values as numbers."""
    return {name: value.value if isinstance(value, Evidence) else value for name, value in values.items()}
