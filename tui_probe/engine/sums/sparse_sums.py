"""Add to ``sparse`` maps of warps (``ADD``): only the lanes with a value execute the addition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.ptx.operands import parse_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.probe_model.probe import Map

_WIDE_BYTES: Final = 8


class SparseSummation:
    """PTX text of ``ADD`` to ``sparse`` maps of one kernel. ``own`` maps the probe's registers to their names there.

    Most lanes of a warp have nothing to add: one branch leads these past the address and the additions, and each other
    lane adds its own. One lane usually counted for all, so sums over lanes would cost more than they save. Numbers are
    added by the lowest lane for all that arrive together.

    Two fields of 32 bits in 8 aligned bytes are added together, as one number of 64 bits: the lower one carries into
    the other when it exceeds 2^32, where it would be wrong in any case. One field is added so, too, since ptxas makes a
    sum over lanes of 32-bit numbers that go to the same address.
    """

    def __init__(self, names: UnusedNames, own: Mapping[str, str]) -> None:
        self._names = names
        self._own = own
        self._end = ""

    def before(self, values: tuple[str, ...], zero: frozenset[str], *, tests: bool) -> list[str]:
        """Return the lines before those that compute the address, which only lanes with something to add reach.

        Without ``tests`` all lanes have something, if there are no numbers among the values.
        """
        registers = [self._own[value] for value in values if value in self._own and value not in zero]
        numbers = any(parse_integer(value) for value in values)
        self._end = ""
        if not (tests or numbers):
            return []
        self._end = self._names.new_label()
        any_, adds = self._b32("any"), self._names.temporary("adds", "pred")
        lines = self._count_lanes() if numbers else []
        lines += [f"mov.u32 {any_}, {self._b32('together') if numbers else 0};"]
        lines += [f"or.b32 {any_}, {any_}, {register};" for register in registers]
        return [*lines, f"setp.ne.u32 {adds}, {any_}, 0;", f"@!{adds} bra {self._end};"]

    def lines(self, own_map: Map, values: tuple[str, ...], address: str, zero: frozenset[str]) -> list[str]:
        """Return the lines behind ``before`` that add to the record at ``address``, without registers in ``zero``."""
        added: dict[int, str] = {}
        lines: list[str] = []
        for field, value in zip(own_map.fields, values, strict=True):
            number = parse_integer(value)
            if value in zero or number == 0:
                continue
            added[field.offset] = self._own.get(value, value) if number is None else self._product(number, lines)
        for first in sorted({offset - offset % _WIDE_BYTES for offset in added}):
            lines += self._add_pair(address, first, added.get(first), added.get(first + _WIDE_BYTES // 2))
        return [*lines, *([f"{self._end}:"] if self._end else [])]

    def _count_lanes(self) -> list[str]:
        """Return the lines that set ``together``: number of arrived lanes in the lowest lane, 0 in others."""
        lanes, lower, together = (self._b32(name) for name in ("lanes", "lower", "together"))
        lowest = self._names.temporary("lowest", "pred")
        return [
            f"activemask.b32 {lanes};",
            f"mov.u32 {lower}, %lanemask_lt;",
            f"and.b32 {lower}, {lower}, {lanes};",
            f"setp.eq.u32 {lowest}, {lower}, 0;",
            f"popc.b32 {together}, {lanes};",
            f"selp.b32 {together}, {together}, 0, {lowest};",
        ]

    def _product(self, number: int, lines: list[str]) -> str:
        """Return the register that holds a number for all lanes together."""
        if number == 1:
            return self._b32("together")
        product = self._b32(f"product{number}")
        lines.append(f"mul.lo.u32 {product}, {self._b32('together')}, {number};")
        return product

    def _add_pair(self, address: str, offset: int, low: str | None, high: str | None) -> list[str]:
        """Return the lines that add two fields, of which one may be missing."""
        pair, nothing = self._names.temporary("sum", "b64"), self._b32("nothing")
        place = f"{address}+{offset}" if offset else address
        return [
            *([] if low and high else [f"mov.u32 {nothing}, 0;"]),
            f"mov.b64 {pair}, {{{low or nothing}, {high or nothing}}};",
            f"red.global.add.u64 [{place}], {pair};",
        ]

    def _b32(self, name: str) -> str:
        return self._names.temporary(name, "b32")
