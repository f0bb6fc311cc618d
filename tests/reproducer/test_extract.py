"""A saved launch runs alone, in launchers that leave the same memory as the program."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.conftest import Tool
from tests.patience import HANG
from tests.trace.make import TraceWriter
from tui_probe.errors import ChoiceError, TraceError, UsageError
from tui_probe.pages.run_report import run_report
from tui_probe.reproducer.extraction import c_text, differences, extract, readme
from tui_probe.reproducer.kept_launch import (
    KeptLaunch,
    choose_kept,
    keep_problems,
    kept_launches,
    outcome_text,
    read_kept_launch,
    saved_launches,
)
from tui_probe.trace.follow import open_trace

PROGRAM = Path(__file__).with_name("pointers.py")


@dataclass
class Extracted:
    """The directory of a launch, on the simulated GPU."""

    tool: Tool
    trace: Path
    folder: Path
    written: tuple[Path, ...]
    """Files that `extract` wrote: tests build and run others next to them."""

    def launch(self, *command: str) -> subprocess.CompletedProcess[str]:
        return self.tool.unprofiled(*command)

    def run_python(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.launch(sys.executable, str(self.folder / "launch.py"), *options)


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory, natives: Path) -> Extracted:
    folder = tmp_path_factory.mktemp("reproducer")
    tool = Tool(folder, natives)
    result, trace = tool.run([sys.executable, str(PROGRAM)], "--keep-launch", "chase@2")
    assert result.returncode == 0, result.stderr
    result = tool("extract", f"{trace}:chase@2", str(folder / "launch"))
    assert (result.returncode, result.stderr) == (0, "")
    return Extracted(tool, trace, folder / "launch", tuple((folder / "launch").iterdir()))


def test_launch_reaches_memory_through_pointers_in_memory(extracted: Extracted) -> None:
    [launch] = kept_launches(extracted.trace)
    assert (launch.name, launch.number, launch.grid, launch.shared) == ("chase", 2, (1, 1, 1), 256)
    assert [part.size for part in launch.memory] == [48, 2 << 20, 32, 16]
    assert sorted((variable.name, variable.size) for variable in launch.variables) == [("step", 4), ("total", 4)]
    assert (launch.variables_known, launch.unknown, launch.left_out) == (True, [], [])


def test_extracted_files_are_readable_by_their_owner_only(extracted: Extracted) -> None:
    written = [*extracted.written, *(extracted.trace / "kept").rglob("*.*")]
    assert {path.stat().st_mode & 0o077 for path in (extracted.folder, *written)} == {0}


def test_python_launcher_leaves_the_memory_of_the_program(extracted: Extracted) -> None:
    result = extracted.run_python("--repeat", "2")
    assert (result.returncode, result.stderr) == (0, "")
    assert "all 2097256 bytes equal the program's result" in result.stdout
    assert "2 launches: median " in result.stdout


def test_c_launcher_leaves_the_memory_of_the_program(extracted: Extracted) -> None:
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "launch", "launch.c", "-ldl"]
    subprocess.run(["cc", *flags], cwd=extracted.folder, check=True, timeout=HANG)
    result = extracted.launch("sh", "-c", f"cd {extracted.folder} && ./launch --repeat 2")
    assert (result.returncode, result.stderr) == (0, "")
    assert "all 2097256 bytes equal the program's result" in result.stdout


TAKES_ADDRESS = """#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
__attribute__((constructor)) static void take(void)
{
    const char *attempt = getenv("LAUNCH_ATTEMPT");
    if (!attempt || strcmp(attempt, "10") == 0)
        mmap((void *)0x200000000000, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}
"""


@pytest.mark.parametrize("command", [f"{sys.executable} launch.py", "./launch"], ids=["python", "c"])
def test_launcher_starts_again_where_an_address_is_in_use(extracted: Extracted, tmp_path: Path, command: str) -> None:
    (tmp_path / "takes.c").write_text(TAKES_ADDRESS)
    library = tmp_path / "takes.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "takes.c")], check=True, timeout=HANG)
    build = ["cc", "-O1", "-o", "launch", "launch.c", "-ldl"]
    subprocess.run(build, cwd=extracted.folder, check=True, timeout=HANG)
    start = f"cd {extracted.folder} && LD_PRELOAD=$LD_PRELOAD:{library} {command}"
    result = extracted.launch("sh", "-c", start)
    assert (result.returncode, result.stderr) == (0, "")
    result = extracted.launch("sh", "-c", f"export LAUNCH_ATTEMPT=10; {start}")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.endswith(" are in use in each of 10 attempts; run again\n")


FAILING = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
PTX = b'''.version 7.8
.target sm_80
.address_size 64
.visible .entry store(.param .u64 first, .param .u64 second)
{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [first];
    ld.param.u64 %rd2, [second];
    st.global.u32 [%rd1], 7;
    st.global.u32 [%rd2], 7;
    ret;
}
'''
context, module, kernel = (ctypes.c_void_p() for _ in range(3))
memory, null = ctypes.c_uint64(), ctypes.c_uint64(16)
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
cuda.cuModuleLoadData(ctypes.byref(module), PTX)
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"store")
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256))
arguments = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(null))
cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
raise SystemExit(cuda.cuCtxSynchronize() != 700)
"""


def test_failed_launch_fails_in_the_launchers(natives: Path, tmp_path: Path) -> None:
    tool, folder = Tool(tmp_path, natives), tmp_path / "launch"
    result, trace = tool.run([sys.executable, "-c", FAILING], "--keep-launch", "store@0")
    assert result.returncode == 0, result.stderr
    [(_, event)] = saved_launches([trace])
    failure = "without a result, because it failed: CUDA_ERROR_ILLEGAL_ADDRESS"
    assert outcome_text(event) == f"launch 0@0 is saved (256 B) {failure}"
    assert "No result: in the program, the launch failed" in tool("extract", f"{trace}:store@0", str(folder)).stderr
    build = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "launch", "launch.c", "-ldl"]
    subprocess.run(build, cwd=folder, check=True, timeout=HANG)
    commands = [f"{sys.executable} launch.py --repeat 2", "./launch --repeat 2"]
    for command in commands:
        result = tool.unprofiled("sh", "-c", f"cd {folder} && {command}")
        assert (result.returncode, "CUDA_ERROR_ILLEGAL_ADDRESS" in result.stderr) == (2, True)
    [launch] = kept_launches(trace)
    first, null = launch.parameters[:8], launch.parameters[8:]
    for name, text_of in (("launch.json", bytes.hex), ("launch.h", lambda value: ", ".join(map(str, value)))):
        text = (folder / name).read_text()
        assert text.count(text_of(null)) == 1
        (folder / name).write_text(text.replace(text_of(null), text_of(first)))
    subprocess.run(build, cwd=folder, check=True, timeout=HANG)
    for command in commands:
        result = tool.unprofiled("sh", "-c", f"cd {folder} && {command}")
        assert (result.returncode, result.stderr) == (0, "")
        assert "there is no result to compare" in result.stdout
        assert "2 launches: median " in result.stdout


def test_launchers_say_that_they_compared_nothing(natives: Path, tmp_path: Path) -> None:
    """The kernel computes the addresses from an integer, so no memory of the launch is saved."""
    tool, folder = Tool(tmp_path, natives), tmp_path / "launch"
    address = "(memory.value >> 4)"
    program = (
        FAILING.replace("st.global.u32 [%rd1], 7;", "shl.b64 %rd1, %rd1, 4;\n    st.global.u32 [%rd1], 7;")
        .replace("st.global.u32 [%rd2], 7;", "")
        .replace("arguments = ", f"memory_unit = ctypes.c_uint64{address}\narguments = ")
        .replace("ctypes.addressof(memory), ", "ctypes.addressof(memory_unit), ")
        .replace("!= 700", "!= 0")
    )
    result, trace = tool.run([sys.executable, "-c", program], "--keep-launch", "store@0")
    assert result.returncode == 0, result.stderr
    assert tool("extract", f"{trace}:store@0", str(folder)).returncode == 0
    subprocess.run(["cc", "-O1", "-o", "launch", "launch.c", "-ldl"], cwd=folder, check=True, timeout=HANG)
    for command in (f"{sys.executable} launch.py", "./launch"):
        result = tool.unprofiled("sh", "-c", f"cd {folder} && {command}")
        assert "nothing was compared: no memory was saved, because no parameter has " in result.stdout
        assert "bytes equal" not in result.stdout


def test_launch_that_does_not_end_is_saved_without_a_result(tmp_path: Path) -> None:
    kept(tmp_path, "kernel add\ngrid 1 1 1\nblock 1 1 1\n")
    kernel = "[kernel] 0 probed registers 8 local 0 shared 0 blocks 16 name add reason -\n"
    (tmp_path / "event.log").write_text(kernel)
    [(_, problem)] = keep_problems([tmp_path], ["add@0"])
    assert problem == "launch 0@3 is saved without a result, because it did not end"


def test_saved_launch_that_does_not_end_is_a_finding_with_its_commands(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path)
    writer.kernel(0, "add")
    writer.run_json(options={"keep_launch": ["add@0"]}, exit_status=None, signal=2)
    launch = kept(tmp_path, "kernel add\ngrid 1 1 1\nblock 1 1 1\n")
    report = " ".join(run_report(open_trace(tmp_path)).split())
    assert "#0 add not complete: launch 3 had not ended when the process ended" in report
    assert f"tui-probe extract {tmp_path}:0@3 DIR, then tui-probe run --watchdog 10s -- python3 DIR/launch.py" in report
    assert "0 launches (0 probed), 1 more launch had not ended" in report
    (launch.folder / "after.bin").write_bytes(b"")
    assert "had not ended" not in run_report(open_trace(tmp_path))


def changed_bytes(output: str) -> list[str]:
    """The lines of a launcher's output on bytes that differ."""
    return [line for line in output.splitlines() if ", in the program " in line]


def test_launcher_reports_changed_input(extracted: Extracted) -> None:
    before, description = extracted.folder / "before.bin", extracted.folder / "launch.json"
    content, text = before.read_bytes(), description.read_text()
    try:
        with before.open("r+b") as file:
            file.seek(8 + 8)  # behind the two variables and the first pointer
            file.write(b"\x34")
        result = extracted.run_python()
        assert (result.returncode, result.stderr) == (1, "")
        assert " bytes differ from the program's result" in result.stdout
        build = ["cc", "-O1", "-o", "launch", "launch.c", "-ldl"]
        subprocess.run(build, cwd=extracted.folder, check=True, timeout=HANG)
        result_of_c = extracted.launch("sh", "-c", f"cd {extracted.folder} && ./launch")
        assert changed_bytes(result_of_c.stdout) == changed_bytes(result.stdout)
        assert changed_bytes(result.stdout)[0] == "total + 0: here 0x00, in the program 0xd0"
        os.truncate(before, 100)
        result = extracted.run_python()
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == "error: before.bin has 100 bytes, not 2097256; extract the launch again\n"
        os.truncate(description, 100)
        result = extracted.run_python("--repeat", "1")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("error: launch.json cannot be read: ")
    finally:
        before.write_bytes(content)
        description.write_text(text)


def test_truncated_memory_in_the_trace_is_refused(extracted: Extracted, tmp_path: Path) -> None:
    [launch] = kept_launches(extracted.trace)
    after = launch.folder / "after.bin"
    content = after.read_bytes()
    after.write_bytes(content[:-1])
    try:
        with pytest.raises(TraceError, match=r"after\.bin has 2097255 bytes, not 2097256: .*record the launch again"):
            extract(launch, tmp_path / "new")
    finally:
        after.write_bytes(content)
    (tmp_path / "old").write_text("")
    with pytest.raises(UsageError, match="is not empty; pass a new directory"):
        extract(launch, tmp_path)


def kept(folder: Path, text: str) -> KeptLaunch:
    (folder / "kept" / "0@3").mkdir(parents=True)
    (folder / "kept" / "0@3" / "launch.info").write_text(text)
    return read_kept_launch(folder / "kept" / "0@3", 0, 3)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("grid 1 x 1", "launch.info:2: 'grid 1 x 1' is damaged"),
        ("memory 10000000000000000 1", ":2: .* is damaged"),
        ("launch-attribute 4 00", ":2: .* is damaged"),
        ("grid 1 1 1", "the file is truncated"),
    ],
)
def test_damaged_description_is_refused(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        kept(tmp_path, f"kernel add\n{line}\n")


def test_description_of_odd_names_and_missing_parts(tmp_path: Path) -> None:
    text = (
        "kernel a%22%0ab\ngrid 1 1 1\nblock 1 1 1\nvariables-unknown\nload-options\nleft-out 7\nunknown 7f0000000000\n"
    )
    launch = kept(tmp_path, f"{text}later 1\n")
    assert launch.name == 'a"\nb'
    assert c_text(launch.name) == '"a\\042\\012b"'
    notes = readme(launch).split("\n\n")[-1]
    assert all(word in notes for word in ("0x7f0000000000", "variables of the module", "options", "attributes 7"))
    with pytest.raises(ChoiceError, match="saved launches: 0@3"):
        choose_kept([launch], lambda _: True, 4)


def test_extract_takes_saved_launches_and_numbers_of_options_only(tmp_path: Path) -> None:
    launches = [KeptLaunch(tmp_path, 0, number, name="_Z5scalePf") for number in (1, 4)]
    options = ["scale@0", "scale@4", "other@2", "scale"]
    for number, saved in ((None, 1), (0, 1), (1, 1), (4, 4)):
        assert choose_kept(launches, lambda _: True, number, options).number == saved
    for number in (2, 3, 5):
        with pytest.raises(ChoiceError, match=r"saved launches: 0@1 .*, 0@4"):
            choose_kept(launches, lambda _: True, number, options)


TEXTURED = """.visible .entry other() { ret; }
.visible .entry add(.param .u64 t)
{
tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];
ret;
}
"""


@pytest.mark.parametrize(("name", "count"), [("add", 1), ("other", 0), ("ad", 0)])
def test_textures_that_a_kernel_reads_are_named(tmp_path: Path, name: str, count: int) -> None:
    launch = kept(tmp_path, f"kernel {name}\ngrid 1 1 1\nblock 1 1 1\n")
    (launch.folder / "ptx.bin").write_text(TEXTURED)
    assert sum("textures" in sentence for sentence in differences(launch)) == count


def test_outcomes_of_a_run_have_reasons_and_advice(tmp_path: Path) -> None:
    log = tmp_path / "event.log"
    kernel = "[kernel] 0 probed registers 8 local 0 shared 0 blocks 16 name _Z3addPi reason -\n"
    log.write_text(
        f"{kernel}[probe] kept kernel 0 launch 4 bytes 2048 regions 2 unknown 1\n"
        "[probe] not-kept kernel 1 launch 5 reason its memory before and after the launch takes at least 16 bytes; the"
        " budget is 15 bytes code kept-too-large\n"
    )
    assert [outcome_text(event) for _, event in saved_launches([tmp_path])] == [
        "launch 0@4 is saved (2.05 kB; 1 pointer to memory that is not saved)"
    ]
    [(_, problem)] = keep_problems([tmp_path], ["add@0"])
    assert problem.startswith("launch 1@5 is not saved: its memory before and after the launch takes at least 16 bytes")
    assert "Raise --max-kept-bytes" in problem
    assert [text for _, text in keep_problems([tmp_path], ["add@4", "add@5", "add(int*)@0", "sub@0"])][1:] == [
        "--keep-launch add@5: no launch has number 5 or higher; --keep-launch add@0 saves the first launch",
        "--keep-launch add(int*)@0: names are compared in their mangled form; use _Z3addPi@0",
        "--keep-launch sub@0: no kernel has this name; kernels of the program: add(int*)",
    ]
    log.write_text(
        f"{kernel}[exec] backup 1 1 1 block 32 1 1 shared 0 kernel 0 launch 0 time 1 reason stream is capturing code"
        " capturing\n"
    )
    assert [text for _, text in keep_problems([tmp_path], ["add@9"])] == [
        "--keep-launch add@9: no such launch outside CUDA graphs; launches in CUDA graphs are not saved"
    ]


def test_saved_launch_without_its_variables_is_reported(tmp_path: Path) -> None:
    kept(tmp_path, "kernel add\ngrid 1 1 1\nblock 1 1 1\nvariables-unknown\n")
    kernel = "[kernel] 0 filtered registers 8 local 0 shared 0 blocks 16 name add reason -\n"
    (tmp_path / "event.log").write_text(f"{kernel}[probe] kept kernel 0 launch 3 bytes 0 regions 0 unknown 0\n")
    [(_, problem)] = keep_problems([tmp_path], ["add@0"])
    assert problem.startswith("launch 0@3: variables of the module are not saved")


def test_links_out_of_the_trace_are_not_followed(tmp_path: Path) -> None:
    launch = kept(tmp_path / "trace", "kernel add\ngrid 1 1 1\nblock 1 1 1\n")
    (tmp_path / "secret").write_text("")
    for name in ("before.bin", "after.bin"):
        (launch.folder / name).symlink_to(tmp_path / "secret")
    with pytest.raises(TraceError, match=r"before\.bin has 0 bytes"):
        extract(launch, tmp_path / "new")
