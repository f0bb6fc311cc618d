"""Probe model: maps of records, registers, and PTX snippets at positions of a kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probe_model.positions import Position, SourceRange
    from tui_probe.ptx.tree import Instruction

OUTSIDE_HELPER: Final = "OUTSIDE"
"""True where an access is not within an allocation of the program that the hook knows."""
WAIT_HELPER: Final = "WAITED"
"""The cycles that a warp waited at an instruction."""
LONGEST_HELPER: Final = "LONGEST"
"""The cycles of the longest wait at an instruction."""

_REGISTER: Final = re.compile(r"%[\w$]+")
_CLOCK: Final = re.compile(r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?)(?![\w$])")

Weight: TypeAlias = Literal["light", "heavy"]
WEIGHTS: Final = ("light", "heavy")
_MAX_LIGHT_SLOT: Final = 64
"""Bytes that a thread or warp of a light probe keeps at most, where its file does not say which it is."""

FieldType: TypeAlias = Literal["u64", "u32"]

ReductionGroup: TypeAlias = Literal["warp", "block", "launch"]
ReductionOperation: TypeAlias = Literal["sum", "min", "max", "first", "same", "span"]

REDUCTION_GROUPS: Final[tuple[ReductionGroup, ...]] = ("warp", "block", "launch")
REDUCTION_OPERATIONS: Final[tuple[ReductionOperation, ...]] = ("sum", "min", "max", "first", "same", "span")

FIELD_BYTES: Final[dict[FieldType, int]] = {"u64": 8, "u32": 4}


class Level(Enum):
    """Owner of a slot in a map: each thread, each warp, or each instruction that the probe is at, for all warps.

    The values are those of ``kernel.info``, which has no level of its own for sites: see ``storage``.
    """

    THREAD = 0
    WARP = 1
    SITE = 2


class Field(NamedTuple):
    """One value of a record. ``offset`` is in bytes from the start of the record."""

    name: str
    type: FieldType
    offset: int


@dataclass(frozen=True, slots=True)
class ReducedField:
    """One value of a reduced map: its field ``to`` in the reduced record, and the ``source`` field of the records.

    Operations:

    - ``sum``, always u64; ``min``; ``max``
    - ``first``: value of the first record
    - ``same``: value of the first record; groups in which records differ are reported
    - ``span``: from the least ``base`` to the largest ``base`` + ``source``
    """

    to: Field
    operation: ReductionOperation
    source: Field
    base: Field | None = None

    @property
    def text(self) -> str:
        """The field as in ``kernel.info``: ``min:u64@0:u64@0``."""
        places = [self.to, self.source] + ([] if self.base is None else [self.base])
        return ":".join([self.operation, *(f"{place.type}@{place.offset}" for place in places)])


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduced form of a map in result files: a record of ``record_bytes`` for each group of its records.

    A ``group`` is all records of a warp's threads, of a block, or of a launch; those that a kernel did not write take
    no part. The hook reduces when it writes a result file (``hook/src/records/reduce.c``), so kernels and device memory
    are as without it. It leaves maps as they are for ``run --detail``, and where what is left would take no less room.
    """

    group: ReductionGroup
    fields: tuple[ReducedField, ...]
    record_bytes: int

    @property
    def line(self) -> str:
        """Line of ``kernel.info``: ``block record 16 min:u64@0:u64@0 span:u32@8:u32@8:u64@0``."""
        return " ".join([self.group, f"record {self.record_bytes}", *(field.text for field in self.fields)])


class LeastShare(NamedTuple):
    """Percentage of the first field of map ``whole``, reduced to one record, that the first field of some site needs.

    After a launch in which no site has it, launches of that shape have other probes of the run instead.
    """

    percent: int
    whole: str


@dataclass(frozen=True, slots=True)
class Map:
    """Storage for records: a slot for each thread, warp or site, ``cap`` records in a slot.

    ``fields`` are in the order in which ``SAVE`` lists them; in memory the u64 ones come first.
    ``record_bytes`` may be larger than the fields. ``cap`` is None for a dynamic map, whose number of records
    is known only when the kernel runs. With ``cap`` 1 a later record replaces an earlier one. ``reduction`` is what is
    saved of its records, None: all of them. ``even``: where the first field of a whole warp's records rises evenly from
    lane to lane, the first two lanes save for all; the other fields are then those of lane 0. ``sparse``: most lanes
    have nothing to add. ``folded``: warps of a launch share its slots. ``resident``: a slot belongs to a place for a
    warp on the GPU, and the host reads it while the kernel runs. ``leader``: only lane 0 of each warp saves records,
    with ``latest`` over its oldest records, so that the last ones are kept, with ``every`` only in the first of this
    number of iterations of an innermost loop. ``host``: records are in host memory, and complete before the warp
    continues: they outlive an error that ends the context. ``optional``: kernels without an instruction at which a
    record is saved have no such map.
    """

    name: str
    level: Level
    fields: tuple[Field, ...]
    record_bytes: int
    cap: int | None = 1
    reduction: Reduction | None = None
    even: bool = False
    sparse: bool = False
    folded: bool = False
    resident: bool = False
    leader: bool = False
    latest: bool = False
    every: int = 0
    host: bool = False
    optional: bool = False
    least: LeastShare | None = None
    """Share, for a map of sites, from which on a launch is worth another one."""

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot as in ``kernel.info``; -1 for a dynamic map."""
        return -1 if self.cap is None else self.record_bytes * self.cap


class FileLocation(NamedTuple):
    """A line of a probe file, for messages."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class SnippetCode:
    """An instruction or label of a snippet. ``text`` is as written, on one line, its semicolon included."""

    text: str
    place: FileLocation
    instruction: Instruction | None = None


@dataclass(frozen=True, slots=True)
class Locate:
    """``LOCATE [ map ];``: the slot's address is computed here, and only lanes that save continue to the ``SAVE``."""

    map: str
    place: FileLocation


KEPT_FIELD: Final = "_"
"""The value of a field that a SAVE does not store."""


@dataclass(frozen=True, slots=True)
class Save:
    """``SAVE [ map ] {values};``: one record. A value is a register, a number or a helper such as ``ADDR``; of resident
    records also ``KEPT_FIELD``.

    With ``adds`` it is ``ADD [ map ] {values};``: each lane adds its values to the record of its thread, warp or site.
    """

    map: str
    values: tuple[str, ...]
    place: FileLocation
    adds: bool = False


SnippetStatement: TypeAlias = SnippetCode | Locate | Save


@dataclass(frozen=True, slots=True)
class Snippet:
    """Probe text to insert. ``labels`` are its own labels; ``helpers`` the operand helpers that it uses."""

    statements: tuple[SnippetStatement, ...]
    labels: frozenset[str] = frozenset()
    helpers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ProbePoint:
    """Snippets and the positions that they go to.

    ``guarded`` snippets run only in the lanes in which the probed instruction runs. A ``yielding`` point is left out of
    a kernel in which the snippets would make ptxas serialize ``wgmma``.
    """

    name: str
    positions: tuple[Position, ...]
    before: Snippet | None
    after: Snippet | None
    guarded: bool = True
    yielding: bool = False
    lean: Snippet | None = None
    """Replaces ``before`` in the form of the probe that takes few registers."""
    skips: bool = False
    """True if each ``bra.uni`` only skips instructions that would compute the same again."""
    ptx_only: bool = False
    """True if the point is left out of SASS whose instructions it is for cannot be read."""
    within: SourceRange | None = None
    """The lines of source that instructions must come from; None: any."""

    @property
    def statements(self) -> list[SnippetStatement]:
        """The statements of all its snippets."""
        snippets = [snippet for snippet in (self.before, self.after, self.lean) if snippet]
        return [statement for snippet in snippets for statement in snippet.statements]

    @property
    def texts(self) -> list[str]:
        """The texts of its instructions, and the values that it saves."""
        return [s.text if isinstance(s, SnippetCode) else " ".join(getattr(s, "values", ())) for s in self.statements]

    @property
    def saved_maps(self) -> set[str]:
        """The maps that it saves records in."""
        return {statement.map for statement in self.statements if isinstance(statement, Save)}

    def straight(self) -> ProbePoint:
        """Return the point without the branches that only skip."""
        if not self.skips:
            return self
        snippet_before, snippet_after, lean = (
            snippet and _without_skips(snippet) for snippet in (self.before, self.after, self.lean)
        )
        return replace(self, before=snippet_before, after=snippet_after, lean=lean)


def _without_skips(snippet: Snippet) -> Snippet:
    return replace(snippet, statements=tuple(statement for statement in snippet.statements if not _is_skip(statement)))


def _is_skip(statement: SnippetStatement) -> bool:
    instruction = statement.instruction if isinstance(statement, SnippetCode) else None
    return instruction is not None and instruction.opcode == "bra" and "uni" in instruction.modifiers


def _reads_clock(point: ProbePoint) -> bool:
    return any(_CLOCK.search(text) for text in point.texts)


class ProbeAbout(NamedTuple):
    """Description of a probe for users; "" where the file does not say."""

    title: str = ""
    measures: str = ""
    unit: str = ""
    cost: str = ""
    checked: str = ""
    weight: Weight | None = None
    """``heavy`` if it makes kernels take more than twice as long, or keeps a record of each access; None: not said."""
    every_block: bool = False
    """True if its results mean nothing of a sample of blocks."""
    counts: bool | None = None
    """True if its results are the same next to other probes, False if not; None: not said."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe file, read.

    ``registers`` maps the probe's own registers to their PTX types (``%begin`` to ``b32``). ``callback`` names
    the analysis, or is "". ``source`` is the text of the file.
    """

    name: str
    path: Path
    source: str
    callback: str
    registers: dict[str, str]
    maps: tuple[Map, ...]
    points: tuple[ProbePoint, ...]
    about: ProbeAbout = field(default_factory=ProbeAbout)
    phases: tuple[tuple[str, SourceRange], ...] = ()
    """Phases by source lines, for points at the starts of phases; without any, the kernel's code tells them."""
    is_lean: bool = False
    """True if few registers matter more than time: records are stored in narrow pieces."""
    records_copies: bool = False
    """True if, in SASS that leaves too few registers, its bulk copies are recorded and nothing else."""

    @property
    def positions(self) -> list[Position]:
        """The positions of all its points."""
        return [position for point in self.points for position in point.positions]

    @property
    def needs_machine_code(self) -> bool:
        """True if PTX does not show what it is at."""
        return any(position.is_wait for position in self.positions)

    @property
    def reads_allocations(self) -> bool:
        """True if it compares addresses with the allocations of the program."""
        snippets = (snippet for point in self.points for snippet in (point.before, point.after) if snippet)
        return any(OUTSIDE_HELPER in snippet.helpers for snippet in snippets)

    @property
    def has_lean_form(self) -> bool:
        """True if there is a form that takes fewer registers."""
        return self.has_lean_snippets or any(own_map.cap != 1 for own_map in self.maps)

    @property
    def has_lean_snippets(self) -> bool:
        """True if that form does something else at instructions."""
        return any(point.lean for point in self.points)

    def lean_form(self) -> Probe:
        """Return the probe with its snippets for kernels that have no registers to spare; the maps are the same."""
        points = tuple(replace(point, before=point.lean, lean=None) if point.lean else point for point in self.points)
        return replace(self, points=points, is_lean=True)

    def without_optional_maps(self) -> Probe:
        """Return the probe without its optional maps, the points that save in them, and the registers of these."""
        maps = tuple(own_map for own_map in self.maps if not own_map.optional)
        if maps == self.maps:
            return self
        points = tuple(point for point in self.points if not self.saves_in_optional_map(point))
        texts = " ".join(text for point in points for text in point.texts)
        used_registers = set(_REGISTER.findall(texts))
        registers = {name: kind for name, kind in self.registers.items() if name in used_registers}
        return replace(self, maps=maps, points=points, registers=registers)

    def saves_in_optional_map(self, point: ProbePoint) -> bool:
        """Return True if a point saves in a map that kernels may lack."""
        optional = {own_map.name for own_map in self.maps if own_map.optional}
        return not optional.isdisjoint(point.saved_maps)

    def straight_form(self) -> Probe:
        """Return the probe without branches that only skip recomputation of the same values."""
        return replace(self, points=tuple(point.straight() for point in self.points))

    @property
    def every(self) -> int:
        """K if a map records the first of K iterations of innermost loops only; 0 if none does."""
        return max((own_map.every for own_map in self.maps), default=0)

    @property
    def is_resident(self) -> bool:
        """True if the host reads records of it while the kernel runs."""
        return any(own_map.resident for own_map in self.maps)

    @property
    def is_kept_by_host(self) -> bool:
        """True if records of it are to outlive an error that ends the context."""
        return any(own_map.host for own_map in self.maps)

    @property
    def counts(self) -> bool:
        """True if a kernel may have other counting probes at the same time: what it records is the same then.

        As the file says; where it does not, a probe counts that reads no clock and has no dynamic map. Joint kernels
        have the same maps for all kernels, so a probe with an optional map never counts.
        """
        if any(own_map.optional for own_map in self.maps):
            return False
        if self.about.counts is not None:
            return self.about.counts
        return all(own_map.cap is not None for own_map in self.maps) and not any(map(_reads_clock, self.points))

    @property
    def weight(self) -> Weight:
        """Weight from the file; without one, ``heavy`` if slots have more than 64 bytes, or a variable number."""
        if self.about.weight is not None:
            return self.about.weight
        return "heavy" if any(not 0 <= own_map.slot_bytes <= _MAX_LIGHT_SLOT for own_map in self.maps) else "light"

    def map_named(self, name: str) -> Map:
        """Return the map of that name. Raises KeyError."""
        for candidate in self.maps:
            if candidate.name == name:
                return candidate
        raise KeyError(name)
