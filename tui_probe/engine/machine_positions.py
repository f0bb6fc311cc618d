"""What instructions of machine code would be in PTX, so that positions of probes say which of them are meant.

Machine code tells less: a ``wmma.load`` is loads like any other, a ``wmma.mma`` the multiplications of ``mma``. What
the compiler merged, split or left out counts as it is executed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.instruction_ptx import ADDRESS, LINE, OFFSET, UNIFORM, Place, Told
from tui_probe.engine.machine_blocks import MachineBlock, additions, block_points, machine_blocks
from tui_probe.engine.machine_stand_ins import ARITHMETIC, MATRICES, MMA, WGMMA, arithmetic, matrix_access, product
from tui_probe.engine.model import BLOCK, Level, Save
from tui_probe.engine.positions import MERGED, matches
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.reasons import because
from tui_probe.sass import accesses, matrices
from tui_probe.sass.accesses import access_of
from tui_probe.sass.atomics import ATOM, ATOMG, ATOMS, RED, atomic_of
from tui_probe.sass.trampolines import Source
from tui_probe.sass.words import ALWAYS, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.model import Position, Probe, ProbePoint
    from tui_probe.sass.access import Access
    from tui_probe.sass.target import Target
    from tui_probe.sass.words import Word

_WIDTHS: Final = {1: ("b8",), 2: ("b16",), 4: ("b32",), 8: ("b64",), 16: ("v4", "b32")}
_BULK: Final = Instruction("cp", ("async", "bulk", "global", "mbarrier"), (), MADE_UP)
"""Stands for all bulk copies: which of them it is, and of how many bytes, is not read from machine code."""
_SHARED_ATOMICS: Final = tuple(Instruction(opcode, ("shared",), (), MADE_UP) for opcode in ("atom", "red"))
_NAMES: Final = {
    accesses.LD: ("ld", ()),
    accesses.LDG: ("ld", ("global",)),
    accesses.ST: ("st", ()),
    accesses.STG: ("st", ("global",)),
    accesses.LDS: ("ld", ("shared",)),
    accesses.STS: ("st", ("shared",)),
    accesses.LDGSTS: ("cp", ("async", "ca", "shared", "global")),
    **dict.fromkeys(ATOM, ("atom", ())),
    **dict.fromkeys(ATOMG, ("atom", ("global",))),
    **dict.fromkeys(RED, ("red", ("global",))),
    **dict.fromkeys(ATOMS, ("atom", ("shared",))),
}


_TOLD: Final = frozenset(
    {"ld", "ldu", "st", "cp", "atom", "red", "mma", "wmma", "wgmma", *MATRICES.values()}
    | {each.opcode for family in ARITHMETIC.values() for each in family}
)
_MODIFIERS: Final = frozenset(
    {"global", "shared", "local", "const", "param", "async", "bulk", "load", "store", "mma", "mma_async", "sync"}
)
"""Those that machine code tells, of instructions that are no copies: operations are not among them."""
_TYPES: Final = frozenset(each.modifiers[-1] for family in ARITHMETIC.values() for each in family)
_FACTORS: Final = frozenset(each.modifiers[-1] for family in MMA.values() for each in family)
_TOLD_BY: Final = {
    **dict.fromkeys((each.opcode for family in ARITHMETIC.values() for each in family), _TYPES),
    **dict.fromkeys(("mma", "wmma", "wgmma"), _MODIFIERS | _FACTORS),
    **dict.fromkeys(MATRICES.values(), frozenset({"x1", "x2", "x4"})),
}
"""The modifiers that are told of other opcodes."""
_WMMA: Final = {"load": "ld", "store": "st", "mma": "mma"}
"""What these are in machine code."""
_INSTEAD: Final = {"ldu": {"ld"}, "atom": {"red"}, "red": {"atom"}}
"""What else they may be there: an atomic whose result nothing uses is a reduction, and one without a space none."""
_UNTOLD: Final = tuple(
    Instruction(opcode, modifiers, (), MADE_UP)
    for opcode, modifiers in (
        *((opcode, (space,)) for opcode in ("ld", "st") for space in ("local", "param")),
        ("ld", ("const",)),
        ("st", ("async", "shared::cluster")),
        ("red", ("async", "shared::cluster")),
        *(("cp", ("async", each)) for each in ("commit_group", "wait_group", "wait_all", "mbarrier")),
        *(("wgmma", (each, "sync")) for each in ("fence", "commit_group", "wait_group")),
    )
)
"""Instructions of ``_TOLD`` that are not looked for in machine code."""


@dataclass(frozen=True, slots=True)
class MachineSite:
    """An instruction at byte offset ``at`` with the places of all points that are for it, and what the marks of their
    snippets stand for.
    """

    at: int
    places: tuple[Place, ...]
    access: Access | None

    def sources(self) -> dict[int, Source]:
        """What its marks stand for, but the flag's and those of registers that are kept."""
        found = {LINE: Source(number=self.at)}
        if self.access is None:
            return found
        address = self.access.address
        low, high = accesses.pair(address.register)
        found |= {ADDRESS: Source(register=low), OFFSET: Source(number=address.offset)}
        if address.wide:
            found[ADDRESS + 1] = Source(register=high)
        if address.uniform is not None:
            halves = range(1 if address.shared else 2)
            found |= {UNIFORM + index: Source(uniform=address.uniform + index) for index in halves}
        return found

    @property
    def reads(self) -> int:
        """The predicate that the flag's mark tells of."""
        return ALWAYS if self.access is None else self.access.reads


@dataclass(frozen=True, slots=True)
class Found:
    """What of a kernel a probe is for: single instructions, and basic blocks."""

    sites: list[MachineSite]
    blocks: list[MachineBlock]


def find(probe: Probe, target: Target) -> Found:
    """The instructions and blocks of a kernel that a probe is for.

    Raises UnsupportedKernelError for one that is not known, and for a probe of instructions that are not looked for: a
    count without them would be wrong.
    """
    opcodes = _opcodes(probe)
    told = all(_is_told(point, position, opcodes) for point in probe.points for position in point.positions)
    if not told or any(point.before is None for point in block_points(probe)) or not _counts_alike(probe):
        raise UnsupportedKernelError(because("needs-instructions", probe=probe.name))
    counted = any(own_map.level is Level.SITE for own_map in probe.maps)
    added: dict[int, dict[str, int]] = {}
    sites = [
        _numbered(one, number) if counted else one
        for number, one in enumerate(_found(probe, target.words, target.arch, added))
    ]
    return Found(sites, machine_blocks(probe, target, added, {one.at for one in sites}))


def site_lines(probe: Probe, sites: Sequence[MachineSite]) -> dict[str, list[int]]:
    """For each map of sites the offsets of its instructions in the kernel's code, in bytes."""
    found: dict[str, list[int]] = {one.name: [] for one in probe.maps if one.level is Level.SITE}
    for one in sites:
        snippets = [place.point.before for place in one.places if place.point.before]
        saved = {each.map for snippet in snippets for each in snippet.statements if isinstance(each, Save)}
        for name in found.keys() & saved:
            found[name].append(one.at)
    return found


def _opcodes(probe: Probe) -> set[str]:
    return {position.opcode for point in probe.points for position in point.positions}


def _is_told(point: ProbePoint, position: Position, opcodes: set[str]) -> bool:
    """Whether machine code tells all instructions that a position is for. Those that are others there must be among
    ``opcodes`` as such: a ``wmma.load`` is counted by a probe of ``ld`` alone.
    """
    if position.is_kernel or position.opcode == BLOCK:
        return True
    instead = _INSTEAD.get(position.opcode, set())
    if position.opcode == "wmma":
        instead = {_WMMA[each] for each in position.modifiers if each in _WMMA} or set(_WMMA.values())
    untold = any(matches(position, each) for each in _UNTOLD)
    if _needs_access(point):
        shared = any(matches(position, each) for each in _SHARED_ATOMICS)
        untold = untold or shared or position.opcode in MATRICES.values()
    if position.opcode != "cp":
        told = _TOLD_BY.get(position.opcode, _MODIFIERS)
        untold = untold or not {*position.modifiers, *position.unwanted} - {MERGED} <= told
    return position.opcode in _TOLD and not position.retried and not untold and instead <= opcodes


def _needs_access(point: ProbePoint) -> bool:
    """Whether a point must know what an instruction accesses."""
    return bool(point.before and point.before.helpers & {"ADDR", "BYTES"})


def _counts_alike(probe: Probe) -> bool:
    """Whether the probe is for all that an instruction of machine code may have been, or for none of it. Of a product
    of matrices they must be the same points, too: nothing tells a type from others of its kind.
    """
    for family in (*ARITHMETIC.values(), _SHARED_ATOMICS):
        if len({any(_is_for(point, each) for point in probe.points) for each in family}) > 1:
            return False
    return all(
        len({_is_for(point, each) for each in family}) == 1
        for kinds in (MMA, WGMMA)
        for family in kinds.values()
        for point in probe.points
    )


def _numbered(one: MachineSite, number: int) -> MachineSite:
    places = tuple(replace(place, told=replace(place.told, number=number)) for place in one.places)
    return MachineSite(one.at, places, one.access)


def _found(probe: Probe, words: Sequence[Word], arch: int, added: dict[int, dict[str, int]]) -> Iterator[MachineSite]:
    """The instructions that need code of their own. What others add, which is counted by blocks, goes to ``added``."""
    opcodes = _opcodes(probe)
    bulk = any(_is_for(point, _BULK) for point in probe.points)
    for index, word in enumerate(words):
        if word.never_runs:
            continue
        if bulk and word.operation in accesses.BULK_COPIES:
            raise UnsupportedKernelError(because("graft-access", opcode=f"{word.opcode:#05x}"))
        stand_in, told, access = _stand_in(word, arch, opcodes)
        if stand_in is None:
            continue
        points = [point for point in probe.points if _is_for(point, stand_in)]
        if BLOCK in opcodes and word.is_unconditional:
            points = [point for point in points if not _adds(point, told, added.setdefault(index, {}))]
        if points:
            places = tuple(Place(point, told, stand_in) for point in points)
            yield MachineSite(index * WORD_BYTES, places, access)


def _adds(point: ProbePoint, told: Told, sums: dict[str, int]) -> bool:
    """Whether a point only adds what is known beforehand, which then goes to ``sums``."""
    size = None if told.predicated or told.shortened else told.bytes
    values = {"BYTES": size, "MULTIPLY_ADDS": told.multiply_adds}
    found = additions(point.before, values) if point.before and point.after is None else None
    for register, number in (found or {}).items():
        sums[register] = sums.get(register, 0) + number
    return found is not None


def _is_for(point: ProbePoint, instruction: Instruction) -> bool:
    at_instructions = (each for each in point.positions if not (each.is_kernel or each.is_block or each.is_source))
    return any(matches(each, instruction) for each in at_instructions)


def _stand_in(word: Word, arch: int, opcodes: set[str]) -> tuple[Instruction | None, Told, Access | None]:
    """What an instruction would be in PTX, if that is one of ``opcodes``, and what is to be told of it."""
    if word.operation in _NAMES:
        return _of_memory(word, arch, opcodes)
    if word.operation in matrices.OPERATIONS and opcodes & {"mma", "wgmma"}:
        share = matrices.product_of(word, arch)
        return product(word, of_group=share.of_group)[0], Told(multiply_adds=share.share), None
    if word.operation in MATRICES:
        found = matrix_access(word)
        return (found if found and found.opcode in opcodes else None), Told(), None
    family = arithmetic(word, arch)
    return (family[0] if family and family[0].opcode in opcodes else None), Told(), None


def _of_memory(word: Word, arch: int, opcodes: set[str]) -> tuple[Instruction | None, Told, Access | None]:
    opcode, modifiers = _NAMES[word.operation]
    if opcode not in opcodes:
        return None, Told(), None
    if word.operation in ATOMS:  # of these nothing is known but that they are there
        return _SHARED_ATOMICS[0], Told(), None
    access = access_of(word, arch) or atomic_of(word, arch)
    if access is None:
        return None, Told(), None
    types = () if opcode == "cp" else _WIDTHS[access.bytes]
    return Instruction(opcode, (*modifiers, *types), (), MADE_UP), _told(access), access


def _told(access: Access) -> Told:
    return Told(
        bytes=access.bytes,
        wide=access.address.wide,
        uniform=access.address.uniform is not None,
        predicated=access.reads != ALWAYS,
        shortened=access.shortened,
        shared=access.address.shared,
        shift=access.address.shift,
    )
