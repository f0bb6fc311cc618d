"""Reduced maps in Python integers: the bytes that a result file has in place of its slots."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.probe_model.probe import FIELD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probe_model.probe import Field, ReducedField, Reduction

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Marks = np.ndarray[Any, np.dtype[np.bool_]]
GROUPS = {"warp": 1, "block": 2, "launch": 3}
REDUCED = 5


def reduced_size(reduction: Reduction, blocks: int, threads: int) -> int:
    """Bytes of what is left."""
    groups = {"warp": blocks * -(-threads // 32), "block": blocks, "launch": 1}[reduction.group]
    return 8 + groups * reduction.record_bytes + 2 * -(-groups // 8) + 8


def reduced_bytes(reduction: Reduction, slots: Bytes, saved: Marks) -> bytes:
    """The reduced form of ``slots``, shape (blocks, slots per block, bytes); only the slots in ``saved`` take part."""
    records, bits, missing = b"", ([], []), 0
    for records_of, saved_of in _groups(reduction.group, slots, saved):
        group_records = [bytes(record) for record in records_of[saved_of]]
        records += _record(reduction, group_records)
        bits[0].append(bool(group_records))
        bits[1].append(any(len({_value(field.source, r) for r in group_records}) > 1 for field in reduction.fields
                           if field.operation == "same"))  # fmt: skip
        missing += len(saved_of) - len(group_records) if group_records else 0
    packed = b"".join(np.packbits(np.array(bit, bool), bitorder="little").tobytes() for bit in bits)
    return struct.pack("<II", GROUPS[reduction.group], 0) + records + packed + struct.pack("<Q", missing)


def _groups(group: str, slots: Bytes, saved: Marks) -> Iterator[tuple[Bytes, Marks]]:
    if group == "launch":
        yield slots.reshape(-1, slots.shape[2]), saved.ravel()
        return
    group_slots = slots.shape[1] if group == "block" else 32
    for block, marks in zip(slots, saved, strict=True):
        for first in range(0, len(block), group_slots):
            yield block[first : first + group_slots], marks[first : first + group_slots]


def _value(field: Field, record: bytes) -> int:
    return int.from_bytes(record[field.offset : field.offset + FIELD_BYTES[field.type]], "little")


def _record(reduction: Reduction, found: list[bytes]) -> bytes:
    made = bytearray(reduction.record_bytes)
    for field in reduction.fields if found else ():
        size = FIELD_BYTES[field.to.type]
        value = _reduced(field, found) % (1 << 8 * size)
        made[field.to.offset : field.to.offset + size] = value.to_bytes(size, "little")
    return bytes(made)


def _reduced(one: ReducedField, found: list[bytes]) -> int:
    values = [_value(one.source, record) for record in found]
    if one.base is not None:
        bases = [_value(one.base, record) for record in found]
        return max((base + value) % (1 << 64) for base, value in zip(bases, values, strict=True)) - min(bases)
    if one.operation in ("first", "same"):
        return values[0]
    return {"sum": sum, "min": min, "max": max}[one.operation](values)
