"""Findings of the simulated GPU's checks, from lines of a log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.trace.make import TraceWriter
from tui_probe.pages.run_report import run_report
from tui_probe.trace.follow import open_trace
from tui_probe.trace.source_lines import SourceLine
from tui_probe.verdicts import simulator_findings
from tui_probe.verdicts.static_findings import static_findings

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probekit.finding import Finding

PLACE = {"block": [1, 0, 0], "function": "kernel", "occurrence": 0}
READ = {**PLACE, "access": "load", "thread": [3, 0, 0], "text": "@%p1 ld.shared.u32 %r1, [%r2];", "ptx_line": 20}
WRITTEN = {**PLACE, "access": "store", "thread": [40, 0, 0], "text": "st.shared.u32 [%r2], %r3;", "ptx_line": 12}
RACE = {
    "kernel": "kernel", "kind": "race", "place": READ, "space": "shared", "size": 4, "address": "0x80", "value": "0x7",
    "count": 64, "detail": "", "other": WRITTEN,
}  # fmt: skip


def found(directory: Path, *lines: str) -> list[Finding]:
    """The findings of a kernel in a log with these lines."""
    writer = TraceWriter(directory / "trace")
    writer.start()
    writer.kernel(0, "kernel")
    with (writer.directory / "event.log").open("a") as log:
        log.writelines(f"{line}\n" for line in lines)
    return list(static_findings(open_trace(writer.directory).kernels[0]))


def line(**changes: Any) -> str:
    return f"[sanitizer] {json.dumps(RACE | changes)}"


def test_race_has_both_sides(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, line())
    assert finding.words == (
        "load of 4 B in shared memory, value 0x7, 64 accesses; ld.shared.u32 line 20 of its PTX, block (1, 0, 0), "
        "thread (3, 0, 0); conflicts with the store at st.shared.u32 line 12 of its PTX, block (1, 0, 0), "
        "thread (40, 0, 0)"
    )
    record = finding.record()
    assert (record["key"], record["other_fault_thread"], record["value"]) == ("race", "(40, 0, 0)", "0x7")


def test_instructions_of_one_source_line_are_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an unrolled loop; PTX lines 20 to 29 are of source line 2 here."""
    monkeypatch.setattr(simulator_findings, "_pruned_line", lambda _, site: site["ptx_line"])
    monkeypatch.setattr(simulator_findings, "_source", lambda _, line: SourceLine("a.cu", line // 10) if line else None)
    places = [{**READ, "ptx_line": number} for number in (20, 21, 21, 30)]
    unrolled, other = found(tmp_path, *(line(kind="uninitialized", place=place, other=None) for place in places))
    assert "192 accesses; ld.shared.u32 PTX:20 a.cu:2 (2 instructions), block" in unrolled.words
    assert "64 accesses; ld.shared.u32 PTX:30 a.cu:3, block" in other.words


def test_barrier_names_thread_elsewhere(tmp_path: Path) -> None:
    there = {**WRITTEN, "access": "ends", "text": "ret;"}
    (finding,) = found(tmp_path, line(kind="divergent_barrier", size=None, value=None, count=1, other=there))
    assert finding.words.endswith(
        "another thread ended without reaching this barrier; its last position is ret line 12 of its PTX,"
        " block (1, 0, 0), thread (40, 0, 0)"
    )


@pytest.mark.parametrize(
    ("here", "other", "fix"),
    [
        ({}, {}, "order the two accesses: within a block, use a barrier"),
        ({"access": "copy"}, {}, "wait for the copy before the other access"),
        ({"block": [1, 0, 0], "thread": [41, 0, 0]}, {}, "order the two accesses with __syncwarp"),
    ],
)
def test_fix_of_a_race_depends_on_its_accesses(
    here: dict[str, Any], other: dict[str, Any], fix: str, tmp_path: Path
) -> None:
    (finding,) = found(tmp_path, line(kind="race", place={**READ, **here}, other={**WRITTEN, **other}))
    assert finding.advice.startswith(fix)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("bar.sync 1, 64;", "make all participating threads"),
        ("shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;", "let all lanes of the mask"),
        ("mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;", "count the arrivals per phase"),
    ],
)
def test_fix_of_a_deadlock_depends_on_where_threads_wait(text: str, fix: str, tmp_path: Path) -> None:
    place = {**READ, "access": "", "text": text}
    (finding,) = found(tmp_path, line(kind="deadlock", place=place, size=None, value=None, count=1, other=None))
    assert finding.advice.startswith(fix)


def test_fix_of_a_pointer_that_is_not_of_the_device(tmp_path: Path) -> None:
    detail = "0x14 is not in device memory: the pointer is null"
    (finding,) = found(tmp_path, line(kind="out_of_bounds", space="global", detail=detail, other=None))
    assert finding.advice.startswith("pass a pointer that cuMemAlloc")


def test_failed_check_is_no_wrong_result(tmp_path: Path) -> None:
    nowhere = {
        "access": "",
        "block": None,
        "thread": None,
        "function": None,
        "text": "",
        "occurrence": 0,
        "ptx_line": 0,
    }
    (finding,) = found(tmp_path, line(kind="unchecked", place=nowhere, size=None, value=None, detail="out", other=None))
    assert (finding.label, finding.words, finding.wrong_result) == ("not checked", "out, 64 accesses", False)


def test_damaged_lines_have_no_finding(tmp_path: Path) -> None:
    damaged = (line()[:90], line(kind="unknown"), line(place=[]), line(kernel="other"), "[sanitizer] []")
    assert found(tmp_path, *damaged) == []


def test_finding_has_the_launch_that_the_log_names(tmp_path: Path) -> None:
    (finding,) = found(tmp_path, line(launch=7))
    assert ", thread (3, 0, 0), launch 7; conflicts" in finding.words
    assert finding.record()["launch"] == 7


def test_faults_of_a_kernel_without_result_are_first_in_the_report(tmp_path: Path) -> None:
    """As of a misaligned access or a deadlock, which end the kernel: the log has no kind of access then."""
    place = {**READ, "access": "", "text": "@%p1 st.shared.u32 [%r2+1], %r3;"}
    detail = "deadlock at barrier 1, line 20: 32 threads of 64 arrived, one of them block (1, 0, 0), thread (3, 0, 0)"
    lines = [line(kind="misaligned", place=place, other=None, value=None, count=1)]
    lines.append(line(kind="deadlock", place={**place, "text": "bar.sync 1, 64;"}, detail=detail, size=None, value=None,
                      count=1, other=None))  # fmt: skip
    misaligned, deadlock = found(tmp_path, *lines)
    assert misaligned.record()["access"] == "store"
    assert misaligned.words.startswith(
        "store of 4 B in shared memory; st.shared.u32 line 20 of its PTX, block (1, 0, 0)"
    )
    assert deadlock.words.startswith(
        "barrier 1: 32 threads of 64 arrived; bar.sync line 20 of its PTX, block (1, 0, 0)"
    )
    report = run_report(open_trace(tmp_path / "trace"))
    first = report[report.index("Where to look first") :].splitlines()
    assert first[1].startswith("  ! #0 kernel  misaligned: store of 4 B in shared memory")
    assert any(text.startswith("  ! #0 kernel  deadlock: barrier 1: 32 threads of 64 arrived") for text in first)


def test_instruction_is_found_with_other_spaces(tmp_path: Path) -> None:
    """A replaced instruction has one space where the program has a tab."""
    loads = {**READ, "text": "ld.const.u32 %r2, [%rd5];"}
    writer = TraceWriter(tmp_path / "trace")
    writer.start()
    writer.kernel(0, "kernel")
    with (writer.directory / "event.log").open("a") as log:
        log.write(f"{line(kind='out_of_bounds', place=loads, other=None)}\n")
    kernel = open_trace(writer.directory).kernels[0]
    assert kernel.folder is not None
    (kernel.folder / "pruned.ptx").write_text(
        '.file 1 "a.cu"\n.visible .entry kernel()\n{\n.loc 1 7 3\n\tld.const.u32 \t%r2, [%rd5];\nret;\n}\n'
    )
    (finding,) = static_findings(kernel)
    assert "ld.const.u32 PTX:5 a.cu:7, block (1, 0, 0)" in finding.words
