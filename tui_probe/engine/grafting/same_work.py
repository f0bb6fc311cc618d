"""PTX of the same work as the SASS of a kernel: enough for its phases, which depend on kinds of work only."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from tui_probe.engine.grafting.stay_positions import is_strong_load
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.operands import MADE_UP
from tui_probe.ptx.phase_names import MARK, PRODUCT_WAIT, PRODUCTS, work_of
from tui_probe.ptx.tree import Immediate, Instruction, Register
from tui_probe.sass.operations import PRODUCT_OPERATIONS, matrix_product, operation_class, operation_name
from tui_probe.sass.wait_classes import barrier_number, is_mbarrier_arrival, is_mbarrier_wait, own_wait
from tui_probe.sass.words import IMMEDIATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.sass.flow import FlowGraph
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

_BULK_LOAD: Final = ("cp", ("async", "bulk", "shared::cluster", "global", "mbarrier::complete_tx::bytes"))
_BULK_STORE: Final = ("cp", ("async", "bulk", "global", "shared::cta"))
_SAME_WORK: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "BRA": ("bra", ()), "BRX": ("brx", ()), "BRXU": ("brx", ()), "BSYNC": ("bra", ()), "WARPSYNC": ("bra", ()),
    "CALL": ("bra", ()), "EXIT": ("exit", ()), "RET": ("ret", ()),
    "ARRIVES": ("cp", ("async", "mbarrier", "arrive")), "LDGSTS": ("cp", ("async", "shared", "global")),
    "LDGDEPBAR": ("cp", ("async", "commit_group")), "DEPBAR": ("cp", ("async", "wait_group")),
    "UTMALDG": _BULK_LOAD, "UBLKCP": _BULK_LOAD,
    "UTMASTG": _BULK_STORE, "UTMAREDG": _BULK_STORE, "UBLKRED": _BULK_STORE,
    "PMTRIG": (MARK, ()), "ACQBULK": ("griddepcontrol", ("wait",)),
    "UGETNEXTWORKID": ("clusterlaunchcontrol", ("try_cancel", "mbarrier::complete_tx::bytes")),
    "UTCBAR": ("tcgen05", ("commit", "mbarrier::arrive::one")),
    **dict.fromkeys(("LDG", "LD"), ("ld", ("global",))),
    **dict.fromkeys(("STG", "ST", "RED", "REDG", "ATOM", "ATOMG"), ("st", ("global",))),
    **dict.fromkeys(("STS", "STSM"), ("st", ("shared",))),
    **dict.fromkeys(("SHFL", "REDUX", "CREDUX"), ("shfl", ())),
    **dict.fromkeys(("HGMMA", "IGMMA", "BGMMA", "QGMMA"), ("wgmma", ("mma_async",))),
    **dict.fromkeys(("HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "UTCIMMA"), ("mma", ())),
}  # fmt: skip
_ARITHMETIC: Final = {work: ("add", (kind,)) for work, kind in (
    ("fp32", "f32"), ("fp64", "f64"), ("fp16", "f16"), ("bf16", "bf16"), ("integer", "u32"),
)}  # fmt: skip
_OTHER_WORK: Final[tuple[str, tuple[str, ...]]] = ("mov", ())
_FUNCTION_FIELD: Final = 74, 4
"""First bit and width of the function of MUFU."""
_EX2_AND_LG2: Final = frozenset({2, 3})
"""Functions of MUFU that count as exponentials: EX2 and LG2."""
_MAX_GAP: Final = 8
"""Maximum number of instructions between a product and the product that waits for it."""


def same_work_code(target: GraftTarget, graph: FlowGraph) -> list[Instruction]:
    """Return PTX of the same work for each instruction of a kernel."""
    code = [_same_work(word, target.arch) for word in target.words]
    for block in graph.blocks:
        for index in _serial_waits([code[number] for number in block]):
            code[block[index]] = Instruction(*_OTHER_WORK, (), MADE_UP)
    return code


def thread_multiply_adds(word: Word, arch: int) -> int | None:
    """Return the multiply-adds per lane; 0 for other instructions than matrix products, None if they are unknown."""
    if word.operation not in PRODUCT_OPERATIONS:
        return None if operation_class(word, arch) == "tensor" else 0
    try:
        return matrix_product(word, arch).share
    except UnsupportedKernelError:
        return None


def _serial_waits(block: Sequence[Instruction]) -> Iterator[int]:
    """Yield the waits of a block that ptxas puts between products which it cannot overlap: part of the products."""
    works = [work_of(instruction) for instruction in block]
    products = [index for index, instruction in enumerate(block) if "mma_async" in instruction.modifiers]
    for product, next_product in itertools.pairwise(products):
        gap = range(product + 1, next_product)
        of_products = all(works[index] in (None, PRODUCTS, "compute", PRODUCT_WAIT) for index in gap)
        if of_products and len(gap) <= _MAX_GAP:
            yield from (index for index in gap if works[index] == PRODUCT_WAIT)


def _same_work(word: Word, arch: int) -> Instruction:
    """Return a PTX instruction of the same work. Its only operand is the number of a barrier, or the mark."""
    opcode, modifiers = _work_of_word(word, arch)
    operands: tuple[Immediate | Register, ...] = ()
    if opcode == "bar":
        number = barrier_number(word)
        operands = (Register("barrier") if number is None else Immediate(str(number)),)
    elif opcode == MARK:
        mask = word.field(*IMMEDIATE)
        operands = (Immediate(str(mask.bit_length() - 1) if mask.bit_count() == 1 else f"{mask:#x}"),)
    return Instruction(opcode, modifiers, operands, MADE_UP)


def _work_of_word(word: Word, arch: int) -> tuple[str, tuple[str, ...]]:
    """Return opcode and modifiers of the PTX instruction of the same work."""
    if word.never_runs:
        return _OTHER_WORK
    match own_wait(word):
        case "barrier":
            return "bar", ("sync",)
        case "cluster":
            return "barrier", ("cluster", "wait")
        case "wgmma":
            return "wgmma", ("wait_group",)
    match name := operation_name(word, arch):
        case "SYNCS":
            if is_mbarrier_wait(word):
                return "mbarrier", ("try_wait",)
            return "mbarrier", ("arrive",) if is_mbarrier_arrival(word) else ("init",)
        case "WARPGROUP":
            return "wgmma", ("fence",)
        case "LDG" | "LD" if is_strong_load(word, arch):
            return "ld", ("acquire", "global")
        case "MUFU":
            return ("ex2", ()) if word.field(*_FUNCTION_FIELD) in _EX2_AND_LG2 else ("add", ("f32",))
    return _SAME_WORK.get(name, _ARITHMETIC.get(operation_class(word, arch), _OTHER_WORK))
