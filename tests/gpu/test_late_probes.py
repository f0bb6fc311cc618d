"""Kernels for which ptxas takes long: a launch has the first probe that is ready, later launches have all."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.trace.follow import open_trace

if TYPE_CHECKING:
    import pytest

    from .conftest import Runner

START = Path(__file__).parents[1] / "bench" / "start_program.c"
KERNELS = 6


def probes_of_launches(log: str, kernel: int) -> list[str]:
    """The probes with a result of a kernel, in the order of its launches."""
    saved = re.findall(rf"save \S+ size \d+ kernel {kernel} launch (\d+) probe (\S+)", log)
    return [probe for _, probe in sorted((int(launch), probe) for launch, probe in saved)]


def check_late_probes(log: str, kernel: int) -> bool:
    """Return whether the counting probes of a kernel came late; then its first result is of its times."""
    reasons = re.findall(rf"\[probe\] fused kernel {kernel} probes \S+ reason (.*)", log)
    probes = probes_of_launches(log, kernel)
    was_late = bool(reasons) and "being-prepared" in reasons[0]
    if was_late:
        assert probes[0] == "block_sched"
    if reasons and reasons[-1] == "-":
        assert {"what_limits", "block_sched"} <= set(probes), (kernel, probes)
    return was_late


def test_kernels_have_times_before_counts(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "start"
    subprocess.run(["cc", "-O1", "-o", program, START, "-ldl"], check=True)
    run = runner.profiled([str(program), str(KERNELS), "500", "80", "150"], "-p", "survey", "--launches", "auto")
    assert run.outcome.status == 0, run.outcome.stderr
    log = (run.trace / "event.log").read_text()
    late = [check_late_probes(log, kernel) for kernel in range(KERNELS)]
    print(f"GPU-LATE\t{sum(late)} of {KERNELS} kernels had times first")
    for kernel in open_trace(run.trace).kernels:
        for probed in kernel.by_probe():
            assert probed.status == "probed" or probed.reason, (kernel.name, probed.probe)
