"""Runs with random delays: the first that leaves something else is reduced to the delays that do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.kernels import entry, probed
from tui_probe.errors import UsageError
from tui_probe.integrations.shake import RunOutcome, Shaker, Site, delay_probe
from tui_probe.probe_files.loading import load_probe

SITES = [Site(kernel, line, "ld.shared.u32") for kernel in ("first", "second", "third") for line in (3, 5, 8, 9, 20)]


class Delays(Shaker):
    """Runs of a program in which a delay in front of one instruction, with seeds from 4 on, changes the output."""

    guilty = Site("second", 9, "ld.shared.u32")

    def _run_undelayed(self) -> None:
        self.runs += 1

    def _run_delayed(self, seed, kernels, lines):  # type: ignore[no-untyped-def]
        self.runs += 1
        sites = [site for site in SITES if not kernels or site.kernel in kernels]
        delayed = [site for site in sites if lines is None or lines[0] <= site.line <= lines[1]]
        return ("output" if seed >= 4 and self.guilty in delayed else ""), sites


def test_shaker_reduces_delays_to_one_instruction() -> None:
    shaker = Delays((), ("program",), ())
    race = shaker.find(range(1, 51), [].append)
    assert race is not None
    assert (race.seed, race.sites, race.differing_runs, race.tried_runs) == (4, (Delays.guilty,), 3, 3)
    assert shaker.runs < 40
    assert Delays((), (), ()).find(range(1, 4), [].append) is None


def test_shaker_names_the_last_instruction_whose_delay_shows_a_race() -> None:
    class AnyEarlier(Delays):
        def _run_delayed(self, seed, kernels, lines):  # type: ignore[no-untyped-def]
            _, sites = super()._run_delayed(seed, kernels, lines)
            delayed = [site for site in sites if lines is None or lines[0] <= site.line <= lines[1]]
            shows = any(site.kernel == "second" and site.line <= 9 for site in delayed)
            return ("output" if shows else ""), sites

    race = AnyEarlier((), ("program",), ()).find(range(1, 3), [].append)
    assert race is not None
    assert race.sites == (Site("second", 9, "ld.shared.u32"),)


def test_shaker_refuses_output_that_varies_without_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = iter(b"12")
    monkeypatch.setattr(Shaker, "_run_program", lambda *_: RunOutcome({"output": bytes([next(outputs)])}))
    with pytest.raises(UsageError, match=r"line 1 is '2'; in the first run, it was '1'"):
        Shaker((), ("program",), ()).find(range(1, 3), [].append)


def test_delay_probe_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    text = entry(
        ".reg .b32 %r<3>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nbar.sync 0;\nld.global.u32 %r1, [%rd1];\n"
        "st.global.u32 [%rd1+4], %r1;\nret;",
        ".param .u64 out",
    )
    texts = []
    for seed in (1, 1, 2):
        (tmp_path / "delays.toml").write_text(delay_probe(seed))
        texts.append(probed(text, "kernel", load_probe(str(tmp_path / "delays.toml"))))
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].count("%clock") == 6  # at a barrier and two accesses, twice each


def test_shake_is_refused_with_probes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tui_probe", "run", "--shake", "3", "-p", "gmem_bytes", "--", "true"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--shake cannot be combined with -p" in result.stderr


def test_shake_without_a_run_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tui_probe", "run", "--shake", "0", "--", "true"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "argument --shake: 0: pass a whole number, at least 1" in result.stderr


MEMORY = '''
import ctypes, os, sys
PTX = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry store(.param .u32 value, .param .u64 to)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u32 %r1, [value];
    ld.param.u64 %rd1, [to];
    st.global.u32 [%rd1], %r1;
    ret;
}
"""
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel, memory = (ctypes.c_void_p() for _ in range(4))
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuModuleLoadData(ctypes.byref(module), PTX)
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"store")
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64))
cuda.cuMemsetD8_v2(memory, 0, ctypes.c_size_t(64))
value = ctypes.c_uint32(os.getpid() if sys.argv[1] == "varies" else 7)
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(value), ctypes.addressof(memory))
for _ in range(2):
    assert not cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
'''


def shaken(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tui_probe", "run", "--sim", "--shake", "1", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_shake_compares_memory_of_kernels(tmp_path: Path) -> None:
    """Kernels without sites for delays leave the same memory; a process number in memory is not the same."""
    (tmp_path / "stores.py").write_text(MEMORY)
    program = ("--", sys.executable, "stores.py")
    same = shaken(tmp_path, "--compare-memory", "store@1", *program, "same")
    assert (same.returncode, same.stdout.splitlines()[0]) == (0, "no difference in 1 run with delays"), same.stderr
    assert "to find races, use --sim without --shake" in same.stderr
    varies = shaken(tmp_path, "--compare-memory", "store", *program, "varies")
    assert varies.returncode == 2
    assert "memory: line 1 is 'store launch 0 parameter 1: " in varies.stderr
    unnamed = shaken(tmp_path, "--compare-memory", "store@0", *program, "same")
    assert "none of the compared parameters points to known memory" in unnamed.stderr


def test_shake_names_the_reason_of_a_run_without_kernels(tmp_path: Path) -> None:
    none = shaken(tmp_path, "--", "true")
    assert (none.returncode, none.stderr) == (4, "tui-probe: error: true launched no kernel (exit status 0)\n")
    failed = shaken(tmp_path, "--", "sh", "-c", "echo why >&2; exit 3")
    assert (failed.returncode, failed.stderr) == (4, "tui-probe: error: why\n")
