"""Wait sites: what machine code waits for, and where that comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import DATA
from tests.sass import corpus
from tui_probe.binaries.cubin import Cubin
from tui_probe.sass.operations import operation_name
from tui_probe.sass.scoreboards import WaitSite, wait_sites
from tui_probe.sass.target import GraftTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
Sites = dict[tuple[str, str], WaitSite]


def every_kernel() -> Iterator[GraftTarget]:
    images = [corpus.cubin(name) for name in corpus.NAMES]
    images += [(DATA / name).read_bytes() for name in ("attn_fwd.sm_90a.cubin", "triton_add.sm_90a.cubin")]
    for cubin in map(Cubin.read, images):
        yield from (GraftTarget.of(cubin, name) for name in cubin.kernels)


def names_of(target: GraftTarget) -> list[str]:
    return [operation_name(word, target.arch) for word in target.words]


def test_every_awaited_scoreboard_has_a_producer() -> None:
    sites = 0
    for target in every_kernel():
        for site in wait_sites(target):
            sites += 1
            assert site.producers or (site.own and not site.barriers), f"{target.name} {site.at:#x}"
            assert {producer.index for producer in site.producers} <= set(range(len(target.words)))
    assert sites > 600


def test_attention_waits_for_copies_products_and_barriers() -> None:
    target = GraftTarget.of(Cubin.read((DATA / "attn_fwd.sm_90a.cubin").read_bytes()), "attn_fwd")
    names = names_of(target)
    sites = [site for site in wait_sites(target) if site.depth]
    assert [(names[site.index], site.kind) for site in sites if site.own] == [
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
    target = GraftTarget.of(assembled(HEAD + CHASE, 90), "k")
    (site,) = (site for site in wait_sites(target) if site.depth and site.kind == "global")
    of_previous = [producer for producer in site.producers if producer.from_previous]
    assert [(producer.index, producer.is_read) for producer in of_previous] == [(site.index, True)]
    assert names_of(target)[site.index] == "LDG"


def test_copies_are_those_of_the_stage_that_is_awaited(assembled: Callable[[str, int], Cubin]) -> None:
    target = GraftTarget.of(assembled(HEAD + STAGES, 80), "k")
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
    target = GraftTarget.of(assembled(HEAD + text, arch), "k")
    names = names_of(target)
    (site,) = (site for site in wait_sites(target) if site.depth and site.kind == kind)
    first, second, *_ = site.awaited
    assert [names[producer.index] for producer in (first, second)] == [name, name]
    assert [(producer.depth, producer.from_previous) for producer in (first, second)] == [(1, True), (0, False)]
    assert not site.is_of_one_iteration


def test_products_are_those_of_the_group_that_is_awaited(assembled: Callable[[str, int | str], Cubin]) -> None:
    target = GraftTarget.of(assembled(HEAD + PRODUCTS, "90a"), "k")
    names = names_of(target)
    products = [index for index, name in enumerate(names) if name == "HGMMA"]
    first, second = (site for site in wait_sites(target) if site.own == "wgmma")
    assert [producer.index for producer in first.producers if names[producer.index] == "HGMMA"] == products[:1]
    assert [producer.index for producer in second.producers if names[producer.index] == "HGMMA"] == products[1:]


def test_loads_of_an_ordered_queue_are_named_if_their_register_is_read(
    assembled: Callable[[str, int], Cubin],
) -> None:
    target = GraftTarget.of(assembled(HEAD + QUEUE, 90), "k")
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
    target = GraftTarget.of(assembled(HEAD + CLUSTER, arch), "k")
    names = names_of(target)
    sites = [site for site in wait_sites(target) if site.kind == "cluster"]
    assert [(names[site.index], site.own) for site in sites if site.own] == [("UCGABAR", "cluster")]
    assert names.count("UCGABAR") > len(sites)  # the arrival waits for nothing
