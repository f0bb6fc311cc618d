"""``pytest --gpu-probe``: limits of the kernels that a test launches, on the simulated GPU."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.patience import HANG
from tests.turns import due
from tui_probe.errors import UsageError
from tui_probe.integrations.launched_kernels import LaunchedKernel, LaunchedKernels, exceeded_limits

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("faulty.py")
KERNELS = f"""
import runpy, sys
import pytest

def fill(stride):
    sys.argv = ["faulty.py", str(stride)]
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path({str(PROGRAM)!r})
"""
STRIDED = """

@pytest.mark.gpu_probe(max_wasted_of_stores=10)
def test_strided():
    fill(stride=32)


@pytest.mark.gpu_probe(10)
def test_limit_without_name():
    fill(stride=1)
"""


def example() -> str:
    """The module of the help page, and two tests that fail."""
    page = (PROGRAM.parents[2] / "tui_probe" / "help" / "ci.md").read_text()
    return page.partition("```python\n")[2].partition("```")[0] + STRIDED


ALONE = ("-p", "no:xdist")
WORKERS = ("-p", "xdist", "-n", "2", "--dist", "load")


def run_pytest(
    folder: Path, natives: Path, *options: str, workers: tuple[str, ...] = ALONE
) -> subprocess.CompletedProcess[str]:
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "test_kernels.py").write_text(example())
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, *options]
    environment = os.environ | {"TUI_PROBE_NATIVE": str(natives), "PYTHONPATH": str(PROGRAM.parents[2])}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG, check=False
    )


@pytest.mark.parametrize("workers", due([ALONE, WORKERS]))
def test_limits_are_checked_on_the_simulated_gpu(tmp_path: Path, natives: Path, workers: tuple[str, ...]) -> None:
    """With pytest-xdist, each of its processes has a trace of its own."""
    done = run_pytest(tmp_path, natives, "--gpu-probe-sim", workers=workers)
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "gpu_probe: limits need names; write max_METRIC=N" in done.stdout
    place = r"worst line: fill\.cu:4 st\.global 32 sectors, ideal 4"
    assert re.search(rf"^fill: wasted_of_stores 87\.5 is above the limit 10; {place}$", done.stdout, re.MULTILINE)
    assert "were not checked" not in done.stdout
    assert done.returncode == 1
    assert len(list((tmp_path / "trace").iterdir())) == (2 if workers == WORKERS else 1)


@pytest.mark.parametrize("workers", due([WORKERS, ALONE]))
def test_limits_without_the_option_are_named_as_unchecked(
    tmp_path: Path, natives: Path, workers: tuple[str, ...]
) -> None:
    done = run_pytest(tmp_path, natives, workers=workers)
    assert "limits of 3 tests marked gpu_probe were not checked: run pytest --gpu-probe" in done.stdout, done.stdout


class Launched(LaunchedKernels):
    """Kernels without a trace."""

    def __init__(self, *kernels: LaunchedKernel) -> None:
        super().__init__(0)
        self.kernels = kernels

    def __iter__(self) -> Iterator[LaunchedKernel]:
        return iter(self.kernels)


def kernel(registers: int | None = 40, spills: int | None = 0, reason: str | None = None) -> LaunchedKernel:
    return LaunchedKernel("gemm", 2, registers, spills, {"conflicts": (0.0, 8.0)}, reason, "gemm.cu:7")


@pytest.mark.parametrize(
    ("limits", "problems"),
    [
        ({"max_conflicts": 8, "min_conflicts": 0, "no_spills": True}, []),
        ({"max_conflicts": 7}, ["gemm: conflicts 8 is above the limit 7; worst line: gemm.cu:7"]),
        ({"min_conflicts": 1}, ["gemm: conflicts 0 is below the limit 1; worst line: gemm.cu:7"]),
        ({"max_registers": 32}, ["gemm: registers 40 is above the limit 32; worst line: gemm.cu:7"]),
        ({"max_conflict": 1}, ["gpu_probe: conflict was not measured: did you mean conflicts?"]),
        ({"no_spills": False}, []),
    ],
)
def test_limit_compares_the_extreme_of_all_launches(limits: dict[str, float], problems: list[str]) -> None:
    assert exceeded_limits(Launched(kernel()), limits) == problems


def test_limit_that_cannot_be_checked_fails() -> None:
    assert exceeded_limits(Launched(), {"no_spills": True}) == ["gpu_probe: the test launched no kernel"]
    unprobed = LaunchedKernel("gemm", 1, None, None, {}, "no PTX in image", "")
    assert exceeded_limits(Launched(unprobed), {"max_conflicts": 1}) == [
        "gpu_probe: conflicts was not measured (no PTX in image)"
    ]
    assert exceeded_limits(Launched(unprobed), {"no_spills": True}) == [
        "gpu_probe: spills was not measured (no PTX in image)"
    ]
    with pytest.raises(UsageError, match="has no limit conflicts"):
        exceeded_limits(Launched(kernel()), {"conflicts": 1})
    for limit in ("ten", None, math.nan):
        with pytest.raises(UsageError, match=f"max_conflicts={limit!r} is not a number"):
            exceeded_limits(Launched(kernel()), {"max_conflicts": cast("Any", limit)})
