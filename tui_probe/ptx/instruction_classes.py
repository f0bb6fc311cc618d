"""Names and classes of PTX instructions, and the number of SASS instructions that each becomes.

    fp32 fp64        arithmetic and comparison on f32, on f64
    fp16 bf16        on f16, on bf16, also packed in pairs
    integer          arithmetic, comparison, shifts and logic on integers, bits and predicates
    tensor           mma, wmma.mma, wgmma.mma_async, tcgen05.mma
    load             ld, ldmatrix, wmma.load, textures and surfaces, cp.async and bulk copies into shared memory
    store            st, stmatrix, wmma.store, surfaces, bulk copies and reductions out of shared memory
    atomic           atom, red
    branch           bra, brx, call, ret, exit
    barrier          bar, barrier, mbarrier, fences, and waiting for copies or for wgmma
    other            moves, conversions, parameters, shuffles and votes, hints

These are instructions of PTX. The assembler makes none of some (``ld.param``) and several of others (``div``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction

OPCODES: Final = frozenset(
    re.findall(
        r"\S+",
        """
        abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx
        call clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a elect ex2
        exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc
        mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent
        popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf shfl shl shr
        sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext tanh tcgen05
        tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax
        vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma xor
        """,
    )
)
STATE_SPACES: Final = ("global", "shared", "local", "param", "const")
"""The modifiers that say in which memory an instruction works."""


CLASSES: Final = (
    "fp32", "fp64", "fp16", "bf16", "integer", "tensor", "load", "store", "atomic", "branch", "barrier", "other",
)  # fmt: skip

_BY_OPCODE: Final = {
    **dict.fromkeys(("ld", "ldu", "ldmatrix", "tex", "tld4", "suld"), "load"),
    **dict.fromkeys(("st", "stmatrix", "sust"), "store"),
    **dict.fromkeys(("atom", "red", "sured"), "atomic"),
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit"), "branch"),
    **dict.fromkeys(("bar", "barrier", "mbarrier", "membar", "fence"), "barrier"),
    "mma": "tensor",
}
_ARITHMETIC: Final = frozenset(
    re.findall(
        r"\S+",
        """
        add sub mul mad fma div rem abs neg min max sqrt rsqrt rcp sin cos lg2 ex2 tanh copysign testp set setp
        addc subc madc mul24 mad24 sad and or xor not cnot shl shr shf lop3 bfe bfi bfind brev bmsk szext prmt
        popc clz fns dp2a dp4a vadd vsub vmad vmin vmax vshl vshr vset
        """,
    )
)
_BY_TYPE: Final = {
    **dict.fromkeys(("f32", "f32x2"), "fp32"),
    "f64": "fp64",
    **dict.fromkeys(("f16", "f16x2"), "fp16"),
    **dict.fromkeys(("bf16", "bf16x2"), "bf16"),
}
_BY_PART: Final = {
    "load": "load", "ld": "load", "store": "store", "st": "store", "mma": "tensor", "mma_async": "tensor",
    "fence": "barrier", "wait_group": "barrier", "wait": "barrier",
}  # fmt: skip


def class_of(instruction: Instruction) -> str:
    """The class of an instruction, one of ``CLASSES``."""
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode in _ARITHMETIC:
        kinds = [modifier for modifier in modifiers if modifier in _BY_TYPE]
        return _BY_TYPE[kinds[-1]] if kinds else "integer"
    if opcode in ("wmma", "wgmma", "tcgen05"):
        return next((_BY_PART[modifier] for modifier in modifiers[:1] if modifier in _BY_PART), "other")
    if opcode == "cp":
        return _class_of_copy(modifiers)
    if opcode in ("ld", "st") and any(modifier.partition("::")[0] == "param" for modifier in modifiers):
        return "other"
    return _BY_OPCODE.get(opcode, "other")


def _class_of_copy(modifiers: tuple[str, ...]) -> str:
    """``cp.async`` in all its forms: copies, and what waits for them."""
    if any(modifier.startswith("wait_") for modifier in modifiers):
        return "barrier"
    if "bulk_group" in modifiers:
        return "store"
    if any(modifier.partition("::")[0] == "shared" for modifier in modifiers):
        return "load"
    return "other"


# How many machine instructions the assembler makes of one of PTX, where that is known not to be one.
#
# Of division, roots and their like it makes a dozen: the numbers are what is executed for operands of usual size, as
# ``python -m tests.bench.expansions`` reads them off machine code for sm_90 (for sm_80 some are one less). Of the
# class ``other`` it drops most: moves and parameters become operands, and conversions of integers parts of registers.
# What it makes of all other instructions is about one each, some folded into others and some split into halves of 64
# bits.

_EXPANSIONS: Final = {
    ("sqrt", "rn", "f32"): 9, ("sqrt", "approx", "f32"): 5, ("sqrt", "rn", "f64"): 17,
    ("rcp", "rn", "f32"): 9, ("rcp", "approx", "f32"): 8, ("rcp", "rn", "f64"): 10, ("rcp", "approx", "f64"): 2,
    ("rsqrt", "approx", "f32"): 5, ("rsqrt", "approx", "f64"): 13,
    ("sin", "approx", "f32"): 2, ("cos", "approx", "f32"): 2, ("ex2", "approx", "f32"): 5, ("lg2", "approx", "f32"): 5,
    ("div", "rn", "f32"): 9, ("div", "full", "f32"): 10, ("div", "approx", "f32"): 7, ("div", "rn", "f64"): 15,
    ("div", "", "s32"): 25, ("div", "", "u32"): 18, ("rem", "", "s32"): 22, ("rem", "", "u32"): 17,
    ("div", "", "s64"): 89, ("div", "", "u64"): 73, ("rem", "", "s64"): 83, ("rem", "", "u64"): 69,
    ("mul", "lo", "s64"): 4, ("mul", "lo", "u64"): 4, ("mul", "hi", "u64"): 7, ("mul", "hi", "s64"): 7,
    ("max", "", "f64"): 9, ("min", "", "f64"): 9,
}  # fmt: skip
_SCALED_OPCODES: Final = frozenset({"sqrt", "rsqrt", "ex2", "lg2", "rcp"})
"""Approximations that scale denormal numbers of f32, and are one instruction with ``.ftz``."""
_ROUNDINGS: Final = ("rn", "rz", "rm", "rp", "approx", "full", "lo", "hi")
_DIRECTED_ROUNDINGS: Final = frozenset({"rz", "rm", "rp"})
_WARP_OPCODES: Final = frozenset({"shfl", "vote", "match", "redux", "activemask"})
_REAL_TYPES: Final = frozenset({"f16", "bf16", "f32", "f64", "e4m3x2", "e5m2x2", "f16x2", "bf16x2", "tf32"})


def sass_instruction_count(instruction: Instruction) -> int:
    """About how many machine instructions are executed for an instruction of PTX."""
    modifiers = instruction.modifiers
    if class_of(instruction) == "other":
        converts = instruction.opcode == "cvt" and any(modifier in _REAL_TYPES for modifier in modifiers)
        return int(converts or instruction.opcode in _WARP_OPCODES)
    type_ = modifiers[-1] if modifiers else ""
    way = next((modifier for modifier in modifiers if modifier in _ROUNDINGS), "")
    way = "rn" if way in _DIRECTED_ROUNDINGS else way
    if "ftz" in modifiers and (way, type_) == ("approx", "f32") and instruction.opcode in _SCALED_OPCODES:
        return 1
    return _EXPANSIONS.get((instruction.opcode, way, type_), 1)
