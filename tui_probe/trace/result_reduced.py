"""Reduced maps of a result file: in the place of the records of all slots, one for each group of them.

A reduced map (kind 5 of ``result_about``) has slots of 0 bytes; its marks are ``u32 group, u32 0``, group 1 for the
threads of a warp, 2 for a block, 3 for the launch; a record for each group; a bit for each, the lowest of a byte first,
that tells whether any slot of the group was saved; another, whether its records differ in a field that is the same as a
rule; ``u64 missing``, the slots that were not saved in groups where another was. ``kernel.info`` says what the fields
are made of, ``engine.model.ReducedField`` what that means.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from tui_probe.errors import TraceError
from tui_probe.trace.result_layout import WARP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

Group = Literal["warp", "block", "launch"]
_GROUPS: Final[dict[int, Group]] = {1: "warp", 2: "block", 3: "launch"}
_HEAD: Final = 8
_MISSING: Final = 8
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is left of a map: ``records`` of shape (blocks, groups per block), of a launch (1, 1), and of the same shape
    whether any slot of a group was ``saved``, and whether its records are ``mixed``: not the same where they should be.
    """

    group: Group
    records: NDArray[Any]
    saved: NDArray[np.bool_]
    mixed: NDArray[np.bool_]
    missing: int
    """Slots that were not saved in groups of which another was."""


def _shape(blocks: int, threads: int, group: Group) -> tuple[int, int]:
    if group == "launch":
        return 1, 1
    return blocks, 1 if group == "block" else -(-threads // WARP_SIZE)


def group_of(where: str, blocks: int, threads: int, marks: NDArray[np.uint8], record: int) -> Group:
    """Whose records became one. TraceError if the ``marks`` are not those of a reduced map.

    ``blocks`` were measured, of so many ``threads``; what is left of a group takes ``record`` bytes.
    """
    group = _GROUPS.get(int(marks[:4].view("<u4")[0])) if len(marks) >= _HEAD else None
    if group is None:
        raise TraceError(f"{where}: {len(marks)} bytes that are not those of a reduced map")
    groups = prod(_shape(blocks, threads, group))
    if len(marks) != _HEAD + groups * record + 2 * -(-groups // 8) + _MISSING:
        raise TraceError(f"{where}: {len(marks)} bytes for {groups} records of {record} bytes, one per {group}")
    return group


def read_reduced(marks: NDArray[np.uint8], blocks: int, threads: int, record: np.dtype[Any]) -> Reduced:
    """The reduced map in ``marks`` that :func:`group_of` has looked at, with records of that size."""
    group = _GROUPS[int(marks[:4].view("<u4")[0])]
    shape = _shape(blocks, threads, group)
    groups = prod(shape)
    at = _HEAD + groups * record.itemsize
    bits = -(-groups // 8)
    saved, mixed = (
        np.unpackbits(marks[begin : begin + bits], bitorder="little")[:groups].view(np.bool_).reshape(shape)
        for begin in (at, at + bits)
    )
    records = marks[_HEAD:at].view(record).reshape(shape)
    return Reduced(group, records, saved, mixed, int(marks[-_MISSING:].view("<u8")[0]))
