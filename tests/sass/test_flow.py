"""Edges, dominators and loops of machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.sass import corpus
from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.flow import FlowGraph, is_conditional
from tui_probe.sass.operations import operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import branch_word

if TYPE_CHECKING:
    from collections.abc import Callable

LOOPS = """
.visible .entry loops(.param .u64 x, .param .u32 n)
{
	.reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0;
outer:
	mov.u32 %r3, 0;
inner:
	atom.global.add.u32 %r4, [%d1], %r3; add.u32 %r3, %r3, %r4;
	.pragma "nounroll";
	setp.lt.u32 %p1, %r3, %r1; @%p1 bra inner;
	bar.sync 0; atom.global.add.u32 %r4, [%d1], %r2; add.u32 %r2, %r2, %r4;
	.pragma "nounroll";
	setp.lt.u32 %p2, %r2, %r1; @%p2 bra outer;
	st.global.u32 [%d1], %r2; ret;
}
"""
GRAPHS = st.integers(1, 7).flatmap(
    lambda count: st.lists(st.lists(st.integers(0, count - 1), max_size=3, unique=True), min_size=count, max_size=count)
)


def graph_of(edges: list[list[int]]) -> FlowGraph:
    blocks = tuple(range(number, number + 1) for number in range(len(edges)))
    return FlowGraph(blocks, tuple(tuple(sorted(following)) for following in edges))


def reached(edges: list[list[int]], without: int | None = None) -> set[int]:
    """Blocks that the entry reaches if one block is removed."""
    seen: set[int] = set()
    pending = [0]
    while pending:
        block = pending.pop()
        if block not in seen and block != without:
            seen.add(block)
            pending += edges[block]
    return seen


@given(GRAPHS)
def test_dominators_cut_off_what_they_dominate(edges: list[list[int]]) -> None:
    graph = graph_of(edges)
    alive = reached(edges)
    assert set(graph.dominators) == alive
    for block in alive:
        cut = alive - reached(edges, block)
        assert {other for other in alive if graph.dominates(block, other)} == cut


@given(GRAPHS)
def test_loops_lead_back_to_their_header_without_leaving(edges: list[list[int]]) -> None:
    graph = graph_of(edges)
    for loop in graph.loops:
        inside = [[block for block in following if block in loop.blocks] for following in edges]
        for block in loop.blocks:
            assert graph.dominates(loop.header, block)
            ways = {after for following in inside[block] for after in _reached_from(inside, following)}
            assert loop.header in ways
    assert graph.depths == tuple(sum(block in loop.blocks for loop in graph.loops) for block in range(len(edges)))


def _reached_from(edges: list[list[int]], start: int) -> set[int]:
    seen, pending = set(), [start]
    while pending:
        block = pending.pop()
        if block not in seen:
            seen.add(block)
            pending += edges[block]
    return seen


def test_nested_loops_have_their_depth(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(LOOPS, 90), "loops")
    graph = FlowGraph.from_target(target)
    depth = {
        operation_name(word, 90): graph.depths[graph.block_at(index)]
        for index, word in reversed(list(enumerate(target.words)))
    }
    assert (depth["ATOMG"], depth["BAR"], depth["STG"]) == (2, 1, 0)


def test_uniform_branch_is_conditional() -> None:
    branch = branch_word(90, 0, 64)
    assert not is_conditional(branch)
    for condition in (1, 2, 3):  # BRA.U, BRA.DIV, BRA.CONV
        assert is_conditional(branch.with_field(32, 2, condition))
    assert is_conditional(branch.with_field(87, 4, 1))  # BRA with a second predicate
    assert is_conditional(branch.with_guard(0))


def test_every_exit_of_the_corpus_is_reached() -> None:
    for name in corpus.NAMES:
        cubin = Cubin.read(corpus.cubin(name))
        for kernel in cubin.kernels:
            target = GraftTarget.from_cubin(cubin, kernel)
            graph = FlowGraph.from_target(target)
            reached_exits = [at for at in target.exits() if graph.block_at(at // 16) in graph.dominators]
            assert reached_exits == target.exits(), name
