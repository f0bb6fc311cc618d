"""``run --shake`` finds planted races by delays, and nothing in kernels that synchronize."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import PROGRAMS

PROGRAM = str(PROGRAMS / "races.py")
_EXCLUSIVE = pytest.mark.exclusive
RACY = (
    "lower_warp", pytest.param("tree", marks=_EXCLUSIVE), "neighbours", "counter",
    pytest.param("tiles", marks=_EXCLUSIVE), "warp_sums", pytest.param("message", marks=_EXCLUSIVE), "last_writer",
    "histogram", "flag",
)  # fmt: skip
"""Exclusive cases race without the delays of ``--shake``, too, while other programs use the GPU."""
SEEDS = 50


def shaken(folder: Path, seeds: int, *command: str) -> subprocess.CompletedProcess[str]:
    options = ["run", "--shake", str(seeds), "--", sys.executable, PROGRAM, *command]
    return subprocess.run([sys.executable, "-m", "tui_probe", *options], cwd=folder, capture_output=True, text=True,
                          timeout=280, check=False)  # fmt: skip


@pytest.mark.parametrize("kernel", RACY)
def test_delays_find_planted_race(kernel: str, tmp_path: Path) -> None:
    result = shaken(tmp_path, SEEDS, "racy", kernel)
    print(f"GPU-SHAKE\t{kernel}\t{result.returncode}\t{result.stdout}")
    assert result.returncode == 1, result.stdout + result.stderr[-2000:]
    assert f"  {kernel}: PTX line " in result.stdout


def test_delays_change_nothing_in_right_kernels(tmp_path: Path) -> None:
    result = shaken(tmp_path, 15, "right")
    assert (result.returncode, result.stdout) == (0, "no difference in 15 runs with delays\n"), result.stderr[-2000:]
