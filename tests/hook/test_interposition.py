"""Interposition: the ways of the hook into a program, without a loss of driver functions."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .conftest import ROOT, Build, Host

if TYPE_CHECKING:
    from pathlib import Path

OWN_EXITS = {"_exit", "_Exit", "quick_exit", "kill", "raise", "execve", "execveat", "execv", "fexecve"}
OWN_EXITS |= {"execvp", "execvpe", "execl", "execle", "execlp", "syscall", "abort", "tgkill", "killpg", "sigqueue"}
OWN_EXITS |= {"pthread_kill", "pthread_sigqueue"}
LOADER = {"dlopen", "dlmopen"}
NVTX_ENTRY = "InitializeInjectionNvtx2"


def exported(library: Path) -> set[str]:
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[2] for line in listed.stdout.splitlines()}


def test_exports_every_name_of_the_driver_but_the_debuggers_own(built: Build) -> None:
    names = set((ROOT / "hook" / "symbols.txt").read_text().split())
    assert {"cudbgApiInit", "cudbgIpcFlag", "cudbgGetAPI"} <= names
    names = {name for name in names if not name.startswith("cudbg") or name.startswith("cudbgGetAPI")}
    assert exported(built.hook) == names | OWN_EXITS | LOADER | {NVTX_ENTRY}


def test_soname_is_that_of_the_driver(built: Build) -> None:
    shown = subprocess.run(["readelf", "-d", built.hook], capture_output=True, text=True, check=True).stdout
    assert "soname: [libcuda.so.1]" in shown


LOADED = """
import re
print(len({line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so.1" in line}))
print(cuda.cuDriverGetVersion(byref(c_int())))
print(len({line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so.1" in line}))
"""


@pytest.mark.parametrize("loading", ["audit", "preload"])
def test_hook_is_what_dlopen_finds(host: Host, loading: str) -> None:
    run = host.python(LOADED, **({"LD_AUDIT": ""} if loading == "preload" else {"LD_PRELOAD": ""}))
    before = "1" if loading == "preload" else "2"
    assert run.stdout.split() == [before, "0", "2"], "audited, it needs the driver; preloaded, its first call loads it"


def test_hook_is_found_on_the_library_path(host: Host) -> None:
    run = host.python(LOADED, LD_PRELOAD="", LD_AUDIT="", LD_LIBRARY_PATH=str(host.built.hook.parent))
    assert run.stdout.split() == ["1", "0", "2"]


def test_process_that_uses_no_gpu_loads_no_driver_and_leaves_no_trace(host: Host) -> None:
    run = host.command(sys.executable, "-c", "print(open('/proc/self/maps').read().count('stub/libcuda'))")
    assert (run.status, run.stdout, run.directories) == (0, "0\n", [])


def test_trampoline_keeps_every_argument(host: Host) -> None:
    run = host.python(
        """
wide = [c_uint64(n) for n in (1, 2, 3, 4, 5, 6, 7, 8)]
real = [ctypes.c_double(n) for n in (1, 2, 3, 4, 5, 6, 7, 8)]
for _ in range(2):
    print(cuda.cuTexRefSetAddress2D_v3(*wide), cuda.cuTexRefSetMipmapLevelBias(*real))
"""
    )
    assert run.stdout.split() == ["204"] * 4, run.stderr


def test_function_that_the_driver_lacks_is_not_found(host: Host) -> None:
    run = host.python("print(cuda.cuArrayCreate_v2(None, None), cuda.cuLaunchKernelEx_ptsz.__name__, cuda.cuMemMap(0))")
    assert run.stdout.split() == ["500", "cuLaunchKernelEx_ptsz", "500"], run.stderr


def test_without_any_driver_every_call_fails_and_none_crashes(host: Host) -> None:
    run = host.python(
        "print(cuda.cuInit(0), cuda.cuModuleLoadData(None, None), cuda.cuMemAlloc_v2(None, 0))",
        TUI_PROBE_DRIVER="/nowhere/libcuda.so.1",
    )
    assert run.stdout.split() == ["500"] * 3, run.stderr


def test_driver_path_that_leads_back_to_the_hook_is_refused(host: Host) -> None:
    run = host.python("print(cuda.cuInit(0))", TUI_PROBE_DRIVER=str(host.built.hook))
    assert run.stdout.split() == ["500"], run.stderr


ADDRESS = """
import sys
name, version, flags, expected = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
address = c_void_p()
call("cuGetProcAddress_v2", name.encode(), byref(address), version, c_uint64(flags), None)
hook = ctypes.CDLL("libcuda.so.1")
print(address.value == ctypes.cast(hook[expected], c_void_p).value)
"""


@pytest.mark.parametrize(
    ("name", "version", "flags", "expected"),
    [
        ("cuLaunchKernel", 7000, 0, "cuLaunchKernel"),
        ("cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"),
        ("cuLaunchKernelEx", 11060, 2, "cuLaunchKernelEx_ptsz"),
        ("cuMemAlloc", 12000, 0, "cuMemAlloc_v2"),
        ("cuMemAlloc", 12000, 2, "cuMemAlloc_v2"),
        ("cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2"),
        ("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"),
        ("cuGetProcAddress", 11030, 0, "cuGetProcAddress"),
        ("cuModuleLoadData", 2000, 0, "cuModuleLoadData"),
    ],
)
def test_get_proc_address_gives_the_wrapper_of_the_same_form(
    host: Host, name: str, version: int, flags: int, expected: str
) -> None:
    script = "from host import *\n" + ADDRESS
    run = host.command(sys.executable, "-c", script, name, str(version), str(flags), expected)
    assert run.stdout == "True\n", run.stderr


def test_get_proc_address_leaves_other_functions_to_the_driver(host: Host) -> None:
    run = host.python(
        """
address = c_void_p()
call("cuGetProcAddress_v2", b"cuDriverGetVersion", byref(address), 12000, c_uint64(0), None)
print(address.value == ctypes.cast(cuda.cuDriverGetVersion, c_void_p).value)
print(cuda.cuGetProcAddress_v2(b"cuNoSuchThing", byref(address), 12000, c_uint64(0), None))
"""
    )
    assert run.stdout.split() == ["False", "500"], run.stderr


def test_launch_through_a_looked_up_address_is_seen(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "add__8")
w = word()
address = c_void_p()
call("cuGetProcAddress_v2", b"cuLaunchKernel", byref(address), 7000, c_uint64(0), None)
kind = ctypes.CFUNCTYPE(c_int, c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p)
print(kind(address.value)(f, 1, 1, 1, 32, 1, 1, 0, None, pointers(w), None), read(w))
"""
    )
    assert run.stdout.split() == ["0", "1"], run.stderr
    assert len(run.results) == 1
