"""Code that measures waits: its words as nvdisasm reads them, which sites it is put at, and what the check refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import DATA
from tests.sass import corpus
from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.grafting import wait_grafts
from tui_probe.engine.grafting.snippet_store import SnippetStore
from tui_probe.engine.grafting.wait_grafts import ProbedWaits, graft_waits
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.graft import GraftedCubin
from tui_probe.sass.graft_check import refuse_changes
from tui_probe.sass.operations import operation_name
from tui_probe.sass.scoreboards import Producer, pending_scoreboards
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.uniform_registers import UNIFORM_REGISTERS
from tui_probe.sass.wait_sites import WaitSite, choose_group, hidden_waits, movable_sites, wait_sites
from tui_probe.sass.words import WORD_BYTES, branch_target, code_of
from tui_probe.toolchain import find_tools

if TYPE_CHECKING:
    from collections.abc import Callable

ATTENTION = DATA / "attn_fwd.sm_90a.cubin"


def attention() -> GraftTarget:
    return GraftTarget.from_cubin(Cubin.read(ATTENTION.read_bytes()), "attn_fwd")


def grafted(target: GraftTarget, probe: str = "stall_sites") -> tuple[GraftedCubin, ProbedWaits]:
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    return graft_waits(target, load_probe(probe), SnippetStore(Assembler()), samples_blocks=False)


def code_at(image: bytes, name: str, at: int) -> int:
    """Return the target of the branch at a site."""
    target = GraftTarget.from_cubin(Cubin.read(image), name)
    return branch_target(target.arch, at, target.words[at // WORD_BYTES])


@pytest.mark.parametrize("name", ["attn_fwd", "softmax.sm_100"])
def test_code_at_sites_is_read_by_nvdisasm(name: str, disassembled: Callable[[bytes], dict[int, str]]) -> None:
    image = ATTENTION.read_bytes() if name == "attn_fwd" else corpus.cubin(name)
    target = GraftTarget.from_cubin(Cubin.read(image), name.partition(".")[0])
    result, waits = grafted(target)
    texts = disassembled(result.image)
    site = next(wait.site for wait in waits.sites if wait.site.own_class is None)
    at = code_at(result.image, target.name, site.offset)
    assert at % 128 == 0  # in one line of the instruction cache
    names = [texts[at + WORD_BYTES * place].split()[0] for place in range(10)]
    sums = ["IADD3", "R2UR", "VIMNMX.U32", "R2UR", "UIADD3", "UIADD3"]
    assert names[:8] == ["CS2R.32", "CS2R.32", *sums]
    assert names[9] == "BRA"
    assert_keeps_longest([texts[at + WORD_BYTES * place] for place in range(2, 6)])
    itself = next((wait.site for wait in waits.sites if wait.site.own_class), None)
    if itself is None:
        return
    at = code_at(result.image, target.name, itself.offset)
    names = [texts[at + WORD_BYTES * place].split()[0] for place in range(12)]
    settling = ["NOP", "NOP"] if itself.own_class in ("barrier", "fence") else []
    assert names[0] == "CS2R.32"
    behind = [*settling, "CS2R.32", *sums, "BRA"]
    assert names[2 : 2 + len(behind)] == behind


def assert_keeps_longest(texts: list[str]) -> None:
    """The difference of the clocks is compared with a uniform register that gets the larger of both."""
    difference, _, larger, moved = (re.findall(r"\bU?R\d+\b", text) for text in texts)
    assert larger[1] == difference[0]
    assert moved == [larger[2], larger[0]]


def test_branches_to_sites_wait_for_nothing_and_their_code_does() -> None:
    target = attention()
    result, waits = grafted(target)
    after = GraftTarget.from_cubin(Cubin.read(result.image), target.name)
    for wait in waits.sites:
        word, branch = target.words[wait.site.index], after.words[wait.site.index]
        assert branch.wait_mask == 0
        index = branch_target(after.arch, wait.offset, branch) // WORD_BYTES
        assert any(near.wait_mask == word.wait_mask for near in after.words[index : index + 2])
    assert result.registers == target.registers + 2


def test_check_refuses_code_that_lost_a_wait() -> None:
    target = attention()
    result, waits = grafted(target)
    after = GraftTarget.from_cubin(Cubin.read(result.image), target.name)
    site = next(wait.site for wait in waits.sites if wait.site.own_class is None)
    index = code_at(result.image, target.name, site.offset) // WORD_BYTES
    without_waits = [
        word.with_wait_mask(0) if index <= place < index + 9 else word for place, word in enumerate(after.words)
    ]
    code = after.code
    broken = result.image[: code.offset] + code_of(without_waits) + result.image[code.end :]
    with pytest.raises(UnsupportedKernelError, match=f"the waits at {site.offset:#06x}"):
        refuse_changes(target, replace(result, image=broken), range(UNIFORM_REGISTERS))


def test_groups_have_no_site_in_the_shadow_of_another() -> None:
    target = attention()
    ranked = movable_sites(target, wait_sites(target))
    groups = [choose_group(ranked, number) for number in range(4)]
    chosen = [site.index for group in groups for site in group]
    assert len(chosen) == len(set(chosen)) >= 28
    for group in groups:
        for site in group:
            own = [
                producer.index
                for producer in site.producers
                if producer.kind == site.kind and not producer.from_previous
            ]
            assert not any(first < other.index < site.index for first in own for other in group)
            in_loop = [other.index for other in group if other is not site and site.loops[:1] == other.loops[:1] != ()]
            for producer in site.producers:
                if producer.from_previous and producer.is_newest and producer.kind == site.kind:
                    assert all(site.index < other < producer.index for other in in_loop)
    assert {site.kind for site in groups[0]} >= {"async", "wgmma"}
    assert {site.kind for site in groups[0]} >= {"barrier"}


def test_older_architecture_is_refused() -> None:
    target = GraftTarget.from_cubin(Cubin.read(corpus.cubin("softmax.sm_75")), "softmax")
    with pytest.raises(UnsupportedKernelError) as caught:
        grafted(target)
    assert caught.value.reason.code == "waits-architecture"


def test_sums_before_sm_90_wait_for_a_scoreboard_without_pending_work(
    disassembled: Callable[[bytes], dict[int, str]],
) -> None:
    target = GraftTarget.from_cubin(Cubin.read(corpus.cubin("softmax.sm_80")), "softmax")
    pending = pending_scoreboards(target.words, FlowGraph.from_target(target)).after_issue
    result, waits = grafted(target)
    texts, after = disassembled(result.image), GraftTarget.from_cubin(Cubin.read(result.image), target.name)
    assert len(waits.sites) == 8
    for wait in waits.sites:
        first = code_at(result.image, target.name, wait.offset) // WORD_BYTES
        place = next(index for index in range(first, first + 8) if texts[index * WORD_BYTES].startswith("R2UR"))
        moved, _, longest, counted, summed = after.words[place : place + 5]
        assert_keeps_longest([texts[index * WORD_BYTES] for index in range(place - 1, place + 3)])
        assert not pending[wait.site.index] >> moved.write_barrier & 1
        assert longest.write_barrier == moved.write_barrier
        assert summed.wait_mask == 1 << moved.write_barrier
        assert counted.wait_mask == 0
    assert result.registers == target.registers + 2


def test_few_uniform_registers_measure_the_sites_that_rank_first(monkeypatch: pytest.MonkeyPatch) -> None:
    target = attention()
    ranked = movable_sites(target, wait_sites(target))
    monkeypatch.setattr(wait_grafts, "_free_uniform", lambda _: set(range(50, 60)))
    _, waits = grafted(target)
    assert 0 < len(waits.sites) < 8
    assert [wait.site for wait in waits.sites] == choose_group(ranked, 0, len(waits.sites))


def test_groups_of_few_uniform_registers_leave_no_site_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last group has fewer sites than fit; with more in the first, it would begin behind sites of no group."""
    target = attention()
    ranked, first = movable_sites(target, wait_sites(target)), []
    while len(first) < 9:
        first = ranked[: len(first) + 1]
        if len(choose_group(first, 0)) + len(choose_group(first, 1)) < len(first):
            ranked.remove(first.pop())
    monkeypatch.setattr(wait_grafts, "movable_sites", lambda *_: first)
    monkeypatch.setattr(wait_grafts, "_free_uniform", lambda _: set(range(50, 60)))
    groups = [
        grafted(target, name)[1].sites for name in ("stall_sites", "stall_sites_2", "stall_sites_3", "stall_sites_4")
    ]
    size = max(map(len, groups))
    assert 0 < size < 8
    measured = [wait.site for group in groups for wait in group]
    assert len(measured) == len(set(measured))
    assert [len(group) for group in groups] == [len(choose_group(first, number, size)) for number in range(4)]


def test_waits_that_cannot_be_measured_are_listed() -> None:
    target = attention()
    sites = wait_sites(target)
    movable = movable_sites(target, sites)
    products = [at * WORD_BYTES for at, word in enumerate(target.words) if operation_name(word, 90) == "HGMMA"]
    assert hidden_waits(target, sites, movable) == {"HGMMA": products}
    barrier = next(site for site in movable if site.kind == "barrier")
    without = [site for site in movable if site != barrier]
    assert hidden_waits(target, sites, without) == {"HGMMA": products, "BAR": [barrier.offset]}
    (_, waits) = grafted(target, "stall_sites")
    assert waits.hidden_offsets == {"HGMMA": products}


@pytest.mark.parametrize(
    ("index", "loops", "is_together"),
    [(15, (1,), True), (25, (1,), False), (5, (1,), False), (5, (), True), (25, (2, 1), False)],
)
def test_sites_on_the_way_over_a_back_edge_are_in_another_group(
    index: int, loops: tuple[int, ...], is_together: bool
) -> None:
    copy = Producer(20, "async", is_read=True, from_previous=True, depth=1)
    awaited = WaitSite(10, (), "async", (copy,), (1,))
    other = WaitSite(index, (), "barrier", (), loops)
    assert (other in choose_group([awaited, other], 0)) is is_together
