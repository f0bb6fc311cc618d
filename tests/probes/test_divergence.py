"""Active lanes are those of the kernels on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tests.engine.kernels import entry
from tests.probes.running import example, result_of
from tests.probes.specimens import strided_store
from tests.probes.test_report import Writer
from tui_probe.cli.main import main
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel
from tui_probe.probe_files.loading import load_probe
from tui_probe.probes.divergence import (
    RECORD,
    Divergence,
    analyse,
    analyse_lines,
    executions_and_lanes,
    findings_by_line,
)
from tui_probe.ptx.parser import parse
from tui_probe.trace.kernel_files import parse_kernel_info

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tui_probe.records.counter_sums import CountsByLine

SPECIMEN = strided_store(5000)


def test_the_last_warps_of_a_store(tmp_path: Path) -> None:
    """All 256 warps reach the branch whole; 5000 threads store, in 156 whole warps and one of 8 lanes."""
    arguments = np.zeros(16384, np.uint32), np.uint32(5000)
    analysis = analyse(
        result_of(tmp_path, "divergence", example("strided_store"), *arguments, grid=(32,), block=(256,))
    )
    assert analysis == Divergence(branches=256, branch_lanes=8192, accesses=157, access_lanes=5000, threads_missing=0)
    assert analysis.lanes_per_branch == 32
    assert analysis.lanes_per_access == 5000 / 157


LOOP = """
.shared .b32 cell[32];
.reg .pred %p<3>;
.reg .b32 %r<9>;
mov.u32 %r1, %tid.x;
$loop:
setp.eq.u32 %p1, %r1, 0;
@%p1 bra $end;
sub.u32 %r1, %r1, 1;
setp.lt.u32 %p2, %r1, 3;
@%p2 st.shared.u32 [cell], %r1;
bra $loop;
$end:
atom.shared.add.u32 %r2, [cell+4], 1;
ret;
"""


def test_lanes_leave_a_loop_one_by_one(tmp_path: Path) -> None:
    """Threads 0 to 19 of each block: 20, 19, … 1 lanes at the head; 19, 18, … 1 at the loop's end. Lanes 1 to 19 store
    when their counter is 2, 1 and 0: 19 + 18 + 17 times in all, from the first round to the 19th."""
    analysis = analyse(result_of(tmp_path, "divergence", entry(LOOP), grid=(3,), block=(20,)))
    assert (analysis.branches, analysis.branch_lanes) == (3 * (20 + 19), 3 * (210 + 190))
    assert (analysis.accesses, analysis.access_lanes) == (3 * (19 + 1), 3 * (19 + 18 + 17 + 20))


def test_without_branches_there_is_no_mean(tmp_path: Path) -> None:
    analysis = analyse(result_of(tmp_path, "divergence", entry("ret;")))
    assert analysis == Divergence(0, 0, 0, 0, 0)
    assert analysis.lanes_per_branch is None


def test_fewer_active_lanes_are_a_step_back(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The same work with 32, then 8 lanes at its branches."""
    for name, lanes in (("before", 32), ("after", 8)):
        writer = Writer(tmp_path / name)
        writer.start()
        writer.counting_kernel(0, "gather", "divergence", RECORD)
        writer.counts(0, RECORD, branches=10, branch_lanes=10 * lanes, accesses=4, access_lanes=4 * 32)
    before, after = (str(tmp_path / name) for name in ("before", "after"))
    assert main(["compare", before, after, "--fail-if-worse", "5%"]) == 1
    worse = [line for line in capfd.readouterr().err.splitlines() if "worse by more" in line]
    assert worse == ["tui-probe: worse by more than 5%: gather: lanes per branch 32 → 8 (-75.0%), ideal 32"]
    assert main(["compare", after, before, "--fail-if-worse", "5%"]) == 0


PRODUCER = """
.shared .align 128 .b8 tile[256];
.shared .align 8 .b64 full;
.reg .pred %p<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<3>;
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra $ready;
mbarrier.init.shared::cta.b64 [full], 1;
fence.mbarrier_init.release.cluster;
$ready:
bar.sync 0;
setp.lt.u32 %p2, %r1, 32;
@%p2 bra $consumer;
setp.ne.u32 %p3, %r1, 32;
@%p3 bra $end;
ld.param.u64 %rd1, [out];
mov.u32 %r2, 0;
$tile:
mov.u32 %r3, 0;
$hash:
add.u32 %r3, %r3, 1;
setp.lt.u32 %p4, %r3, 5;
@%p4 bra $hash;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [full];
add.u32 %r2, %r2, 1;
setp.lt.u32 %p5, %r2, 1;
@%p5 bra $tile;
bra $end;
$consumer:
$wait:
mbarrier.try_wait.parity.shared::cta.b64 %p6, [full], 0;
@!%p6 bra $wait;
and.b32 %r4, %r1, 3;
setp.ne.u32 %p7, %r4, 0;
@%p7 bra $end;
ld.shared.u32 %r5, [tile];
st.shared.u32 [tile+128], %r5;
$end:
ret;
"""


def lines_of(folder: Path, body: str) -> CountsByLine[Divergence]:
    """The lines of a kernel of two warps; the pruned PTX is in the kernel's directory, as in a trace."""
    text = entry(body, ".param .u64 out")
    result = result_of(folder, "divergence_by_line", text, np.arange(64, dtype=np.uint32), block=(64,))
    module = parse(text)
    kernel = Kernel.of(module, module.entries()[0].name)
    (folder / "pruned.ptx").write_text(kernel.pruned)
    _, info = probed_kernel(kernel, load_probe("divergence_by_line"))
    lines: CountsByLine[Divergence] = analyse_lines(result, parse_kernel_info(info.splitlines()).sites[0], folder)
    return lines


def test_one_lane_that_issues_copies_has_no_avoidable_idle_lanes(tmp_path: Path) -> None:
    """The loops of the producer's lane do not count as a loss. In the consumer, 8 of 32 lanes access memory: a loss."""
    analysis = lines_of(tmp_path, PRODUCER)
    elected = [line for line in analysis.lines if line.line in analysis.analysis.elected]
    assert [(line.opcode, *executions_and_lanes(line)) for line in elected] == [
        ("bra", 5, 5),
        ("bra", 1, 1),
        ("bra", 1, 1),
    ]
    worst, *_, every = findings_by_line(cast("Any", None), analysis)
    assert worst.label == "idle lanes"
    assert worst.words.endswith("8.0 of 32 lanes active")
    assert worst.gain is not None
    assert worst.gain.amount == 24
    assert every.words.endswith("8.0 of 32 per access without code in which one lane issues asynchronous work")


def test_one_lane_without_asynchronous_work_is_a_loss(tmp_path: Path) -> None:
    """The same loops where all lanes of a warp meet again before the copy: five rounds of one lane."""
    serial = PRODUCER.replace("@%p3 bra $end;", "").replace("$hash:", "@%p3 bra $copy;\n$hash:")
    serial = serial.replace("mbarrier.arrive", "$copy:\nbar.warp.sync -1;\n@!%p3 mbarrier.arrive")
    analysis = lines_of(tmp_path, serial.replace("\ncp.async.bulk.shared", "\n@!%p3 cp.async.bulk.shared"))
    assert analysis.analysis.elected == frozenset()
    worst = next(findings_by_line(cast("Any", None), analysis))
    assert worst.gain is not None
    assert worst.gain.amount == 5 * 31
