"""Starts of phases: waits, kinds of work, loops, and phases that a user names."""

from __future__ import annotations

import pytest

from tests.engine.kernels import DATA, entry
from tests.probes.running import EXAMPLES
from tui_probe.engine.function_sites import source_names
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_model.positions import SourceRange
from tui_probe.ptx.parser import parse
from tui_probe.ptx.phase_names import KINDS, work_of
from tui_probe.ptx.phases import PhaseStart, phase_starts


def starts_of(file: str, name: str) -> list[PhaseStart]:
    return phase_starts(Kernel.of(parse((DATA / f"{file}.sm_90a.ptx").read_text()), name).entry)


def works(starts: list[PhaseStart], stage: str) -> list[str]:
    return [start.work for start in starts if start.stage == stage]


def test_phase_starts_of_attention() -> None:
    starts = starts_of("attn_fwd", "attn_fwd")
    assert works(starts, "prologue") == ["global load", "async copy"]
    assert works(starts, "loop") == [
        "copy wait", "mma", "wgmma wait", "compute", "exponential", "compute", "mma", "barrier wait", "async copy",
    ]  # fmt: skip
    assert works(starts, "epilogue") == ["wgmma wait", "copy wait", "compute", "barrier wait", "global store"]
    assert sum(start.iterates for start in starts) == 1
    assert {start.depth for start in starts} == {0, 1}


def test_labels_without_branches_do_not_cut_phases() -> None:
    """Labels of debug information divide the straight code of a loop, whose records share one address."""
    code = "\n".join(f"$L__tmp{number}:\nadd.f32 %f1, %f1, %f1;" for number in range(200))
    body = f".reg .f32 %f<3>;\n.reg .pred %p<2>;\n$loop:\n{code}\nbar.sync 0;\n{code}\n@%p1 bra $loop;\nret;"
    starts = phase_starts(Kernel.of(parse(entry(body)), "kernel").entry)
    assert works(starts, "loop") == ["compute", "barrier wait", "compute"]
    assert len({start.block for start in starts if start.stage == "loop"}) == 1


def test_loop_that_reads_until_memory_changes_is_a_wait() -> None:
    """A barrier of the whole grid polls so."""
    loop = "$again:\nld.acquire.gpu.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $again;"
    body = f".reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n.reg .pred %p<2>;\n{loop}\nst.global.u32 [%rd1], %r1;\nret;"
    for text, work in ((body, "polling wait"), (body.replace("acquire.gpu.", ""), "global load")):
        assert works(phase_starts(Kernel.of(parse(entry(text)), "kernel").entry), "prologue")[0] == work


def test_products_of_a_phase_are_those_of_its_instructions() -> None:
    """An attention of tiles of 128 by 64: two products of 64 columns and depth for each row, in 128 threads."""
    products = [start.multiply_adds for start in starts_of("attn_fwd", "attn_fwd") if start.work == "mma"]
    assert products == [64 * 64 * 64 // 128] * 2
    assert {start.multiply_adds for start in starts_of("attn_fwd", "attn_fwd") if start.work != "mma"} == {0}


def test_marks_in_the_code_name_phases() -> None:
    """A mark holds until the next one, also around a loop; code behind several marks is of no phase."""
    work = "\n".join(["add.f32 %f1, %f1, %f1;"] * 5)
    loop = f"$loop:\n{work}\npmevent 2;\n{work}\nbar.sync 0;\npmevent 3;\n{work}\n@%p1 bra $loop;"
    body = f".reg .f32 %f<2>;\n.reg .pred %p<2>;\npmevent 1;\n{work}\n{loop}\npmevent.mask 0x9;\n{work}\nret;"
    starts = phase_starts(Kernel.of(parse(entry(body)), "kernel").entry)
    assert [start.work for start in starts] == ["pmevent 1", "other", "pmevent 2", "pmevent 3", "pmevent.mask 0x9"]
    assert [start.is_named for start in starts] == [True, False, True, True, True]
    assert not any(start.is_named for start in starts if start.work == "other")
    assert [start.waits for start in starts] == [(), (), ("barrier wait",), (), ()]


def test_wait_loop_is_entered_once() -> None:
    """A record inside of a loop of tries would count tries: it is on the ways into the loop."""
    tries = [start for start in starts_of("transactions", "producer_consumer") if "try_wait" in start.head.modifiers]
    assert len(tries) > 4
    assert {way.side for start in tries for way in start.entry_edges} == {"behind"}


def test_signals_and_iterations() -> None:
    """The wait at the head of a loop begins with the iteration."""
    starts = starts_of("waits", "staged")
    assert [start.work for start in starts if start.iterates] == ["mbarrier wait", "mbarrier wait"]
    assert [start.signals for start in starts if start.work in ("bulk copy", "compute")] == [True, True]


def test_nothing_is_cut_between_fence_and_commit_of_wgmma() -> None:
    starts = starts_of("transactions", "producer_consumer")
    assert not {"mma_async", "commit_group"} & {name for start in starts for name in start.head.modifiers}


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];", "bulk copy"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r1];", "global store"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;", "global store"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 16;", "async copy"),
        ("cp.async.commit_group;", None),
        ("cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];", None),
        ("barrier.cluster.arrive.release.aligned;", None),
        ("barrier.cluster.wait.acquire.aligned;", "cluster barrier wait"),
        ("bar.sync 0;", "barrier wait"),
        ("bar.sync 1, 128;", "named barrier wait"),
        ("barrier.cta.sync %r1;", "named barrier wait"),
        ("clusterlaunchcontrol.try_cancel.async.b128 [%r1], [%r2];", "tile request"),
        ("bar.warp.sync 0xffffffff;", None),
        ("ld.global.u32 %r1, [%rd1];", "global load"),
        ("st.shared.u32 [%r1], %r2;", "shared store"),
        ("ex2.approx.f32 %f1, %f1;", "exponential"),
        ("add.s32 %r1, %r1, %r2;", None),
        ("fma.rn.f32 %f1, %f1, %f1, %f1;", "compute"),
    ],
)
def test_work_of(text: str, work: str | None) -> None:
    body = f".reg .f32 %f<2>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;\n{text}\nret;"
    first = next(item for item in Kernel.of(parse(entry(body)), "kernel").entry.body or () if hasattr(item, "opcode"))
    assert work_of(first) == work
    assert work is None or work in KINDS


@pytest.mark.parametrize(
    ("text", "signals"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [full];", True),
        ("mbarrier.test_wait.parity.shared::cta.b64 %p1, [full], %r1;", False),
        ("mbarrier.init.shared::cta.b64 [full], 1;", False),
        ("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];", True),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [full];", True),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [full];", True),
        ("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [full];", True),
        ("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [full];", True),
        ("barrier.cluster.arrive.release.aligned;", False),
        ("bar.arrive 1, 64;", False),
    ],
)
def test_signals_name_their_barrier(text: str, signals: bool) -> None:
    """Copies, tile requests and products arrive when they are complete."""
    declared = ".shared .align 8 .b64 full[2];\n.reg .pred %p<2>;\n.reg .b32 %r<3>;\n.reg .b64 %rd<2>;"
    (start,) = phase_starts(Kernel.of(parse(entry(f"{declared}\n{text}\nret;")), "kernel").entry)
    assert start.signals == signals
    assert [own.name for own in start.signaled] == ["full[2]"] * signals


NAMED = entry(
    """.reg .pred %p<2>;
    .reg .b32 %r<9>;
    mov.u32 %r1, 0;
    mov.u32 %r2, 1;
    $loop:
    add.u32 %r3, %r1, 1;
    add.u32 %r3, %r3, 2;
    add.u32 %r3, %r3, 3;
    add.u32 %r3, %r3, 4;
    mul.lo.u32 %r4, %r3, 5;
    mul.lo.u32 %r4, %r4, 6;
    add.u32 %r5, %r4, 7;
    mul.lo.u32 %r4, %r4, 8;
    mul.lo.u32 %r4, %r4, 9;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra $loop;
    ret;"""
)


def test_names_replace_kinds_and_count_moved_instructions() -> None:
    """Single instructions of a phase within another one are part of that, and counted."""
    kernel = Kernel.of(parse(NAMED), "kernel")
    starts = phase_starts(kernel.entry, lambda own: {"add": "sum", "mul": "product"}.get(own.opcode, ""))
    assert [(start.work, start.stage, start.moved_count) for start in starts] == [
        ("other", "prologue", 0), ("sum", "prologue", 0), ("product", "prologue", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("unrolled", [1, 2])
def test_name_of_little_code_in_much_is_a_phase_in_each_copy_of_an_unrolled_loop(unrolled: int) -> None:
    """A name keeps its phase where its part of the block is small; what is little of its code was moved."""
    copy = "add.f32 %f1, %f1, %f1;\n" * 300 + "mul.f32 %f2, %f1, %f1;\n" * 12 + "sqrt.rn.f32 %f1, %f2;\n" * 8
    moved = "add.f32 %f1, %f1, %f1;\n" * 300 + "sqrt.rn.f32 %f1, %f2;\n"
    body = f".reg .f32 %f<3>;\n{copy * unrolled}{moved}ret;"
    named = {"add": "sum", "mul": "product", "sqrt": "root"}
    starts = phase_starts(Kernel.of(parse(entry(body)), "kernel").entry, lambda own: named.get(own.opcode, ""))
    assert [start.work for start in starts] == ["sum", "product", "root"] * unrolled + ["sum"]
    assert [start.moved_count for start in starts] == [1, 0, 0] * unrolled + [1]


def test_branches_around_little_work_start_no_phases() -> None:
    """A record at each of these would take longer than the work."""
    blocks = "\n".join(f"@%p1 bra $over{n};\nld.global.u32 %r2, [%rd1];\n$over{n}:" for n in range(40))
    body = f"""
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<2>;
    $loop:
    {blocks}
    setp.lt.u32 %p1, %r1, 9;
    @%p1 bra $loop;
    ret;"""
    starts = phase_starts(Kernel.of(parse(entry(body)), "kernel").entry)
    assert [(start.work, start.stage) for start in starts] == [("other", "loop"), ("other", "epilogue")]


def test_phase_of_an_inlined_call_is_inside_that_of_its_caller() -> None:
    """Also where the function has more lines than the phase that calls it."""
    text = (EXAMPLES / "softmax.ptx").read_text()
    kernel = Kernel.of(parse(text), "softmax")
    phases = (("reduce", SourceRange("softmax.cu", 5, 16)), ("max", SourceRange("softmax.cu", 22, 23)))
    works = {start.work for start in phase_starts(kernel.entry, source_names(kernel, phases))}
    assert works == {"other", "max", "max/reduce", "reduce"}
