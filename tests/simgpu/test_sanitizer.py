"""Checks of kernels: planted faults are found with line, block and thread; correct counterparts report nothing."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tui_probe.errors import SimulationError
from tui_probe.simgpu.executor import Checker
from tui_probe.simgpu.executor.byte_states import CHANGE_ALLOCATED, CHANGE_FREED, CHANGE_INITIALISED

from .device import Device, compiled

if TYPE_CHECKING:
    from tui_probe.simgpu.executor.check_findings import Fault

GUARD = 256
ALL = 0xFFFFFFFF


class CheckedDevice(Device):
    """A device whose kernels are checked. Allocations have a gap between them."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.checker: Checker = Checker(self.memory)

    def allocate(self, size: int) -> int:
        """Memory that is not initialised."""
        address = super().allocate(size + GUARD)
        self.checker.apply([(CHANGE_ALLOCATED, address, size)])
        return address

    def upload(self, values: Any) -> int:
        """Memory that a copy initialised."""
        address = super().upload(values)
        self.checker.apply([(CHANGE_INITIALISED, address, np.asarray(values).nbytes)])
        return address

    def free(self, address: int, size: int) -> None:
        """The reverse of ``allocate``."""
        self.checker.apply([(CHANGE_FREED, address, size)])


@dataclass(frozen=True)
class Plant:
    """A kernel with a fault, which ``right`` replaced by ``wrong`` plants in a line marked ``// here``.

    ``body`` is executed by ``grid`` blocks of ``block`` threads with ``%rd1``: 256 initialised u32, ``%rd2``: 256 u32
    that are not, ``%rd3``: freed memory, ``%r1``: the thread, ``%r2``: the block, ``%rd4``, ``%rd5``: 4 times these.
    A line marked ``// other`` is the other side of a race.
    """

    kind: str
    body: str
    right: str = ""
    wrong: str = ""
    block: int = 64
    grid: int = 2
    at: tuple[int, int] | None = None
    other: tuple[int, int] | None = None
    shared: int = 1024

    def source(self, text: str) -> str:
        return HEAD + self.body.replace("FAULT", text) + "\n    ret;\n}\n"


HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 c)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<32>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<32>;
    .local .align 16 .b8 stack[64];
    .shared .align 16 .b8 tile[1024];
    .shared .align 8 .b64 ready;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mul.wide.u32 %rd4, %r1, 4;
    mul.wide.u32 %rd5, %r2, 4;
    add.u64 %rd6, %rd1, %rd4;
    add.u64 %rd7, %rd2, %rd4;
    mov.u32 %r3, tile;
    shl.b32 %r4, %r1, 2;
    add.u32 %r5, %r3, %r4;
    mov.u32 %r6, ready;
"""


def run(plant: Plant, text: str) -> tuple[list[Fault], list[str]]:
    """Return the faults that are found, and the lines of the kernel."""
    device = CheckedDevice()
    source = plant.source(text)
    initialised, plain = device.upload(np.arange(256, dtype=np.uint32)), device.allocate(1024)
    freed = device.upload(np.zeros(256, np.uint32))
    device.free(freed, 1024)
    with contextlib.suppress(SimulationError):
        device.launch(
            compiled(source), *(np.uint64(address) for address in (initialised, plain, freed)),
            grid=(plant.grid,), block=(plant.block,),
        )  # fmt: skip
    return device.checker.take_faults(), source.split("\n")


OUTSIDE = "out_of_bounds"
PLANTS = {
    "global-store": Plant(
        OUTSIDE, "FAULT // here", "st.global.u32 [%rd7], %r1;", "st.global.u32 [%rd7+840], %r1;", at=(0, 46)
    ),
    "global-load": Plant(
        OUTSIDE, "FAULT // here", "ld.global.u32 %r9, [%rd6];", "ld.global.u32 %r9, [%rd6+-8];", at=(0, 0)
    ),
    "global-vector": Plant(
        OUTSIDE,
        "mul.wide.u32 %rd8, %r1, 16;\nadd.u64 %rd8, %rd1, %rd8;\nFAULT // here",
        "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd8];",
        "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd8+16];",
        at=(0, 63),
    ),
    "global-atomic": Plant(
        OUTSIDE, "FAULT // here", "red.global.add.u32 [%rd6], 1;", "red.global.add.u32 [%rd6+800], 1;", at=(0, 56)
    ),
    "freed-load": Plant(
        "use_after_free",
        "add.u64 %rd8, %rd3, %rd4;\nFAULT // here",
        "ld.global.u32 %r9, [%rd6];",
        "ld.global.u32 %r9, [%rd8];",
        at=(0, 0),
    ),
    "freed-store": Plant(
        "use_after_free",
        "add.u64 %rd8, %rd3, %rd4;\nFAULT // here",
        "",
        "@%p1 bra L; st.global.u32 [%rd8+64], %r1; L:",
        at=(0, 0),
    ),
    "freed-generic": Plant(
        "use_after_free", "add.u64 %rd8, %rd3, %rd4;\nFAULT // here", "", "ld.u32 %r9, [%rd8];", at=(0, 0)
    ),
    "freed-atomic": Plant("use_after_free", "FAULT // here", "", "atom.global.add.u32 %r9, [%rd3], 1;", at=(0, 0)),
    "shared-store": Plant(
        OUTSIDE, "FAULT // here", "st.shared.u32 [%r5], %r1;", "st.shared.u32 [%r5+912], %r1;", at=(0, 32)
    ),
    "shared-load": Plant(OUTSIDE, "FAULT // here", "", "ld.shared.u32 %r9, [4096];", at=(0, 0)),
    "local-store": Plant(
        OUTSIDE, "FAULT // here", "st.local.u32 [stack+60], %r1;", "st.local.u32 [stack+64], %r1;", at=(0, 0)
    ),
    "local-load": Plant(
        OUTSIDE,
        "mov.u64 %rd8, stack;\nadd.u64 %rd8, %rd8, %rd4;\nFAULT // here",
        "",
        "ld.local.u32 %r9, [%rd8+4];",
        at=(0, 15),
    ),
}


@pytest.mark.parametrize("name", PLANTS)
def test_check_finds_planted_fault(name: str) -> None:
    plant = PLANTS[name]
    faults, lines = run(plant, plant.wrong)
    assert [fault.kind for fault in faults] == [plant.kind]
    place = faults[0].place
    assert "// here" in lines[place.line - 1]
    assert (place.block, place.thread) == ((plant.at[0], 0, 0), (plant.at[1], 0, 0))


@pytest.mark.parametrize("name", PLANTS)
def test_check_reports_nothing_for_correct_kernel(name: str) -> None:
    faults, _ = run(PLANTS[name], PLANTS[name].right)
    assert faults == []
