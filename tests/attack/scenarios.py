"""Ways to run a program under the hook that, together, make each of its calls that can fail."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.hook import test_fused
from tests.hook.conftest import Engine, Prepare
from tests.hook.test_images import PTX, elf, fatbin
from tests.hook.test_machine_code import entry, grafted
from tests.hook.test_several_probes import LAUNCHES, NAMES, answering
from tests.tensor_map_calls import TENSOR_MAPS
from tui_probe.launcher.control import BUDGETS, NO_LIMIT, ControlPage

NVTX = """
import nvtx_host as nvtx
assert nvtx.start_nvtx() == 1
context()
f, w = function(module(), "add__8"), word()
nvtx.push(b"step 1")
nvtx.push_wide("r\\u00fcckw\\u00e4rts")
launch(f, w)
nvtx.pop()
nvtx.pop()
launch(f, w)
"""
CODE = elf({".text.add": b"\1\2\3\4"})
PLACE = b" \ndump " + b"\xee" * 16
OPEN_PAGES: list[ControlPage] = []
BOTH = fatbin(entry(1, 120, PTX), entry(2, 90, CODE))
MACHINE_CODE = f"""
context()
def loaded(image, name):
    path = os.path.join(os.environ["FAULT_FOLDER"], name)
    with open(path, "wb") as file: file.write(image)
    owner = c_void_p()
    call("cuModuleLoad", byref(owner), path.encode())
    return owner
launch(function(loaded({CODE!r}, "code"), "mul"))
launch(function(loaded({CODE!r}, "libcublas.so.13"), "closed"))
launch(function(loaded({BOTH!r}, "both"), "both"))
launch(kernel(library({CODE!r}), "add"))
owner = module({CODE!r})
launch(function(owner, "constant__8"), word())
call("cuModuleUnload", owner)
"""
DEAR = """
context()
f, w = function(module(), "add__8"), word()
for grid in (40_000, 3, 90_000, 40_000): launch(f, w, grid=grid, block=64)
time.sleep(0.05)
for _ in range(5): launch(f, w, grid=40_000, block=64)
call("cuFuncSetAttribute", f, 8, 1024)
call("cuFuncSetCacheConfig", f, 1)
launch(f, w)
for n in range(3):
    s = stream()
    launch(f, w, stream=s)
    call("cuStreamDestroy_v2", s)
call("cuCtxSynchronize")
"""
STRANGER = """
context()
f = function(module(), "add__8_4")
import ctypes
own = (c_uint64 * 8)()
for _ in range(2): launch(f, c_uint64(ctypes.addressof(own)), c_int(3))
"""
CAPTURES = """
context()
f, late, w = function(module(), "add__8"), function(module(), "late__8"), word()
launch(f, w)
s, graph = stream(), c_void_p()
call("cuStreamBeginCapture_v2", s, 1)
launch(f, w, stream=s)
launch(late, w, stream=s)
call("cuStreamEndCapture", s, byref(graph))
other = stream()
launch(f, w, stream=other)
call("cuStreamBeginCapture_v2", s, 2)
time.sleep(0.2)
call("cuStreamEndCapture", s, byref(graph))
launch(f, w, name="cuLaunchKernelEx", cluster=2)
call("cuStreamDestroy_v2", other)
"""
WIDE = """
import nvtx_host as nvtx
assert nvtx.start_nvtx() == 1
context()
f = function(module(), "add__8_400")
w, wide = word(), (c_uint64 * 50)()
nvtx.push(b"")
mine = nvtx.domain(b"my library")
nvtx.domain_push(mine, nvtx.attributes(3, nvtx.registered(mine, b"step")))
launch(f, w, wide)
nvtx.pop()
launch(f, w, wide)
"""
BACKGROUND = """
context()
f = [function(module(), f"k{n}__8") for n in range(20)]
w = word()
for n in range(20):
    launch(f[n], w)
    time.sleep(0.02)
for n in range(20): launch(f[n], w)
"""
LITTLE = """
context()
f, w = function(module(), "add__8"), word()
for _ in range(9): launch(f, w, grid=64)
memory = c_uint64()
for _ in range(3): cuda.cuMemAlloc_v2(byref(memory), c_size_t(700 << 20))
for _ in range(9): launch(f, w, grid=64)
"""
CONTEXTS = """
import threading
primary, attached, shared_function = c_void_p(), c_void_p(), c_void_p()
unseen_driver().cuDevicePrimaryCtxRetain(byref(primary), 0)
call("cuDevicePrimaryCtxReset_v2", 0)
call("cuDevicePrimaryCtxRetain", byref(primary), 0)
call("cuCtxSetCurrent", primary)
shared = kernel(library(), "add__8")
unseen_driver().cuKernelGetFunction(byref(shared_function), shared)
w = word()
for _ in range(3): launch(shared_function, w), launch(shared, w)
call("cuCtxAttach", byref(attached), 0)
call("cuCtxDetach", attached)
other = context()
f, own = function(module(), "add__8"), word()
for _ in range(3):
    for here, launched, memory in ((other, f, own), (primary, shared_function, w)):
        call("cuCtxSetCurrent", here)
        launch(launched, memory)
    time.sleep(0.2)
call("cuCtxDestroy_v2", other)
call("cuDevicePrimaryCtxRelease_v2", 0)
child = os.fork()
if child == 0:
    context()
    launch(function(module(), "add__8"), word())
    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
    os.kill(os.getpid(), 15)
os.waitpid(child, 0)
"""
UNUSUAL = """
context()
f, w, wide = function(module(), "add__8_2000"), word(), (c_uint64 * 250)()
call("cuFuncSetAttribute", f, 8, 1024)
launch(f, w, wide)
launch(kernel(library(), "add__8"), w)
"""
EMPTIED = """
import os
os.unsetenv("TUI_PROBE_TRACE_ROOT")
from host import *
context()
f, w = function(module(), "add__8"), word()
launch(f, w)
os.closerange(3, 1 << 16)
for _ in range(3): launch(f, w)
"""
SEVERAL = """
context()
f, w = function(module(), "add__8_4"), word()
for n in range(12): launch(f, w, c_int(n), grid=4, block=40)
"""
WATCHED = """
context()
f, w = function(module(), "add__8"), word()
for _ in range(3): launch(f, w)
time.sleep(0.1)
"""
UNWATCHED = """
context()
f = function(module(), "add")
for _ in range(2): launch(f)
time.sleep(0.6)
"""
"""A launch without places of warps, which does not end: the watchdog asks its events after 0.25 s."""
CHECKED = """
context()
f, memory = function(module(), "add__8"), c_uint64()
for n in range(3):
    launch(f, word())
    call("cuMemAlloc_v2", byref(memory), c_size_t(100 + n))
    launch(f, word())
    call("cuMemFree_v2", memory)
"""
KEPT = """
context()
import ctypes
f, own = function(module(), "add__8_8"), (c_uint64 * 8)()
for _ in range(3): launch(f, word(), c_uint64(ctypes.addressof(own)))
"""
MAPPED = f"""
context()
{TENSOR_MAPS}
launch(function(module(), "add__8"), word())
"""


@dataclass(frozen=True)
class Scenario:
    """A way to run the program, or a script in its place, with all of host.py at hand."""

    name: str
    environment: dict[str, str]
    prepare: Callable[[Engine, Path], dict[str, str]] = lambda _engine, _folder: {}
    arguments: tuple[str, ...] = ()
    script: str = ""
    command: tuple[str, ...] = ()
    """Another program, that ends with ``status`` and prints ``output``."""
    output: str = ""
    status: int = 0

    @property
    def is_slow(self) -> bool:
        """Return whether a run starts Python, which takes three times as long as the rest."""
        return bool(self.script or self.command)

    @property
    def expected(self) -> tuple[int, str, str]:
        """The status, and what goes to stdout and stderr, as without the hook."""
        if self.command:
            return self.status, self.output, ""
        if self.script:
            return 0, "done\n", ""
        return 5, "0\n" if self.arguments else "9\n", ""


def _beside(_engine: Engine, folder: Path) -> dict[str, str]:
    return {"TUI_PROBE_BESIDE": str(folder / "adjacent")}


def _grows(engine: Engine, _folder: Path) -> dict[str, str]:
    engine.maps, engine.filled = "1,-1 1,4", "1,200"
    engine.storage = ["storage 0 queue record 16 cap 0", "storage 1 counts"]
    return {"TUI_PROBE_LAUNCHES": "auto"}


def _counts(engine: Engine, _folder: Path) -> dict[str, str]:
    engine.maps, engine.filled = "1,-1 1,4", "1,4"
    engine.storage = ["storage 0 queue record 16 cap 0", "storage 1 counts"]
    return {}


def _variables(engine: Engine, _folder: Path) -> dict[str, str]:
    engine.maps, engine.globals = "1,16 0,8", "shared_variable"
    return {"TUI_PROBE_DETAIL": "1"}


def _reduced(engine: Engine, folder: Path) -> dict[str, str]:
    engine.storage = ["reduce 0 block record 16 sum:u64@0:u64@0 sum:u64@8:u64@8"]
    return _page(engine, folder)


def _page(_engine: Engine, folder: Path) -> dict[str, str]:
    limits = dict.fromkeys(BUDGETS, NO_LIMIT) | {"trace_bytes": 4 << 20}
    page = ControlPage.create(folder / "control", limits, shares=True, is_on=True)
    OPEN_PAGES.append(page)  # it is there as long as this process holds it
    return {"TUI_PROBE_CONTROL": str(page.path), "TUI_PROBE_LAUNCHES": "auto"}


def _code(engine: Engine, folder: Path) -> dict[str, str]:
    at = len("//probed 0 0 +1 1,16") + PLACE.index(b"\xee")
    grafted(engine, f"patch abs64 {at} -8 shared_variable", "constant shared_constant 8", tail=PLACE)
    (folder / "faults").write_text("700 1 other\n")
    return {"TUI_PROBE_GRAFT_FAULTS": str(folder / "faults")}


def _faulty(engine: Engine, folder: Path) -> dict[str, str]:
    return _code(engine, folder) | {"STUB_FAIL_WAIT": "700"}


def _nothing(_engine: Engine, folder: Path) -> dict[str, str]:
    (folder / "sm_90.cubin").write_bytes(b"\x7fELF")
    return {"TUI_PROBE_EMPTY_KERNELS": str(folder)}


def _several(engine: Engine, _folder: Path) -> dict[str, str]:
    answering(engine, refused=NAMES.split(":")[0])
    return {"TUI_PROBE_PROBES": NAMES, "TUI_PROBE_LAUNCHES": "0-5,8,10-20"}


ALIKE_LAUNCHES = LAUNCHES.replace("print(read(w))", "")
ALIKE = {"one": "1,16", "two": "1,16", "three": "1,16", "fused": "1,16 1,16"}
"""Maps of probes whose results are read alike."""


def _fused(engine: Engine, _folder: Path) -> dict[str, str]:
    """Each run asks anew: the kernel's folder tells them apart. An answer sets ``engine.maps`` and writes files of
    them, and two runs ask at a time: without the lock, one had the maps of the other, and its results were damaged.
    """
    answers: dict[Path, Prepare] = {}
    lock = threading.Lock()

    def answer(directory: Path, name: str) -> str | None:
        with lock:
            if directory not in answers:
                answers[directory], _ = test_fused.answer_of_run(engine, maps=ALIKE)
            return answers[directory](directory, name)

    engine.answer = answer
    return test_fused.FUSED


def _sites(engine: Engine, _folder: Path) -> dict[str, str]:
    engine.maps = "1,0 1,8"
    engine.storage = ["storage 0 sites record 16 cap 3 copies 64 max 8"]
    return {}


def _watched(engine: Engine, _folder: Path) -> dict[str, str]:
    engine.added = 3
    engine.maps = "1,8 1,16"
    engine.storage = ["storage 0 resident record 8 cap 1", "storage 1 resident record 16 cap 1"]
    return {"TUI_PROBE_WATCHDOG": "20"}


def _checked(engine: Engine, _folder: Path) -> dict[str, str]:
    engine.added, engine.maps, engine.storage = 2, "1,16", ["allocations"]
    return {"TUI_PROBE_ALLOCATIONS": "1"}


def _slow(engine: Engine, _folder: Path) -> dict[str, str]:
    def answer(directory: Path, name: str) -> str:
        time.sleep(0.1)
        engine.write_probed(directory, name)
        return "ok\t<id>\tprobed.bin"

    engine.answer = answer
    return {"TUI_PROBE_LAUNCHES": "auto"}


BENCHMARK = {"TUI_PROBE_BENCHMARK": "1", "TUI_PROBE_SAVE_RESULTS": "1"}
SCENARIOS = (
    Scenario("plain", {}, _beside),
    Scenario("grows", {}, _grows),
    Scenario("variables", {}, _variables),
    Scenario("benchmark", BENCHMARK, arguments=("uncounted",)),
    Scenario("benchmark that grows", BENCHMARK, _grows, arguments=("uncounted",)),
    Scenario("memusage", {"TUI_PROBE_MEMUSAGE": "1"}),
    Scenario("dear", {}, _page, script=DEAR),
    Scenario("dear and reduced", {}, _reduced, script=DEAR),
    Scenario("little memory", {"TUI_PROBE_MAX_PROBE_MEMORY": "2048"}, script=SEVERAL),
    Scenario("machine code", {}, _code, script=MACHINE_CODE),
    Scenario("faults", {}, _faulty, script=MACHINE_CODE),
    Scenario("several", {}, _several, script=SEVERAL),
    Scenario("fused", {}, _fused, script=ALIKE_LAUNCHES),
    Scenario("fused and little memory", {"TUI_PROBE_MAX_PROBE_MEMORY": "300"}, _fused, script=ALIKE_LAUNCHES),
    Scenario("replayed with other memory", {"TUI_PROBE_REPLAY": "1"}, _fused, script=STRANGER),
    Scenario("fused and replayed", {"TUI_PROBE_REPLAY": "1"}, _fused, script=ALIKE_LAUNCHES),
    Scenario("sites", {}, _sites, script=WIDE),
    Scenario("captures", {}, script=CAPTURES),
    Scenario("captures without events", {"STUB_FAIL_EVENT": "2"}, script=CAPTURES),
    Scenario("background", {}, _slow, script=BACKGROUND),
    Scenario("no room", {"STUB_MEMORY": str(1 << 30)}, script=LITTLE),
    Scenario("a kernel that does nothing", {}, _nothing),
    Scenario("memusage of counts", {"TUI_PROBE_MEMUSAGE": "1"}, _counts),
    Scenario("managed variables", {"STUB_LIBRARY_VARIABLES": "2"}, _code, script=MACHINE_CODE),
    Scenario("unusual kernels", {"STUB_COUNTS_PARAMETERS": "1"}, script=UNUSUAL),
    Scenario("ranges", {"TUI_PROBE_SAMPLE": "1/2"}, script=NVTX),
    Scenario("emptied", {}, command=(sys.executable, "-c", EMPTIED)),
    Scenario("watched", {}, _watched, script=WATCHED),
    Scenario(
        "unwatched",
        {"TUI_PROBE_FILTER": "add", "TUI_PROBE_WATCHDOG": "160", "STUB_HANG": "1"},
        script=UNWATCHED,
    ),
    Scenario("tensor maps", {"STUB_TENSOR_MAPS": "1"}, script=MAPPED),
    Scenario("allocations", {}, _checked, script=CHECKED),
    Scenario("kept", {"TUI_PROBE_KEEP_LAUNCH": "add@1"}, script=KEPT),
    Scenario("kept machine code", {"TUI_PROBE_KEEP_LAUNCH": "constant@0"}, _code, script=MACHINE_CODE),
    Scenario("hashed", {"TUI_PROBE_HASH_MEMORY": "add"}, script=KEPT),
    Scenario("checks, host records", {"TUI_PROBE_HOST_RECORDS": "1", "TUI_PROBE_SIM_CHECK": "1"}, _grows),
    Scenario("dear host records", {"TUI_PROBE_HOST_RECORDS": "1"}, _page, script=DEAR),
    Scenario("contexts", {"TUI_PROBE_NOTES": "/dev/null"}, script=CONTEXTS),
)
