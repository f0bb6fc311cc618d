"""Causes of launches whose warps poll memory: locks, flags, counters, in global or shared memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.draw import units
from tui_probe.trace.kernel_files import Offset

from .code_flow import innermost

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .places import PlaceGroup, StuckWarp, StuckWarps

_MAX_NAMED: Final = 2
"""Warps elsewhere that a cause names."""
_MAX_DECIMAL: Final = 100_000
"""Values below are written in decimal, others in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Cause:
    """``key`` is for programs, ``text`` and ``advice`` for users; ``warp`` is one that the cause is about."""

    key: str
    text: str
    advice: str
    warp: StuckWarp


def _polled_text(group: PlaceGroup, verb: str = "polled") -> str:
    """``0x7f00 (value 4) is polled by 4 warps at ld.acquire.u32 PTX:20``."""
    values = {warp.read_value for warp in group.warps}
    value = values.pop() if len(values) == 1 else None
    value_text = "" if value is None else f" (value {_number(value)})"
    warps = units.counted(len(group.warps), "warp")
    return f"{group.place.address:#x}{value_text} is {verb} by {warps} at {group.place.text}"


def _number(value: int) -> str:
    return str(value) if value < _MAX_DECIMAL else hex(value)


def free_lock(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps try to take a lock that no warp on the GPU is known to hold."""
    if group.place.kind != "lock" or isinstance(group.place.line, Offset):
        return
    holder = stuck.ended_holder(group.place.address)
    if holder is not None and holder.held_lock is not None:
        holder_text = (
            f"which {stuck.warp_text(holder)} took at PTX:{holder.held_lock.line} and did not release; this warp"
        )
        yield Cause(
            "lock-not-free",
            f"lock {_polled_text(group, 'wanted')}, {holder_text} {stuck.position_text(holder)}",
            "release the lock on every path, also before an early return",
            group.warps[0],
        )
        return
    reason, advice = _not_free_reason(stuck, group)
    yield Cause(
        "lock-not-free",
        f"lock {_polled_text(group, 'wanted')}{_expected_text(stuck, group)}, and no warp on the GPU is known to hold"
        f" it; {reason}",
        f"{advice}release the lock on every path, and set the lock to its free value before the launch",
        group.warps[0],
    )


def _expected_text(stuck: StuckWarps, group: PlaceGroup) -> str:
    """``, which expects 0``: the value with which a compare-and-swap compares."""
    access = stuck.code.accesses.get(group.place.line)
    if access is None or access.compare_value is None:
        return ""
    return f", which expects {_number(access.compare_value % (1 << (64 if access.opcode.endswith('64') else 32)))}"


def _not_free_reason(stuck: StuckWarps, group: PlaceGroup) -> tuple[str, str]:
    """Return why no warp holds a lock that is not free, and the beginning of the advice."""
    ended_count, (other_writes, is_sure) = stuck.warps_ended, _other_writes(stuck, group.place.line)
    if other_writes:
        ended_text = f"{units.counted(ended_count, 'warp')} ended; " if ended_count else ""
        writers = [
            warp
            for warp in stuck.writers(group.place)
            if warp.last_operation is not None and warp.last_operation.line in other_writes
        ]
        writers_text = f"; {_writes_text(stuck, writers)}" if writers else ""
        return (
            f"{ended_text}this kernel also writes through the same pointer at {_places_text(other_writes)}, and such a"
            f" write may have changed the value of the lock{writers_text}",
            "compare the value that the lock expects with the values that the other writes store; ",
        )
    if ended_count:
        return f"{units.counted(ended_count, 'warp')} ended, perhaps without releasing the lock", ""
    if is_sure:
        reason = "so the lock was not free before the launch, or its holder has since taken another lock"
    else:
        reason = (
            "so the lock was not free before the launch, its holder has since taken another lock, or another write of"
            " this kernel changed it"
        )
    return f"no warp has ended, {reason}", ""


def _other_writes(stuck: StuckWarps, line: int) -> tuple[dict[int, str], bool]:
    """The opcodes by line of writes through the pointer of a lock that neither take nor release it as the instruction
    at ``line`` does; and False if the pointers of such writes are not known.
    """
    code = stuck.code
    lock = code.accesses.get(line)
    changes = (
        {}
        if lock is None
        else {
            access_line: access
            for access_line, access in code.accesses.items()
            if access.changes(lock) and access_line != line
        }
    )
    same_pointer = {access_line: code.use_same_pointer(line, access_line) for access_line in changes}
    return {
        access_line: changes[access_line].opcode for access_line, is_same in same_pointer.items() if is_same
    }, None not in same_pointer.values()


def written_flag(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps of the launch have written the address that others poll, but not the value that these wait for."""
    is_polled = group.place.kind == "flag" and group.place.line not in stuck.code.counted_loop_lines
    writers = stuck.writers(group.place) if is_polled else []
    if not writers:
        return
    stores_cause = _last_stores_cause(stuck, group, writers)
    if stores_cause is not None:
        yield stores_cause
    writer_blocks = {warp.block for warp in writers}
    absent = [candidate for candidate in stuck.warps if candidate.block not in writer_blocks]
    ended_blocks = stuck.blocks_ended
    if absent:
        blocks = len({candidate.block for candidate in absent})
        others_text = (
            f"{units.counted(blocks, 'other block')} did not write there: {stuck.warp_text(absent[0])} is"
            f" {absent[0].place.at_text}"
        )
    else:
        others_text = (
            ""
            if ended_blocks
            else "each block on the GPU has written there, so either the awaited value is wrong, or the memory had a"
            " wrong value before the launch"
        )
    ended_text = f"{units.counted(ended_blocks, 'block')} ended" if ended_blocks else ""
    yield Cause(
        "value-not-reached",
        "; ".join(filter(None, (f"{_polled_text(group)}; {_writes_text(stuck, writers)}", others_text, ended_text))),
        "the awaited value counts blocks: let each of these blocks write to this address before it waits or ends"
        if absent or ended_blocks
        else "compare the awaited value with the number of writes, and reset the memory before each launch",
        group.warps[0],
    )


def _last_stores_cause(stuck: StuckWarps, group: PlaceGroup, writers: Sequence[StuckWarp]) -> Cause | None:
    """The cause if the writers store values, count nothing, and wait elsewhere: perhaps for those who poll."""
    distant_writers = [warp for warp in writers if warp.place != group.place]
    if not distant_writers or not all(
        warp.last_operation and stuck.code.write_opcodes.get(warp.last_operation.line, "").startswith("st")
        for warp in writers
    ):
        return None
    writer = distant_writers[0]
    is_cycle = writer.place.kind == "flag" and any(warp in group.warps for warp in stuck.writers(writer.place))
    polls_group = f", where it polls an address that {stuck.warp_text(group.warps[0])} wrote"
    cycle = f"{polls_group}: these warps wait for each other" if is_cycle else ""
    return Cause(
        "value-not-reached",
        f"{_polled_text(group)}; {_writes_text(stuck, writers)}; {stuck.warp_text(writer)} is now"
        f" {writer.place.at_text}{cycle}",
        "compare the awaited value with the last value that the writer stores, and let the writer store before it"
        " waits",
        group.warps[0],
    )


def _writes_text(stuck: StuckWarps, writers: Sequence[StuckWarp]) -> str:
    """``4 warps of 4 blocks wrote there (3 at red.global.add.u32 PTX:19, 1 at st.volatile.global.u32 PTX:24)``."""
    lines = Counter(warp.last_operation.line for warp in writers if warp.last_operation is not None)
    places = [f"{stuck.code.write_opcodes.get(line, '')} PTX:{line}".strip() for line, _ in lines.most_common()]
    counts = [f"{units.count(count)} at " if len(lines) > 1 else "" for _, count in lines.most_common()]
    positions = ", ".join(f"{count}{place}" for count, place in zip(counts, places, strict=True))
    blocks = len({warp.block for warp in writers})
    return f"{units.counted(len(writers), 'warp')} of {units.counted(blocks, 'block')} wrote there ({positions})"


def unwritten_flag(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps poll an address that no warp on the GPU is known to have written."""
    if group.place.kind not in ("flag", "lock") or group.place.line in stuck.code.counted_loop_lines:
        return
    text, advice = _unknown_writer(stuck, group)
    lanes, wait_for_lanes = _other_lanes(stuck, group)
    if wait_for_lanes:
        advice = f"let all lanes of a mask reach the shfl, vote or __syncwarp with this mask; if they do, {advice}"
    key = "value-not-reached" if _is_written(stuck, group) else "flag-not-set"
    yield Cause(key, f"{_polled_text(group)}; {text}{lanes}", advice, group.warps[0])


def _is_written(stuck: StuckWarps, group: PlaceGroup) -> bool:
    """Return whether the kernel writes through the pointer that warps poll, and all of them read a value but 0."""
    line = group.place.line
    return (
        not isinstance(line, Offset)
        and _writes_through_pointer(stuck, line)[1]
        and all(warp.read_value for warp in group.warps)
    )


def _writes_through_pointer(stuck: StuckWarps, line: int) -> tuple[list[int], bool]:
    """The recorded writes of the kernel through the pointer that an instruction polls, and True. If there are none,
    those whose pointer is not known, and False.
    """
    code = stuck.code
    read_lines = {access_line for access_line, access in code.accesses.items() if access.only_reads}
    same_pointer = {
        write_line: code.use_same_pointer(line, write_line)
        for write_line in code.write_opcodes.keys() - read_lines - {line}
    }
    write_lines = sorted(write_line for write_line, is_same in same_pointer.items() if is_same)
    return (
        (write_lines, True)
        if write_lines
        else (sorted(write_line for write_line, is_same in same_pointer.items() if is_same is None), False)
    )


def _places_text(opcodes: Mapping[int, str]) -> str:
    """``red.global.add.u32 PTX:19 and st.release.gpu.u32 PTX:24``."""
    texts = [f"{opcode} PTX:{line}" for line, opcode in opcodes.items()]
    return " and ".join(texts[:_MAX_NAMED]) + (", …" if len(texts) > _MAX_NAMED else "")


def _unknown_writer(stuck: StuckWarps, group: PlaceGroup) -> tuple[str, str]:
    """Return who could have written what warps poll, and advice, by what the code of the kernel writes."""
    place, code = group.place, stuck.code
    external_writer = "another kernel, another GPU or the host must write the value"
    advice = "find the kernel or rank that must write the value, and check in its trace that the kernel was launched"
    if isinstance(place.line, Offset):
        return (
            f"without PTX, writes are not recorded: a warp of this launch, {external_writer}",
            "check the awaited value, and check that the writers reach the instruction that writes it; if both are"
            f" right, {advice}",
        )
    lines, is_same = _writes_through_pointer(stuck, place.line)
    if lines:
        verb = "writes through the same pointer" if is_same else "may write there"
        positions = _places_text({line: code.write_opcodes[line] for line in lines})
        write_text = f"this kernel {verb} at {positions}, but only the last write of a warp is recorded"
        if place.opcode.startswith("atom"):
            return (
                f"{write_text}; the last write of a polling warp is its own atomic, so its earlier writes are not"
                " known",
                "compare the awaited value with the number of writes, and reset the memory before each use",
            )
        return (
            f"{write_text}, and no warp on the GPU made its last write there{warps_elsewhere(stuck, group)}",
            "compare the awaited value with the values that these writes store, reset the memory before each launch,"
            f" and let no writer wait for a warp that polls; if all this is right, {advice}",
        )
    if code.has_plain_stores:
        return (
            "plain stores of this kernel are not recorded: one of these stores,"
            f" {external_writer}{warps_elsewhere(stuck, group)}",
            "let the writer store before it waits for a warp that polls; write flags with st.release or an atomic,"
            f" which the watchdog records; if the kernel does not write the value, {advice}",
        )
    if code.write_opcodes.keys() - {place.line}:
        caveat = "unless another pointer leads to the same memory"
        return f"no other instruction of this kernel writes through this pointer: {external_writer}, {caveat}", advice
    if code.is_known:
        return f"no other instruction of this kernel writes global memory: {external_writer}", advice
    return f"no warp of this launch is known to write there: {external_writer}", advice


def shared_flag(stuck: StuckWarps, group: PlaceGroup) -> Iterator[Cause]:
    """Warps poll shared memory, which only warps of their own block or cluster write."""
    place, warp = group.place, group.warps[0]
    if place.line in stuck.code.counted_loop_lines:
        return
    if place.kind == "shared flag":
        opcode, polled_text = place.opcode, _polled_flag_text(stuck, group)
    elif place.kind == "loop" and (read_lines := _shared_reads(stuck, stuck.code.loops.get(place.line, frozenset()))):
        opcode = stuck.code.shared_reads[read_lines[0]]
        warps = f"{units.counted(len(group.warps), 'warp')} of {units.counted(len(group.blocks), 'block')}"
        polled_text = f"shared memory is polled by {warps} at {stuck.code.line_text(read_lines[0], opcode)}"
    else:
        return
    scope = "cluster" if "::cluster" in opcode or ".cluster" in opcode else "block"
    writers = f"only warps of the same {scope} can write it, since each {scope} has its own shared memory"
    polling = {block_warp.warp for block_warp in group.warps if block_warp.block == warp.block}
    other_warps = [
        block_warp for block_warp in stuck.warps if block_warp.block == warp.block and block_warp.warp not in polling
    ]
    ended_warps = [block_warp for block_warp in stuck.ended_warps if block_warp.block == warp.block]
    elsewhere = [f"; {stuck.warp_text(block_warp)} is {block_warp.place.at_text}" for block_warp in other_warps]
    elsewhere += [f"; {stuck.warp_text(block_warp)} {stuck.position_text(block_warp)}" for block_warp in ended_warps]
    warps_text = "".join(elsewhere[:_MAX_NAMED]) + ("; …" if len(elsewhere) > _MAX_NAMED else "")
    write_advice = "the awaited value before it " + (
        "ends" if ended_warps and not other_warps else "waits for the polling warp"
    )
    yield Cause(
        "flag-not-set",
        f"{polled_text}; {writers}{warps_text}{_other_lanes(stuck, group)[0]}",
        f"let a warp write {write_advice}; if other blocks must write the value, move it to global memory",
        warp,
    )


def _polled_flag_text(stuck: StuckWarps, group: PlaceGroup) -> str:
    """``head at 0x8 (value 4) is polled by …``, and another read of the loop around the poll, if any."""
    line = group.place.line
    polled = f"{stuck.code.name_of(line) or 'shared memory'} at {_polled_text(group)}"
    other_reads = [
        read_line for read_line in _shared_reads(stuck, innermost(stuck.code.loops, line)) if read_line != line
    ]
    return f"{polled}; its loop also reads {_shared_text(stuck, other_reads[0])}" if other_reads else polled


def _shared_reads(stuck: StuckWarps, lines: frozenset[int]) -> list[int]:
    """The lines among these that read what other warps write to shared memory, in order."""
    return sorted(stuck.code.shared_reads.keys() & lines)


def _shared_text(stuck: StuckWarps, line: int) -> str:
    """``tail at ld.volatile.shared.u32 PTX:80``."""
    return (
        f"{stuck.code.name_of(line) or 'shared memory'} at {stuck.code.line_text(line, stuck.code.shared_reads[line])}"
    )


def missing_lanes_at(stuck: StuckWarps, warps: Sequence[StuckWarp]) -> dict[int, str]:
    """The waits, as texts by line, at which lanes may be that did not come to the place of their warps. If warps of the
    block are at such a barrier, only that one.
    """
    waits, line = stuck.code.lane_waits, warps[0].place.line
    lines = [] if isinstance(line, Offset) else waits.reachable_waits(line)
    blocks = {warp.block for warp in warps}
    occupied_lines = {
        stuck_warp.place.line for stuck_warp in stuck.warps if stuck_warp.block in blocks
    } & waits.barriers.keys()
    opcodes = {**waits.exchanges, **waits.barriers}
    return {
        wait_line: stuck.code.line_text(wait_line, opcodes[wait_line])
        for wait_line in [line for line in lines if line in occupied_lines] or lines
    }


def waits_text(places: dict[int, str]) -> str:
    """``may wait at shfl.sync.idx.b32 PTX:20 or bar.sync PTX:57``."""
    texts = list(places.values())
    return f"may wait at {' or '.join(texts[:_MAX_NAMED])}{', …' if len(texts) > _MAX_NAMED else ''}"


def _other_lanes(stuck: StuckWarps, group: PlaceGroup) -> tuple[str, bool]:
    """``; 16 other lanes of each warp may wait at bar.warp.sync PTX:20``, if all polling warps have such lanes; and
    whether these may wait for lanes of their warp.
    """
    counts = {warp.lanes_away for warp in group.warps}
    places = {} if 0 in counts else missing_lanes_at(stuck, group.warps)
    if not places:
        return "", False
    lanes = units.counted(counts.pop(), "other lane") if len(counts) == 1 else "other lanes"
    text = f"; {lanes} of {'the warp' if len(group.warps) == 1 else 'each warp'} {waits_text(places)}"
    return text, not places.keys().isdisjoint(stuck.code.lane_waits.exchanges)


def _ended_text(stuck: StuckWarps, warp: StuckWarp, address: int) -> str:
    """``block 0 warp 0 wrote there last (PTX:58) and ended at exit PTX:70``."""
    is_writer = warp.last_operation is not None and warp.last_operation.address == address
    write_text = (
        f" wrote there last (PTX:{warp.last_operation.line}) and"
        if warp.last_operation is not None and is_writer
        else ""
    )
    return f"{stuck.warp_text(warp)}{write_text} {stuck.position_text(warp)}"


def warps_elsewhere(stuck: StuckWarps, group: PlaceGroup) -> str:
    """``; block 0 warp 1 is at PTX:31``: some of the warps that are not at an address that others poll, or ended."""
    place = group.place
    other_warps = [
        candidate
        for candidate in stuck.warps
        if candidate.place != place and not (place.address and candidate.place.address == place.address)
    ]
    warp_texts = [
        f"; {stuck.warp_text(candidate)} is {candidate.place.at_text}" for candidate in other_warps[:_MAX_NAMED]
    ]
    ended_count = stuck.warps_ended
    if 0 < ended_count <= _MAX_NAMED and len(stuck.ended_warps) == ended_count:
        return "".join([*warp_texts, *(f"; {_ended_text(stuck, warp, place.address)}" for warp in stuck.ended_warps)])
    return "".join(warp_texts) + (f"; {units.counted(ended_count, 'warp')} ended" if ended_count else "")
