"""Programs with a loss per kernel: each loss is found, ``compare`` calls its fix one, and output stays the same."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import PROGRAMS, Runner, nvcc_program

if TYPE_CHECKING:
    from pathlib import Path

CUDA = {"scale": "uncoalesced", "transpose": "bank conflicts", "sum_columns": "idle SMs"}
TRITON = {"activate": "uncoalesced", "sum_rows": "idle SMs"}


def fixed_losses(document: dict[str, Any], losses: dict[str, str]) -> dict[str, str]:
    """The losses among ``losses`` that are fixed, by kernel."""
    texts = [
        (change["kernel"] or "", change["text"]) for change in document["findings"] if change["outcome"] == "fixed"
    ]
    return {
        name: label
        for name, label in losses.items()
        if any(re.search(rf"\b{name}\b", f"{kernel} {text}") and label in text for kernel, text in texts)
    }


def check_fixes(runner: Runner, before: list[str], after: list[str], losses: dict[str, str]) -> None:
    original, mended = runner.unprofiled(before), runner.unprofiled(after)
    assert (original.status, original.stdout) == (mended.status, mended.stdout) != (0, "")
    traces = []
    for command in (before, after):
        profiled = runner.profiled(command, "-p", "survey", "-k", ":".join(losses), "--wait")
        assert (profiled.outcome.status, profiled.outcome.stdout) == (original.status, original.stdout)
        traces.append(str(profiled.trace))
    compare = [sys.executable, "-m", "tui_probe", "compare", *traces, "--format", "json"]
    done = subprocess.run(compare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    print(f"GPU-FIXES\t{document['verdict']}")
    assert fixed_losses(document, losses) == losses, [change["text"] for change in document["findings"]]
    verdicts = {own["verdict"] for own in document["kernels"] if any(name in own["kernel"] for name in losses)}
    assert verdicts == {"better"}, document["kernels"]


@pytest.mark.exclusive
def test_losses_of_cuda_kernels_are_fixed(runner: Runner, tmp_path: Path) -> None:
    source = PROGRAMS / "image_columns.cu"
    programs = [
        nvcc_program(source, tmp_path / name, "-arch=sm_90", "-lineinfo", *options)
        for name, options in (("lossy", ()), ("fixed", ("-DFIXED",)))
    ]
    check_fixes(runner, [programs[0]], [programs[1]], CUDA)


@pytest.mark.exclusive
def test_losses_of_triton_kernels_are_fixed(runner: Runner) -> None:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("no Triton on this machine")
    command = [sys.executable, str(PROGRAMS / "bias_layer.py")]
    check_fixes(runner, command, [*command, "fixed"], TRITON)
