"""``bounds_check`` finds the planted accesses outside of allocations that ``compute-sanitizer memcheck`` finds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time

import pytest

from tests.e2e.test_bounds_check import PROGRAM, found_in, planted_in

from .conftest import Runner

INVALID = re.compile(
    r"Invalid __global__ \S+ of size (\d+) bytes.*?by thread \((\d+),0,0\) in block \((\d+),0,0\)", re.S
)


def test_planted_accesses_are_those_of_memcheck(runner: Runner) -> None:
    checker = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    if checker is None:
        pytest.skip("no compute-sanitizer on this machine")
    command = [sys.executable, str(PROGRAM)]
    begin = time.perf_counter()
    profiled = runner.profiled(command, "-p", "bounds_check", "--wait")
    middle = time.perf_counter()
    memcheck = [checker, "--tool", "memcheck", "--destroy-on-device-error", "kernel"]  # else it ends at the first one
    checked = subprocess.run([*memcheck, *command], cwd=runner.folder, capture_output=True, text=True, timeout=300)
    end = time.perf_counter()
    planted = planted_in(profiled.outcome.stdout)
    assert found_in(profiled.trace) == planted, profiled.outcome.stderr
    of_memcheck = [(int(block), int(thread), int(size)) for size, thread, block in INVALID.findall(checked.stdout)]
    assert sorted(of_memcheck) == sorted((block, thread, size) for _, _, block, thread, size in planted)
    print(f"GPU-BOUNDS\t{len(planted)} faults\tbounds_check {middle - begin:.1f} s\tmemcheck {end - middle:.1f} s")


@pytest.mark.parametrize("access", ["ld.global.u32", "st.global.v2.u64", "atom.global.add.u32"])
def test_record_outlives_the_illegal_address_that_ends_the_context(access: str, runner: Runner) -> None:
    command = [sys.executable, str(PROGRAM), access, "fatal"]
    profiled = runner.profiled(command, "-p", "bounds_check", "--wait")
    *_, last = profiled.outcome.stdout.splitlines()
    name, _, block, thread, size, _, status = last.split("\t")
    assert status == "700", profiled.outcome.stdout + profiled.outcome.stderr
    accesses = found_in(profiled.trace)
    assert len(accesses) == 4, accesses
    assert accesses[-1] == (name, "", int(block), int(thread), int(size))
