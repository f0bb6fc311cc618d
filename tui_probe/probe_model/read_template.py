"""Reads the result files of this trace; needs nothing but NumPy.

    python read.py result/0.123456.bin …         a summary of each

    from read import read
    result = read("result/0.123456.bin")
    result.maps["NAME"]              one of MAPS below: records, shape (blocks, slots per block, records per slot)
    result.written["NAME"]           of the same shape: which of them were saved
    result.maps["NAME"]["FIELD"][result.written["NAME"]]

    header, sections, records = parse("result/0.123456.bin")     the same, slowly, as Python's own lists
    records["NAME"][block][slot][record].FIELD                   zeros where nothing was saved
    header.gridDimX, header.blockDimX, sections[0].warpDiv       as the file has them

A slot is a thread's or a warp's, in the order of their numbers in the block; blocks are counted x first, then y, z.
Where a run measured only some blocks (run --sample), the shapes have those only, and result.blocks their numbers.
Of a map of sites there is one block with one slot, and a record for each instruction that the probe was at: the sums of
all warps. The lines of these in pruned.ptx are in kernel.info: sites INDEX LINE …
Unless run --detail wrote it, a map in result.reduced has one record for all of a warp's threads, of a block or of the
launch, with the fields listed as "reduced" below: shape (blocks, slots per block, 1), of a launch (1, 1, 1).
"""

from __future__ import annotations

import sys
from collections import namedtuple
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, cast

import numpy as np

# The records of each map, in the order of the file. Behind a map of several records per slot is NAME.attempts:
# how many records each slot was to keep; the first that found room are there. UNKNOWN if that is not known.
MAPS: dict[str, Any] = {}
# The same by probe, where the run had several: event.log tells which of them a result is of.
PROBES: dict[str, dict[str, Any]] = {}
# Maps that results of kernels without instructions for them do not have.
OPTIONAL: set[str] = set()
UNKNOWN = 0xFFFFFFFF
Array = Any  # numpy.ndarray
Header = namedtuple("Header", "gridDimX gridDimY gridDimZ blockDimX blockDimY blockDimZ sharedMemBytes numProbes")
Section = namedtuple("Section", "size warpDiv offset")


@dataclass
class Result:
    """One launch; ``blocks`` were measured. Of a map that lanes add to, all their records count as written."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    blocks: range
    maps: dict[str, Array] = field(default_factory=dict)
    written: dict[str, Array] = field(default_factory=dict)
    reduced: dict[str, str] = field(default_factory=dict)


def read(path: str) -> Result:
    """Read a result file. Raises ValueError if it is not one of this trace."""
    data, maps = np.memmap(path, np.uint8, "r"), maps_of(path)
    if len(data) >= 32 and data[28:32].view("<u4")[0] != len(maps):
        maps = {name: record for name, record in maps.items() if name not in OPTIONAL}
    if len(data) < 32 + 16 * len(maps) or data[28:32].view("<u4")[0] != len(maps):
        raise ValueError(f"{path}: not a result file with the {len(maps)} maps of this trace")
    numbers = data[:32].view("<u4").tolist()
    blocks = prod(numbers[:3])
    result = Result(tuple(numbers[:3]), tuple(numbers[3:6]), numbers[6], range(blocks))
    end = 0
    for index, (name, record) in enumerate(maps.items()):
        at = 32 + 16 * index
        slot_bytes, threads_a_slot = data[at : at + 8].view("<u4").tolist()
        shape = blocks, -(-prod(result.block) // threads_a_slot), slot_bytes // record.itemsize
        start = int(data[at + 8 : at + 16].view("<u8")[0])
        end = start + prod(shape) * record.itemsize
        if end > len(data):
            raise ValueError(f"{path}: cut off in map {name}")
        result.maps[name] = data[start:end].view(record).reshape(shape)
    marks, sites, size = read_marks(data[-(-end // 8) * 8 :], maps, result)
    sample = data[-(-end // 8) * 8 + -(-size // 8) * 8 :]
    if sample[:8].tobytes() == b"sampled\1":
        x, y, z, first, step, count = sample[8:32].view("<u4").tolist()
        result.grid, result.blocks = (x, y, z), range(first, first + count * step, step)
    result.maps.update(sites)
    for name in maps:
        result.written[name] = which_were_written(result.maps, name, marks.get(name))
    return result


def parse(path: str) -> tuple[Any, list[Any], dict[str, Any]]:
    """Header, sections, and records by map, block and slot. Raises ValueError as ``read`` does."""
    result, head = read(path), np.fromfile(path, np.uint8, 32).view("<u4").tolist()
    table = np.fromfile(path, [("size", "<u4"), ("divisor", "<u4"), ("offset", "<u8")], head[7], offset=32).tolist()
    records, record = {}, cast("Any", namedtuple)
    for name, values in result.maps.items():
        kind = record(name.replace(".", "_"), values.dtype.names or ("value",))
        slots = values.tolist() if values.dtype.names else values[..., np.newaxis].tolist()
        records[name] = [[[kind(*record_values) for record_values in slot] for slot in block] for block in slots]
    return Header(*result.grid, *head[3:]), [Section(*record_values) for record_values in table], records


def maps_of(path: str) -> dict[str, Any]:
    """The maps of the probe that a result is of."""
    if not PROBES:
        return MAPS
    log = Path(path).resolve().parent.parent / "event.log"
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        saved = f"[exec] save result/{Path(path).name} "
        if line.startswith(saved) and line.split(" ")[-1] in PROBES:
            return PROBES[line.split(" ")[-1]]
    raise ValueError(f"{path}: {log} does not name the probe of this file; probes: {', '.join(PROBES)}")


def read_marks(data: Array, maps: dict[str, Any], result: Result) -> tuple[dict[str, Array], dict[str, Array], int]:
    """Read the data behind the maps: for those of one record per slot, one bit per slot, set if it was saved;
    the records of maps of sites; and how many bytes that was.
    """
    marks: dict[str, Array] = {}
    sites: dict[str, Array] = {}
    at = 8 + 16 * len(maps)
    if data[:8].tobytes() != b"records\1":
        return marks, sites, 0
    for index, name in enumerate(maps):
        entry = data[8 + 16 * index : 24 + 16 * index]
        kind, size = entry[:4].view("<u4")[0], int(entry[8:].view("<u8")[0])
        if kind == 1:
            marks[name] = np.unpackbits(data[at : at + size], bitorder="little").astype(bool)
        if kind == 4:
            sites[name] = data[at : at + size].view(maps[name]).reshape(1, 1, -1)
        if kind == 5:
            record = maps[name].metadata["reduced"]
            sites[name], marks[name] = read_reduced(data[at : at + size], name, record, result)
        at += size
    return marks, sites, at


def read_reduced(data: Array, name: str, record: Any, result: Result) -> tuple[Array, Array]:
    """Read the reduced records of a map, and which of them have anything in them."""
    group = ("", "warp", "block", "launch")[data[:4].view("<u4")[0]]
    shape = {
        "warp": (len(result.blocks), -(-prod(result.block) // 32), 1),
        "block": (len(result.blocks), 1, 1),
        "launch": (1, 1, 1),
    }[group]
    result.reduced[name] = group
    end = 8 + prod(shape) * record.itemsize
    return data[8:end].view(record).reshape(shape), np.unpackbits(data[end:], bitorder="little").astype(bool)


def which_were_written(maps: dict[str, Array], name: str, marks: Array | None) -> Array:
    """One bool per record. Where no number of attempts is known, records that are not all zeros were saved."""
    records, attempts = maps[name], maps.get(f"{name}.attempts")
    if marks is not None:
        return marks[: records.size].reshape(records.shape)
    if attempts is None:
        return np.ones(records.shape, bool)
    not_zero = records != np.zeros((), records.dtype)
    return np.where(attempts == UNKNOWN, not_zero, np.arange(records.shape[2]) < attempts)


def summary(path: str) -> str:
    """A few lines about each map of a file."""
    result = read(path)
    lines = [f"{path}: grid {result.grid}, block {result.block}, {result.shared_bytes} bytes of dynamic shared memory"]
    if len(result.blocks) < prod(result.grid):
        first, last, step = result.blocks[0], result.blocks[-1], result.blocks.step
        lines.append(f"  a sample of {len(result.blocks)} blocks: {first} to {last} in steps of {step}")
    for name, records in result.maps.items():
        if records.dtype.names is None:
            known = records[records != UNKNOWN].astype(np.int64)
            lines.append(f"  {name}: {known.sum()} in total, at most {known.max(initial=0)} per slot")
            continue
        saved = records[result.written[name]]
        blocks, slots, room = records.shape
        if name in result.reduced:
            lines.append(f"  {name}: {saved.size} of {records.size} records, one per {result.reduced[name]}")
        else:
            lines.append(
                f"  {name}: {saved.size} records; {blocks} blocks have {slots} slots each; a slot has room for {room}"
            )
        for field_name in records.dtype.names if saved.size else ():
            values = saved[field_name]
            lines.append(f"    {field_name}: {values.min()} to {values.max()}, mean {values.mean():.6g}")
    return "\n".join(lines)


if __name__ == "__main__":
    for argument in sys.argv[1:] or sys.exit(__doc__):
        try:
            print(summary(argument))  # noqa: T201
        except (OSError, ValueError) as error:
            sys.exit(f"{argument} cannot be read as a result: {error}")
