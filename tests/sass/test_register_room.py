"""Room for registers in kernels whose warps exchange them, and in those that use all."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import DATA
from tests.sass import corpus
from tests.sass.test_wait_probe import ATTENTION, code_at, grafted
from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.register_operands import operands_of
from tui_probe.sass.register_room import RecordRoom, RegisterRoom
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import MAX_REGISTERS, RESERVED, WORD_BYTES
from tui_probe.toolchain import find_disassembler

if TYPE_CHECKING:
    from collections.abc import Callable

INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/")
REGISTER = re.compile(r"(?<![A-Z0-9])R(\d+)\b")
ROLES = """
.visible .entry k(.param .u64 x, .param .u32 n) .maxntid 384 .minnctapersm 1
{{
	.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<200>;
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r3, %tid.x; mul.wide.u32 %d3, %r3, 4;
	add.s64 %d2, %d1, %d3; setp.lt.u32 %p1, %r3, 128; @%p1 bra producer;
	setmaxnreg.inc.sync.aligned.u32 240;
{loads}
	bar.sync 1, 256;
{sums}
	st.global.f32 [%d2], %f0; ret;
producer:
	setmaxnreg.dec.sync.aligned.u32 {left};
	ld.global.f32 %f1, [%d2+4096]; add.f32 %f1, %f1, %f1; st.global.f32 [%d2+8192], %f1; ret; }}
"""
VALUES = 150


ALL_REGISTERS = """
.visible .entry k(.param .u64 x)
{{
	.reg .b64 %d<9>; .reg .f32 %f<300>;
	ld.param.u64 %d2, [x];
{loads}
{stores}
	ld.volatile.global.f32 %f1, [%d2]; add.f32 %f1, %f1, %f1; st.global.f32 [%d2], %f1; ret; }}
"""
FULL = 247


def roles(left: int) -> str:
    """A consumer that holds many values, and a producer with ``left`` registers."""
    loads = "\n".join(f"\tld.volatile.global.f32 %f{number}, [%d2+{number * 1536}];" for number in range(VALUES))
    sums = "\n".join(f"\tfma.rn.f32 %f0, %f{number}, %f{VALUES - number}, %f0;" for number in range(1, VALUES))
    return ROLES.format(loads=loads, sums=sums, left=left)


def test_operands_cover_every_named_register(disassembled: Callable[[bytes], dict[int, str]]) -> None:
    images = [ATTENTION.read_bytes(), corpus.cubin("softmax.sm_100"), corpus.cubin("softmax.sm_120")]
    for image in images:
        cubin = Cubin.read(image)
        target = GraftTarget.from_cubin(cubin, next(iter(cubin.kernels)))
        texts = disassembled(image)
        for index, word in enumerate(target.words):
            named = sum(1 << number for number in {int(text) for text in REGISTER.findall(texts[index * WORD_BYTES])})
            own = operands_of(word, target.arch)
            assert not named & ~(own.read_mask | own.write_mask), texts[index * WORD_BYTES]
            assert not own.kill_mask & ~own.write_mask


@pytest.mark.parametrize("left", [24, 40])
def test_clocks_have_room_in_each_role(assembled: Callable[[str, int | str], Cubin], left: int) -> None:
    target = GraftTarget.from_cubin(assembled(roles(left), "90a"), "k")
    assert target.min_registers == left < target.registers
    graph = FlowGraph.from_target(target)
    room = RegisterRoom(target, graph)
    result, waits = grafted(target)
    after = GraftTarget.from_cubin(Cubin.read(result.image), "k")
    assert result.registers == target.registers  # more would not fit into the block's registers
    limits = {room.limit(wait.site.index) for wait in waits.sites}
    assert limits >= {left, 240}
    for wait in waits.sites:
        clock = after.words[code_at(result.image, "k", wait.offset) // WORD_BYTES].rd
        assert clock in room.free(wait.site.index)
        assert clock < room.limit(wait.site.index) - RESERVED


def test_free_registers_are_not_live(assembled: Callable[[str, int | str], Cubin]) -> None:
    """nvdisasm writes which registers are live at each instruction of code that ptxas has just made."""
    text = (DATA / "attn_fwd.sm_90a.ptx").read_text().partition(".address_size 64")[2]
    cubin = assembled(text, "90a")
    target = GraftTarget.from_cubin(cubin, next(iter(cubin.kernels)))
    graph = FlowGraph.from_target(target)
    room, free_somewhere = RegisterRoom(target, graph), 0
    live = live_registers(cubin.image)
    assert len(live) > 100
    for at, registers in live.items():
        if graph.block_at(at // WORD_BYTES) in graph.dominators:
            free = set(room.free(at // WORD_BYTES))
            assert not free & registers, hex(at)
            free_somewhere += len(free) >= 2
    assert free_somewhere > len(live) / 2


def live_registers(image: bytes) -> dict[int, set[int]]:
    """By offset the registers with a sign in nvdisasm's table of live ranges, whose heading numbers its columns."""
    tool = find_disassembler()
    if tool is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image)
        file.flush()
        done = subprocess.run([str(tool.path), "-c", "-plr", file.name], capture_output=True, text=True, check=True)
    live: dict[int, set[int]] = {}
    ends: list[int] = []
    for line in done.stdout.splitlines():
        table = line.rpartition("//")[2].partition("|")[2].partition("|")[0]
        if table.strip().startswith("#"):
            ends = [number.end() for number in re.finditer(r"\d+", table)]
        elif (match := INSTRUCTION.search(line)) and ends:
            signs = {number: table[end - 1 : end].strip() for number, end in enumerate(ends)}
            live[int(match[1], 16)] = {number for number, sign in signs.items() if sign}
    return live


def test_full_kernel_has_clocks_in_registers_that_are_dead(assembled: Callable[[str, int | str], Cubin]) -> None:
    loads = "\n".join(f"\tld.volatile.global.f32 %f{number}, [%d2+{number * 4}];" for number in range(FULL))
    stores = "\n".join(f"\tst.volatile.global.f32 [%d2+{number * 4}], %f{number};" for number in range(FULL))
    target = GraftTarget.from_cubin(assembled(ALL_REGISTERS.format(loads=loads, stores=stores), 90), "k")
    assert target.registers > MAX_REGISTERS - 2
    result, waits = grafted(target)
    assert waits.sites
    assert result.registers <= MAX_REGISTERS


PRODUCTS = """
.visible .entry k(.param .u64 x, .param .u64 left, .param .u64 right)
{
	.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>;
	ld.param.u64 %d1, [x]; ld.param.u64 %d3, [left]; ld.param.u64 %d4, [right]; mov.u32 %r3, %tid.x;
	mul.wide.u32 %d5, %r3, 4; add.s64 %d2, %d1, %d5; setp.lt.u32 %p1, %r3, 128; @%p1 bra producer;
	ld.global.f32 %f1, [%d2]; ld.global.f32 %f2, [%d2+512];
	ld.global.f32 %f3, [%d2+1024]; ld.global.f32 %f4, [%d2+1536];
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d3, %d4, 1, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	bar.sync 1, 128;
	wgmma.wait_group.sync.aligned 0;
	st.global.f32 [%d2], %f1; st.global.f32 [%d2+512], %f2;
	st.global.f32 [%d2+1024], %f3; st.global.f32 [%d2+1536], %f4;
	ret;
producer:
	ld.volatile.global.f32 %f5, [%d2+4096]; add.f32 %f5, %f5, %f5; st.global.f32 [%d2+8192], %f5; ret; }
"""


def test_registers_of_products_are_free_in_other_roles(assembled: Callable[[str, int | str], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(PRODUCTS, "90a"), "k")
    room = RegisterRoom(target, FlowGraph.from_target(target))
    names = {index: operation_name(word, 90) for index, word in enumerate(target.words) if not word.never_runs}
    (product,) = (index for index, name in names.items() if name == "HGMMA")
    (barrier,) = (index for index, name in names.items() if name == "BAR")
    (add,) = (index for index, name in names.items() if name == "FADD")
    sums = {target.words[product].rd + place for place in range(4)}
    assert barrier > product
    assert not sums & set(room.free(barrier))
    assert len(sums & set(room.free(add))) >= 3


WALKS, STEPS, STRIDE = 20, 12, 6
"""Ways that are followed from each record, blocks of each, and instructions between records."""


def test_records_that_wait_later_keep_their_registers_on_all_ways_to_the_next() -> None:
    target = GraftTarget.from_cubin(Cubin.read(ATTENTION.read_bytes()), "attn_fwd")
    graph, names = FlowGraph.from_target(target), [operands_of(word, 90) for word in target.words]
    inside = RegisterRoom(target, graph)
    room = RecordRoom(target, graph, inside)
    places = [index for block in graph.blocks for index in block[::STRIDE] if room.has_pairs(index)]
    records = dict(zip(places, room.records({}, places), strict=True))
    ways, choice = 0, random.Random(1)
    for place, (pairs, wait) in records.items():
        assert {number for pair in pairs for number in (pair, pair + 1)} <= set(inside.free(place))
        for _ in range(0 if wait.waits_itself else WALKS):
            block = graph.block_at(place)
            code = range(place, graph.blocks[block].stop)
            for _ in range(STEPS):
                following = next((index for index in code if index in records and index != place), None)
                code = range(code.start, code.stop if following is None else following)
                named = [names[index].read_mask | names[index].write_mask for index in code]
                assert not any(registers >> pair & 0b11 for registers in named for pair in pairs)
                if following is not None:
                    assert records[following][1].earlier_barriers >> wait.barrier & 1
                    ways += 1
                if following is not None or not graph.successors[block]:
                    break
                block = choice.choice(graph.successors[block])
                code = graph.blocks[block]
                if code.start <= place < code.stop:
                    break
    assert ways > WALKS
    assert {wait.waits_itself for _, wait in records.values()} == {True, False}
