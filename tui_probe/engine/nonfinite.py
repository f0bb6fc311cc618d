"""``NONFINITE``: whether a store writes a NaN or an infinity, found in the bits of what it stores.

A number is one of them if all bits of its exponent are set. Of a vector, and of numbers packed into one register, each
is looked at; ``VALUE`` is the first of them that is not finite, ``KIND`` the type of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.access import TYPE_BYTES
from tui_probe.ptx.value_types import FLOAT_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.names import Names
    from tui_probe.ptx.value_types import Elements

KINDS: Final = {"f16": 1, "bf16": 2, "f32": 3, "f64": 4}
"""The numbers of ``KIND``."""
HELPERS: Final = frozenset({"NONFINITE", "VALUE", "KIND"})
_WIDEST: Final = 64
_EXPONENT: Final = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F80_0000, "f64": 0x7FF0_0000_0000_0000}


@dataclass(frozen=True, slots=True)
class Nonfinite:
    """The lines that compute a predicate and a value in registers of theirs, and the number of the type."""

    lines: list[str]
    predicate: str
    value: str
    value_type: str
    kind: int


def nonfinite(stored: list[tuple[str, Elements | None]], types: dict[str, str], names: Names) -> Nonfinite | None:
    """How to find a number that is not finite among ``stored`` registers and what is in each.

    ``types`` has the PTX type of each register. None if they do not all hold numbers of one type.
    """
    kinds = {element for _, elements in stored for element in elements or ("",)}
    if len(kinds) != 1 or (kind := kinds.pop()) not in KINDS:
        return None
    held = {name: 8 * TYPE_BYTES.get(types[name], 0) for name, _ in stored}
    if any(not FLOAT_BITS[kind] <= bits <= _WIDEST for bits in held.values()):
        return None
    bits = 64 if kind == "f64" else 32
    predicate, found, value, masked = (
        names.temporary(f"{name}{suffix}", held)
        for name, suffix, held in (
            ("nonfinite", "", "pred"), ("found", "", "pred"), ("value", f"_b{bits}", f"b{bits}"),
            ("masked", f"_b{bits}", f"b{bits}"),
        )
    )  # fmt: skip
    lines: list[str] = [f"mov.b{bits} {value}, 0;", f"setp.ne.u32 {predicate}, 0, 0;"]
    numbers = [text for name, elements in stored for text in _numbers(name, elements or (), kind, held[name], names)]
    exponent = _EXPONENT[kind]
    for number in reversed(numbers):
        *before, name = number
        lines += before
        lines += [
            f"and.b{bits} {masked}, {name}, {exponent};",
            f"setp.eq.u{bits} {found}, {masked}, {exponent};",
            f"selp.b{bits} {value}, {name}, {value}, {found};",
            f"or.pred {predicate}, {predicate}, {found};",
        ]
    return Nonfinite(lines, predicate, value, f"b{bits}", KINDS[kind])


def _numbers(register: str, elements: Elements, kind: str, held: int, names: Names) -> Iterator[list[str]]:
    """For each number in a register of ``held`` bits: the lines that put it into one of 32 or 64, and that name."""
    width = FLOAT_BITS[kind]
    wide, part = names.temporary("bits_b64", "b64"), names.temporary("bits_b32", "b32")
    if held == 16:
        half = names.temporary("bits_b16", "b16")
        yield [f"mov.b16 {half}, {register};", f"cvt.u32.u16 {part}, {half};", part]
        return
    if width == held:
        same = wide if held == 64 else part
        yield [f"mov.b{held} {same}, {register};", same]
        return
    for place in range(len(elements)):
        shift = f"shr.b{held} {{target}}, {{source}}, {place * width};"
        if held == 64:
            yield [f"mov.b64 {wide}, {register};", shift.format(target=wide, source=wide),
                   f"cvt.u32.u64 {part}, {wide};", *_low(part, width), part]  # fmt: skip
        else:
            yield [f"mov.b32 {part}, {register};", shift.format(target=part, source=part), *_low(part, width), part]


def _low(register: str, width: int) -> list[str]:
    return [f"and.b32 {register}, {register}, 65535;"] if width == 16 else []
