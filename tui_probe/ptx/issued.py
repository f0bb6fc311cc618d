"""How many machine instructions the assembler makes of one of PTX, where that is known not to be one.

Of division, roots and their like it makes a dozen: the numbers are what is executed for operands of usual
size, as ``python -m tests.bench.expansions`` reads them off machine code for sm_90 (for sm_80 some are one less). Of
the class ``other`` it drops most: moves and parameters become operands, and conversions of integers parts of
registers. What it makes of all other instructions is about one each, some folded into others and some split into
halves of 64 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instruction_classes import class_of

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Instruction

_EXPANDED: Final = {
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
_SCALED: Final = frozenset({"sqrt", "rsqrt", "ex2", "lg2", "rcp"})
"""Approximations that scale denormal numbers of f32, and are one instruction with ``.ftz``."""
_WAYS: Final = ("rn", "rz", "rm", "rp", "approx", "full", "lo", "hi")
_DIRECTED: Final = frozenset({"rz", "rm", "rp"})
_OF_WARPS: Final = frozenset({"shfl", "vote", "match", "redux", "activemask"})
_REALS: Final = frozenset({"f16", "bf16", "f32", "f64", "e4m3x2", "e5m2x2", "f16x2", "bf16x2", "tf32"})


def issued(instruction: Instruction) -> int:
    """About how many machine instructions are executed for an instruction of PTX."""
    modifiers = instruction.modifiers
    if class_of(instruction) == "other":
        converts = instruction.opcode == "cvt" and any(each in _REALS for each in modifiers)
        return int(converts or instruction.opcode in _OF_WARPS)
    type_ = modifiers[-1] if modifiers else ""
    way = next((each for each in modifiers if each in _WAYS), "")
    way = "rn" if way in _DIRECTED else way
    if "ftz" in modifiers and (way, type_) == ("approx", "f32") and instruction.opcode in _SCALED:
        return 1
    return _EXPANDED.get((instruction.opcode, way, type_), 1)
