"""Copies of loops: what they lead to, what the file lists about them, and which changes the check refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.bench.assembling import assembler
from tests.engine.kernels import DATA
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.sass_phases import sass_phases
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.flow import FlowGraph, is_conditional, jump_targets
from tui_probe.sass.graft import GraftedCubin, Splice, apply_splices
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.loop_copies import loops_to_copy
from tui_probe.sass.nv_info import MBARRIER_INSTRUCTIONS
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES, code_of, nop_word

if TYPE_CHECKING:
    from tui_probe.sass.words import Word

KERNEL = "producer_consumer"
ADDED = 3


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> GraftTarget:
    """A kernel with TMA, mbarriers and wgmma in loops, some with retries behind the kernel's other code."""
    binary = tmp_path_factory.mktemp("copies") / "transactions.bin"
    assembler().assemble(DATA / "transactions.sm_90a.ptx", binary, "sm_90a", KERNEL)
    return GraftTarget.from_cubin(Cubin.read(binary.read_bytes()), KERNEL)


def loops_of(target: GraftTarget) -> list[tuple[range, ...]]:
    """The loops with records of phases."""
    phases, _ = sass_phases(load_probe("phases"), target)
    headers = {phase.loop // WORD_BYTES for phase in phases if phase.loop is not None}
    return loops_to_copy(target, FlowGraph.from_target(target), headers)


def with_copies(target: GraftTarget) -> GraftedCubin:
    """The kernel with copies of all loops, and added code in front of the first instruction of each of their blocks."""
    loops = loops_of(target)
    added = (nop_word(),) * ADDED
    splices = [Splice(block.start * WORD_BYTES, added, runs_in_all_lanes=True) for blocks in loops for block in blocks]
    return apply_splices(target, splices, 1, 0, loops=loops)


def after(grafted: GraftedCubin) -> GraftTarget:
    return GraftTarget.from_cubin(Cubin.read(grafted.image), KERNEL)


def test_copies_lead_to_copies_and_out_of_loops_to_the_kernel(target: GraftTarget) -> None:
    grafted, loops = with_copies(target), loops_of(target)
    words, inside, left = after(grafted).words, 0, 0
    begins = {block.start for blocks in loops for block in blocks}
    for at, to in grafted.copies.items():
        led = list(jump_targets(90, at // WORD_BYTES, target.words[at // WORD_BYTES]))
        leads = list(jump_targets(90, to // WORD_BYTES, words[to // WORD_BYTES]))
        places = [grafted.copies.get(place * WORD_BYTES) for place in led]
        front = [ADDED * (place in begins) for place in led]
        assert leads == [
            place if copy is None else copy // WORD_BYTES - added
            for place, copy, added in zip(led, places, front, strict=True)
        ]
        inside += len(places) - places.count(None)
    for blocks in loops:
        for block in blocks:
            copy = grafted.copies[(block.stop - 1) * WORD_BYTES] // WORD_BYTES
            leaves = block.stop * WORD_BYTES not in grafted.copies and is_conditional(words[copy])
            left += leaves
            assert not leaves or list(jump_targets(90, copy + 1, words[copy + 1])) == [block.stop]
    assert inside > 2
    assert left
    refuse_changes(target, grafted, [])


def test_copies_of_mbarrier_instructions_are_listed(target: GraftTarget) -> None:
    grafted = with_copies(target)
    before, now = (
        next(own for own in kernel.attributes if own.number == MBARRIER_INSTRUCTIONS).value
        for kernel in (target, after(grafted))
    )
    assert now.startswith(before)
    entries = {before[at : at + 4]: before[at + 4 : at + 16] for at in range(0, len(before), 16)}
    copies = {now[at : at + 4]: now[at + 4 : at + 16] for at in range(len(before), len(now), 16)}
    pairs = [(at.to_bytes(4, "little"), to.to_bytes(4, "little")) for at, to in grafted.copies.items()]
    assert copies == {to: entries[at] for at, to in pairs if at in entries} != {}


def test_loops_in_a_list_of_unknown_form_are_not_copied(target: GraftTarget) -> None:
    lists = [
        own._replace(value=own.value + bytes(4)) if own.number == MBARRIER_INSTRUCTIONS else own
        for own in target.attributes
    ]
    assert loops_of(target)
    assert loops_of(replace(target, attributes=tuple(lists))) == []


@pytest.mark.parametrize("kind", ["instruction", "branch", "order", "lost"])
def test_copies_with_other_instructions_are_refused(target: GraftTarget, kind: str) -> None:
    grafted = with_copies(target)
    code_words = list(after(grafted).words)
    copies = dict(grafted.copies)
    jumps = [at for at in copies if list(jump_targets(90, at // WORD_BYTES, target.words[at // WORD_BYTES]))]
    plain = next(at for at in copies if at not in jumps and at + WORD_BYTES in copies and at not in grafted.branches)
    place = copies[plain] // WORD_BYTES
    if kind == "instruction":
        code_words[place] = changed(code_words[place])
    elif kind == "branch":
        at = copies[jumps[0]] // WORD_BYTES
        code_words[at] = code_words[at].with_field(34, 8, code_words[at].field(34, 8) ^ 4)
    elif kind == "order":
        code_words[place], code_words[place + 1] = code_words[place + 1], code_words[place]
    else:
        code_words[place] = nop_word()
    start = after(grafted).code.offset
    code = code_of(code_words)
    image = grafted.image[:start] + code + grafted.image[start + len(code) :]
    with pytest.raises(UnsupportedKernelError, match="copy"):
        refuse_changes(target, replace(grafted, image=image), [])


def changed(word: Word) -> Word:
    return word.with_field(24, 8, word.field(24, 8) ^ 1)


def test_loops_with_calls_and_around_other_loops_are_not_copied(target: GraftTarget) -> None:
    graph = FlowGraph.from_target(target)
    headers = {graph.blocks[loop.header].start for loop in graph.loops}
    inner = loops_to_copy(target, graph, headers)
    places = [place for blocks in inner for block in blocks for place in block]
    assert len(places) == len({*places})
    loops = loops_of(target)
    assert {blocks[0].start for blocks in loops}.isdisjoint({blocks[0].start for blocks in inner})
    call = target.words[loops[0][0].start].with_field(0, 12, 0x944)
    with_call = [call if place == loops[0][0].start else word for place, word in enumerate(target.words)]
    assert loops_to_copy(replace(target, words=tuple(with_call)), graph, {loops[0][0].start}) == []
