"""Instructions of machine code at which a thread may wait for others: by them blocks may wait for one another, and a
warp may stay for ever. ``ptx/waiting.py`` recognises the former by PTX.

A block observes another one by reading memory in an order that the hardware keeps: by a strong load, by an atomic
operation that returns the old value, or by any load behind a fence. Without any of these, blocks cannot wait, and run
one after another as well as at the same time. Blocks of a cluster may wait: they always start together.

A warp may stay at ``stay.access`` and ``stay.other``. ``stay.access`` are strong loads and atomics whose result is
used, which a loop may repeat until memory has some value. ``stay.other`` are barriers of blocks and clusters,
operations of mbarriers, and the heads of loops that no other such instruction is in and whose end does not depend on a
count. A count is a register that a test in the loop compares, and to which the loop adds.

Not found: ``WARPSYNC``, which cannot be moved, and loops with several entries.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_model.positions import STAY
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.sass.accesses import ATOM, ATOMG, ATOMS
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.words import CONTROL_FLOW, RZ

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tui_probe.probe_model.probe import Probe
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_LOAD_OPERATIONS: Final = frozenset({"LD", "LDG"})
_ORDERING_OPERATIONS: Final = frozenset({"ATOM", "ATOMG", "LDGMC", "MEMBAR", "ERRBAR", "CCTL"})
_LEADS_AWAY: Final = frozenset({0x143, 0x14A, 0x14B, 0x153})
"""CALL.ABS, JMP, JMX, JMXU: they lead to code that is not searched."""
_ORDER_FIELD: Final = (77, 4)
_WEAK_ORDER: Final = frozenset({0, 4})
"""Weak, and of memory that no one writes. Strong loads are 5, 7 and 10 (block, GPU, system), of mapped devices 12: so
nvdisasm reads them for sm_80, sm_90, sm_100 and sm_120.
"""

_STAY_ACCESS: Final = Instruction(STAY, ("access",), (), MADE_UP)
_STAY_OTHER: Final = Instruction(STAY, ("other",), (), MADE_UP)
_BARRIERS: Final = frozenset({"BAR", "SYNCS", "UCGABAR"})
_TESTS: Final = frozenset({"ISETP", "UISETP"})
"""Comparisons of integers, which end counted loops; ``U``: of uniform registers."""
_ADDITIONS: Final = frozenset({"IADD3", "VIADD", "IADD", "LEA", "UIADD3", "ULEA"})
_PRODUCTS: Final = frozenset({"IMAD", "UIMAD"})
_REGISTER_FORM: Final = 1
"""Form of an instruction whose second source is a register."""
_SUM_IN_THIRD: Final = frozenset({1, 4, 5, 6})
"""Forms whose third field is what a product is added to: the second source is in a register (1), or it is a number (4),
a constant (5) or a uniform register (6). In the other forms the third field is the second factor.
"""
_THIRD_SOURCE: Final = 64, 8
"""First bit and width of the third source register."""
_ZEROS: Final = frozenset({RZ, 63})
"""Registers that read as 0; up to sm_90 the last uniform one, too."""


def blocks_may_wait(words: Iterable[Word], arch: int) -> bool:
    """Return whether any instruction of a kernel lets a block observe others. An unknown instruction counts as one."""
    return any(_may_signal(word, arch) for word in words if not word.never_runs)


def is_strong_load(word: Word, arch: int) -> bool:
    """Return whether a load sees what others store: one that is volatile, relaxed or acquires."""
    return operation_name(word, arch) in _LOAD_OPERATIONS and word.field(*_ORDER_FIELD) not in _WEAK_ORDER


def _may_signal(word: Word, arch: int) -> bool:
    name = operation_name(word, arch)
    if name in _LOAD_OPERATIONS:
        return is_strong_load(word, arch)
    return not name or name in _ORDERING_OPERATIONS or word.operation in _LEADS_AWAY


def sass_form(probe: Probe) -> Probe:
    """Return the form of a probe for SASS: of one with ``stay`` positions, the points at these and at the kernel."""
    if not any(position.is_stay for position in probe.positions):
        return probe
    points = (
        point for point in probe.points if all(position.is_stay or position.is_kernel for position in point.positions)
    )
    return replace(probe, points=tuple(points))


def stay_instructions(target: GraftTarget) -> dict[int, Instruction]:
    """Return the PTX equivalents of the instructions of a kernel at which a warp may stay, by their numbers."""
    stays = {
        index: stay
        for index, word in enumerate(target.words)
        if not word.never_runs and (stay := _stay_of(word, target.arch)) is not None
    }
    return stays | dict.fromkeys(_loop_heads(target, stays), _STAY_OTHER)


def _stay_of(word: Word, arch: int) -> Instruction | None:
    name = operation_name(word, arch)
    if name in _BARRIERS or word.operation in ATOMS:
        return _STAY_OTHER
    if is_strong_load(word, arch) or (word.operation in ATOM | ATOMG and word.rd != RZ):
        return _STAY_ACCESS
    return None


def _loop_heads(target: GraftTarget, stays: Iterable[int]) -> list[int]:
    """Return an instruction at the head of each loop that may not end and has no place to stay in it."""
    try:
        flow = FlowGraph.from_target(target)
        loops = flow.loops
    except UnsupportedKernelError:
        return []
    stay_blocks = {flow.block_at(index) for index in stays}
    heads = []
    for loop in loops:
        body = [target.words[index] for block in loop.blocks for index in flow.blocks[block]]
        if not stay_blocks & loop.blocks and not _is_counted(body, target.arch):
            head = flow.blocks[loop.header]
            # Instruction 0 has the entry code of the probe, so it cannot have that of a site.
            heads += [index for index in head if index and target.words[index].operation not in CONTROL_FLOW][:1]
    return heads


def _is_counted(words: Sequence[Word], arch: int) -> bool:
    """Return whether a test in a loop compares a register to which the loop adds."""
    counters, compared_registers = set(), set()
    for word in words:
        name = operation_name(word, arch)
        if name in _TESTS:
            # The third field of a comparison does not hold a register. It holds the predicate of its lower half.
            compared_registers |= {(name[0] == "U", number) for number in _sources(word)[:-1]}
        elif word.rd not in _ZEROS and _adds_to_destination(name, word):
            counters.add((name[0] == "U", word.rd))
    return bool(counters & compared_registers)


def _adds_to_destination(name: str, word: Word) -> bool:
    """Return whether an instruction adds to the register that it writes."""
    sources = _sources(word)
    return (name in _ADDITIONS and word.rd in sources) or (
        name in _PRODUCTS and word.form in _SUM_IN_THIRD and word.rd == sources[-1]
    )


def _sources(word: Word) -> list[int]:
    """Return the registers that an instruction reads, the third one last."""
    return [word.ra, *([word.rb] if word.form == _REGISTER_FORM else []), word.field(*_THIRD_SOURCE)]
