"""The benchmark of steady loops measures all of its variants in turn, here with a loop on the simulated GPU."""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.steady import BASES, COLUMNS, NATIVE, PROGRAM, USUAL_VARIANTS, Window, interval, main, ratios
from tui_probe.launcher.control import FIELDS

LOOP = f"""
import ctypes, sys
sys.path.insert(0, {str(PROGRAM.parent)!r})
from steady_windows import Instructions, pin_processors, serve_windows
"""
KERNEL = '''
if sys.argv[-1] == "proton":
    sys.exit("Proton is not installed")
pin_processors()
instructions = Instructions()
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
    print("a line of a library", flush=True)
    if cuda:
        assert cuda.cuLaunchKernel(function, *(1, 1, 1, 32, 1, 1), 0, None, None, None) == 0
def wait():
    if cuda:
        assert cuda.cuCtxSynchronize() == 0
serve_windows(step, wait, instructions, float(sys.argv[2]))
'''


def test_every_variant_is_measured_next_to_the_program_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "loop.py"
    program.write_text(LOOP + KERNEL)
    options = ["tiny", "--sim", "--starts", "2", "--limit", "0", "--window", "0", "--warm-up", "0", "--cpus", "1"]
    variants = [*USUAL_VARIANTS[:-1], "switched", "proton"]
    options += ["--variants", *variants]
    monkeypatch.setattr(sys, "argv", ["steady", *options, "--program", str(program)])
    processors = os.sched_getaffinity(0)
    try:
        main()
    finally:
        os.sched_setaffinity(0, processors)
    output, errors = capfd.readouterr()
    assert not errors
    first, second, head, native, *rows, missing, reason = output.splitlines()
    assert [line.partition(":")[0] for line in (first, second)] == [
        "tiny, start 1, 3 windows",
        "tiny, start 2, 3 windows",
    ]
    measured = [variant for variant in variants if variant != "proton"]
    for line in (first, second):
        assert re.findall(r"(\w+) [\d.]+ ms", line) == [NATIVE, *measured, BASES["switched"]]
    assert head.split() == ["tiny", *COLUMNS]
    assert re.fullmatch(rf" +{NATIVE}( +[\d.e-]+ ms){{3}} +([\d.]+ M|–)", native)
    assert [row.split()[0] for row in rows] == measured
    assert missing.split() == ["proton", *"––––"]
    assert reason == "  proton failed: status 1: Proton is not installed"
    ratio = r" +[\d.]+ \([\d.]+–[\d.]+\)"
    assert all(re.fullmatch(rf" +\w+({ratio}){{3}}({ratio}| +–)", row) for row in rows)


def test_switch_of_recording_is_where_the_control_page_has_it() -> None:
    assert runpy.run_path(str(PROGRAM.parent / "steady_windows.py"))["CONTROL_ON"] == FIELDS["on"]


def test_loop_that_hangs_or_ends_is_left_out_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "loop.py"
    program.write_text("import sys, time\ntime.sleep(60 if sys.argv[-1] == 'kineto' else 0)\nsys.exit('no GPU')\n")
    options = ["tiny", "--starts", "1", "--limit", "0", "--patience", "1", "--variants", "kineto"]
    monkeypatch.setattr(sys, "argv", ["steady", *options, "--program", str(program)])
    main()
    rows = capfd.readouterr().out.splitlines()
    assert rows[0] == "tiny, start 1, 1 windows: native –, kineto –"
    assert rows[-2:] == ["  native failed: status 1: no GPU", "  kineto failed: no answer for 1 s"]


def test_ratios_pair_windows_of_one_round_and_leave_out_unknown_values() -> None:
    native: list[Window] = [{"step": 2.0, "instructions": None}, {"step": 4.0, "instructions": 10.0}]
    profiled: list[Window] = [{"step": 3.0, "instructions": 5.0}, {"step": 5.0, "instructions": 20.0}]
    starts = [{NATIVE: native, "on": profiled}]
    assert ratios(starts, "on", "step") == [[1.5, 1.25]]
    assert ratios(starts, "on", "instructions") == [[2.0]]
    assert ratios(starts, "on", "step") != ratios([{NATIVE: native[::-1], "on": profiled}], "on", "step")


def test_interval_spans_starts_that_differ_though_their_own_pairs_agree() -> None:
    alike = interval([[1.0, 1.01, 1.02] * 20] * 4)
    assert 1.0 <= alike[0] <= alike[1] <= 1.02
    low, high = interval([[1.0] * 20, [1.1] * 20, [1.2] * 20])
    assert Counter((low, high)) == Counter((1.0, 1.2))
