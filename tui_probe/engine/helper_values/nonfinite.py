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
    registers: list[tuple[str, Elements | None]], types: dict[str, str], names: UnusedNames
) -> NonfiniteTest | None:
    """Return code to find a number that is not finite among ``registers`` registers and what is in each.

    ``types`` has the PTX type of each register. None if they do not all hold numbers of one type.
    """
    typed_numbers = _split_numbers(registers, types, names)
    if typed_numbers is None:
        return None
    kind, numbers = typed_numbers
    bits = 64 if kind == "f64" else 32
    predicate, is_nonfinite, value, masked = (
        names.temporary(f"{name}{suffix}", ptx_type)
        for name, suffix, ptx_type in (
            ("nonfinite", "", "pred"), ("found", "", "pred"),
            ("value", f"_b{bits}", f"b{bits}"), ("masked", f"_b{bits}", f"b{bits}"),
        )
    )  # fmt: skip
    lines: list[str] = [f"mov.b{bits} {value}, 0;", f"setp.ne.u32 {predicate}, 0, 0;"]
    exponent = _EXPONENT_MASKS[kind]
    for *number_lines, name in reversed(numbers):  # so that the first of several is the value at the end
        lines += number_lines
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
    typed_numbers = _split_numbers(numbers, types, names)
    if typed_numbers is None:
        return None
    kind, parts = typed_numbers
    bits, infinity = 64 if kind == "f64" else 32, _EXPONENT_MASKS[kind]
    is_larger, rank = names.temporary("found", "pred"), names.temporary("rank", "b32")
    value, size, maximum = (names.temporary(f"{name}_b{bits}", f"b{bits}") for name in ("value", "masked", "largest"))
    (*first_lines, name), *other_numbers = parts
    unsigned = (1 << FLOAT_BITS[kind] - 1) - 1
    lines = [*first_lines, f"and.b{bits} {maximum}, {name}, {unsigned};", f"mov.b{bits} {value}, {name};"]
    for *number_lines, name in other_numbers:
        lines += [*number_lines, f"and.b{bits} {size}, {name}, {unsigned};"]
        if has_value:
            lines += [f"setp.gt.u{bits} {is_larger}, {size}, {maximum};",
                      f"selp.b{bits} {value}, {name}, {value}, {is_larger};"]  # fmt: skip
        lines.append(f"max.u{bits} {maximum}, {maximum}, {size};")
    lines += [
        f"setp.ge.u{bits} {is_larger}, {maximum}, {infinity};",
        f"selp.b32 {rank}, 1, 0, {is_larger};",
        f"setp.gt.u{bits} {is_larger}, {maximum}, {infinity};",
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
    register_bits = {name: 8 * TYPE_BYTES.get(types[name], 0) for name, _ in registers}
    if any(not FLOAT_BITS[kind] <= bits <= _MAX_BITS for bits in register_bits.values()):
        return None
    return kind, [
        lines
        for name, elements in registers
        for lines in _number_lines(name, elements or (), kind, register_bits[name], names)
    ]


def _number_lines(
    register: str, elements: Elements, kind: str, register_bits: int, names: UnusedNames
) -> Iterator[list[str]]:
    """Yield per number in a register the lines that move it into one of 32 or 64 bits, then the name of that one."""
    width = FLOAT_BITS[kind]
    wide_register, number = names.temporary("bits_b64", "b64"), names.temporary("bits_b32", "b32")
    if register_bits == 16:
        half = names.temporary("bits_b16", "b16")
        yield [f"mov.b16 {half}, {register};", f"cvt.u32.u16 {number}, {half};", number]
        return
    if width == register_bits:
        target = wide_register if register_bits == 64 else number
        yield [f"mov.b{register_bits} {target}, {register};", target]
        return
    for place in range(len(elements)):
        shift = f"shr.b{register_bits} {{target}}, {{source}}, {place * width};"
        if register_bits == 64:
            yield [f"mov.b64 {wide_register}, {register};", shift.format(target=wide_register, source=wide_register),
                   f"cvt.u32.u64 {number}, {wide_register};", *_low_bits(number, width), number]  # fmt: skip
        else:
            yield [
                f"mov.b32 {number}, {register};",
                shift.format(target=number, source=number),
                *_low_bits(number, width),
                number,
            ]


def _low_bits(register: str, width: int) -> list[str]:
    return [f"and.b32 {register}, {register}, 65535;"] if width == 16 else []
