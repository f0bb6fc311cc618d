"""``OUTSIDE``: whether an access is outside of all allocations, by the table that the hook passes to the kernel.

The table is sorted by address: u64 number of entries, then three u64 per entry::

    start   first address
    end     behind the last byte, or start if the allocation was freed
    limit   behind the last byte that it has, or had

The first entry begins at 0, and behind the last one is another start, the largest u64. So some entry begins at or below
any address, and some above it. A binary search in PTX finds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.probe_model.probe import OUTSIDE_HELPER
from tui_probe.probe_model.storage import ALLOCATIONS_PARAMETER

if TYPE_CHECKING:
    from tui_probe.engine.kernel import UnusedNames

BOUNDS_HELPERS: Final = frozenset({OUTSIDE_HELPER, "BELOW", "BELOW_END", "BELOW_LIMIT", "ABOVE"})
"""OUTSIDE: a predicate, and the code that finds the others: the entry at or below the address, and the next start."""
_FIRST_ENTRY: Final = 8
_ENTRY_BYTES: Final = 24


def bounds_register(helper: str, names: UnusedNames) -> tuple[str, str]:
    """Return the register that holds a helper, and its type."""
    kind = "pred" if helper == OUTSIDE_HELPER else "b64"
    return names.temporary(f"bounds_{helper.lower()}", kind), kind


def bounds_lines(address: str, size: str, names: UnusedNames) -> list[str]:
    """Return the code that fills all registers. ``size`` is a number, or a register of 32 bits."""
    registers = {helper: bounds_register(helper, names)[0] for helper in sorted(BOUNDS_HELPERS)}
    table, border, entry = (names.temporary(f"bounds_{name}", "b64") for name in ("table", "last", "entry"))
    lower_index, upper_index, middle_index = (
        names.temporary(f"bounds_{name}", "b32") for name in ("low", "high", "middle")
    )
    is_done, loop_label, end_label = names.temporary("bounds_is_done", "pred"), names.new_label(), names.new_label()
    return [
        f"ld.param.u64 {table}, [{names.parameter(*ALLOCATIONS_PARAMETER)}];",
        f"ld.global.u32 {upper_index}, [{table}];",
        f"mov.u32 {lower_index}, 0;",
        f"{loop_label}:",
        f"sub.u32 {middle_index}, {upper_index}, {lower_index};",
        f"setp.le.u32 {is_done}, {middle_index}, 1;",
        f"@{is_done} bra {end_label};",
        f"shr.u32 {middle_index}, {middle_index}, 1;",
        f"add.u32 {middle_index}, {middle_index}, {lower_index};",
        f"mad.wide.u32 {entry}, {middle_index}, {_ENTRY_BYTES}, {table};",
        f"ld.global.u64 {border}, [{entry}+{_FIRST_ENTRY}];",
        f"setp.gt.u64 {is_done}, {border}, {address};",
        f"selp.b32 {upper_index}, {middle_index}, {upper_index}, {is_done};",
        f"selp.b32 {lower_index}, {lower_index}, {middle_index}, {is_done};",
        f"bra {loop_label};",
        f"{end_label}:",
        f"mad.wide.u32 {entry}, {lower_index}, {_ENTRY_BYTES}, {table};",
        f"ld.global.u64 {registers['BELOW']}, [{entry}+{_FIRST_ENTRY}];",
        f"ld.global.u64 {registers['BELOW_END']}, [{entry}+{_FIRST_ENTRY + 8}];",
        f"ld.global.u64 {registers['BELOW_LIMIT']}, [{entry}+{_FIRST_ENTRY + 16}];",
        f"ld.global.u64 {registers['ABOVE']}, [{entry}+{_FIRST_ENTRY + _ENTRY_BYTES}];",
        f"cvt.u64.u32 {border}, {size};" if size.startswith("%") else f"mov.u64 {border}, {size};",
        f"add.u64 {border}, {border}, {address};",
        f"setp.gt.u64 {registers[OUTSIDE_HELPER]}, {border}, {registers['BELOW_END']};",
    ]
