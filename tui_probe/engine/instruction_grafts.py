"""Probes at instructions and basic blocks of kernels without PTX: what they count is in registers above the kernel's.

Sums that live from the entry to the exits are kept in registers, set at the grafted entry and added up at the grafted
exits, as the PTX way does it. The alternative, additions to the warp's slot at each access, would hold no register, but
cost an atomic of the L2 cache for every access that a kernel makes: more traffic than what is measured. Maps of sites
have a record for each instruction, and are added to where it stands, in both ways.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.engine.instruction_ptx import ENTRY, EXIT, FIRST_KEPT, FIRST_NUMBER, READS, InstructionPtx, block, site
from tui_probe.engine.machine_positions import Found, MachineSite, find
from tui_probe.engine.snippet_ptx import LEADING, MANY_LEADING
from tui_probe.engine.warp_substitutes import without_redux
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import predicates
from tui_probe.sass.cubin import CODE_PREFIX, Cubin
from tui_probe.sass.graft import Grafted, Splice, graft
from tui_probe.sass.operands import with_read_barriers
from tui_probe.sass.snippets import uniform_places, waiting
from tui_probe.sass.trampolines import MOST_REGISTERS, Inline, Room, Source, flag, least_used, opening, trampoline
from tui_probe.sass.unchanged import refuse_changes
from tui_probe.sass.uniform import used
from tui_probe.sass.variables import BY_ADDRESS, calls_outside
from tui_probe.sass.vector import ALIGNED
from tui_probe.sass.words import ALWAYS, RESERVED, WORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.assemble import Assembler
    from tui_probe.engine.instruction_ptx import Told
    from tui_probe.engine.machine_blocks import MachineBlock
    from tui_probe.engine.model import Probe
    from tui_probe.sass.target import Target
    from tui_probe.sass.words import Word

_CALLS: Final = frozenset({0x143, 0x144})
_UNIFORM_PREDICATES: Final = 7
_ASSEMBLED: Final = 256
"""Texts whose machine code is remembered, some 10 KB each."""
_PARAMETERS_ALIGNED: Final = 16
"""Parameters may be read two at a time, so they must lie as they will in the kernel."""


@dataclass(frozen=True, slots=True)
class InstructionCode:
    """The machine code of a probe for what was met in one kernel."""

    ptx: InstructionPtx
    entry: Inline | None
    exit: Inline | None
    places: dict[tuple[str, Told], Inline]
    blocks: dict[tuple[str, ...], Inline]

    @property
    def all(self) -> list[Inline]:
        """All of it."""
        return [one for one in (*self.inside, self.exit) if one is not None]

    @property
    def inside(self) -> list[Inline]:
        """What runs while the kernel needs its registers; what runs first is among it."""
        return [one for one in (self.entry, *self.places.values(), *self.blocks.values()) if one is not None]

    def leaves_below(self, registers: int) -> bool:
        """Whether the code of the ways out has the registers of the kernel, which needs them no more, up to these.

        Probes of blocks keep many values, which all stand in registers there at once.
        """
        return bool(self.blocks) and self.exit is not None and self.exit.registers <= registers


def graft_instructions(target: Target, probe: Probe, assembler: Assembler, *, sampled: bool) -> tuple[Grafted, Found]:
    """Put a probe's code at the instructions and blocks that it is for, at the entry and at the ways out of a kernel.

    Raises UnsupportedKernelError and ToolchainError.
    """
    probe = without_redux(probe, target.arch)
    found = find(probe, target)
    _refuse(target, probe, found)
    code = _assembled(target, probe, found, assembler, sampled=sampled)
    if code.ptx.words and (function := calls_outside(target)):  # what it leaves of registers nobody says
        raise UnsupportedKernelError(because("graft-calls", function=function))
    room, kept = _room(target, code)
    splices = _inside(target, code, room, kept, found)
    if code.entry is not None:
        splices.insert(0, Splice(0, tuple(opening(code.entry, room, kept))))
    leaving, rewritten = _leaving(target, code, room, kept)
    if code.exit is not None:
        splices = _with_ways_out(target, splices, leaving)
    flags = [each for one in code.all for each in one.flags]
    grafted = graft(target, splices, len(code.ptx.parameters()), room.registers, rewritten, flags)
    refuse_changes(target, grafted, set(room.uniform.values()))
    return grafted, found


def _inside(target: Target, code: InstructionCode, room: Room, kept: dict[int, Source], found: Found) -> list[Splice]:
    """What is put around instructions: for themselves, for the blocks that they are in, or for both."""
    sites, blocks = {one.at: one for one in found.sites}, {one.at: one for one in found.blocks}
    return [
        _at(target, code, room, kept, at, sites.get(at), blocks.get(at)) for at in sorted(sites.keys() | blocks.keys())
    ]


def _at(
    target: Target,
    code: InstructionCode,
    room: Room,
    kept: dict[int, Source],
    at: int,
    one: MachineSite | None,
    entered: MachineBlock | None,
) -> Splice:
    inline, reads, entering = [], ALWAYS, None
    if one is not None:
        sources = {**kept, **one.sources(), READS: flag(room)}
        inline, reads = [(code.places[place.key], sources) for place in one.places], one.reads
    if entered is not None:
        numbers = {FIRST_NUMBER + index: Source(number=each.number) for index, each in enumerate(entered.codes)}
        entering = code.blocks[entered.key], {**kept, **numbers}
    words = trampoline(inline, target.words[at // WORD_BYTES], room, reads, entering)
    return Splice(at, tuple(words), together=True)


def _leaving(
    target: Target, code: InstructionCode, room: Room, kept: dict[int, Source]
) -> tuple[tuple[Word, ...], dict[int, Word]]:
    """The code of the ways out, and the instructions that must be waited for if that has the kernel's registers."""
    if code.exit is None:
        return (), {}
    below = code.leaves_below(min((each.register or 0 for each in kept.values()), default=0))
    placed = code.exit.placed(replace(room, first=0) if below else room, kept)
    return tuple(waiting(placed)), with_read_barriers(target.words) if below else {}


def _with_ways_out(target: Target, splices: Sequence[Splice], leaving: tuple[Word, ...]) -> list[Splice]:
    """With what is done at the ways out, behind the code of a block that is nothing but a way out."""
    inside = {splice.at: splice.before for splice in splices if splice.at}
    ways_out = {at: (*inside.get(at, ()), *leaving) for at in target.exits()}
    others = [splice for splice in splices if not splice.at or splice.at not in ways_out]
    return [*others, *(Splice(at, words) for at, words in ways_out.items())]


def _refuse(target: Target, probe: Probe, found: Found) -> None:
    """Raises UnsupportedKernelError for a kernel in which the probe would miss something."""
    target.refuse_functions()
    if any(one.at == 0 for one in found.sites):
        raise UnsupportedKernelError(because("graft-position", at="0x0000"))
    functions = [section.name.removeprefix(CODE_PREFIX) for section in target.functions]
    functions += [BY_ADDRESS] * target.calls_unseen
    if functions and any(word.operation in _CALLS for word in target.words):
        function = functions[0]
        raise UnsupportedKernelError(because("graft-called", probe=probe.name, function=function))


def _assembled(target: Target, probe: Probe, found: Found, assembler: Assembler, *, sampled: bool) -> InstructionCode:
    places = [place for one in found.sites for place in one.places]
    ptx = InstructionPtx(probe, places, target.arch, blocks=found.blocks, sampled=sampled)
    odd = target.first_added % _PARAMETERS_ALIGNED
    for leading in (LEADING + odd, MANY_LEADING + odd):
        cubin = _cubin(ptx.text(leading), target.arch, assembler)
        keys = {key: Inline.of(cubin, site(index), leading) for index, key in enumerate(ptx.keys)}
        blocks = {key: Inline.of(cubin, block(index), leading) for index, key in enumerate(ptx.block_keys)}
        entry = Inline.of(cubin, ENTRY, leading) if ptx.has_entry else None
        leaving = Inline.of(cubin, EXIT, leading, leaves=True) if ptx.has_exit else None
        code = InstructionCode(ptx, entry, leaving, keys, blocks)
        if all(one.base == target.base for one in code.all):
            break
    return code


@lru_cache(maxsize=_ASSEMBLED)
def _cubin(text: str, arch: int, assembler: Assembler) -> Cubin:
    """The machine code of a text. Many kernels of a program need the same: they access memory in the same ways."""
    with tempfile.TemporaryDirectory(prefix="tui-probe-") as folder:
        source, binary = Path(folder) / "snippets.ptx", Path(folder) / "snippets.bin"
        source.write_text(text)
        assembler.assemble(source, binary, f"sm_{arch}", ENTRY)
        return Cubin.read(binary.read_bytes())


def _room(target: Target, code: InstructionCode) -> tuple[Room, dict[int, Source]]:
    """What the kernel leaves to the snippets, and what the marks of registers that are kept stand for.

    Above the kernel's own registers come those of the snippets, then those that are kept. The saved predicates and the
    flag fill what lies between on account of alignment, or are the last.
    """
    words = list(target.all_words())
    top = target.registers - RESERVED
    first = _aligned(top)
    inside = max((one.registers for one in code.inside), default=0)
    leaving = code.exit.registers if code.exit and not code.leaves_below(first + inside) else 0
    kept = first + max(inside, leaving)
    end, own = kept + code.ptx.words, 1 + code.ptx.has_flag
    scratch = top if first - top >= own else end
    pairs = sorted({pair for one in code.all for pair in one.uniform_pairs()})
    uniform = uniform_places([], pairs, used(words, target.arch), 0, None).exits
    meetings = sorted({number for one in code.all for number in one.meetings()})
    convergence, *others = predicates.free_barriers(words, 1 + len(meetings))
    room = Room(
        target.arch,
        target.base,
        target.base + target.first_added,
        first,
        scratch,
        uniform,
        _predicates(target, code),
        least_used(words),
        predicates.late_predicates(words),
        convergence,
        dict(zip(meetings, others, strict=True)),
        max(end, scratch + own) + RESERVED,
    )
    if room.registers > MOST_REGISTERS or room.registers > target.fewest_registers < target.registers:
        left = min(MOST_REGISTERS, target.fewest_registers if target.fewest_registers < target.registers else 255)
        needed = {"needed": room.registers, "left": left}
        raise UnsupportedKernelError(because("graft-registers", **needed))
    return room, {FIRST_KEPT + index: Source(register=kept + index) for index in range(code.ptx.words)}


def _predicates(target: Target, code: InstructionCode) -> dict[int, int]:
    """For each predicate of the uniform path that snippets write one that the kernel does not."""
    wanted = sorted({number for one in code.all for number in one.uniform_predicates()})
    taken = predicates.uniform_predicates(target.all_words())
    free = [number for number in range(_UNIFORM_PREDICATES) if number not in taken]
    if len(free) < len(wanted):
        counts = {"free": len(free), "needed": len(wanted)}
        raise UnsupportedKernelError(because("graft-uniform-predicates", **counts))
    return dict(zip(wanted, free, strict=False))


def _aligned(number: int) -> int:
    return -(-number // ALIGNED) * ALIGNED
