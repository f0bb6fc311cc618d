"""Tests in PTX for NaN and infinity, from the bits of numbers: ``NONFINITE VALUE KIND WORST_IN WORST_OUT``.

A number is one of them if all bits of its exponent are set. Each number of a vector, or packed into one register, is
checked. ``NONFINITE`` is 1 if a store writes one; ``VALUE`` is the first of them, ``KIND`` the type of all of them. At
arithmetic these are about its results. ``WORST_IN`` and ``WORST_OUT`` rank what it reads, literals of the kernel aside,
and what it writes: 0 finite, 1 infinite, 2 NaN. With ``WORST_OUT``, ``VALUE`` is a result of that rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instruction_facts import TYPE_BYTES
from tui_probe.ptx.value_types import FLOAT_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.ptx.value_types import Elements

NONFINITE_KINDS: Final = {"f16": 1, "bf16": 2, "f32": 3, "f64": 4}
"""Values of ``KIND`` by type of the numbers. Stored results contain them, so that they may not change."""
NONFINITE_HELPERS: Final = frozenset({"NONFINITE", "VALUE", "KIND", "WORST_IN", "WORST_OUT"})
_MAX_BITS: Final = 64
"""Bits of the widest register that is checked: ``b128`` has no arithmetic."""
_EXPONENT_MASKS: Final = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F80_0000, "f64": 0x7FF0_0000_0000_0000}


@dataclass(frozen=True, slots=True)
class NonfiniteTest:
    """PTX lines that compute ``result`` and ``value``, both registers; ``kind`` is the number of the values' type.

    The result is a predicate, or a rank of 32 bits.
    """

    lines: list[str]
    result: str
    value: str
    value_type: str
    kind: int


def nonfinite_test(
    stored: list[tuple[str, Elements | None]], types: dict[str, str], names: UnusedNames
) -> NonfiniteTest | None:
    """Return code to find a number that is not finite among ``stored`` registers and what is in each.

    ``types`` has the PTX type of each register. None if they do not all hold numbers of one type.
    """
    split = _split_numbers(stored, types, names)
    if split is None:
        return None
    kind, numbers = split
    bits = 64 if kind == "f64" else 32
    predicate, is_nonfinite, value, masked = (
        names.temporary(f"{name}{suffix}", held)
        for name, suffix, held in (
            ("nonfinite", "", "pred"), ("found", "", "pred"),
            ("value", f"_b{bits}", f"b{bits}"), ("masked", f"_b{bits}", f"b{bits}"),
        )
    )  # fmt: skip
    lines: list[str] = [f"mov.b{bits} {value}, 0;", f"setp.ne.u32 {predicate}, 0, 0;"]
    exponent = _EXPONENT_MASKS[kind]
    for *before, name in reversed(numbers):  # so that the first of several is the value at the end
        lines += before
        lines += [
            f"and.b{bits} {masked}, {name}, {exponent};",
            f"setp.eq.u{bits} {is_nonfinite}, {masked}, {exponent};",
            f"selp.b{bits} {value}, {name}, {value}, {is_nonfinite};",
            f"or.pred {predicate}, {predicate}, {is_nonfinite};",
        ]
    return NonfiniteTest(lines, predicate, value, f"b{bits}", NONFINITE_KINDS[kind])


def rank_test(
    numbers: list[tuple[str, Elements | None]], types: dict[str, str], names: UnusedNames, *, has_value: bool = True
) -> NonfiniteTest | None:
    """Return code to rank the worst number in registers: 0 if all are finite, 1 if one is infinite, 2 if one is NaN.

    Without its sign, the bits of a number that is not finite are larger than those of all that rank below it. None as
    for ``nonfinite_test``; ``has_value``: whether the worst number is kept.
    """
    split = _split_numbers(numbers, types, names)
    if split is None:
        return None
    kind, parts = split
    bits, infinity = 64 if kind == "f64" else 32, _EXPONENT_MASKS[kind]
    is_larger, rank = names.temporary("found", "pred"), names.temporary("rank", "b32")
    value, size, largest = (names.temporary(f"{name}_b{bits}", f"b{bits}") for name in ("value", "masked", "largest"))
    (*first, name), *others = parts
    unsigned = (1 << FLOAT_BITS[kind] - 1) - 1
    lines = [*first, f"and.b{bits} {largest}, {name}, {unsigned};", f"mov.b{bits} {value}, {name};"]
    for *before, name in others:
        lines += [*before, f"and.b{bits} {size}, {name}, {unsigned};"]
        if has_value:
            lines += [f"setp.gt.u{bits} {is_larger}, {size}, {largest};",
                      f"selp.b{bits} {value}, {name}, {value}, {is_larger};"]  # fmt: skip
        lines.append(f"max.u{bits} {largest}, {largest}, {size};")
    lines += [
        f"setp.ge.u{bits} {is_larger}, {largest}, {infinity};",
        f"selp.b32 {rank}, 1, 0, {is_larger};",
        f"setp.gt.u{bits} {is_larger}, {largest}, {infinity};",
        f"selp.b32 {rank}, 2, {rank}, {is_larger};",
    ]
    return NonfiniteTest(lines, rank, value, f"b{bits}", NONFINITE_KINDS[kind])


def _split_numbers(
    registers: list[tuple[str, Elements | None]], types: dict[str, str], names: UnusedNames
) -> tuple[str, list[list[str]]] | None:
    """Return the type of the numbers in registers, and ``_number_lines`` of each; None if the types differ."""
    kinds = {element for _, elements in registers for element in elements or ("",)}
    if len(kinds) != 1 or (kind := kinds.pop()) not in NONFINITE_KINDS:
        return None
    held = {name: 8 * TYPE_BYTES.get(types[name], 0) for name, _ in registers}
    if any(not FLOAT_BITS[kind] <= bits <= _MAX_BITS for bits in held.values()):
        return None
    return kind, [
        lines for name, elements in registers for lines in _number_lines(name, elements or (), kind, held[name], names)
    ]


def _number_lines(register: str, elements: Elements, kind: str, held: int, names: UnusedNames) -> Iterator[list[str]]:
    """Yield, per number in a register of ``held`` bits, the lines that move it into one of 32 or 64 bits, then that
    name.
    """
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
                   f"cvt.u32.u64 {part}, {wide};", *_low_bits(part, width), part]  # fmt: skip
        else:
            yield [
                f"mov.b32 {part}, {register};",
                shift.format(target=part, source=part),
                *_low_bits(part, width),
                part,
            ]


def _low_bits(register: str, width: int) -> list[str]:
    return [f"and.b32 {register}, {register}, 65535;"] if width == 16 else []
