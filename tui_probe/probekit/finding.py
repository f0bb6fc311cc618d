"""Finding: one conclusion of a probe about a launch, with its evidence, as text and as data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.view import Spot
from tui_probe.probekit.metric import require_one_of
from tui_probe.trace.kernel_files import Offset, short_position

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tui_probe.records.counter_sums import LineSums
    from tui_probe.trace.source_lines import SourceLine

Provenance = Literal["counted", "timed", "derived", "modelled", "simulated", "imported"]
"""Origin of a number.

``counted`` by a probe, the driver or the assembler; ``timed`` with a clock, also a share of such cycles; ``derived`` by
arithmetic on counts; ``modelled`` from the rates of a data sheet or another GPU; ``simulated`` by the clock of the
simulated GPU; ``imported`` from a file of another profiler.
"""
Number: TypeAlias = "int | float | str | None"
SHARE: Final = "share"
"""Unit of a part of a whole, from 0 to 1."""
_OPCODE_PARTS: Final = 2
"""Parts of an opcode that make its class, e.g. ``ld.global``."""
MAX_NOTABLE_LINES: Final = 3
"""Maximum number of lines per kernel with a finding; more are easier to read on the page of lines."""
_UNKNOWN_PART: Final = 0.1
"""The part of a kernel that a flagged finding of no known size counts as when findings are ranked."""
_LINE_WEIGHT: Final = 2
"""Factor for the part of a finding that names a line, since a user can act on it, when findings are ranked."""
FindingOrder = tuple[bool, bool, float, float]
"""Sort key of findings, the smallest first."""
NO_FINDING: Final[FindingOrder] = (True, True, 0.0, 0.0)
"""Sort key of a kernel, or a result, without a finding: last."""
_AMOUNTS: Final = {"cycles": "cycles", "wavefronts": "wavefronts", "lanes": "idle lane executions", "SMs": "idle SMs"}
"""Nouns of gains by their unit; ``B`` has none."""
_WHOLES: Final = {
    "B": "the bytes moved", "cycles": "the kernel", "wavefronts": "all wavefronts", "lanes": "all lane executions",
    "SMs": "all SMs",
}  # fmt: skip
"""Nouns of the totals that gains are parts of, by their unit."""
UNCOALESCED_ADVICE: Final = "make neighboring threads access neighboring elements, or stage tiles in shared memory"


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


@dataclass(frozen=True, slots=True)
class Gain:
    """Upper bound of the ``amount`` that a fix of the finding saves out of ``total``, in the unit of both: bytes
    (``B``), ``cycles``, ``wavefronts``, idle ``lanes`` or ``SMs``.
    """

    amount: float
    total: float | None
    unit: Literal["B", "cycles", "wavefronts", "lanes", "SMs"]

    @property
    def share(self) -> float:
        """The part of the whole, by which findings are ranked; 0 where that is not known."""
        return self.amount / self.total if self.total else 0.0

    @property
    def words(self) -> str:
        """``up to 32.8 kB (50% of the bytes moved) avoidable``."""
        amount = (
            units.size(self.amount) if self.unit == "B" else f"{units.count(round(self.amount))} {_AMOUNTS[self.unit]}"
        )
        part = f" ({percent(self.amount, self.total)} of {_WHOLES[self.unit]})" if self.total else ""
        return f"up to {amount}{part} avoidable"


@dataclass(frozen=True, slots=True)
class Finding:
    """``label`` and ``words`` are for people, ``key`` and ``values`` for programs; a value not measured is None.
    ``values`` are numbers by the names of their metrics. The first metric with an ideal is compared.

    ``page`` is the view that shows it, ``line`` the line of ``pruned.ptx`` that it is about, counted from 1, or an
    ``Offset``; ``block``, ``warp``, ``sm`` and ``time`` in cycles are there where it is about one. What ``stands_out``
    costs time, and is where to look first. ``brief`` is a finding about a line for a table cell, without its place.
    ``next_question`` is the question whose probe tells more about it, "" for none.
    ``gain`` is what mending it could save at most, in the same unit for all findings of a probe. ``advice`` is what to
    change in the program, "" where nothing general helps. ``wrong_result`` is true if it is about results, such as NaN,
    and not about time. ``replaced_by`` are keys of findings of the simulated GPU's checks that know more of the same
    line: where there is one, this is not shown; without a line, one of any line replaces it.
    """

    key: str
    label: str
    words: str
    page: str = ""
    line: int | None = None
    stands_out: bool = False
    next_question: str = ""
    values: Mapping[str, Number | Evidence] = field(default_factory=dict)
    gain: Gain | None = None
    block: int | None = None
    warp: int | None = None
    sm: int | None = None
    time: float | None = None
    advice: str = ""
    brief: str = ""
    wrong_result: bool = False
    replaced_by: frozenset[str] = frozenset()

    @property
    def evidence(self) -> dict[str, Evidence]:
        """Values with units, ideals and provenance, by metric."""
        return evidence_of(self.values)

    @property
    def numbers(self) -> dict[str, Number]:
        """Values without units, by metric."""
        return numbers_of(self.values)

    @property
    def spot(self) -> Spot:
        """Spot on its page, where Enter leads."""
        return replace(Spot.of_line(self.line), block=self.block, warp=self.warp, sm=self.sm, time=self.time)

    @property
    def part(self) -> float:
        """The part of the kernel that it may be about, from 0 to 1; a flagged finding of unknown size has a default."""
        return self.gain.share if self.gain else _UNKNOWN_PART if self.stands_out else 0.0

    def order_at(self, share: float | None) -> FindingOrder:
        """Sort key of all outputs: wrong results, then flagged findings, then the largest part of the run first.

        That is the part of the kernel times its ``share`` of the run. Where no kernel has a share all count the same.
        A part of a line counts more, since the line is where the program can be changed.
        """
        share = 1.0 if share is None else share
        part = self.part * (_LINE_WEIGHT if self.line else 1)
        return not (self.stands_out and self.wrong_result), not self.stands_out, -share * part, -share

    @property
    def order(self) -> FindingOrder:
        """Sort key among findings of one kernel."""
        return self.order_at(None)

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {
            "key": self.key,
            "words": f"{self.label}: {self.words}",
            "page": self.page or None,
            "ptx_line": None if isinstance(self.line, Offset) else self.line,
            **({"offset": self.line} if isinstance(self.line, Offset) else {}),
            "stands_out": self.stands_out,
            **({} if self.gain is None else {"gain_at_most": self.gain.amount, "gain_unit": self.gain.unit}),
            **self.numbers,
            **({"advice": self.advice} if self.advice and self.stands_out else {}),
        }


def notable_lines(ranked: Iterable[Finding], *, has_large_loss: bool) -> Iterator[Finding]:
    """Yield the first of the findings about lines, and those after it that stand out.

    ``has_large_loss``: the first stands out in any case, even if many lines share the loss.
    """
    for number, finding in enumerate(islice(ranked, MAX_NOTABLE_LINES)):
        if finding.stands_out or not number:
            yield replace(finding, stands_out=True) if has_large_loss and not number else finding


def line_place(line: LineSums) -> str:
    """Return the place of a line, with the number of its instructions: ``ld.shared.f32 PTX:45 (16 instructions)``."""
    instructions = f" ({line.lines} instructions)" if line.lines > 1 else ""
    return place(line.line, line.source, line.opcode) + instructions


def place(line: int, source: SourceLine | None, opcode: str | None = None) -> str:
    """Return an instruction with its line of PTX (its offset if SASS was probed) and its source line:
    ``st.global.u32 PTX:32 strided_store.cu:4``.
    """
    parts = [opcode or "", short_position(line), f"{PurePath(source.file).name}:{source.line}" if source else ""]
    return printable(" ".join(filter(None, parts)))


def brief_text(opcode: str | None, words: str) -> str:
    """Return a short finding about an instruction, with its opcode class: ``ld.global 16 sectors, ideal 4``."""
    return printable(" ".join(filter(None, (opcode_class(opcode or ""), words))))


def opcode_class(opcode: str) -> str:
    """Return the class of an opcode: ``ld.global`` for ``ld.global.nc.v4.f32``."""
    return ".".join(opcode.split(".")[:_OPCODE_PARTS])


def percent(part: float, whole: float) -> str:
    """Format a share: ``23%``, ``<1%``; ``0%`` only if the part is 0."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.0f}%" if percent >= 1 or not part else "<1%"
