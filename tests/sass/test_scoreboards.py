"""Wait sites: what machine code waits for, and where that comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import DATA
from tests.sass import corpus
from tests.sass.conftest import code_texts
from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.scoreboards import pending_scoreboards
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.wait_classes import awaited_barriers
from tui_probe.sass.wait_sites import WaitSite, wait_sites
from tui_probe.sass.words import DEPBAR, NO_BARRIER, PT, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_RET, _UTMALDG = 0x150, 0x1B4
HEAD = """
.visible .entry k(.param .u64 x, .param .u32 n)
{
	.reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>; .reg .f32 %f<9>;
	.shared .align 16 .b8 tile[1024];
	ld.param.u64 %d1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r2, 0; mov.u32 %r3, %tid.x; mul.wide.u32 %d3, %r3, 16;
	add.s64 %d2, %d1, %d3; mov.u32 %r4, tile;
"""
CHASE = """
again: ld.global.u64 %d2, [%d2]; add.u32 %r2, %r2, 1;
	.pragma "nounroll";
	setp.lt.u32 %p1, %r2, %r1; @%p1 bra again;
	st.global.u64 [%d1], %d2; ret; }
"""
STAGES = """
	cp.async.ca.shared.global [%r4], [%d2], 16; cp.async.commit_group;
	cp.async.ca.shared.global [%r4+512], [%d2+64], 16; cp.async.commit_group;
	cp.async.wait_group 1; bar.sync 0; ld.shared.f32 %f1, [%r4];
	cp.async.wait_group 0; bar.sync 0; ld.shared.f32 %f2, [%r4+512]; add.f32 %f3, %f1, %f2;
	st.global.f32 [%d1], %f3; ret; }
"""
PRODUCTS = """
	wgmma.fence.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 0, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f5, %f6, %f7, %f8}, %d2, %d1, 0, 1, 1, 0, 0;
	wgmma.commit_group.sync.aligned;
	wgmma.wait_group.sync.aligned 1; st.global.f32 [%d1], %f1;
	wgmma.wait_group.sync.aligned 0; st.global.f32 [%d1+4], %f5; ret; }
"""
TWO_STAGES = """
	cp.async.ca.shared.global [%r4], [%d2], 16; cp.async.commit_group;
again: .pragma "nounroll";
	add.s64 %d2, %d2, 4096; add.u32 %r2, %r2, 1; and.b32 %r5, %r2, 1; mad.lo.u32 %r6, %r5, 512, %r4;
	cp.async.ca.shared.global [%r6], [%d2], 16; cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;
	xor.b32 %r7, %r6, 512; ld.shared.f32 %f1, [%r7]; add.f32 %f2, %f2, %f1; bar.sync 0;
	setp.lt.u32 %p1, %r2, %r1; @%p1 bra again;
	st.global.f32 [%d1], %f2; ret; }
"""
AHEAD = """
	ld.global.f32 %f1, [%d2];
again: add.f32 %f2, %f2, %f1; mul.f32 %f2, %f2, %f2; ld.global.f32 %f1, [%d2+64]; add.s64 %d2, %d2, 64;
	add.u32 %r2, %r2, 1;
	.pragma "nounroll";
	setp.lt.u32 %p1, %r2, %r1; @%p1 bra again;
	add.f32 %f2, %f2, %f1; st.global.f32 [%d1], %f2; ret; }
"""
QUEUE = """
	ld.shared.v2.f32 {%f1, %f2}, [%r4]; ld.shared.f32 %f3, [%r4+32]; ld.shared.f32 %f4, [%r4+64];
	add.f32 %f5, %f1, %f2; add.f32 %f6, %f3, %f4; mul.f32 %f7, %f5, %f6; st.global.f32 [%d1], %f7; ret; }
"""
CLUSTER = """
	ld.shared.f32 %f1, [%r4]; barrier.cluster.arrive.aligned; add.f32 %f2, %f1, %f1; barrier.cluster.wait.aligned;
	st.global.f32 [%d1], %f2; ret; }
"""
CALLS = """
	.reg .f64 %e<4>;
	ld.global.f64 %e1, [%d2]; ld.global.f64 %e2, [%d2+8]; div.rn.f64 %e3, %e1, %e2; st.global.f64 [%d1], %e3; ret; }
"""
FENCE = """
	st.global.u32 [%d2], %r3; fence.sc.cta; ld.global.u32 %r5, [%d2+64]; st.global.u32 [%d1], %r5; ret; }
"""
TRANSPOSED = """
	ld.global.b32 %r5, [%d2]; movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r5; st.global.b32 [%d1], %r6; ret; }
"""
BULK_STORES = """
	st.shared.u32 [%r4], %r3; fence.proxy.async.shared::cta;
	cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r4], 16; cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0; ret; }
"""
Sites = dict[tuple[str, str], WaitSite]


def every_kernel() -> Iterator[GraftTarget]:
    images = [corpus.cubin(name) for name in corpus.NAMES]
    images += [(DATA / name).read_bytes() for name in ("attn_fwd.sm_90a.cubin", "triton_add.sm_90a.cubin")]
    for cubin in map(Cubin.read, images):
        yield from (GraftTarget.from_cubin(cubin, name) for name in cubin.kernels)


def names_of(target: GraftTarget) -> list[str]:
    return [operation_name(word, target.arch) for word in target.words]


def test_every_awaited_scoreboard_has_a_producer() -> None:
    sites = 0
    for target in every_kernel():
        for site in wait_sites(target):
            sites += 1
            assert site.producers or (site.own_class and not site.barriers), f"{target.name} {site.offset:#x}"
            assert {producer.index for producer in site.producers} <= set(range(len(target.words)))
    assert sites > 600


def test_attention_waits_for_copies_products_and_barriers() -> None:
    target = GraftTarget.from_cubin(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    names = names_of(target)
    sites = [site for site in wait_sites(target) if site.depth]
    assert [(names[site.index], site.kind) for site in sites if site.own_class] == [
        ("DEPBAR", "async"),
        ("BAR", "barrier"),
        ("WARPGROUP", "wgmma"),
        ("BAR", "barrier"),
    ]
    products = [site for site in sites if site.kind == "wgmma"]
    assert {names[producer.index] for site in products for producer in site.producers} == {"HGMMA"}
    copies = next(site for site in sites if site.kind == "async")
    assert {names[producer.index] for producer in copies.producers} == {"LDGSTS", "LDGDEPBAR"}
    # Some are before the loop, and some in it.
    assert {producer.from_previous for producer in copies.producers} == {False, True}


def test_pointer_chase_waits_for_its_own_load(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + CHASE, 90), "k")
    (site,) = (site for site in wait_sites(target) if site.depth and site.kind == "global")
    of_previous = [producer for producer in site.producers if producer.from_previous]
    assert [(producer.index, producer.is_read) for producer in of_previous] == [(site.index, True)]
    assert names_of(target)[site.index] == "LDG"


def test_copies_are_those_of_the_stage_that_is_awaited(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + STAGES, 80), "k")
    names = names_of(target)
    first, second = (site for site in wait_sites(target) if names[site.index] == "DEPBAR")
    copies = [index for index, name in enumerate(names) if name == "LDGSTS"]
    assert [producer.index for producer in first.producers if names[producer.index] == "LDGSTS"] == copies[:1]
    assert [producer.index for producer in second.producers if names[producer.index] == "LDGSTS"] == copies[1:]


@pytest.mark.parametrize(("text", "kind", "name"), [(TWO_STAGES, "async", "LDGSTS"), (AHEAD, "global", "LDG")])
@pytest.mark.parametrize("arch", [80, 90, 100])
def test_producer_in_the_loop_is_named_before_that_of_the_prologue(
    assembled: Callable[[str, int], Cubin], text: str, kind: str, name: str, arch: int
) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + text, arch), "k")
    names = names_of(target)
    (site,) = (site for site in wait_sites(target) if site.depth and site.kind == kind)
    first, second, *_ = site.awaited
    assert [names[producer.index] for producer in (first, second)] == [name, name]
    assert [(producer.depth, producer.from_previous) for producer in (first, second)] == [(1, True), (0, False)]
    assert not site.is_of_one_iteration


def test_products_are_those_of_the_group_that_is_awaited(assembled: Callable[[str, int | str], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + PRODUCTS, "90a"), "k")
    names = names_of(target)
    products = [index for index, name in enumerate(names) if name == "HGMMA"]
    first, second = (site for site in wait_sites(target) if site.own_class == "wgmma")
    assert [producer.index for producer in first.producers if names[producer.index] == "HGMMA"] == products[:1]
    assert [producer.index for producer in second.producers if names[producer.index] == "HGMMA"] == products[1:]


def test_loads_of_an_ordered_queue_are_named_if_their_register_is_read(
    assembled: Callable[[str, int], Cubin],
) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + QUEUE, 90), "k")
    names = names_of(target)
    sites = [site for site in wait_sites(target) if site.kind == "shared"]
    without_scoreboard = [
        producer
        for site in sites
        for producer in site.producers
        if target.words[producer.index].write_barrier == 7 and names[producer.index] == "LDS"
    ]
    assert without_scoreboard
    assert all(producer.is_read for producer in without_scoreboard)


@pytest.mark.parametrize("arch", [90, 100])
def test_cluster_barrier_is_a_class_of_its_own(assembled: Callable[[str, int], Cubin], arch: int) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + CLUSTER, arch), "k")
    names = names_of(target)
    sites = [site for site in wait_sites(target) if site.kind == "cluster"]
    assert [(names[site.index], site.own_class) for site in sites if site.own_class] == [("UCGABAR", "cluster")]
    assert names.count("UCGABAR") > len(sites)  # the arrival waits for nothing


def with_words(target: GraftTarget, changed: Mapping[int, Word]) -> GraftTarget:
    return replace(target, words=tuple(changed.get(index, word) for index, word in enumerate(target.words)))


def producers_at(target: GraftTarget, index: int) -> list[tuple[str, str]]:
    names = names_of(target)
    return [
        (names[own.index], own.kind) for site in wait_sites(target) if site.index == index for own in site.producers
    ]


@pytest.fixture
def load(assembled: Callable[[str, int], Cubin]) -> tuple[GraftTarget, int, int]:
    """A kernel with one load, the load, and the instruction that waits for it."""
    target = GraftTarget.from_cubin(assembled(HEAD + TRANSPOSED, 90), "k")
    names = names_of(target)
    return target, names.index("LDG"), names.index("MOVM")


def test_result_is_awaited_where_the_read_of_operands_is_too(load: tuple[GraftTarget, int, int]) -> None:
    target, at, user = load
    for own, read in ((0, 1), (1, 0)):
        producer = target.words[at].with_write_barrier(own).with_read_barrier(read)
        changed = with_words(target, {at: producer, user: target.words[user].with_wait_mask(0b11)})
        assert ("LDG", "global") in producers_at(changed, user)


def test_instruction_that_waits_for_nothing_is_no_site(load: tuple[GraftTarget, int, int]) -> None:
    target, at, user = load
    unset = target.words[at].with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)
    waits = with_words(target, {user: target.words[user].with_wait_mask(1 << 5)})
    assert user in {site.index for site in wait_sites(with_words(target, {}))}
    assert user not in {site.index for site in wait_sites(with_words(waits, {at: unset}))}


@pytest.mark.parametrize("arch", [90, 100])
def test_wait_for_a_fence_is_no_wait_for_operands(assembled: Callable[[str, int], Cubin], arch: int) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + FENCE, arch), "k")
    names = names_of(target)
    assert ("MEMBAR", "fence") in producers_at(target, names.index("LDG", names.index("MEMBAR")))


def depbar(barrier: int, others: int = 0) -> Word:
    """``DEPBAR.LE``, which also waits for the barriers of the mask ``others``."""
    word = Word(DEPBAR | 4 << 9 | 1 << 47).with_guard(PT).with_stall(4).with_field(44, 3, barrier)
    return word.with_field(32, 6, others).with_write_barrier(NO_BARRIER).with_read_barrier(NO_BARRIER)


def counted(load: tuple[GraftTarget, int, int], word: Word) -> GraftTarget:
    """The kernel with a ``DEPBAR`` in place of the instruction that waits for its load."""
    target, at, user = load
    written = target.words[at].with_write_barrier(2).with_read_barrier(NO_BARRIER)
    return with_words(target, {at: written, user: word})


@pytest.mark.parametrize("word", [depbar(2), depbar(0, 0b100)])
def test_depbar_waits_for_any_instruction_that_sets_its_scoreboards(
    load: tuple[GraftTarget, int, int], word: Word
) -> None:
    target = counted(load, word)
    (site,) = (site for site in wait_sites(target) if site.index == load[2])
    assert (site.kind, [producer.index for producer in site.awaited]) == ("global", [load[1]])


def test_copies_are_awaited_once(assembled: Callable[[str, int], Cubin]) -> None:
    again = STAGES.replace("st.global", "cp.async.wait_all; st.global")
    target = GraftTarget.from_cubin(assembled(HEAD + again, 80), "k")
    *_, last = (site for site in wait_sites(target) if names_of(target)[site.index] == "DEPBAR")
    waits = with_words(target, {last.index - 1: target.words[last.index]})
    after = next(site for site in wait_sites(waits) if site.index == last.index)
    assert (bool(last.producers), after.producers) == (True, ())


def test_load_by_tma_is_of_no_group(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + BULK_STORES, 90), "k")
    names = names_of(target)
    load = target.words[names.index("UBLKCP")]
    changed = with_words(target, {names.index("UBLKCP"): load.with_field(0, 9, _UTMALDG)})
    assert producers_at(changed, names.index("DEPBAR")) == [("UTMACMDFLUSH", "bulk")]


def test_depbar_ends_the_wait_for_its_scoreboard(load: tuple[GraftTarget, int, int]) -> None:
    target = counted(load, depbar(2))
    user = next(at for at, name in enumerate(names_of(target)) if name == "STG")
    changed = with_words(target, {user: target.words[user].with_wait_mask(0b100)})
    assert user not in {site.index for site in wait_sites(changed)}


def test_list_of_a_depbar_is_read() -> None:
    texts = [text for (text,) in code_texts(80, [depbar(1)], [depbar(1, 0b1100)])]
    assert texts == ["DEPBAR.LE SB1, 0x0", "DEPBAR.LE SB1, 0x0, {3,2}"]
    assert awaited_barriers(depbar(1, 0b1100).with_wait_mask(1)) == 0b1101


def test_bulk_stores_are_awaited_by_group(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + BULK_STORES, 90), "k")
    (site,) = (site for site in wait_sites(target) if names_of(target)[site.index] == "DEPBAR")
    assert site.kind == "bulk"
    assert [names_of(target)[producer.index] for producer in site.awaited] == ["UBLKCP", "UTMACMDFLUSH"]


@pytest.mark.parametrize("arch", [80, 100])
def test_instructions_of_a_called_function_are_awaited_behind_the_call(
    assembled: Callable[[str, int], Cubin], arch: int
) -> None:
    target = GraftTarget.from_cubin(assembled(HEAD + CALLS, arch), "k")
    graph = FlowGraph.from_target(target)
    (call,) = graph.calls
    entry = graph.blocks[graph.calls[call]].start
    behind = graph.blocks[call].stop
    last = max(at for at in range(entry, len(target.words)) if target.words[at].operation == _RET)
    # The function returns before its last result is there, and the caller waits for it.
    pending = target.words[last - 1].with_write_barrier(4)
    waits = target.words[behind].with_wait_mask(1 << 4)
    changed = with_words(target, {last - 1: pending, last: target.words[last].with_wait_mask(0), behind: waits})
    (site,) = (site for site in wait_sites(changed) if site.index == behind)
    assert last - 1 in {producer.index for producer in site.producers}
    scoreboards = pending_scoreboards(changed.words, FlowGraph.from_target(changed))
    assert scoreboards.after_issue[last] & 1 << 4
    assert scoreboards.before_wait[behind] & 1 << 4
    assert not scoreboards.after_issue[behind] & 1 << 4


def test_producers_of_one_call_are_not_those_of_another(assembled: Callable[[str, int], Cubin]) -> None:
    twice = CALLS.replace("st.global.f64 [%d1], %e3", "st.global.f64 [%d1], %e3; div.rn.f64 %e3, %e3, %e2;"
                          " st.global.f64 [%d1+8], %e3")  # fmt: skip
    target = GraftTarget.from_cubin(assembled(HEAD + twice, 80), "k")
    graph = FlowGraph.from_target(target)
    first, second = sorted(graph.calls)
    assert graph.returns[first + 1] == graph.returns[second + 1]
    assert all(set(graph.continuations[end]) == {first + 1, second + 1} for end in graph.returns[first + 1])
    assert {first + 1, second + 1}.isdisjoint(*(graph.successors[end] for end in graph.returns[first + 1]))
