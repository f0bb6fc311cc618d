"""Forms of conversions and of arithmetic, with values to try them on: what a GPU and NumPy must agree on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

INTEGERS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "us"]
FLOATS = {"f16": 16, "f32": 32, "f64": 64}
BITS = {
    **{name: int(name[1:]) for name in INTEGERS},
    **FLOATS,
    "bf16": 16,
    "tf32": 32,
    "f16x2": 32,
    "bf16x2": 32,
    "e4m3x2": 16,
    "e5m2x2": 16,
}
COUNT = 512
WHOLE_MODES = ("rni", "rzi", "rmi", "rpi")


@dataclass(frozen=True)
class Form:
    """An instruction without its operands, and the types of its result and of its operands."""

    name: str
    written: str
    read: tuple[str, ...]

    @property
    def text(self) -> str:
        """With the operands that ``evaluate`` gives it."""
        return f"{self.name} {', '.join(['%d', *(f'%{letter}' for letter in 'abc'[: len(self.read)])])};"

    def inputs(self, generator: np.random.Generator) -> list[Array]:
        """Values for each operand: special ones, of like size, of any size."""
        return [_values(kind, generator) for kind in self.read]

    def same(self, found: Array, other: Array) -> Array:
        """Return the mask of equal results: equal bits, or NaN in both."""
        left, right = _parts(found, self.written), _parts(other, self.written)
        agree = left == right
        if self.written not in INTEGERS:
            agree |= _is_nan(left, self.written) & _is_nan(right, self.written)
        return agree.all(axis=-1)


def dtype_of(kind: str) -> np.dtype[Any]:
    """The type of untyped arrays of ``kind``."""
    return np.dtype(f"u{BITS[kind] // 8}")


def _values(kind: str, generator: np.random.Generator) -> Array:
    bits = BITS[kind]
    raw = generator.integers(0, 2**bits, COUNT, np.uint64)
    if kind in INTEGERS:
        raw[: COUNT // 2] >>= generator.integers(0, bits, COUNT // 2).astype(np.uint64)
        raw[:6] = (0, 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2**bits - 1, 2**bits - 2)
        return raw.astype(dtype_of(kind))
    if kind == "f16x2" or kind == "bf16x2":
        halves = [_values(kind.removesuffix("x2"), generator).astype(np.uint32) for _ in range(2)]
        return halves[0] | halves[1] << np.uint32(16)
    if kind in ("e4m3x2", "e5m2x2"):
        return raw.astype(np.uint16)
    like = generator.standard_normal(COUNT // 2) * 2.0 ** generator.integers(-12, 12, COUNT // 2)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5])
    raw[: len(like)] = _encoded(like, kind)
    raw[: len(special)] = _encoded(generator.permutation(special), kind)
    return raw.astype(dtype_of(kind))


def _encoded(numbers: Array, kind: str) -> Array:
    if kind == "bf16":
        return numbers.astype(np.float32).view(np.uint32) >> 16
    with np.errstate(over="ignore"):
        return numbers.astype({"f16": np.float16, "f64": np.float64}.get(kind, np.float32)).view(dtype_of(kind))


def _parts(values: Array, kind: str) -> Array:
    """The numbers of a register, side by side."""
    size = BITS[kind] // (2 if kind.endswith("x2") else 1)
    return np.ascontiguousarray(values).view(f"u{size // 8}").reshape(len(values), -1)


def _is_nan(parts: Array, kind: str) -> Array:
    kind = kind.removesuffix("x2")
    infinity = {"f16": 0x7C00, "bf16": 0x7F80, "f64": 0x7FF << 52, "e4m3": 0x7E, "e5m2": 0x7C}.get(kind, 0x7F800000)
    mask = (1 << 8 * parts.dtype.itemsize - 1) - 1
    return (parts & parts.dtype.type(mask)) > parts.dtype.type(infinity)


def _holds(kind: str, other: str) -> bool:
    """Return True if an integer type has all numbers of another, which then has no ``.sat`` form."""
    wider = BITS[kind] > BITS[other]
    return wider and (kind[0] == other[0] or kind[0] == "s")


def _conversions() -> list[Form]:
    pairs = [(d, a) for d, a in product(INTEGERS, INTEGERS) if d != a]
    forms = [Form(f"cvt.{d}.{a}", d, (a,)) for d, a in pairs]
    forms += [Form(f"cvt.sat.{d}.{a}", d, (a,)) for d, a in pairs if not _holds(d, a)]
    for whole, number in product(INTEGERS, FLOATS):
        ftz = ("", ".ftz") if number == "f32" else ("",)
        forms += [Form(f"cvt.{m}{z}.{whole}.{number}", whole, (number,)) for m in WHOLE_MODES for z in ftz]
        forms += [Form(f"cvt.{m}.{number}.{whole}", number, (whole,)) for m in ("rn", "rz", "rm", "rp")]
    for d, a in product(FLOATS, FLOATS):
        modes = ("rn", "rz", "rm", "rp") if FLOATS[d] < FLOATS[a] else ()
        whole_modes = WHOLE_MODES if d == a else ()
        wide = ("",) if FLOATS[d] > FLOATS[a] else ()
        names = [f".{mode}" for mode in (*modes, *whole_modes)] + list(wide)
        ftz = ("", ".ftz") if "f32" in (d, a) else ("",)
        forms += [Form(f"cvt{n}{z}{s}.{d}.{a}", d, (a,)) for n in names for z in ftz for s in ("", ".sat")]
    return forms


def _short_conversions() -> list[Form]:
    forms = [Form(f"cvt.{m}{r}.bf16.f32", "bf16", ("f32",)) for m in ("rn", "rz") for r in ("", ".relu")]
    forms += [Form(f"cvt.{m}.relu.f16.f32", "f16", ("f32",)) for m in ("rn", "rz")]
    for pair in ("f16x2", "bf16x2"):
        forms += [Form(f"cvt.{m}{r}.{pair}.f32", pair, ("f32", "f32")) for m in ("rn", "rz") for r in ("", ".relu")]
    for pair, relu in product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        forms.append(Form(f"cvt.rn.satfinite{relu}.{pair}.f32", pair, ("f32", "f32")))
        forms.append(Form(f"cvt.rn.satfinite{relu}.{pair}.f16x2", pair, ("f16x2",)))
        forms.append(Form(f"cvt.rn{relu}.f16x2.{pair}", "f16x2", (pair,)))
    forms += [Form(f"cvt.{m}.tf32.f32", "tf32", ("f32",)) for m in ("rna", "rn", "rz", "rn.relu", "rz.relu")]
    forms += [Form(f"cvt.rn.{n}.{a}", n, (a,)) for n in ("bf16",) for a in INTEGERS[2:]]
    return forms + [Form(f"cvt.{m}.{a}.bf16", a, ("bf16",)) for a in INTEGERS[2:] for m in WHOLE_MODES]


def _arithmetic() -> list[Form]:
    forms = []
    for kind, mode in product(("f32", "f64"), ("rn", "rz", "rm", "rp")):
        for suffix in ("", ".ftz", ".sat", ".ftz.sat") if kind == "f32" else ("",):
            forms += [Form(f"{op}.{mode}{suffix}.{kind}", kind, (kind,) * 2) for op in ("add", "sub", "mul")]
            forms.append(Form(f"fma.{mode}{suffix}.{kind}", kind, (kind,) * 3))
        forms.append(Form(f"div.{mode}.{kind}", kind, (kind,) * 2))
        forms += [Form(f"{op}.{mode}.{kind}", kind, (kind,)) for op in ("rcp", "sqrt")]
    for kind in ("f16", "f16x2", "bf16", "bf16x2"):
        suffixes = ("", ".ftz", ".sat", ".ftz.sat") if kind.startswith("f") else ("",)
        forms += [Form(f"{op}.rn{s}.{kind}", kind, (kind,) * 2) for op in ("add", "sub", "mul") for s in suffixes]
        forms += [Form(f"fma.rn{s}.{kind}", kind, (kind,) * 3) for s in (*suffixes, ".relu")]
    for kind in ("f16", "f16x2", "bf16", "bf16x2", "f32"):
        ftz = ("",) if kind.startswith("bf") else ("", ".ftz")
        suffixes = [z + n + x for z in ftz for n in ("", ".NaN") for x in ("", ".xorsign.abs")]
        forms += [Form(f"{op}{s}.{kind}", kind, (kind,) * 2) for op in ("min", "max") for s in suffixes]
        forms += [Form(f"{op}{z}.{kind}", kind, (kind,)) for op in ("abs", "neg") for z in ftz]
    return forms + [Form(f"{op}.f64", "f64", ("f64",) * 2) for op in ("min", "max")]


FORMS = _conversions() + _short_conversions() + _arithmetic()
