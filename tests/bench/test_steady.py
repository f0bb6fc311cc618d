"""The benchmark of steady loops runs all of its variants, here with a loop on the simulated GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.bench.steady import USUAL_VARIANTS

ROOT = Path(__file__).parents[2]
PROGRAM = '''
import ctypes, os, shlex, subprocess, sys, time
PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
"""
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    cuda = None  # by itself: there is no driver on this machine
if cuda:
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"empty") == 0
def step():
    if cuda:
        assert cuda.cuLaunchKernel(function, *(1, 1, 1, 32, 1, 1), 0, None, None, None) == 0
        assert cuda.cuCtxSynchronize() == 0
step()
if command := os.environ.get("STEADY_BEFORE"):
    subprocess.run(shlex.split(command), check=True, stdout=subprocess.DEVNULL)
with open(os.environ["STEPS"], "a") as log:
    print("off" if command else "on" if cuda else "native", *sys.argv[2:], file=log)
begun = time.perf_counter()
for _ in range(20):
    step()
print("loop", max(1e3 * (time.perf_counter() - begun), 1e-6))
'''


def test_every_variant_is_measured_next_to_the_program_by_itself(tmp_path: Path) -> None:
    program, steps = tmp_path / "loop.py", tmp_path / "steps"
    program.write_text(PROGRAM)
    bench = [sys.executable, "-m", "tests.bench.steady", "--sim", "--pairs", "1", "--seconds", "0"]
    done = subprocess.run(
        ["env", f"STEPS={steps}", *bench, "--program", str(program)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("[info] trace in ") for line in done.stderr.splitlines())
    warm, pair = ["on", "on", "off", "native kineto"], ["native", "on", "on", "off", "native kineto"]
    assert steps.read_text().splitlines() == [*warm, *pair]
    lines = done.stdout.splitlines()
    assert len(lines) == len(USUAL_VARIANTS) + 1 + len(USUAL_VARIANTS)
    assert re.fullmatch(r"loop +[\d.]+ ms", lines[-1 - len(USUAL_VARIANTS)])
    table = [line.split() for line in lines[-len(USUAL_VARIANTS) :]]
    assert [(name, to) for name, _, _, to, _ in table] == [(name, "to") for name in USUAL_VARIANTS]
    assert all(float(least) <= float(median) <= float(most) for _, median, least, _, most in table)
