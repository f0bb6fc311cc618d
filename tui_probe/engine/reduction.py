"""What is saved of a map where less than all of its records is: a record for each group of them.

A group is all records of a warp's threads, of a block, or of a launch. A field of what is saved is made from one field
of the records: their ``sum`` (always u64), ``min`` or ``max``; that of the ``first`` record; ``same``, the first one's
too, but groups in which records differ are told; or ``span``: from the least ``base`` to the largest ``base`` + field.
Records that a kernel did not write take no part. The hook reduces when it writes a result file
(``hook/src/reduce.c``), so that kernels and device memory are as without it, and leaves maps as they are for
``run --detail`` and where that takes no more room.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from tui_probe.engine.model import Field

Group: TypeAlias = Literal["warp", "block", "launch"]
Operation: TypeAlias = Literal["sum", "min", "max", "first", "same", "span"]

GROUPS: Final[tuple[Group, ...]] = ("warp", "block", "launch")
OPERATIONS: Final[tuple[Operation, ...]] = ("sum", "min", "max", "first", "same", "span")


@dataclass(frozen=True, slots=True)
class ReducedField:
    """One value of what is saved: its place there, and the field of the records that it is made from."""

    to: Field
    operation: Operation
    source: Field
    base: Field | None = None
    """Of ``span``."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """What is saved of a map: a record of ``record_bytes`` for each ``group``."""

    group: Group
    fields: tuple[ReducedField, ...]
    record_bytes: int

    @property
    def line(self) -> str:
        """As in ``kernel.info``: ``block record 16 min:u64@0:u64@0 span:u32@8:u32@8:u64@0``."""
        return " ".join([self.group, f"record {self.record_bytes}", *map(_words, self.fields)])


def _words(one: ReducedField) -> str:
    places = [one.to, one.source] + ([one.base] if one.base is not None else [])
    return ":".join([one.operation, *(f"{place.type}@{place.offset}" for place in places)])
