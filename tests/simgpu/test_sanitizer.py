"""Checks of kernels: planted faults are found with line, block and thread; correct counterparts report nothing."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from tui_probe.errors import SimulationError
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import Checker
from tui_probe.simgpu.executor.checks.access_order import BatchOrder
from tui_probe.simgpu.executor.checks.byte_states import (
    CHANGE_ALLOCATED,
    CHANGE_FREED,
    CHANGE_INITIALISED,
)

from .device import BASE, Device, compiled

if TYPE_CHECKING:
    from tui_probe.simgpu.executor.checks.accesses import AccessPlace, Fault

GUARD = 256
HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 c)
{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<32>;
    .local .align 16 .b8 stack[64];
    .shared .align 16 .b8 tile[1024];
    .shared .align 8 .b64 ready;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r6, ready;
    setp.ne.u32 %p1, %r1, 0;
    setp.ge.u32 %p2, %r1, 32;
    shl.b32 %r4, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r5, %r3, %r4;
    mad.lo.u32 %r7, %r2, 64, %r1;
    mul.wide.u32 %rd4, %r1, 4;
    mul.wide.u32 %rd5, %r7, 4;
    add.u64 %rd6, %rd1, %rd5;
    add.u64 %rd7, %rd2, %rd5;
    add.u64 %rd8, %rd3, %rd5;
    mov.u64 %rd9, stack;
"""
"""Two blocks of 64 threads; ``%r1`` is the thread, ``%r2`` the block. Each thread has an element at ``[%rd6]`` of 1024
initialized bytes, at ``[%rd7]`` of 1024 that are not, at ``[%rd8]`` of freed memory, at ``[%r5]`` of shared memory."""


class CheckedDevice(Device):
    """A device whose kernels are checked. Allocations have a gap between them."""

    def __init__(self) -> None:
        super().__init__(1 << 20)
        self.checks = Checker(self.memory)
        self.checker: Checker | None = self.checks

    def allocate(self, size: int) -> int:
        """Memory that is not initialised."""
        address = super().allocate(size + GUARD)
        self.checks.apply_changes([(CHANGE_ALLOCATED, address, size)])
        return address

    def upload(self, values: Any) -> int:
        """Memory that a copy initialised."""
        address = super().upload(values)
        self.checks.apply_changes([(CHANGE_INITIALISED, address, np.asarray(values).nbytes)])
        return address

    def free(self, address: int, size: int) -> None:
        """The reverse of ``allocate``."""
        self.checks.apply_changes([(CHANGE_FREED, address, size)])


class Plant(NamedTuple):
    """A kernel whose line ``// here`` has a fault with the instructions ``wrong`` in place of ``FIX``, none with
    ``right``.

    ``at`` is the block and thread; ``other`` those of the line ``// other``, on the other side of a race.
    """

    kind: str
    body: str
    right: str
    wrong: str
    at: tuple[int, int]
    other: tuple[int, int] | None = None

    def source(self, fix: str) -> str:
        """The PTX."""
        return f"{HEAD}{self.body.replace('FIX', fix)}\n    ret;\n}}\n"


def run(source: str) -> list[Fault]:
    """Return the faults of a kernel."""
    return launched(source, CheckedDevice()).checks.take_faults()


def launched(source: str, device: CheckedDevice) -> CheckedDevice:
    """A device after a kernel, which may have failed."""
    numbers, empty = device.upload(np.arange(256, dtype=np.uint32)), device.allocate(1024)
    freed = device.upload(np.zeros(256, np.uint32))
    device.free(freed, 1024)
    arguments = (np.uint64(numbers), np.uint64(empty), np.uint64(freed))
    with contextlib.suppress(SimulationError):
        device.launch(compiled(source), *arguments, grid=(2,), block=(64,))
    return device


def where(place: AccessPlace | None, lines: list[str]) -> tuple[str, tuple[int, int]] | None:
    """The mark of a line, block and thread."""
    if place is None or place.block is None or place.thread is None:
        return None
    return lines[place.line - 1].rpartition("// ")[2], (place.block[0], place.thread[0])


INIT = "@!%p1 mbarrier.init.shared.b64 [%r6], 1;\nbar.sync 0;"
WAIT = "mbarrier.try_wait.parity.shared.b64 %p3, [%r6], 0;"
BULK = (
    "@%p1 bra L;\nmbarrier.arrive.expect_tx.shared.b64 %rd10, [%r6], 256;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 256, [%r6]; // other\nL:\n"
)
SUM = "ld.shared.u32 %r9, [%r5]; // here\nst.global.u32 [%rd7], %r9;"
NEXT = "xor.b32 %r8, %r4, 128;\nadd.u32 %r8, %r3, %r8;\n"
"""``[%r8]``: the element of the thread 32 further, in the other warp."""
TILE = "setp.ne.u32 %p4, %r2, 0;\n@%p4 ret;\nst.shared.u32 [%r5], %r1; // filled\nfence.proxy.async.shared::cta;\n"
OUT = (
    "@%p1 bra L;\ncp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 256; // copied\n"
    "cp.async.bulk.commit_group;\nFIX\nL:\n"
)
"""A bulk copy of the first block's tile to the memory at ``[%rd2]``."""
FLAG = (
    "setp.ne.u32 %p4, %r2, 0;\n@%p1 bra L;\n@%p4 bra C;\nst.global.u32 [%rd2+512], 5; // other\nFIX [%rd1], 77;\n"
    "bra L;\nC:\nld.acquire.gpu.global.u32 %r9, [%rd1];\nsetp.ne.u32 %p3, %r9, 77;\n@%p3 bra C;\n"
    "ld.global.u32 %r10, [%rd2+512]; // here\nL:"
)
"""The second block waits for a flag of the first one."""
LAST = (
    "@%p1 bra L;\nmul.wide.u32 %rd10, %r2, 4;\nadd.u64 %rd10, %rd2, %rd10;\nst.global.u32 [%rd10], %r2; // other\nFIX\n"
    "atom.global.inc.u32 %r9, [%rd1], 1;\nsetp.ne.u32 %p3, %r9, 1;\n@%p3 bra L;\nFIX\n"
    "ld.global.u32 %r10, [%rd2]; // here\nL:"
)
"""The last block of the grid loads what each block stored."""
MATRIX = "and.b32 %r9, %r1, 7;\nshl.b32 %r9, %r9, 4;\nadd.u32 %r9, %r9, %r3;\n"
"""``[%r9]``: the row of each lane in an 8 x 8 matrix."""
LOAD_MATRIX = f"{MATRIX}ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r10}}, [%r9]; // here"
ARRIVED = "W:\nmbarrier.try_wait.parity.shared.b64 %p3, [%r6], 0;\n@!%p3 bra W;\n"
LAST_THREAD = "setp.eq.u32 %p3, %r1, 63;\n"
HALF = "and.b32 %r9, %r1, 16;\nmov.u32 %r10, 65535;\nshl.b32 %r10, %r10, %r9;\n"
"""``%r10``: the mask of each lane's half of the warp."""
HALVES = f"{HALF}xor.b32 %r8, %r4, 64;\nadd.u32 %r8, %r3, %r8;\nst.shared.u32 [%r5], %r1; // other\n"
"""``[%r8]``: the element of the lane in the other half."""
WARP_WORD = "shr.u32 %r8, %r1, 5;\nshl.b32 %r8, %r8, 2;\nadd.u32 %r8, %r3, %r8;\n"
"""``[%r8]``: an element for each warp."""
PLANTS = {
    # out of bounds of device memory
    "global-store": Plant(
        "out_of_bounds", "FIX // here", "st.global.u32 [%rd7], %r1;", "st.global.u32 [%rd7+800], %r1;", (0, 56)
    ),
    "global-load": Plant(
        "out_of_bounds", "FIX // here", "ld.global.u32 %r9, [%rd6+512];", "ld.global.u32 %r9, [%rd6+-8];", (0, 0)
    ),
    "global-vector": Plant(
        "out_of_bounds", "mul.wide.u32 %rd10, %r1, 16;\nadd.u64 %rd10, %rd1, %rd10;\nFIX // here",
        "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd10];",
        "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd10+16];", (0, 63),
    ),
    "global-atomic": Plant(
        "out_of_bounds", "FIX // here", "red.global.add.u32 [%rd6], 1;", "red.global.add.u32 [%rd6+520], 1;", (1, 62)
    ),
    # use after free
    "freed-store": Plant(
        "use_after_free", "FIX // here", "st.global.u32 [%rd6], %r1;", "st.global.u32 [%rd8], %r1;", (0, 0)
    ),
    "freed-load": Plant(
        "use_after_free", "FIX // here", "ld.global.u32 %r9, [%rd6];", "@%p2 ld.global.u32 %r9, [%rd8];", (0, 32)
    ),
    "freed-generic": Plant(
        "use_after_free", "FIX // here", "ld.u32 %r9, [%rd6];", "ld.u32 %r9, [%rd8];", (0, 0)
    ),
    "freed-atomic": Plant(
        "use_after_free", "FIX // here", "atom.global.add.u32 %r9, [%rd6], 1;", "atom.global.add.u32 %r9, [%rd8], 1;",
        (0, 0),
    ),
    # out of bounds of shared and local memory
    "shared-store": Plant(
        "out_of_bounds", "FIX // here", "st.shared.u32 [%r5], %r1;", "st.shared.u32 [%r5+912], %r1;", (0, 32)
    ),
    "shared-load": Plant(
        "out_of_bounds", "st.shared.u32 [%r5], %r1;\nFIX // here", "ld.shared.u32 %r9, [%r5];",
        "ld.shared.u32 %r9, [%r5+4096];", (0, 0),
    ),
    "local-store": Plant(
        "out_of_bounds", "FIX // here", "st.local.u32 [stack+60], %r1;", "st.local.u32 [stack+64], %r1;", (0, 0)
    ),
    "local-load": Plant(
        "out_of_bounds", "st.local.u32 [stack], %r1;\nadd.u64 %rd9, %rd9, %rd4;\nFIX // here",
        "ld.local.u32 %r9, [stack];", "@%p2 ld.local.u32 %r9, [%rd9];", (0, 32),
    ),
    # misaligned
    "misaligned-global": Plant(
        "misaligned", "FIX // here", "ld.global.u64 %rd10, [%rd1];", "ld.global.u64 %rd10, [%rd6];", (0, 1)
    ),
    "misaligned-shared": Plant(
        "misaligned", "FIX // here", "st.shared.u32 [%r5], %r1;", "st.shared.u32 [%r5+2], %r1;", (0, 0)
    ),
    "misaligned-local": Plant(
        "misaligned", "FIX // here", "st.local.u64 [stack+8], %rd1;", "st.local.u64 [stack+4], %rd1;", (0, 0)
    ),
    "misaligned-atomic": Plant(
        "misaligned", "FIX // here", "red.global.add.u32 [%rd6], 1;", "red.global.add.u32 [%rd6+1], 1;", (0, 0)
    ),
    # uninitialised device memory
    "uninitialized-global": Plant(
        "uninitialized", "FIX // here", "ld.global.u32 %r9, [%rd6];", "ld.global.u32 %r9, [%rd7];", (0, 0)
    ),
    "uninitialized-vector": Plant(
        "uninitialized", "mul.wide.u32 %rd10, %r1, 16;\nadd.u64 %rd11, %rd1, %rd10;\nadd.u64 %rd10, %rd2, %rd10;\n"
        "FIX // here", "ld.global.v2.u64 {%rd12, %rd13}, [%rd11];", "ld.global.v2.u64 {%rd12, %rd13}, [%rd10];", (0, 0),
    ),
    "uninitialized-atomic": Plant(
        "uninitialized", "FIX // here", "red.global.add.u32 [%rd6], 1;", "red.global.add.u32 [%rd7], 1;", (0, 0)
    ),
    "uninitialized-copy": Plant(
        "uninitialized", "mul.lo.u32 %r8, %r1, 4;\nFIX // here\ncp.async.wait_all;",
        "cp.async.ca.shared.global [%r5], [%rd6], 4;", "cp.async.ca.shared.global [%r5], [%rd7], 4;", (0, 0),
    ),
    # uninitialised shared and local memory
    "uninitialized-shared": Plant(
        "uninitialized", "FIX\nld.shared.u32 %r9, [%r5]; // here", "st.shared.u32 [%r5], %r1;",
        "@%p2 st.shared.u32 [%r5], %r1;", (0, 0),
    ),
    "uninitialized-tail": Plant(
        "uninitialized", "@!%p2 st.shared.u32 [%r5], %r1;\nbar.sync 0;\nFIX", "",
        "ld.shared.u32 %r9, [%r5]; // here", (0, 32),
    ),
    "uninitialized-local": Plant(
        "uninitialized", "st.local.u32 [stack], %r1;\nFIX // here", "ld.local.u32 %r9, [stack];",
        "ld.local.u32 %r9, [stack+4];", (0, 0),
    ),
    "uninitialized-bytes": Plant(
        "uninitialized", "FIX\nld.local.u8 %h1, [stack+9]; // here", "st.local.u16 [stack+8], %h2;",
        "st.local.u8 [stack+8], %h2;", (0, 0),
    ),
    # races in shared memory
    "shared-read-after-write": Plant(
        "race", f"{NEXT}st.shared.u32 [%r5], %r1; // other\nFIX\nld.shared.u32 %r9, [%r8]; // here", "bar.sync 0;", "",
        (0, 0), (0, 32),
    ),
    "shared-write-after-read": Plant(
        "race", f"{NEXT}st.shared.u32 [%r5], %r1;\nbar.sync 0;\nld.shared.u32 %r9, [%r8]; // other\nFIX\n"
        "add.u32 %r9, %r9, 1;\nst.shared.u32 [%r5], %r9; // here", "bar.sync 0;", "", (0, 0), (0, 32),
    ),
    "shared-write-after-write": Plant(
        "race", f"{NEXT}st.shared.u32 [%r5], %r1; // other\nFIX\nst.shared.u32 [%r8], %r1; // here", "bar.sync 0;", "",
        (0, 0), (0, 32),
    ),
    "shared-one-place": Plant(
        "race", "FIX // here and // here", "@!%p1 st.shared.u32 [%r3], %r1;", "st.shared.u32 [%r3], %r1;",
        (0, 63), (0, 0),
    ),
    "shared-bytes": Plant(
        "race", f"{NEXT}cvt.u16.u32 %h1, %r1;\nst.shared.u8 [%r5+1], %h1; // other\nFIX // here",
        "ld.shared.u8 %h2, [%r5+1];", "ld.shared.u8 %h2, [%r8+1];", (0, 0), (0, 32),
    ),
    # races with accesses that a later one hides
    "load-of-all": Plant(
        "race", f"{LAST_THREAD}@!%p1 st.shared.u32 [%r3], 5;\nbar.sync 0;\nld.shared.u32 %r9, [%r3]; // other\nFIX\n"
        "@%p3 st.shared.u32 [%r3], 9; // here", "bar.sync 0;", "", (0, 63), (0, 0),
    ),
    "load-of-warp": Plant(
        "race", "setp.eq.u32 %p3, %r1, 31;\n@!%p1 st.shared.u32 [%r3], 5;\nbar.sync 0;\n@%p2 bra L;\n"
        "ld.shared.u32 %r9, [%r3]; // other\nFIX\n@%p3 st.shared.u32 [%r3], 9; // here\nL:", "bar.warp.sync -1;", "",
        (0, 31), (0, 0),
    ),
    "load-of-other-warp": Plant(
        "race", f"{LAST_THREAD}@!%p1 st.shared.u32 [%r3], 5;\nbar.sync 0;\n@%p2 bra A;\n"
        "ld.shared.u32 %r9, [%r3]; // other\nA:\nbar.warp.sync -1;\n@!%p2 bra B;\nld.shared.u32 %r9, [%r3];\nB:\n"
        "bar.warp.sync -1;\nFIX\n@%p3 st.shared.u32 [%r3], 9; // here", "bar.sync 0;", "", (0, 63), (0, 31),
    ),
    "load-of-all-blocks": Plant(
        "race", f"{LAST_THREAD}setp.eq.u32 %p4, %r2, 1;\nand.pred %p3, %p3, %p4;\nld.global.u32 %r9, [%rd1]; // other\n"
        "@%p3 FIX // here", "red.global.add.u32 [%rd1], 9;", "st.global.u32 [%rd1], 9;", (1, 63), (0, 0),
    ),
    "atomics-of-all": Plant(
        "race", f"{LAST_THREAD}@!%p1 st.shared.u32 [%r3], 5;\nbar.sync 0;\nred.shared.add.u32 [%r3], 1; // other\nFIX\n"
        "@%p3 st.shared.u32 [%r3], 9; // here", "bar.sync 0;", "", (0, 63), (0, 0),
    ),
    "equal-stores-of-all": Plant(
        "race", f"{LAST_THREAD}st.shared.u32 [%r3], 5; // other\nFIX\n@%p3 st.shared.u32 [%r3], 9; // here",
        "bar.sync 0;", "", (0, 63), (0, 0),
    ),
    # races at barriers of some threads, and within warps
    "warp-halves": Plant(
        "race", f"{HALVES}FIX\nld.shared.u32 %r9, [%r8]; // here", "bar.warp.sync -1;", "bar.warp.sync %r10;",
        (0, 0), (0, 16),
    ),
    "warp-halves-vote": Plant(
        "race", f"{HALVES}vote.sync.ballot.b32 %r11, %p1, FIX;\nld.shared.u32 %r9, [%r8]; // here", "-1", "%r10",
        (0, 0), (0, 16),
    ),
    "warp-halves-in-turn": Plant(  # lanes 0 to 15 load before lanes 16 to 31 come to the barrier
        "race", f"{HALVES}setp.eq.u32 %p3, %r9, 0;\n@%p3 bra A;\nst.shared.u32 [%r5], 7; // other\nbar.warp.sync -1;\n"
        "bra B;\nA:\nFIX\nB:", "bar.warp.sync -1;\nld.shared.u32 %r11, [%r8];",
        "ld.shared.u32 %r11, [%r8]; // here\nbar.warp.sync -1;", (0, 0), (0, 16),
    ),
    "named-barrier": Plant(
        "race", f"{NEXT}st.shared.u32 [%r5], %r1; // other\nmov.u32 %r9, 1;\nFIX\nld.shared.u32 %r9, [%r8]; // here",
        "bar.sync 1, 64;", "@%p2 mov.u32 %r9, 2;\nbar.sync %r9, 32;", (0, 0), (0, 32),
    ),
    "within-warp": Plant(
        "race", "xor.b32 %r8, %r4, 4;\nadd.u32 %r8, %r3, %r8;\nst.shared.u32 [%r5], %r1; // other\nFIX\n"
        "ld.shared.u32 %r9, [%r8]; // here", "bar.warp.sync 0xffffffff;", "", (0, 0), (0, 1),
    ),
    "probe-within-warp": Plant(  # what a probe inserts orders nothing
        "race", "xor.b32 %r8, %r4, 4;\nadd.u32 %r8, %r3, %r8;\nst.shared.u32 [%r5], %r1; // other\nFIX\n"
        "ld.shared.u32 %r9, [%r8]; // here", "vote.sync.ballot.b32 %r9, %p1, 0xffffffff;",
        "vote.sync.ballot.b32 %r9, %p1, 0xffffffff; // tui-probe: own", (0, 0), (0, 1),
    ),
    "elected-lane-stores": Plant(
        "race", f"{WARP_WORD}elect.sync _|%p3, -1;\n@%p3 st.shared.u32 [%r8], %r7; // other\nFIX\n"
        "ld.shared.u32 %r9, [%r8]; // here", "bar.warp.sync -1;", "", (0, 1), (0, 0),
    ),
    "first-lane-loads": Plant(
        "race", "and.b32 %r9, %r1, 31;\nsetp.ne.u32 %p3, %r9, 0;\nst.shared.u32 [%r5], %r1; // other\nFIX\n"
        "@%p3 bra L;\nld.shared.u32 %r9, [%r5+124]; // here\nL:", "bar.warp.sync -1;", "", (0, 0), (0, 31),
    ),
    "elected-lane-for-others": Plant(
        "race", f"{WARP_WORD}elect.sync _|%p3, -1;\n@%p3 st.shared.u32 [%r8], %r7; // other\nFIX\n"
        "ld.shared.u32 %r9, [%r3+4]; // here", "bar.sync 0;", "bar.warp.sync -1;", (0, 0), (0, 32),
    ),
    "elected-lane-arrives": Plant(
        "race", f"{NEXT}{INIT}\n@%p2 bra W;\nst.shared.u32 [%r5], %r1; // other\nFIX\n@%p1 bra L;\n"
        f"mbarrier.arrive.shared.b64 %rd10, [%r6];\nbra L;\n{ARRIVED}ld.shared.u32 %r9, [%r8]; // here\nL:",
        "bar.warp.sync -1;", "", (0, 33), (0, 1),
    ),
    "elected-lane-arrives-for-some": Plant(
        "race", f"{HALF}{NEXT}{INIT}\n@%p2 bra W;\nst.shared.u32 [%r5], %r1; // other\nbar.warp.sync FIX;\n"
        f"@%p1 bra L;\nmbarrier.arrive.shared.b64 %rd10, [%r6];\nbra L;\n{ARRIVED}ld.shared.u32 %r9, [%r8]; // here\n"
        "L:", "-1", "%r10", (0, 48), (0, 16),
    ),
    "barrier-in-front": Plant(
        "race", f"{NEXT}FIX\nld.shared.u32 %r9, [%r8]; // here",
        "st.shared.u32 [%r5], %r1;\nbar.sync 0;", "bar.sync 0;\nst.shared.u32 [%r5], %r1; // other", (0, 0), (0, 32),
    ),
    # races in device memory
    "between-blocks": Plant(
        "race", "add.u64 %rd10, %rd2, %rd4;\nFIX // here and // here", "st.global.u32 [%rd7], %r7;",
        "st.global.u32 [%rd10], %r7;", (1, 0), (0, 0),
    ),
    "neighbor-block": Plant(
        "race", "st.global.u32 [%rd7], %r7; // other\nxor.b32 %r8, %r7, 64;\nmul.wide.u32 %rd10, %r8, 4;\n"
        "add.u64 %rd10, %rd2, %rd10;\nFIX // here", "ld.global.u32 %r9, [%rd7];", "ld.global.u32 %r9, [%rd10];",
        (0, 0), (1, 0),
    ),
    "counter": Plant(
        "race", "ld.global.u32 %r9, [%rd1]; // other\nadd.u32 %r9, %r9, 1;\nFIX // here",
        "red.global.add.u32 [%rd1], 1;", "@!%p1 st.global.u32 [%rd1], %r9;", (0, 0), (1, 63),
    ),
    "block-global": Plant(
        "race", "st.global.u32 [%rd7], %r1; // other\nxor.b32 %r8, %r7, 32;\nmul.wide.u32 %rd10, %r8, 4;\n"
        "add.u64 %rd10, %rd2, %rd10;\nFIX\nld.global.u32 %r9, [%rd10]; // here", "bar.sync 0;", "", (0, 0), (0, 32),
    ),
    # races with asynchronous copies
    "copy-own": Plant(
        "race", f"cp.async.ca.shared.global [%r5], [%rd6], 4; // other\nFIX\n{SUM}", "cp.async.wait_all;", "",
        (0, 0), (0, 0),
    ),
    "copy-of-others": Plant(
        "race", f"{NEXT}cp.async.ca.shared.global [%r5], [%rd6], 4; // other\nFIX\nld.shared.u32 %r9, [%r8]; // here",
        "cp.async.wait_all;\nbar.sync 0;", "bar.sync 0;\ncp.async.wait_all;", (0, 0), (0, 32),
    ),
    "copy-groups": Plant(
        "race", "cp.async.ca.shared.global [%r5], [%rd6], 4;\ncp.async.commit_group;\n"
        "cp.async.ca.shared.global [%r5+256], [%rd6], 4; // other\ncp.async.commit_group;\nFIX\n"
        "ld.shared.u32 %r9, [%r5+256]; // here", "cp.async.wait_group 0;", "cp.async.wait_group 1;", (0, 0), (0, 0),
    ),
    "copy-zero-fill": Plant(
        "out_of_bounds", "mov.u32 %r9, 0;\nFIX // here\ncp.async.wait_all;",
        "cp.async.ca.shared.global [%r5], [%rd1+1056], 4, %r9;", "cp.async.ca.shared.global [%r5], [%rd1+1056], 4;",
        (0, 0),
    ),
    "copy-mbarrier": Plant(
        "race", f"{NEXT}{INIT.replace('1;', '64;', 1)}\ncp.async.ca.shared.global [%r5], [%rd6], 4; // other\nFIX\n"
        f"{ARRIVED}ld.shared.u32 %r9, [%r8]; // here", "cp.async.mbarrier.arrive.noinc.shared.b64 [%r6];",
        "mbarrier.arrive.shared.b64 %rd10, [%r6];", (0, 0), (0, 32),
    ),
    "bulk-before-barrier": Plant(
        "race", TILE.replace("filled", "other") + "FIX\n"
        + OUT.replace("copied", "here").replace("FIX", "cp.async.bulk.wait_group 0;"), "bar.sync 0;", "",
        (0, 0), (0, 1),
    ),
    "bulk-source-reused": Plant(
        "race", f"{TILE}bar.sync 0;\n{OUT.replace('copied', 'other')}bar.sync 0;\nst.shared.u32 [%r5], 7; // here",
        "cp.async.bulk.wait_group.read 0;", "", (0, 0), (0, 0),
    ),
    "bulk-result-read": Plant(
        "race", f"{TILE}bar.sync 0;\n{OUT.replace('copied', 'other')}bar.sync 0;\nld.global.u32 %r9, [%rd7]; // here",
        "cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;", (0, 0), (0, 0),
    ),
    "bulk-group-pending": Plant(
        "race", f"{TILE}bar.sync 0;\n{OUT.replace('copied', 'other')}bar.sync 0;\nst.shared.u32 [%r5], 7; // here",
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 1;", "cp.async.bulk.wait_group 1;", (0, 0), (0, 0),
    ),
    "bulk-bytes": Plant(
        "deadlock", f"{INIT}\n{BULK.replace('%rd10, [%r6], 256', '%rd10, [%r6], FIX')}"
        f"{ARRIVED.replace('0;', '0; // here', 1)}", "256", "512", (0, 0),
    ),
    "mbarrier-not-initialized": Plant(
        "race", "@!%p1 mbarrier.init.shared.b64 [%r6], 64; // other\nFIX\n"
        f"mbarrier.arrive.shared.b64 %rd10, [%r6]; // here\n{ARRIVED}", "bar.sync 0;", "", (0, 1), (0, 0),
    ),
    "copy-bulk": Plant("race", f"{INIT}\n{BULK}FIX\nbar.sync 0;\n{SUM}", WAIT, "", (0, 0), (0, 0)),
    "phase-bulk": Plant(
        "race", f"{INIT}\n{BULK}FIX\n{SUM}", WAIT, WAIT.replace(" 0;", " 1;"), (0, 0), (0, 0)
    ),
    "mbarrier": Plant(
        "race", f"{NEXT}{INIT.replace('1;', '64;')}\nst.shared.u32 [%r5], %r1; // other\n"
        f"mbarrier.arrive.shared.b64 %rd10, [%r6];\nFIX\nld.shared.u32 %r9, [%r8]; // here", WAIT, "", (0, 0), (0, 32),
    ),
    # vectors, matrices, flags and counters
    "vector-in-struct": Plant(
        "misaligned", "mul.wide.u32 %rd10, %r1, 24;\nadd.u64 %rd10, %rd1, %rd10;\nsetp.lt.u32 %p3, %r1, 40;\n"
        "@%p3 FIX // here", "ld.global.v2.u32 {%r9, %r10}, [%rd10+8];",
        "ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd10+8];", (0, 0),
    ),
    "load-matrix": Plant(
        "race", f"st.shared.u32 [%r5], %r1; // other\nFIX\n{LOAD_MATRIX}", "bar.sync 0;", "", (0, 32), (0, 0)
    ),
    "load-matrix-uninitialized": Plant(
        "uninitialized", f"FIX\nbar.sync 0;\n{LOAD_MATRIX}", "st.shared.u32 [%r5], %r1;",
        "@%p2 st.shared.u32 [%r5], %r1;", (0, 0),
    ),
    "store-matrix": Plant(
        "race", f"{MATRIX}@%p2 bra L;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {{%r1}}; // other\nL:\nFIX\n"
        "and.b32 %r10, %r4, 127;\nadd.u32 %r10, %r10, %r3;\nld.shared.u32 %r11, [%r10]; // here",
        "bar.sync 0;", "bar.warp.sync -1;", (0, 32), (0, 0),
    ),
    "atomic-and-store": Plant(
        "race", "@!%p1 st.shared.u32 [%r3], 0; // other\nFIX\natom.shared.add.u32 %r9, [%r3], 1; // here",
        "bar.sync 0;", "", (0, 1), (0, 0),
    ),
    "flag-of-block": Plant(
        "race", FLAG, "st.release.gpu.global.u32", "st.relaxed.gpu.global.u32", (1, 0), (0, 0)
    ),
    "last-block": Plant("race", LAST, "membar.gl;", "", (1, 0), (0, 0)),
    # a block that counts itself sees that others have: only the last one may reset the counter
    "last-block-resets": Plant(
        "race", "@%p1 bra L;\natom.global.add.u32 %r9, [%rd1], 1; // other\nFIX\n"
        "@%p3 st.global.u32 [%rd1], 9; // here\nL:", "setp.eq.u32 %p3, %r9, 1;\n@%p3 st.global.u32 [%rd1], 5;",
        "setp.eq.u32 %p3, %r9, 0;", (0, 0), (1, 0),
    ),
    "other-thread-resets": Plant(
        "race", "setp.eq.u32 %p3, %r7, 127;\n@!%p1 atom.global.add.u32 %r9, [%rd1], 1; // other\nFIX\n"
        "@%p3 st.global.u32 [%rd1], 9; // here", "bar.sync 0;", "", (1, 63), (1, 0),
    ),
    "last-block-resets-other-bytes": Plant(
        "race", "@%p1 bra L;\nred.global.add.u32 [%rd1+4], 1; // other\natom.global.add.u32 %r9, [%rd1], 1;\n"
        "setp.eq.u32 %p3, %r9, 1;\n@%p3 FIX // here\nL:", "st.global.u32 [%rd1], 9;", "st.global.u32 [%rd1+4], 9;",
        (1, 0), (0, 0),
    ),
    # scopes
    "last-block-fence": Plant("race", LAST, "membar.gl;", "membar.cta;", (1, 0), (0, 0)),
    "flag-fence": Plant(
        "race", FLAG, "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32", "fence.acq_rel.cta;\nst.relaxed.gpu.global.u32",
        (1, 0), (0, 0),
    ),
    "counter-scope": Plant(
        "race", "@%p1 bra L;\natom.relaxed.FIX.global.add.u32 %r9, [%rd1], 1; // here and // here\nL:", "gpu", "cta",
        (1, 0), (0, 0),
    ),
    "flag-scope": Plant(
        "race", "setp.ne.u32 %p4, %r2, 0;\n@%p1 bra L;\n@%p4 bra C;\nst.relaxed.FIX.global.u32 [%rd1], 77; // other\n"
        "bra L;\nC:\nld.relaxed.gpu.global.u32 %r9, [%rd1]; // here\nsetp.ne.u32 %p3, %r9, 77;\n@%p3 bra C;\nL:",
        "gpu", "cta", (1, 0), (0, 0),
    ),
    "barrier-arrival": Plant(
        "race", "@%p2 bra C;\nFIX\nbra L;\nC:\nbar.sync 3, 64;\nadd.u32 %r8, %r5, -128;\n"
        "ld.shared.u32 %r9, [%r8]; // here\nL:", "st.shared.u32 [%r5], %r1;\nbar.arrive 3, 64;",
        "bar.arrive 3, 64;\nst.shared.u32 [%r5], %r1; // other", (0, 32), (0, 0),
    ),
    "double-buffer": Plant(
        "race", f"{NEXT}mov.u32 %r9, 0;\nA:\nand.b32 %r10, %r9, FIX;\nshl.b32 %r10, %r10, 8;\n"
        "add.u32 %r11, %r5, %r10;\nadd.u32 %r12, %r8, %r10;\n"
        "add.u32 %r14, %r1, %r9;\nst.shared.u32 [%r11], %r14; // here\nbar.sync 0;\n"
        "ld.shared.u32 %r13, [%r12]; // other\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p3, %r9, 4;\n@%p3 bra A;",
        "1", "0", (0, 0), (0, 32),
    ),
    # divergent barriers
    "barrier-in-branch": Plant(
        "divergent_barrier", "FIX bra L;\nbar.sync 0; // here\nL:\nst.global.u32 [%rd7], %r1; // other",
        "setp.eq.u32 %p3, %r2, 0;\n@%p3", "@%p2", (0, 0), (0, 32),
    ),
    "barriers-of-branches": Plant(
        "divergent_barrier", "@%p3 bra L;\nFIX bra M;\nL:\nbar.sync 0; // here\nbra N;\n"
        "M:\nbar.sync 0; // other\nN:\nst.global.u32 [%rd7], %r1;",
        "setp.eq.u32 %p3, %r2, 0;\n@%p3", "@%p2", (0, 0), (0, 32),
    ),
    "barrier-skipped": Plant(
        "divergent_barrier", "FIX bra L;\nbar.sync 0; // here\nL:\nst.shared.u32 [%r5], %r1;\n"
        "bar.sync 0; // other\nst.global.u32 [%rd7], %r1;", "setp.eq.u32 %p3, %r2, 0;\n@%p3", "@%p1", (0, 0), (0, 1),
    ),
    "barrier-bypassed-in-probed-code": Plant(
        "divergent_barrier", "FIX bra L;\nbar.sync 0; // here\nL:\nst.global.u32 [%rd7], %r1; // other\n"
        "setp.ne.u32 %p4, %r9, 0; // tui-probe: p\n@%p4 bra M; // tui-probe: p\nadd.u32 %r9, %r9, 1; // tui-probe: p\n"
        "M: // tui-probe: p", "setp.eq.u32 %p3, %r2, 0;\n@%p3", "@%p2", (0, 0), (0, 32),
    ),
    "barrier-bypassed-before-others-come": Plant(
        "divergent_barrier", "FIX bra L;\nM:\nst.global.u32 [%rd7], %r1; // other\nret;\nL:\nbar.sync 0; // here\n"
        "bra M;", "", "@!%p2", (0, 0), (0, 32),
    ),
    # deadlocks
    "barrier-of-some": Plant(
        "deadlock", "mov.u32 %r9, 1;\n@%p2 bra L;\nFIX // here\nL:", "bar.sync 1, 32;", "bar.sync 1, 64;", (0, 0),
    ),
    "barriers-with-two-names": Plant(
        "deadlock", "@%p2 bra L;\nbar.sync 1, 64; // here\nbra M;\nL:\nFIX // other\nM:", "bar.sync 1, 64;",
        "bar.sync 2, 64;", (0, 0), (0, 32),
    ),
    "mbarrier-of-one-warp": Plant(
        "deadlock", "@!%p1 mbarrier.init.shared.b64 [%r6], 64;\nbar.sync 0;\nFIX bar.sync 1, 64; // other\n"
        f"mbarrier.arrive.shared.b64 %rd10, [%r6];\n{ARRIVED.replace('0;', '0; // here', 1)}", "", "@%p2",
        (0, 0), (0, 32),
    ),
    "shuffles-of-branches": Plant(
        "deadlock", "and.b32 %r9, %r1, 16;\nsetp.ne.u32 %p3, %r9, 0;\nFIX bra L;\n"
        "shfl.sync.idx.b32 %r10, %r1, 0, 31, -1; // here\nbra M;\nL:\n"
        "shfl.sync.idx.b32 %r10, %r1, 0, 31, -1; // other\nM:", "", "@%p3", (0, 0), (0, 16),
    ),
    # masks of warps
    "shuffle-outside-of-its-mask": Plant(
        "invalid_mask", f"{HALF}shfl.sync.idx.b32 %r11, %r1, 0, 31, FIX; // here", "%r10", "0xffff", (0, 16),
    ),
    "barrier-outside-of-its-mask": Plant(
        "invalid_mask", f"{HALF}bar.warp.sync FIX; // here", "%r10", "0xfffffffe", (0, 0),
    ),
    # what ends a kernel
    "mbarrier-without-initialization": Plant(
        "invalid_mbarrier", "FIX bar.sync 0;\nmbarrier.arrive.shared.b64 %rd10, [%r6]; // here",
        "@!%p1 mbarrier.init.shared.b64 [%r6], 64;\n", "", (0, 0),
    ),
    "trap": Plant("trap", "FIX trap; // here", "setp.eq.u32 %p3, %r1, 70;\n@%p3", "@%p2", (0, 32)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTS)
def test_checks_find_planted_fault(name: str) -> None:
    plant = PLANTS[name]
    source = plant.source(plant.wrong)
    fault, *others = run(source)
    lines = source.split("\n")
    assert (fault.kind, where(fault.place, lines)) == (plant.kind, ("here", plant.at))
    assert not others
    if plant.other is not None:
        assert where(fault.other, lines) in (("other", plant.other), ("here", plant.other))


@pytest.mark.parametrize("probe", ["", "add.u32 %r9, %r9, 1; // tui-probe: p\n"])
def test_thread_that_ends_in_front_of_a_barrier_bypasses_none(probe: str) -> None:
    body = f"@%p2 bra L;\nbar.sync 0;\nst.global.u32 [%rd7], %r1;\nL:\n{probe}"
    assert not run(Plant("", body, "", "", (0, 0)).source(""))


def test_checks_leave_memory_of_faulty_kernels_as_it_is() -> None:
    for plant in PLANTS.values():
        source = plant.source(plant.wrong)
        unchecked = CheckedDevice()
        unchecked.checker = None
        buffers = [launched(source, device).buffer for device in (CheckedDevice(), unchecked)]
        assert np.array_equal(*buffers)


def test_failing_check_ends_checks_and_not_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BatchOrder, "grid_threads", None)
    device = launched(PLANTS["global-store"].source("st.global.u32 [%rd7], 7;"), CheckedDevice())
    (fault,) = device.checks.take_faults()
    assert fault.kind == "unchecked"
    assert device.download(BASE + 1280, np.zeros(128, np.uint32)).tolist() == [7] * 128


@pytest.mark.parametrize("name", PLANTS)
def test_checks_report_nothing_for_correct_kernel(name: str) -> None:
    assert run(PLANTS[name].source(PLANTS[name].right)) == []


@pytest.mark.parametrize(
    ("name", "store", "value"),
    [
        ("shared-store", "@%p2 st.shared.u32 [%r5+4096], %r7;", "0x20"),
        ("shared-store", "@%p2 st.shared.v2.u32 [%r5+4096], {%r7, %r1};", "0x2000000020"),
        ("shared-store", "@%p2 red.shared.add.u32 [%r5+4096], %r7;", "0x20"),
        ("shared-store", "@%p2 atom.shared.cas.b32 %r9, [%r5+4096], 5, %r7;", "0x20"),
        ("misaligned-shared", "st.shared.u32 [%r5+2], 7;", "0x7"),
        ("global-store", "@%p2 st.u32 [%rd4], %r7;", "0x20"),
    ],
)
def test_fault_that_ends_the_kernel_has_the_value_of_its_store(name: str, store: str, value: str) -> None:
    (fault,) = run(PLANTS[name].source(store))
    assert fault.value == value


@pytest.mark.parametrize(
    ("name", "access", "detail"),
    [
        ("shared-store", "@%p2 st.shared.u32 [%r5+912], %r1;", "directly after the 1040 bytes of the block"),
        ("shared-store", "st.shared.u32 [%r5+-8], %r1;", "outside the 1040 bytes of the block"),
        ("local-store", "st.local.u32 [stack+72], %r1;", "8 bytes after the 64 bytes of the thread"),
        ("misaligned-shared", "st.shared.u32 [%r5+2], 7;", ""),
    ],
)
def test_fault_outside_of_a_block_or_thread_has_the_size_of_its_memory(name: str, access: str, detail: str) -> None:
    (fault,) = run(PLANTS[name].source(access))
    assert fault.detail == detail


@pytest.mark.parametrize(
    ("address", "detail"),
    [
        (0x14, "0x14 is not in device memory: the pointer is null"),
        (0x7FFC00001000, "0x7ffc00001000 is not in device memory: a host pointer, or not a pointer"),
    ],
)
def test_address_that_is_not_of_the_device_has_its_likely_pointer(address: int, detail: str) -> None:
    assert CheckedDevice().checks.states.describe(address) == detail


@pytest.mark.parametrize(
    ("offset", "detail"),
    [
        (252, "across the end of an allocation of 256 bytes at {first:#x}, from byte 252"),
        (256, "directly after an allocation of 256 bytes at {first:#x}"),
        (264, "8 bytes after an allocation of 256 bytes at {first:#x}"),
        (2304, "2048 bytes after an allocation of 256 bytes at {first:#x}"),
        (2308, "2044 bytes before an allocation of 512 bytes at {second:#x}"),
        (4344, "8 bytes before an allocation of 512 bytes at {second:#x}"),
        (4864, "directly after an allocation of 512 bytes at {second:#x}"),
    ],
)
def test_access_between_two_allocations_is_described_by_the_nearer_one(offset: int, detail: str) -> None:
    states, second = CheckedDevice().checks.states, BASE + 256 + 4096
    states.apply([(CHANGE_ALLOCATED, BASE, 256), (CHANGE_ALLOCATED, second, 512)])
    assert states.describe(BASE + offset) == detail.format(first=BASE, second=second)


def test_load_of_replaced_constant_is_described_as_the_program_has_it() -> None:
    """Inserting probes replaces loads of constant memory by loads of the variable's device memory."""
    replaced = "ld.global.u32 %r9, [%rd1+1056]; // tui-probe: instead of: ld.const.u32 \t%r9, [%rd1+1056];"
    source = PLANTS["global-load"].source(replaced)
    checks = launched(source, CheckedDevice()).checks
    (record,) = (json.loads(text) for text in checks.take_texts("kernel", parse(source)))
    assert (record["kind"], record["space"]) == ("out_of_bounds", "constant")
    assert record["place"]["text"] == "ld.const.u32 \t%r9, [%rd1+1056]; // here"


def test_race_of_what_a_probe_inserted_is_no_fault_of_the_kernel() -> None:
    store = PLANTS["shared-one-place"].wrong
    for mark, faults in (("// tui-probe: block_sched", 0), ("", 1)):
        source = PLANTS["shared-one-place"].source(f"{store} {mark}")
        assert len(launched(source, CheckedDevice()).checks.take_texts("kernel", parse(source))) == faults


@pytest.mark.parametrize(
    ("offset", "detail"),
    [
        (248, "across the end of an allocation of 252 bytes at 0x{:x}, from byte 248"),
        (252, "directly after an allocation of 252 bytes at 0x{:x}"),
        (-8, "8 bytes before an allocation of 252 bytes at 0x{:x}"),
    ],
)
def test_place_of_an_invalid_access_next_to_an_allocation(offset: int, detail: str) -> None:
    device = CheckedDevice()
    address = device.allocate(252)
    assert device.checks.states.describe(address + offset) == detail.format(address)
