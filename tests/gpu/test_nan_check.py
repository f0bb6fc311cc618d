"""``nan_check_birth`` names the instruction, block, warp, thread and iteration of planted NaNs and infinities."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tui_probe.probes.nan_check.birth import Birth, analyse
from tui_probe.trace.follow import open_trace
from tui_probe.trace.results import read_result

from .conftest import PROGRAMS, Runner

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Profiled

SOURCE = PROGRAMS / "births.cu"


def first_births(folder: Path) -> dict[str, Birth | None]:
    """The first birth of each kernel that was chosen."""
    trace = open_trace(folder)
    births = {}
    for launch in trace.launches:
        kernel = trace.kernels[launch.kernel]
        path = None if launch.result is None else trace.results.path(launch.result)
        if path is None:
            assert str(kernel.reason) == "not selected by --kernel"
            continue
        births[kernel.name] = analyse(read_result(path), kernel.folder).first
    return births


def planted(runner: Runner, probe: str) -> Profiled:
    build = ["nvcc", "-ptx", "-lineinfo", "-arch=sm_80", "-o", "births.ptx", str(SOURCE)]
    subprocess.run(build, cwd=runner.folder, check=True, timeout=120)
    return runner.profiled([sys.executable, str(PROGRAMS / "births.py"), "births.ptx"], "-p", probe, "--wait")


def test_planted_births_of_cuda_kernels(runner: Runner) -> None:
    profiled = planted(runner, "nan_check_birth")
    births = first_births(profiled.trace)
    rows = [line.split("\t") for line in profiled.outcome.stdout.splitlines()]
    assert len(rows) == len(births) == 7, profiled.outcome.stderr
    for name, opcode, block, thread, iteration, number in rows:
        birth = births[name]
        assert birth is not None, name
        print(f"GPU-NAN\t{name}\t{birth.opcode}\t{birth.source}\t{birth.block}\t{birth.thread}\t{birth.iterations}")
        seen = birth.opcode.partition(".")[0], birth.block[0], birth.warp, birth.iterations, birth.text
        assert seen == (opcode, int(block), int(thread) // 32, int(iteration), number)
        assert opcode == "wmma" or birth.thread[0] == int(thread)


def test_lines_are_chosen(runner: Runner) -> None:
    line = next(number for number, text in enumerate(SOURCE.read_text().splitlines(), 1) if "sqrtf" in text)
    births = first_births(planted(runner, f"nan_check_birth@births.cu:{line}").trace)
    assert [name for name, birth in births.items() if birth] == ["roots"]


def test_birth_in_the_accumulators_of_triton(runner: Runner) -> None:
    pytest.importorskip("triton")
    profiled = runner.profiled([sys.executable, str(PROGRAMS / "triton_births.py")], "-p", "nan_check_birth", "--wait",
                               "-k", "overflowing")  # fmt: skip
    block, row, step = map(int, profiled.outcome.stdout.split())
    birth = first_births(profiled.trace)["overflowing"]
    assert birth is not None
    print(f"GPU-NAN\ttriton\t{birth.opcode}\t{birth.source}\t{birth.block}\t{birth.warp}\t{birth.iterations}")
    assert (birth.block[0], birth.text, birth.warp) == (block, "inf (f32)", row // 16)
    assert birth.source is not None
    assert birth.source.file.endswith("triton_births.py")
    assert birth.iterations > step or birth.is_of_product, "products of a warpgroup may be waited for behind the loop"
