"""Finding assemblers, choosing among them, and reading what they say."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import HEADER, STORE
from tui_probe import toolchain
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import Cache
from tui_probe.errors import ToolchainError
from tui_probe.toolchain import Tool, find_tools

if TYPE_CHECKING:
    from pathlib import Path

FAKE = """#!{python}
import sys
if "--version" in sys.argv:
    print("Cuda compilation tools, release {release}, V{version}")
    sys.exit(0)
text = open([word for word in sys.argv if word.endswith(".ptx")][0]).read()
major, minor = text.split(".version ")[1].split()[0].split(".")
if (int(major), int(minor)) > {newest_ptx}:
    sys.exit("ptxas x.ptx, line 1; fatal   : Unsupported .version %s.%s" % (major, minor))
if "bad" in text:
    sys.exit("ptxas x.ptx, line 7; error   : Unknown symbol 'bad'")
open(sys.argv[-1], "w").write(" ".join(sys.argv[1:]))
sys.stderr.write('''{output}''')
"""
OUTPUT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'store' for 'sm_90'
ptxas info    : Function properties for helper
    8 bytes stack frame, 400 bytes spill stores, 800 bytes spill loads
ptxas info    : Function properties for store
    16 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 18 registers, used 1 barriers, 2048 bytes smem, 368 bytes cmem[0]
"""


def fake(folder: Path, version: str, newest_ptx: tuple[int, int] = (8, 7), output: str = OUTPUT) -> Path:
    """A program that behaves like a ptxas of that version."""
    path = folder / "bin" / "ptxas"
    path.parent.mkdir(parents=True)
    release = ".".join(version.split(".")[:2])
    path.write_text(
        FAKE.format(python=sys.executable, release=release, version=version, newest_ptx=newest_ptx, output=output)
    )
    path.chmod(0o755)
    return path


def tool(path: Path, version: str) -> Tool:
    major, minor = version.split(".")[:2]
    return Tool(path, (int(major), int(minor)), version)


@pytest.fixture
def ptx(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.ptx"
    path.write_text(HEADER + STORE)
    return path


def test_tools_are_found_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake(tmp_path / "old", "12.4.99"), fake(tmp_path / "new", "13.10.2")
    wheel = fake(tmp_path / "site" / "nvidia" / "cu13", "13.9.1")
    broken = tmp_path / "broken" / "bin" / "ptxas"
    broken.parent.mkdir(parents=True)
    broken.write_text("not a program")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "broken"))
    monkeypatch.setenv("PATH", str(tmp_path / "new" / "bin"))
    monkeypatch.setattr(
        toolchain, "_package_directories", lambda package: [tmp_path / "site" / "nvidia"] if package == "nvidia" else []
    )
    ours = [found for found in find_tools() if tmp_path in found.path.parents]
    assert [found.path for found in ours] == [new, wheel, old]
    assert ours[0].release == (13, 10)


def test_a_tool_is_asked_again_when_its_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "candidate_paths", lambda name: iter([tmp_path / "bin" / name]))
    assert find_tools() == []
    path = fake(tmp_path, "12.0.1")
    assert [found.version for found in find_tools()] == ["12.0.1"]
    path.write_text(path.read_text().replace("12.0.1", "12.1.1"))
    assert [found.version for found in find_tools()] == ["12.1.1"]


def test_report(tmp_path: Path, ptx: Path) -> None:
    assembler = Assembler([tool(fake(tmp_path, "13.0.88"), "13.0.88")])
    report = assembler.assemble(ptx, tmp_path / "out.bin", "sm_90", "store")
    assert (report.registers, report.spill_store_bytes, report.spill_load_bytes) == (18, 4, 12)
    assert (report.shared_bytes, report.constant_bytes) == (2048, 368)
    assert report.output == OUTPUT
    assert report.elapsed > 0
    assert report.command.endswith(f"ptxas -v -arch=sm_90 {ptx} -o {tmp_path / 'out.bin'}")


def test_working_ptxas_is_reported_before_it_has_ended(tmp_path: Path, ptx: Path) -> None:
    binary = tmp_path / "out.bin"
    path = fake(tmp_path, "13.0.88")
    waiting = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.01)\ntext = "
    path.write_text(path.read_text().replace("text = ", waiting))
    there: list[bool] = []

    def started() -> None:
        there.append(binary.exists())
        (tmp_path / "go").touch()

    Assembler([tool(path, "13.0.88")]).assemble(ptx, binary, "sm_90", "store", started)
    assert (there, binary.exists()) == ([False], True)


def test_missing_numbers_are_none(tmp_path: Path, ptx: Path) -> None:
    assembler = Assembler([tool(fake(tmp_path, "13.0.88", output=""), "13.0.88")])
    report = assembler.assemble(ptx, tmp_path / "out.bin", "sm_90", "store")
    assert report.registers is None
    assert report.spill_store_bytes is None
    assert report.shared_bytes is None


@pytest.mark.parametrize(
    ("target", "arch", "expected"),
    [
        ("sm_90a", "sm_90", "sm_90a"),
        ("sm_90", "sm_90", "sm_90"),
        ("sm_80", "sm_90", "sm_90"),
        ("sm_100f", "sm_100", "sm_100f"),
        ("sm_100f", "sm_103", "sm_103"),
        ("sm_90a, texmode_independent", "sm_90", "sm_90a"),
    ],
)
def test_the_suffix_of_the_target_is_kept_on_its_own_device(
    target: str, arch: str, expected: str, tmp_path: Path, ptx: Path
) -> None:
    ptx.write_text((HEADER + STORE).replace("sm_80", target))
    assembler = Assembler([tool(fake(tmp_path, "13.0.88"), "13.0.88")])
    assert f"-arch={expected} " in assembler.assemble(ptx, tmp_path / "out.bin", arch, "store").command


def test_the_next_tool_is_tried_where_the_newest_does_not_know_the_version(tmp_path: Path, ptx: Path) -> None:
    older, newer = fake(tmp_path / "a", "12.4.1", (8, 7)), fake(tmp_path / "b", "13.0.88", (7, 0))
    assembler = Assembler([tool(newer, "13.0.88"), tool(older, "12.4.1")])
    assert assembler.assemble(ptx, tmp_path / "out.bin", "sm_90", "store").tool.path == older


def test_ptxas_speaks_for_itself(tmp_path: Path, ptx: Path) -> None:
    ptx.write_text(HEADER + STORE + "bad")
    assembler = Assembler([tool(fake(tmp_path, "13.0.88"), "13.0.88")])
    with pytest.raises(ToolchainError, match=r"ptxas 13\.0\.88: ptxas x\.ptx, line 7; error   : Unknown symbol 'bad'"):
        assembler.assemble(ptx, tmp_path / "out.bin", "sm_90", "store")


def test_no_assembler(tmp_path: Path, ptx: Path) -> None:
    with pytest.raises(ToolchainError, match="nvidia-cuda-nvcc"):
        Assembler([]).assemble(ptx, tmp_path / "out.bin", "sm_90", "store")
    gone = Assembler([tool(tmp_path / "gone", "13.0.88")])
    with pytest.raises(ToolchainError, match="gone: No such file"):
        gone.assemble(ptx, tmp_path / "out.bin", "sm_90", "store")


def test_the_real_one(ptxas: Tool, tmp_path: Path, ptx: Path) -> None:
    report = Assembler([ptxas]).assemble(ptx, tmp_path / "out.bin", "sm_80", "store")
    assert report.registers is not None
    assert 4 <= report.registers <= 32
    assert report.spill_store_bytes == report.spill_load_bytes == 0
    assert (tmp_path / "out.bin").read_bytes().startswith(b"\x7fELF")
    assert report.code_bytes is not None
    assert 0 < report.code_bytes < 4096
    assert report.code_bytes % 128 == 0, "whole lines of the instruction cache"


@pytest.mark.parametrize("all_hang", [True, False])
def test_a_ptxas_that_hangs_is_not_started_again(tmp_path: Path, ptx: Path, all_hang: bool) -> None:
    """An older ptxas takes the place of one that hangs even for ``--version``: not for the PTX. No process is left."""
    starts = tmp_path / "starts"
    path = fake(tmp_path, "13.0.88")
    waits = "" if all_hang else "if '--version' not in sys.argv: "
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\nopen({str(starts)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        f"{waits}os.execvp('sleep', ['sleep', '1000'])\n"
    )
    (tmp_path / "old").mkdir()
    older = tool(fake(tmp_path / "old", "12.8.1"), "12.8.1")
    assembler = Assembler([tool(path, "13.0.88"), older], seconds=0.5)
    for _ in range(3):
        if all_hang:
            assert assembler.assemble(ptx, tmp_path / "out.bin", "sm_90", "store").tool == older
            continue
        with pytest.raises(ToolchainError, match=r"ptxas 13.0.88 did not finish within \d s"):
            assembler.assemble(ptx, tmp_path / "out.bin", "sm_90", "store")
    started = starts.read_text().split()
    assert len(started) == (2 if all_hang else 6)
    assert not [pid for pid in started if is_there(int(pid))]


def is_there(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def counting_tool(folder: Path) -> Tool:
    """A ptxas that notes each PTX that it assembles, and tells its path."""
    path = fake(folder, "13.0.1", output="ptxas info    : Used 18 registers\n")
    noted = (
        f"open({str(folder / 'assembled')!r}, 'a').write(sys.argv[-3] + '\\n'); sys.stderr.write(sys.argv[-3] + '\\n')"
    )
    path.write_text(path.read_text() + f"\n{noted}\n")
    return tool(path, "13.0.1")


def test_kernel_of_two_images_is_assembled_once(tmp_path: Path) -> None:
    """Each run has directories of its own, and each program its image; the PTX of the kernel is the same."""
    counting = counting_tool(tmp_path / "tool")
    reports = []
    for number, text in enumerate([HEADER + STORE, HEADER + STORE, HEADER + STORE.replace("store", "other")]):
        ptx, binary = tmp_path / f"{number}.ptx", tmp_path / f"{number}.bin"
        ptx.write_text(text)
        assembler = Assembler([counting], cache=Cache(tmp_path / "cache"), min_cached_seconds=0)
        reports.append(assembler.assemble(ptx, binary, "sm_80", "store"))
    assembled = (tmp_path / "tool" / "assembled").read_text().splitlines()
    assert assembled == [str(tmp_path / f"{number}.ptx") for number in (0, 2)]
    assert (tmp_path / "1.bin").read_bytes() == (tmp_path / "0.bin").read_bytes()
    assert [report.registers for report in reports] == [18, 18, 18]
    assert all(f"{number}.ptx" in report.output for number, report in enumerate(reports))
    assert "1.bin" in reports[1].command


@pytest.mark.parametrize(("arch", "lines"), [("sm_90", False), ("sm_80", True)])
def test_other_target_or_options_are_assembled_anew(tmp_path: Path, arch: str, *, lines: bool) -> None:
    counting = counting_tool(tmp_path / "tool")
    ptx = tmp_path / "kernel.ptx"
    ptx.write_text(HEADER + STORE)
    assembler = Assembler([counting], cache=Cache(tmp_path / "cache"), min_cached_seconds=0)
    assembler.assemble(ptx, tmp_path / "kernel.bin", "sm_80", "store")
    assembler.assemble(ptx, tmp_path / "kernel.bin", arch, "store", lines=lines)
    assert len((tmp_path / "tool" / "assembled").read_text().splitlines()) == 2


def test_binary_that_was_ready_soon_is_not_kept(tmp_path: Path, ptx: Path) -> None:
    cache = Cache(tmp_path / "cache")
    assembler = Assembler([counting_tool(tmp_path / "tool")], cache=cache, min_cached_seconds=3600)
    assembler.assemble(ptx, tmp_path / "kernel.bin", "sm_80", "store")
    assert cache.usage().entries == 0
