"""The address of a thread's or warp's slot in a map.

::

    slot    = block × slots of a block + thread, or warp, in the block
    block   = ctaid.x + nctaid.x × (ctaid.y + nctaid.y × ctaid.z)
    thread  = tid.x + ntid.x × (tid.y + ntid.y × tid.z)                    warp = thread / 32
    address = the map's parameter + slot × bytes of a slot                 64 bits

All but the address has 32 bits: a launch with more slots, which would need tens of gigabytes, is not probed.

Most launches are flat: neither grid nor block extends in y or z. Reading a special register or a constant is dear
at the end of short blocks, so the hook tells such launches by the low bits of the address of a marked map of
warps::

    parameter = address + warps of a block, or + 0 if the launch is not flat       the address is a multiple of 256
    slot      = ctaid.x × warps of a block + tid.x / 32

On an H200 a kernel of 256 threads per block that add one number each took 1.56 times its time without that (in
machine code; 1.23 by PTX) and 1.22 times (1.17) with it.

Everything is computed where it is needed, in registers that live only there: what costs a kernel registers is what
lives across it.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.probe_model.probe import Level
from tui_probe.probe_model.storage import FOLDED_SMS, RESIDENT_SMS, SLOTS_OF_SM
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.ptx.tree import Function

_INTEGER: Final = re.compile(r"\d+")


FLAT_BITS: Final = 63
"""The bits of a map's parameter that tell the warps of a block of a flat launch."""


class LaunchKind(Enum):
    """Launches that code is for: with ``DETECTED`` it tests whether a launch is flat, with ``FLAT`` it exits in all
    others, and with ``GENERAL`` it takes each launch as not flat.
    """

    DETECTED = "every"
    FLAT = "flat"
    GENERAL = "any"


class BlockShape(NamedTuple):
    """The block's extent if the kernel fixes it (``.reqntid``), so that it need not be computed at run time."""

    x: int
    y: int
    z: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.x * self.y * self.z

    @classmethod
    def from_entry(cls, entry: Function) -> BlockShape | None:
        """Return the shape that ``.reqntid`` requires, or None."""
        numbers = [int(number) for number in _INTEGER.findall(entry.attributes.get("reqntid", ""))]
        return cls(*numbers, *[1] * (3 - len(numbers))) if 1 <= len(numbers) <= 3 else None


class Addressing:
    """PTX text that finds slots, for one kernel. ``address`` names the register that holds the address found."""

    def __init__(
        self,
        names: UnusedNames,
        shape: BlockShape | None,
        block_register: str = "",
        launches: LaunchKind = LaunchKind.DETECTED,
    ) -> None:
        """Name the registers. ``block_register`` holds the block's number in the sample, if a sample is probed."""
        self._names = names
        self._launches = launches
        self._shape = shape
        self._block_register = block_register
        self.address, self._base = (names.temporary(name, "b64") for name in ("address", "wide"))
        self._slot, self._unit, self._part, self._scratch = (
            names.temporary(name, "b32") for name in ("slot", "unit", "part", "other")
        )

    def slot(self, level: Level) -> list[str]:
        """Return lines that compute the number of the slot of this thread or warp.

        The place in the block comes first: of all orders this one leaves small kernels the most registers.
        """
        return [
            *self._thread_number(),
            *([f"shr.u32 {self._unit}, {self._unit}, 5;"] if level is Level.WARP else []),
            f"mov.u32 {self._slot}, {self._unit};",
            *self._add_previous_blocks(level, self._slot),
        ]

    def folded_slot(self) -> list[str]:
        """Return lines that find a slot of a folded map: any of the SM's, by the clock, which is read faster than the
        number of the warp.
        """
        return [
            f"mov.u32 {self._slot}, %smid;",
            f"mov.u32 {self._unit}, %clock;",
            f"and.b32 {self._slot}, {self._slot}, {FOLDED_SMS - 1};",
            f"and.b32 {self._unit}, {self._unit}, {SLOTS_OF_SM - 1};",
            f"mad.lo.u32 {self._slot}, {self._slot}, {SLOTS_OF_SM}, {self._unit};",
        ]

    @property
    def resident_register(self) -> str:
        """The register of the slot of resident maps. It, or its address, lives as long as the kernel: a warp that is
        moved keeps it, and special registers take long to read.
        """
        return self._names.temporary("resident", "b32")

    @property
    def resident_halves(self) -> list[str]:
        """The registers of the address of the slot of resident maps."""
        return [self._names.temporary(f"resident_{half}", "b32") for half in ("low", "high")]

    @property
    def lane_bit(self) -> str:
        """The register of the lane's bit in masks of its warp, which lives as long as the one of resident maps."""
        return self._names.temporary("lane_bit", "b32")

    def resident_slot(self) -> list[str]:
        """Return lines that find the slot of resident maps: the place that this warp has on its SM at its entry."""
        return [
            f"mov.u32 {self.resident_register}, %smid;",
            f"mov.u32 {self._unit}, %warpid;",
            f"and.b32 {self.resident_register}, {self.resident_register}, {RESIDENT_SMS - 1};",
            f"and.b32 {self._unit}, {self._unit}, {SLOTS_OF_SM - 1};",
            f"mad.lo.u32 {self.resident_register}, {self.resident_register}, {SLOTS_OF_SM}, {self._unit};",
        ]

    def resident_address(self, parameter: str, slot_bytes: int) -> list[str]:
        """Return lines that keep the address of the slot of resident maps; ``parameter`` points to the first map."""
        keep = f"mov.b64 {{{', '.join(self.resident_halves)}}}, {self.address};"
        return [*self.resident_slot(), *self.pointer(parameter, slot_bytes, self.resident_register), keep]

    def resident_pointer(self) -> str:
        """Return the line that sets the address to the slot of resident maps."""
        return f"mov.b64 {self.address}, {{{', '.join(self.resident_halves)}}};"

    def pointer(self, parameter: str, slot_bytes: int, slot: str = "") -> list[str]:
        """Return lines that turn the slot's number into its address in the map that ``parameter`` points to."""
        return [
            f"ld.param.u64 {self._base}, [{parameter}];",
            f"mad.wide.u32 {self.address}, {slot or self._slot}, {slot_bytes}, {self._base};",
        ]

    def marked_slot(self, parameter: str, slot_bytes: int) -> list[str]:
        """Return lines that find the address of this warp's slot in a marked map."""
        is_flat, flat_label = self._names.temporary("flat", "pred"), self._names.new_label()
        load = f"ld.param.u64 {self._base}, [{parameter}];"
        unmarked = f"and.b64 {self._base}, {self._base}, -{FLAT_BITS + 1};"
        address = f"mad.wide.u32 {self.address}, {self._slot}, {slot_bytes}, {self._base};"
        if self._launches is LaunchKind.GENERAL:
            return [*self.slot(Level.WARP), load, unmarked, address]
        test = [
            load,
            f"cvt.u32.u64 {self._unit}, {self._base};",
            f"and.b32 {self._unit}, {self._unit}, {FLAT_BITS};",
            f"setp.ne.u32 {is_flat}, {self._unit}, 0;",
        ]
        if self._launches is LaunchKind.FLAT:
            return [*test, f"@!{is_flat} exit;", *self._flat_slot(), unmarked, address]
        end_label = self._names.new_label()
        general = [*self.slot(Level.WARP), f"bra.uni {end_label};", f"{flat_label}:"]
        return [
            *test,
            f"@{is_flat} bra.uni {flat_label};",
            *general,
            *self._flat_slot(),
            f"{end_label}:",
            unmarked,
            address,
        ]

    def _flat_slot(self) -> list[str]:
        """Return the lines of ``slot`` for flat launches; the warps of a block are in ``unit``."""
        return [
            f"mov.u32 {self._slot}, %tid.x;",
            f"shr.u32 {self._slot}, {self._slot}, 5;",
            *([] if self._block_register else [f"mov.u32 {self._part}, %ctaid.x;"]),
            f"mad.lo.u32 {self._slot}, {self._block_register or self._part}, {self._unit}, {self._slot};",
        ]

    def warp_number(self, target: str, lane: str) -> list[str]:
        """Return lines that compute the number of this warp in the grid, and of the thread's lane, both 32 bits."""
        return [
            *self._thread_number(),
            f"and.b32 {lane}, {self._unit}, {WARP_SIZE - 1};",
            f"shr.u32 {target}, {self._unit}, 5;",
            *self._add_previous_blocks(Level.WARP, target),
        ]

    def _add_previous_blocks(self, level: Level, target: str) -> list[str]:
        """Return lines that add the slots of all blocks before this one to the number of a slot in its block."""
        return [
            *self._slots_of_block(level),
            *([] if self._block_register else self.block_number(self._part)),
            f"mad.lo.u32 {target}, {self._block_register or self._part}, {self._unit}, {target};",
        ]

    def block_number(self, target: str) -> list[str]:
        """Return lines that compute the block's linear number, 32 bits."""
        return [
            f"mov.u32 {target}, %ctaid.z;",
            f"mov.u32 {self._scratch}, %nctaid.y;",
            f"mul.lo.u32 {target}, {target}, {self._scratch};",
            f"mov.u32 {self._scratch}, %ctaid.y;",
            f"add.u32 {target}, {target}, {self._scratch};",
            f"mov.u32 {self._scratch}, %nctaid.x;",
            f"mul.lo.u32 {target}, {target}, {self._scratch};",
            f"mov.u32 {self._scratch}, %ctaid.x;",
            f"add.u32 {target}, {target}, {self._scratch};",
        ]

    def _slots_of_block(self, level: Level) -> list[str]:
        """Return the number of threads or warps of a block."""
        if self._shape:
            slots = -(-self._shape.threads // WARP_SIZE) if level is Level.WARP else self._shape.threads
            return [f"mov.u32 {self._unit}, {slots};"]
        to_warps = [
            f"add.u32 {self._unit}, {self._unit}, {WARP_SIZE - 1};",
            f"shr.u32 {self._unit}, {self._unit}, 5;",
        ]
        return [
            f"mov.u32 {self._unit}, %ntid.x;",
            f"mov.u32 {self._part}, %ntid.y;",
            f"mul.lo.u32 {self._unit}, {self._unit}, {self._part};",
            f"mov.u32 {self._part}, %ntid.z;",
            f"mul.lo.u32 {self._unit}, {self._unit}, {self._part};",
            *(to_warps if level is Level.WARP else []),
        ]

    def _thread_number(self) -> list[str]:
        """Return the thread's linear number in its block."""
        if self._shape and self._shape.y == self._shape.z == 1:
            return [f"mov.u32 {self._unit}, %tid.x;"]
        return [
            f"mov.u32 {self._unit}, %tid.z;",
            f"mov.u32 {self._part}, %ntid.y;",
            f"mov.u32 {self._scratch}, %tid.y;",
            f"mad.lo.u32 {self._unit}, {self._unit}, {self._part}, {self._scratch};",
            f"mov.u32 {self._part}, %ntid.x;",
            f"mov.u32 {self._scratch}, %tid.x;",
            f"mad.lo.u32 {self._unit}, {self._unit}, {self._part}, {self._scratch};",
        ]
