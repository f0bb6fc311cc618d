"""What instructions of machine code would be in PTX, so that positions of probes say which of them are meant.

Machine code tells less: a ``wmma.load`` is loads like any other, a ``wmma.mma`` the multiplications of ``mma``. What
the compiler merged, split or left out counts as it is executed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.instruction_ptx import ADDRESS, LINE, OFFSET, UNIFORM, Place, Told
from tui_probe.engine.model import Level, Save
from tui_probe.engine.positions import matches
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.reasons import because
from tui_probe.sass import accesses, matrices
from tui_probe.sass.accesses import access_of
from tui_probe.sass.atomics import ATOM, ATOMG, RED, atomic_of
from tui_probe.sass.trampolines import Source
from tui_probe.sass.words import ALWAYS, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.engine.model import Position, Probe, ProbePoint
    from tui_probe.sass.access import Access
    from tui_probe.sass.target import Target
    from tui_probe.sass.words import Word

_TYPES: Final = {1: ("b8",), 2: ("b16",), 4: ("b32",), 8: ("b64",), 16: ("v4", "b32")}
_BULK: Final = Instruction("cp", ("async", "bulk", "global", "mbarrier"), (), MADE_UP)
"""Stands for all bulk copies: which of them it is, and of how many bytes, is not read from machine code."""
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
}


_TOLD: Final = frozenset({"ld", "ldu", "st", "cp", "atom", "red", "mma", "wmma", "wgmma"})
_MODIFIERS: Final = frozenset(
    {"global", "shared", "local", "const", "param", "async", "bulk", "load", "store", "mma", "mma_async", "sync"}
)
"""Those that machine code tells, of instructions that are no copies: neither types nor operations are among them."""
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
        *((opcode, ("shared",)) for opcode in ("atom", "red")),
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


def sites_of(probe: Probe, target: Target) -> list[MachineSite]:
    """The instructions of a kernel that a probe is for.

    Raises UnsupportedKernelError for one that is not known, and for a probe of instructions that are not looked for: a
    count without them would be wrong.
    """
    opcodes = _opcodes(probe)
    for point in probe.points:
        if not all(position.is_kernel or _is_told(position, opcodes) for position in point.positions):
            raise UnsupportedKernelError(because("needs-instructions", probe=probe.name))
    counted = any(own_map.level is Level.SITE for own_map in probe.maps)
    return [
        _numbered(one, number) if counted else one
        for number, one in enumerate(_found(probe, target.words, target.arch))
    ]


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


def _is_told(position: Position, opcodes: set[str]) -> bool:
    """Whether machine code tells all instructions that a position is for. Those that are others there must be among
    ``opcodes`` as such: a ``wmma.load`` is counted by a probe of ``ld`` alone.
    """
    instead = _INSTEAD.get(position.opcode, set())
    if position.opcode == "wmma":
        instead = {_WMMA[each] for each in position.modifiers if each in _WMMA} or set(_WMMA.values())
    untold = any(matches(position, each) for each in _UNTOLD)
    if position.opcode != "cp":
        untold = untold or not {*position.modifiers, *position.unwanted} <= _MODIFIERS
    return position.opcode in _TOLD and not position.retried and not untold and instead <= opcodes


def _numbered(one: MachineSite, number: int) -> MachineSite:
    places = tuple(replace(place, told=replace(place.told, number=number)) for place in one.places)
    return MachineSite(one.at, places, one.access)


def _found(probe: Probe, words: Sequence[Word], arch: int) -> Iterator[MachineSite]:
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
        if points:
            places = tuple(Place(point, told, stand_in) for point in points)
            yield MachineSite(index * WORD_BYTES, places, access)


def _is_for(point: ProbePoint, instruction: Instruction) -> bool:
    at_instructions = (each for each in point.positions if not (each.is_kernel or each.is_block or each.is_source))
    return any(matches(each, instruction) for each in at_instructions)


def _stand_in(word: Word, arch: int, opcodes: set[str]) -> tuple[Instruction | None, Told, Access | None]:
    """What an instruction would be in PTX, if that is one of ``opcodes``, and what is to be told of it."""
    if word.operation in _NAMES:
        opcode, modifiers = _NAMES[word.operation]
        access = (access_of(word, arch) or atomic_of(word, arch)) if opcode in opcodes else None
        if access is None:
            return None, Told(), None
        types = () if opcode == "cp" else _TYPES[access.bytes]
        return Instruction(opcode, (*modifiers, *types), (), MADE_UP), _told(access), access
    if word.operation in matrices.OPERATIONS and opcodes & {"mma", "wgmma"}:
        product = matrices.product_of(word, arch)
        opcode, modifiers = ("wgmma", ("mma_async", "sync")) if product.of_group else ("mma", ("sync",))
        return Instruction(opcode, modifiers, (), MADE_UP), Told(multiply_adds=product.share), None
    return None, Told(), None


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
