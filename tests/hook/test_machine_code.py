"""Kernels without PTX: what is captured of their machine code, and how a probe in it is loaded and launched."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from .conftest import Engine, Host, compile_c
from .test_images import PTX, captured, elf, fatbin

CUBIN = elf({".text.add": b"\1\2\3\4"})


def entry(kind: int, architecture: int, payload: bytes, flags: int = 0) -> bytes:
    """An entry of a fatbin for one architecture, 90 for sm_90."""
    header = struct.pack("<HHIQIIHHIIIQ", kind, 0x101, 64, len(payload), 0, 0, 0, 0, architecture, 0, 0, flags)
    return header.ljust(64, b"\0") + payload


SM_80, SM_90, SM_90_TOO, SM_91, SM_100 = (
    entry(2, architecture, CUBIN + bytes([number])) for number, architecture in enumerate((80, 90, 90, 91, 100))
)
SM_90A = entry(2, 90, CUBIN, 0x100000)
PTX_80, PTX_90, PTX_120 = (entry(1, architecture, PTX) for architecture in (80, 90, 120))
PTX_90A = entry(1, 90, PTX, 0x100000)


@pytest.mark.parametrize("form", ["data", "library", "file", "library file", "options", "wrapped"])
def test_fatbin_parts_for_other_devices_are_excluded(host: Host, tmp_path: Path, form: str) -> None:
    image = fatbin(SM_80, SM_90, SM_91, SM_100, SM_90_TOO)
    assert captured(host, tmp_path, image, form)[1:] == ("-", fatbin(SM_90, SM_90_TOO))


def test_machine_code_runs_on_later_minor_versions(host: Host, tmp_path: Path) -> None:
    capture = captured(host, tmp_path, fatbin(SM_80, SM_90, SM_91, SM_100), STUB_CC_MINOR="1")
    assert capture[1:] == ("-", fatbin(SM_90, SM_91))


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ([SM_80, PTX_80], fatbin(PTX_80)),
        ([SM_90, PTX_80], fatbin(PTX_80) + fatbin(SM_90)),
        ([SM_90, PTX_80, PTX_90], fatbin(PTX_80, PTX_90)),
        ([SM_90A, PTX_90], fatbin(PTX_90) + fatbin(SM_90A)),
        ([SM_90A, PTX_90, PTX_90A], fatbin(PTX_90, PTX_90A)),
        ([SM_90, SM_90A, PTX_90A], fatbin(PTX_90A)),
        ([SM_90, PTX_120, PTX_90], fatbin(PTX_120, PTX_90)),
        ([SM_80, SM_90, PTX_120], fatbin(PTX_120) + fatbin(SM_90)),
        ([SM_80, PTX_120], fatbin(PTX_120)),
    ],
)
def test_ptx_for_the_target_of_the_sass_wins(host: Host, tmp_path: Path, entries: list[bytes], kept: bytes) -> None:
    assert captured(host, tmp_path, fatbin(*entries))[2] == kept


@pytest.mark.parametrize(
    ("entries", "kept"),
    [([SM_80, SM_90, PTX_90], fatbin(PTX_90) + fatbin(SM_90)), ([PTX_90], fatbin(PTX_90))],
)
def test_image_keeps_ptx_and_sass_for_wait_probes(
    host: Host, tmp_path: Path, entries: list[bytes], kept: bytes
) -> None:
    assert captured(host, tmp_path, fatbin(*entries), TUI_PROBE_NEEDS_SASS="1")[2] == kept


def test_devices_named_only_in_ptx_text_come_with_machine_code(host: Host, tmp_path: Path) -> None:
    """PTX for sm_90a does not run on a device of 9.1, and the entry's header has no letter."""
    capture = captured(host, tmp_path, fatbin(SM_90, PTX_90), STUB_CC_MINOR="1")
    assert capture[2] == fatbin(PTX_90) + fatbin(SM_90)


def test_no_machine_code_for_this_device(host: Host, tmp_path: Path) -> None:
    assert captured(host, tmp_path, fatbin(SM_80, SM_100))[1] == "no PTX in image"


@pytest.mark.parametrize("image", [CUBIN, fatbin(SM_90)])
@pytest.mark.parametrize("change", ["os.remove(path)", "open(path, 'ab').write(b'x')", "os.utime(path, (1, 1))"])
def test_file_that_is_no_longer_what_was_loaded(host: Host, tmp_path: Path, image: bytes, change: str) -> None:
    path = tmp_path / "image.bin"
    path.write_bytes(image)
    run = host.python(
        f"""
path = {str(path)!r}
context()
m = c_void_p()
call("cuModuleLoad", byref(m), path.encode())
{change}
launch(function(m, "add"))
"""
    )
    assert run.status == 0, run.stderr
    assert run.codes in (["code-changed"], ["file-error"])
    assert str(path) in run.outcomes()[0][2]


@pytest.mark.parametrize(("image", "at"), [(CUBIN, 0), (fatbin(SM_90, SM_91), len(fatbin(SM_90)) + 8)])
def test_file_with_other_content_of_the_same_size_and_time(host: Host, tmp_path: Path, image: bytes, at: int) -> None:
    path = tmp_path / "image.bin"
    path.write_bytes(image)
    os.utime(path, (1, 1))
    run = host.python(
        f"""
context()
m = c_void_p()
call("cuModuleLoad", byref(m), {str(path)!r}.encode())
with open({str(path)!r}, "r+b") as file:
    file.seek({at})
    file.write(bytes(4))
os.utime({str(path)!r}, (1, 1))
launch(function(m, "add"))
"""
    )
    assert (run.status, run.codes) == (0, ["code-changed"]), run.stderr


def test_image_too_large_to_be_copied(host: Host) -> None:
    run = host.python(
        """
import struct
context()
body = struct.pack("<HHIQIIHHI", 2, 0x101, 64, 65 << 20, 0, 0, 0, 0, 90).ljust(64, b"\\0") + bytes(65 << 20)
launch(function(module(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body), "add"))
"""
    )
    assert run.codes == ["code-too-large"]


def test_copies_have_a_bound_together_and_unloading_makes_room(host: Host) -> None:
    run = host.python(
        """
import struct
context()
body = struct.pack("<HHIQIIHHI", 2, 0x101, 64, 60 << 20, 0, 0, 0, 0, 90).ljust(64, b"\\0") + bytes(60 << 20)
image = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
modules = [module(image) for _ in range(5)]
call("cuModuleUnload", modules[0])
modules.append(module(image))
launch(function(modules[4], "add"))
launch(function(modules[5], "add"))
"""
    )
    (full, room) = run.outcomes()
    assert (full[0], full[2]) == ("skipped", "copies of cubins loaded from memory reached their limit (256 MiB)")
    assert room[0] == "probed"


def test_image_with_several_kernels_is_written_once(host: Host) -> None:
    run = host.python(
        f"""
context()
m = module({fatbin(SM_90)!r})
for name in ("one", "two"):
    launch(function(m, name))
"""
    )
    inodes = {path.stat().st_ino for path in (run.directory / "kernel").glob("*/original.bin")}
    assert (len(run.outcomes()), len(inodes)) == (2, 1)


LIBRARY = """
#define API __attribute__((visibility("default")))
API const unsigned char image[] = {%s};
API int load(int (*f)(void **, const void *), void **module, const void *code)
{
    int result = f(module, code);
    return result;
}
"""


def shared_object(directory: Path, name: str, image: bytes) -> Path:
    """A library that holds an image, and loads what it is asked to."""
    source = directory / "library.c"
    source.write_text(LIBRARY % ",".join(map(str, image)))
    compile_c(source, directory / name, "-shared", "-fno-optimize-sibling-calls")
    return directory / name


LOADED = """
library = ctypes.CDLL({path!r})
library.load.argtypes = [c_void_p] * 3
context()
image = ctypes.create_string_buffer({image!r})
m = c_void_p()
where = ctypes.addressof((ctypes.c_char * 1).in_dll(library, "image")) if {inside} else ctypes.addressof(image)
assert library.load(ctypes.cast(cuda.cuModuleLoadData, c_void_p), ctypes.addressof(m), where) == 0
launch(function(m, {kernel!r}))
"""


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    ("name", "choice", "kept"),
    [
        ("libcublasLt.so.13", "auto", False),
        ("libcudnn_cnn.so.9", "auto", False),
        ("libcublasLt.so.13", "all", True),
        ("libtorch_cuda.so", "auto", True),
        ("libtorch_cuda.so", "off", False),
    ],
)
def test_closed_libraries_are_skipped(
    host: Host, tmp_path: Path, name: str, choice: str, kept: bool, inside: bool
) -> None:
    image = fatbin(SM_90)
    path = shared_object(tmp_path, name, image)
    script = LOADED.format(path=str(path), image=image, inside=inside, kernel="add")
    run = host.python(script, TUI_PROBE_MACHINE_CODE=choice)
    assert run.status == 0, run.stderr
    ((status, _, reason),) = run.outcomes()
    if kept:
        assert (status, reason) == ("probed", "-")
    elif choice == "off":
        assert (status, reason) == ("skipped", "no PTX in image")
    else:
        assert (status, reason) == ("skipped", f"SASS of {name} is not probed by default")
    written = [path.read_bytes() for path in run.directory.glob("kernel/*/original.bin")]
    assert written == ([image] if kept else [])


@pytest.mark.parametrize(
    ("kernel", "closed"),
    [
        ("_ZN8cublasLt19splitKreduce_kernelILi32EEvv", "cublas"),
        ("_ZN5cudnn3ops10nchwToNhwcEv", "cudnn"),
        ("nvjet_tst_128x64_64x8", "nvjet_"),
        ("_ZN7cutlass6KernelEv", None),
        ("_Z6updatePfcublas", None),
        ("my_cudnn_like_kernel", None),
    ],
)
def test_names_of_closed_kernels_that_were_linked_into_something_else(
    host: Host, kernel: str, closed: str | None
) -> None:
    run = host.python(f"context()\nlaunch(function(module({CUBIN!r}), {kernel!r}))")
    reason = "-" if closed is None else f"SASS of {closed} is not probed by default"
    assert [outcome[2] for outcome in run.outcomes()] == [reason]


@pytest.mark.parametrize(("ptx", "outcome"), [(PTX_90, "probed"), (PTX_80, "skipped")])
def test_closed_library_with_ptx_is_probed_by_that(host: Host, tmp_path: Path, ptx: bytes, outcome: str) -> None:
    image = fatbin(SM_90, ptx)
    path = shared_object(tmp_path, "libcudnn.so.9", image)
    run = host.python(LOADED.format(path=str(path), image=image, inside=True, kernel="add"))
    assert [kernel[0] for kernel in run.outcomes()] == [outcome]


@pytest.mark.parametrize(("code", "refused"), [(SM_90A, ["ptx-of-other-code"]), (SM_80, []), (SM_90, [])])
def test_ptx_of_other_code_is_not_probed_without_sass(host: Host, code: bytes, refused: list[str]) -> None:
    script = f"context()\nlaunch(function(module({fatbin(code, PTX_90)!r}), 'add'))"
    assert host.python(script, TUI_PROBE_MACHINE_CODE="off").codes == refused


@pytest.mark.parametrize("variable", ["TUI_PROBE_SIM_PYTHON", "CUDA_FORCE_PTX_JIT"])
def test_ptx_is_probed_where_the_driver_compiles_it(host: Host, tmp_path: Path, variable: str) -> None:
    capture = captured(host, tmp_path, fatbin(SM_90A, PTX_90), **{variable: "1"})
    assert capture[1:] == ("-", fatbin(PTX_90))


def grafted(engine: Engine, *lines: str, tail: bytes = b"") -> None:
    engine.storage = ["way graft", "grafted 0 64 appended 512", *lines]
    engine.tail = tail


def test_the_way_is_logged(host: Host, engine: Engine) -> None:
    grafted(engine)
    run = host.python(f"context()\nlaunch(function(module({CUBIN!r}), 'add'))\nlaunch(function(module(), 'mul'))")
    assert [line.rsplit(" ", 1)[1] for line in run.lines(r"\[kernel\] \d+ probed-function")] == ["graft"] * 2


@pytest.mark.parametrize(
    ("form", "n_variables"), [("module", "0"), ("library", "0"), ("library", "1"), ("library", "2")]
)
def test_addresses_of_the_originals_variables_are_patched_in(
    host: Host, engine: Engine, form: str, n_variables: str
) -> None:
    tail = b" \ndump " + b"\xee" * 16
    at = len("//probed 0 0 +1 1,16") + tail.index(b"\xee")
    grafted(
        engine,
        f"patch abs64 {at} -8 shared_variable",
        f"patch abs32lo {at + 8} 4 shared_variable",
        f"patch abs32hi {at + 12} 0x10 shared_variable",
        tail=tail,
    )
    owner, finder = ("library", "kernel") if form == "library" else ("module", "function")
    run = host.python(
        f"""
context()
m = {owner}({CUBIN!r})
launch({finder}(m, "add"))
where, size = c_uint64(), c_size_t()
call("cuModuleGetGlobal_v2", byref(where), byref(size), m, b"shared_variable")
low, high = (where.value + 4) & 0xFFFFFFFF, where.value + 16 >> 32
print(f"dump {{where.value - 8:016x}} {{high << 32 | low:016x}}")
""",
        STUB_LIBRARY_VARIABLES=n_variables,
    )
    assert run.status == 0, run.stderr
    assert run.stdout.strip() in run.calls


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("patch abs64 0 0 no_such_variable", "variable-not-shared"),
        ("patch abs64 17 0 shared_variable", "kernel-info"),
        ("patch abs64 18446744073709551615 0 shared_variable", "kernel-info"),
        ("patch abs32 0 0 shared_variable", "kernel-info"),
        ("constant no_such_variable 8", "variable-not-shared"),
        ("constant shared_constant 4", "variable-not-shared"),
        ("constant shared_constant", "kernel-info"),
        ("way sanitizer", "kernel-info"),
    ],
)
def test_unshareable_variables_keep_the_original(host: Host, engine: Engine, line: str, code: str) -> None:
    grafted(engine, line)
    run = host.python(f"context()\nw = word()\nlaunch(function(module({CUBIN!r}), 'add__8'), w)\nprint(read(w))")
    assert (run.stdout, run.codes) == ("1\n", [code])


@pytest.mark.parametrize(
    ("call", "where", "stream"),
    [
        ("cuLaunchKernel", "None", "null"),
        ("cuLaunchKernel_ptsz", "None", "thread"),
        ("cuLaunchKernelEx_ptsz", "None", "thread"),
        ("cuLaunchCooperativeKernel", "stream()", "stream"),
        ("cuLaunchKernelEx", "1", "stream"),
    ],
)
def test_constants_are_copied_before_each_launch(
    host: Host, engine: Engine, call: str, where: str, stream: str
) -> None:
    grafted(engine, "constant shared_constant 8")
    run = host.python(
        f"""
context()
m = module({CUBIN!r})
f = function(m, "constant__8")
where, size = c_uint64(), c_size_t()
call("cuModuleGetGlobal_v2", byref(where), byref(size), m, b"shared_constant")
w = word()
on = {where}
for value in (10, 100):
    c_uint64.from_address(where.value).value = value
    launch(f, w, stream=on, name={call!r})
print(read(w))
"""
    )
    assert run.stdout == "112\n", run.stderr
    assert run.calls.count("launch probed constant__8 " + {"cuLaunchKernel": "kernel"}.get(call, "")) in (0, 2)
    assert [line for line in run.calls if line.startswith("copy ")] == [f"copy {stream}"] * 2
    assert run.codes == []


def test_parameters_in_one_buffer(host: Host, engine: Engine) -> None:
    grafted(engine)
    run = host.python(
        f"""
context()
f = function(module({CUBIN!r}), "add__8_4")
w = word()
buffer = (c_uint64 * 2)(w.value, 7)
size = c_size_t(12)
extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), None)
call("cuLaunchKernel", f, 2, 1, 1, 64, 1, 1, 0, None, None, extra)
print(read(w))
"""
    )
    assert (run.stdout, run.codes) == ("1\n", [])
    assert "launch probed add__8_4 kernel" in run.calls
    assert len(run.results) == 1


def test_constants_are_copied_where_launches_are_timed_too(host: Host, engine: Engine) -> None:
    grafted(engine, "constant shared_constant 8")
    run = host.python(
        f"""
context()
m = module({CUBIN!r})
f = function(m, "constant__8")
where, size = c_uint64(), c_size_t()
call("cuModuleGetGlobal_v2", byref(where), byref(size), m, b"shared_constant")
c_uint64.from_address(where.value).value = 10
w = word()
launch(f, w)
print(read(w))
""",
        TUI_PROBE_BENCHMARK="1",
    )
    assert (run.stdout, run.status) == ("11\n", 0), run.stderr
    probed = run.calls.index("launch probed constant__8 kernel")
    assert run.calls[probed - 1].startswith(("copy", "cuEventRecord"))
    assert "copy null" in run.calls[:probed]


def test_constants_that_cannot_be_copied(host: Host, engine: Engine) -> None:
    grafted(engine, "constant shared_constant 8")
    run = host.python(
        f"context()\nw = word()\nlaunch(function(module({CUBIN!r}), 'add__8'), w)\nprint(read(w))", STUB_FAIL_COPY="1"
    )
    assert (run.stdout, run.codes) == ("1\n", ["constants-not-copied"])
    assert run.results == []


WAITING = """
context()
f = function(module(), "wait__8")
w = word()
for blocks in ({grids}):
    launch(f, w, grid=blocks, name={call!r}, cluster={cluster})
print(read(w))
"""


def probed_grids(host: Host, grids: str, call: str = "cuLaunchKernel", cluster: int = 0, **more: str) -> list[bool]:
    """Return a flag per launch of these grids: it had the probe. Each ran once."""
    run = host.python(WAITING.format(grids=grids, call=call, cluster=cluster), **more)
    assert run.stdout == f"{grids.count(',')}\n", run.stderr
    assert set(run.codes) <= {"residency"}
    return [line.startswith("launch probed") for line in run.calls if line.startswith("launch ")]


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchKernelEx"])
def test_nonresident_blocks_are_launched_unprobed(host: Host, call: str) -> None:
    """132 SMs: 1056 blocks fit without the probe, 792 with it."""
    grids = probed_grids(host, "792, 793, 1056, 1057,", call, STUB_BLOCKS="8", STUB_BLOCKS_PROBED="6")
    assert grids == [True, False, False, True]


@pytest.mark.parametrize("call", ["cuLaunchKernel", "cuLaunchCooperativeKernel"])
def test_blocks_that_cannot_wait_need_not_be_resident(host: Host, engine: Engine, call: str) -> None:
    """But the driver refuses a cooperative launch whose blocks are not."""
    engine.independent = True
    grids = probed_grids(host, "792, 793, 1056, 1057,", call, STUB_BLOCKS="8", STUB_BLOCKS_PROBED="6")
    assert grids == ([True] * 4 if call == "cuLaunchKernel" else [True, False, False, True])


def test_a_green_context_has_fewer_sms(host: Host) -> None:
    settings = {"STUB_BLOCKS": "8", "STUB_BLOCKS_PROBED": "6", "STUB_GREEN_SMS": "10"}
    assert probed_grids(host, "60, 61, 80, 81,", **settings) == [True, False, False, True]


def test_nonresident_clusters_are_launched_unprobed(host: Host) -> None:
    """Clusters of 4: 240 blocks fit without the probe, 160 with it."""
    settings = {"STUB_BLOCKS": "8", "STUB_BLOCKS_PROBED": "8", "STUB_CLUSTERS": "60", "STUB_CLUSTERS_PROBED": "40"}
    grids = probed_grids(host, "160, 164, 240, 244,", "cuLaunchKernelEx", 4, **settings)
    assert grids == [True, False, False, True]


@pytest.mark.parametrize("independent", [True, False])
def test_blocks_with_too_many_threads_for_the_probe_are_launched_unprobed(
    host: Host, engine: Engine, independent: bool
) -> None:
    """The driver would refuse the second launch; smaller blocks keep their probe."""
    engine.independent = independent
    run = host.python(
        """
context()
f = function(module(), "wait__8")
w = word()
for threads in (512, 544, 256):
    launch(f, w, grid=2, block=threads)
print(read(w))
""",
        STUB_THREADS_PROBED="512",
    )
    assert (run.stdout, run.status) == ("3\n", 0), run.stderr
    launches = [line.startswith("launch probed") for line in run.calls if line.startswith("launch ")]
    assert launches == [True, False, True]
    assert run.codes == ["too-many-threads"]
    assert "has 34 registers per thread, so its blocks can have 512 threads; the launch has 544" in "\n".join(run.log)


def test_blocks_that_fit_no_sm_with_the_probe_are_launched_unprobed(host: Host) -> None:
    run = host.python(
        WAITING.format(grids="1, 5000", call="cuLaunchKernel", cluster=0), STUB_BLOCKS="1", STUB_BLOCKS_PROBED="-1"
    )
    assert run.stdout == "2\n", run.stderr
    assert not any(line.startswith("launch probed") for line in run.calls)
    assert set(run.codes) == {"no-block-fits"}  # one line of the log may name several launches


def test_the_driver_is_asked_once_per_shape_of_blocks(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "add")
for block in (64, 128, 64, 64, 128, 64):
    launch(f, grid=3, block=block)
call("cuFuncSetAttribute", f, 9, 50)
launch(f, grid=3, block=64)
"""
    )
    assert run.calls.count("occupancy probed add") == 1 + 2 + 1  # the values in the log; each shape; what changed


@pytest.mark.parametrize("error", [700, 715, 719])
def test_grafts_of_a_failed_context_are_left_out_from_then_on(
    host: Host, engine: Engine, tmp_path: Path, error: int
) -> None:
    faults = tmp_path / "graft-faults"
    grafted(engine)
    script = (
        f"context()\nw = word()\nf = function(module({CUBIN!r}), 'add__8')\nlaunch(f, w)\nlaunch(f, w)\nprint(read(w))"
    )
    first = host.python(script, TUI_PROBE_GRAFT_FAULTS=str(faults), STUB_FAIL_WAIT=str(error))
    assert first.stdout == "2\n", first.stderr
    (line,) = faults.read_text().splitlines()
    assert line.endswith(" add__8")
    shutil.rmtree(first.directory)
    second = host.python(script, TUI_PROBE_GRAFT_FAULTS=str(faults))
    assert (second.stdout, second.codes) == ("2\n", ["graft-faulted"])


def test_other_errors_and_ptx_leave_no_kernel_out(host: Host, engine: Engine, tmp_path: Path) -> None:
    faults = tmp_path / "graft-faults"
    host.python(
        "context()\nlaunch(function(module(), 'add'))", TUI_PROBE_GRAFT_FAULTS=str(faults), STUB_FAIL_WAIT="700"
    )
    grafted(engine)
    host.python(
        f"context()\nlaunch(function(module({CUBIN!r}), 'add'))",
        TUI_PROBE_GRAFT_FAULTS=str(faults),
        STUB_FAIL_WAIT="709",
    )
    assert not faults.exists()


PROGRAM = """
#include <stddef.h>
typedef unsigned u;
int cuInit(u), cuCtxCreate_v2(void **, u, int), cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, u, u, u, u, u, u, u, void *, void **, void **);
static const unsigned char image[] = {%s};
int main(void)
{
    void *c, *m, *f;
    return cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuModuleLoadData(&m, image) ||
           cuModuleGetFunction(&f, m, "add") || cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}
"""


def test_the_program_that_is_run_is_a_file_too(host: Host, tmp_path: Path) -> None:
    """The images of an executable are in its own file."""
    source, program = tmp_path / "program.c", tmp_path / "program"
    image = fatbin(entry(2, 90, bytes(65 << 10)), SM_90)
    source.write_text(PROGRAM % ",".join(map(str, image)))
    compile_c(source, program, str(host.built.stub))
    run = host.command(str(program), LD_LIBRARY_PATH=str(host.built.hook.parent))
    assert run.status == 0, run.stderr
    assert [path.read_bytes() for path in run.directory.glob("kernel/*/original.bin")] == [image]
