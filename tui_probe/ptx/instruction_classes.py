"""What kind of work an instruction is: by its opcode, and for arithmetic by the type that it works on.

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
