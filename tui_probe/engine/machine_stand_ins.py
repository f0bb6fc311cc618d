"""What instructions of machine code may have been in PTX: arithmetic, and products of matrices by what they multiply.

One instruction stands for several of PTX: an ``FFMA`` for ``fma.f32`` and ``mad.f32``. It is counted as the first of
them, so a probe must be for all of them, or for none: one of ``fma.f32`` alone would count the others as such. Half
precision is always computed in pairs here, so a single ``fma.f16`` counts as ``fma.f16x2``. An operation that the
compiler only moves a value with, such as ``HFMA2 R0, -RZ, RZ, 0, 0``, is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.printer import MADE_UP
from tui_probe.ptx.tree import Instruction
from tui_probe.sass import matrices
from tui_probe.sass.operations import name_of
from tui_probe.sass.words import RZ

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.sass.words import Word

Family = tuple[Instruction, ...]
"""What an instruction may be in PTX; it is counted as the first."""


def _family(opcodes: Iterable[str], *types: str, of: tuple[str, ...] = ()) -> Family:
    return tuple(Instruction(opcode, (*of, type_), (), MADE_UP) for type_ in types for opcode in opcodes)


_PAIRS, _SUMS, _PRODUCTS = ("fma", "mad"), ("add", "sub"), ("mul",)
_HALVES: Final = ("f16x2", "f16", "bf16x2", "bf16")
ARITHMETIC: Final[dict[str, Family]] = {
    "FFMA": _family(_PAIRS, "f32"),
    "FADD": _family(_SUMS, "f32"),
    "FMUL": _family(_PRODUCTS, "f32"),
    "FFMA2": _family(("fma",), "f32x2"),
    "FADD2": _family(_SUMS, "f32x2"),
    "FMUL2": _family(_PRODUCTS, "f32x2"),
    "DFMA": _family(_PAIRS, "f64"),
    "DADD": _family(_SUMS, "f64"),
    "DMUL": _family(_PRODUCTS, "f64"),
    "HFMA2": _family(("fma",), *_HALVES),
    "HADD2": _family(_SUMS, *_HALVES),
    "HMUL2": _family(_PRODUCTS, *_HALVES),
}
"""By the names of instructions."""
_TYPES_OF_PRODUCTS: Final = {
    "half": ("f16", "bf16"),
    "tf32": ("tf32",),
    "double": ("f64",),
    "byte": ("s8", "u8", "s4", "u4"),
    "bit": ("b1",),
    "float8": ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"),
}
MMA: Final = {kind: _family(("mma",), *types, of=("sync",)) for kind, types in _TYPES_OF_PRODUCTS.items()}
WGMMA: Final = {
    kind: _family(("wgmma",), *types, of=("mma_async", "sync"))
    for kind, types in _TYPES_OF_PRODUCTS.items()
    if kind != "double"
}
"""By what they multiply."""
_KINDS: Final = {
    "IMMA": "byte", "IGMMA": "byte", "BMMA": "bit", "BGMMA": "bit", "DMMA": "double", "QMMA": "float8",
    "QGMMA": "float8",
}  # fmt: skip
_HMMA_TYPE, _TF32 = (82, 3), 2
_HGMMA_TF32: Final = 58
MATRICES: Final = {0x03B: "ldmatrix", 0x044: "stmatrix"}
"""LDSM, STSM."""
_HOW_MANY: Final = 72, 2
_NUMBERS: Final = ("x1", "x2", "x4")


def arithmetic(word: Word, arch: int) -> Family | None:
    """What an instruction computes; None for one that computes nothing of this kind, or only moves a value."""
    found = ARITHMETIC.get(name_of(word, arch))
    return None if word.ra == RZ else found


def product(word: Word, *, of_group: bool) -> Family:
    """A product of matrices, one of ``matrices.OPERATIONS``."""
    name = matrices.NAMES[word.operation]
    if name == "HMMA":
        kind = "tf32" if word.field(*_HMMA_TYPE) == _TF32 else "half"
    elif name == "HGMMA":
        kind = "tf32" if word.field(_HGMMA_TF32, 1) else "half"
    else:
        kind = _KINDS[name]
    return (WGMMA if of_group else MMA)[kind]


def matrix_access(word: Word) -> Instruction | None:
    """``LDSM`` and ``STSM``, with how many matrices they move; None for others."""
    opcode, number = MATRICES.get(word.operation), word.field(*_HOW_MANY)
    if opcode is None:
        return None
    how_many = _NUMBERS[number : number + 1]
    return Instruction(opcode, ("sync", "aligned", *how_many, "shared", "b16"), (), MADE_UP)
