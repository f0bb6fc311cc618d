"""``tui-probe check``: goldens of its output, the folders that it leaves, and its exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.engine.kernels import DATA, HEADER, STORE
from tests.engine.test_server import FILES
from tests.golden import golden
from tests.ptx.images import fatbin_of, program, ptx
from tests.sass import corpus
from tui_probe.cli import main as front
from tui_probe.engine.image_kernels import read_kernel_file
from tui_probe.probe_files.loading import load_probe
from tui_probe.toolchain import Tool, find_tools, tool_architectures

# An assembler with fixed words; a kernel that holds "frobnicate" is an error, as for the real one.
PTXAS = """#!/bin/sh
if grep -q frobnicate "$3"; then
    echo "ptxas $3, line 6; error   : Not a name of any known instruction: 'frobnicate'"
    exit 255
fi
case "$3" in *pruned*) used=10 spilled=0;; *) used=13 spilled=8;; esac
echo "ptxas info    : Compiling entry function 'k' for 'sm_80'"
echo "    $spilled bytes stack frame, $spilled bytes spill stores, $spilled bytes spill loads"
echo "ptxas info    : Used $used registers, 360 bytes cmem[0]"
echo binary > "$5"
"""
REFUSED = """
.visible .func leave(.param .b32 code)
{
	call leave, (code); exit;
}
.visible .entry _Z7leavingi(.param .u32 x)
{
	call leave, (x);
	ret;
}
"""
NO_PTX = DATA / "image.no_ptx.cubin"
BROKEN = "\n.visible .entry broken()\n{\n\tfrobnicate;\n\tret;\n}\n"


@pytest.fixture
def work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, and an assembler that says the same everywhere."""
    tool = tmp_path / "tools" / "ptxas"
    tool.parent.mkdir()
    tool.write_text(PTXAS)
    tool.chmod(0o755)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tui_probe.engine.assembler.find_tools", lambda _: [Tool(tool, (13, 0), "13.0.1")])
    (folder / "kernels.ptx").write_text(HEADER + REFUSED + STORE + BROKEN)
    return folder


@pytest.fixture
def no_ptxas(work_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tui_probe.engine.assembler.find_tools", lambda _: [])
    return work_folder


class Outcome:
    """Outcome of a command line, with placeholders for paths and numbers of added instructions in ``out``."""

    def __init__(self, words: tuple[str, ...], capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        try:
            self.status = front.main(["check", *words])
        except SystemExit as left:
            self.status = int(str(left.code))
        captured = capsys.readouterr()
        places = captured.out.replace(str(folder.parent), "PLACE")
        self.out = re.sub(r'(added +|"instructions_added": )[1-9]\d*', r"\1N", places)
        self.err = captured.err
        self._raw = captured.out

    def record(self) -> dict[str, Any]:
        """The JSON on stdout."""
        record = json.loads(self._raw)
        assert isinstance(record, dict)
        return record


def test_check_without_file_checks_probe(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(("block_sched",), capsys, work_folder)
    assert (outcome.status, outcome.err) == (0, "")
    golden("check_probe.txt", outcome.out)


def test_every_fate_of_a_kernel(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(("block_sched", "kernels.ptx", "--out", "made"), capsys, work_folder)
    assert (outcome.status, outcome.err) == (1, "")
    golden("check_kernels.txt", outcome.out)
    refused, store, broken = sorted((work_folder / "made").iterdir())
    assert {path.name for path in store.iterdir()} == FILES
    unmade = {"probed.ptx", "probed.bin", "kernel.info", "sites.json"}
    assert {path.name for path in refused.iterdir()} == FILES - unmade
    assert (store / "original.bin").read_text() == (work_folder / "kernels.ptx").read_text()
    assert "frobnicate" in (broken / "process.log").read_text()


def test_assembler_messages_name_no_removed_file(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --out the kernels' folders do not stay."""
    outcome = Outcome(("block_sched", "kernels.ptx", "--kernel", "broken"), capsys, work_folder)
    assert outcome.status == 1
    assert "  reason    ptxas 13.0.1: Not a name of any known instruction: 'frobnicate'\n" in outcome.out
    assert "  ptxas     line 6 of probed.ptx, " in outcome.out
    assert "tui-probe-check" not in outcome.out


def test_json(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(("block_sched", "kernels.ptx", "--out", "made", "--format", "json"), capsys, work_folder)
    assert outcome.status == 1
    path = load_probe("block_sched").path
    golden("check_kernels.json", outcome.out.replace(str(path), "PROBE"))


def test_without_an_assembler(no_ptxas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("block_sched", "kernels.ptx", "--kernel", "store")
    outcome = Outcome(argv, capsys, no_ptxas)
    assert outcome.status == 0
    golden("check_no_ptxas.txt", outcome.out)
    (kernel,) = Outcome((*argv, "--format", "json"), capsys, no_ptxas).record()["kernels"]
    assert kernel["status"] == "ok"
    for key in ("registers_pruned", "registers_probed", "spills_pruned", "spills_probed"):
        assert kernel[key] is None


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["store"], ["store"]),
        (["^s.*e$"], ["store"]),
        (["leaving(int)"], ["_Z7leavingi"]),
        (["broken", "stor"], ["broken", "store"]),
        (["(int)"], ["_Z7leavingi"]),
        (["k|e"], ["_Z7leavingi", "store", "broken"]),
    ],
)
def test_kernels_are_named_exactly_or_by_a_pattern(
    work_folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], meant: list[str]
) -> None:
    options = [option for word in words for option in ("--kernel", word)]
    record = Outcome(("block_sched", "kernels.ptx", *options, "--format", "json"), capsys, work_folder).record()
    assert [kernel["name"] for kernel in record["kernels"]] == meant


def test_an_exact_name_wins(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_folder / "two.ptx").write_text(HEADER + STORE + STORE.replace("store", "store_all"))
    argv = ("block_sched", "two.ptx", "--format", "json", "--kernel")
    for word, meant in (("store", ["store"]), ("stor", ["store", "store_all"])):
        record = Outcome((*argv, word), capsys, work_folder).record()
        assert [kernel["name"] for kernel in record["kernels"]] == meant


@pytest.mark.parametrize(
    ("word", "meant"), [("stroe", "store"), ("leafing", "leaving or _Z7leavingi"), ("_Z7leafingi", "_Z7leavingi")]
)
def test_a_kernel_that_is_not_there(
    work_folder: Path, capsys: pytest.CaptureFixture[str], word: str, meant: str
) -> None:
    outcome = Outcome(("block_sched", "kernels.ptx", "--kernel", word), capsys, work_folder)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(
        f"tui-probe: error: kernels.ptx: no kernel {word} among the 3 kernels in the file: did you mean "
    )
    assert meant in outcome.err


def test_few_kernels_are_listed_where_none_is_meant(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("block_sched", "kernels.ptx", "-k")
    message = "among the 3 kernels in the file; there are leaving, store, broken"
    assert f"no kernel nosuch {message}\n" in Outcome((*argv, "nosuch"), capsys, work_folder).err
    (work_folder / "kernels.ptx").write_text(HEADER + "".join(STORE.replace("store", f"kernel_{n}") for n in range(6)))
    assert Outcome((*argv, "nosuch"), capsys, work_folder).err.endswith(
        "no kernel nosuch among the 6 kernels in the file\n"
    )


def test_a_pattern_that_is_none(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is taken as text, such as ``(int)``, unless it is named as a regular expression."""
    err = Outcome(("block_sched", "kernels.ptx", "-k", "["), capsys, work_folder).err
    assert err.endswith("no kernel [ among the 3 kernels in the file; there are leaving, store, broken\n")
    err = Outcome(("block_sched", "kernels.ptx", "-k", "regex:["), capsys, work_folder).err
    assert "regex:[: not a regular expression: unterminated character set" in err


@pytest.mark.parametrize("name", ["attn_fwd.sm_90a.cubin", "image.host.o", "image.speed.fatbin", "image.size.fatbin"])
def test_images_of_every_kind(work_folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    outcome = Outcome(("block_sched", str(DATA / name), "--format", "json"), capsys, work_folder)
    record = outcome.record()
    assert outcome.status == 0
    assert record["image"]["bytes"] == (DATA / name).stat().st_size
    assert record["kernels"]
    assert {kernel["status"] for kernel in record["kernels"]} == {"ok"}


def test_with_the_real_assembler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not find_tools():
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    argv = ("block_sched", str(DATA / "attn_fwd.sm_90a.cubin"), "--arch", "sm_90", "--format", "json")
    (kernel,) = Outcome(argv, capsys, tmp_path).record()["kernels"]
    assert 50 < kernel["registers_pruned"] < 256
    assert 50 < kernel["registers_probed"] < 256
    assert kernel["spills_pruned"] == 0
    assert kernel["instructions_added"] > 10


@pytest.mark.parametrize(
    ("name", "arch", "held"),
    [
        ("attn_fwd.sm_90a.cubin", "sm_100", "PTX for sm_90, SASS for sm_90"),
        ("image.no_ptx.cubin", "sm_80", "SASS for sm_90"),
        ("image.size.fatbin", "sm_75", "PTX for sm_80, sm_90"),
    ],
)
@pytest.mark.parametrize("kernel", [(), ("--kernel", "zero")])
def test_a_file_for_other_gpus_says_so_once(
    work_folder: Path, capsys: pytest.CaptureFixture[str], name: str, arch: str, held: str, kernel: tuple[str, ...]
) -> None:
    argv = ("block_sched", str(DATA / name), "--arch", arch, *kernel)
    outcome = Outcome(argv, capsys, work_folder)
    assert (outcome.status, outcome.out) == (1, "")
    assert f"{name}: the file has no kernel for {arch}; it has {held}" in outcome.err
    record = Outcome((*argv, "--format", "json"), capsys, work_folder).record()
    assert f"it has {held}" in record["error"]
    assert record["kernels"] == []


def test_an_earlier_check_leaves_nothing_behind(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("block_sched", "kernels.ptx", "--kernel", "store", "--out", "made")
    Outcome(argv, capsys, work_folder)
    (work_folder / "kernels.ptx").write_text(HEADER + STORE.replace("mov.u32", "frobnicate"))
    (folder,) = (work_folder / "made").iterdir()
    (folder / "notes").touch()
    assert Outcome(argv, capsys, work_folder).status == 1
    assert {path.name for path in folder.iterdir()} == FILES - {"pruned.bin", "probed.bin"} | {"notes"}


PROBE = '[map.m]\nlevel = "warp"\nregs = { x = "u64" }\n[probe.p]\nposition = "kernel"\nafter = """\n%s\n"""\n'


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("nonsense",), "no such file"),
        (("block_sched", "nonsense.ptx"), "nonsense.ptx: no such file"),
        (("block_sched", "."), ".: not a regular file"),
        (("block_sched", "kernels.ptx", "--arch", "fast"), "write e.g. sm_90"),
        (("block_sched", "--out", "x"), "--out needs a file with kernels to probe: PTX"),
        (("block_sched", "--kernel", "x"), "--kernel needs a file with kernels to probe: PTX"),
        ((), "PROBE"),
    ],
)
def test_usage(work_folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], complaint: str) -> None:
    outcome = Outcome(words, capsys, work_folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert complaint in outcome.err


def test_a_refused_probe(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_folder / "bad.toml").write_text(PROBE % "st.global.u32 [%rd1], 1;\nSAVE [ m ] {%clock64};")
    reason = "bad.toml, line 7: 'st.global.u32 [%rd1], 1;' writes memory; use SAVE"
    for words in (("bad.toml",), ("bad.toml", "kernels.ptx")):
        outcome = Outcome(words, capsys, work_folder)
        assert (outcome.status, outcome.out, outcome.err) == (1, "", f"tui-probe: error: {reason}\n")
    outcome = Outcome(("bad.toml", "kernels.ptx", "--format", "json"), capsys, work_folder)
    assert (outcome.status, outcome.err) == (1, "")
    record = outcome.record()
    assert (record["version"], record["error"], record["kernels"]) == (1, reason, [])


def test_a_probe_that_meets_nothing_in_the_kernel(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = (PROBE % "SAVE [ m ] {%clock64};").replace('position = "kernel"', 'position = "ld.gloabl"')
    (work_folder / "nowhere.toml").write_text(probe)
    outcome = Outcome(("nowhere.toml", "kernels.ptx"), capsys, work_folder)
    assert "note      nowhere matched no instruction of this kernel, which has no ld.gloabl\n" in outcome.out
    standard_error = "ld.gloabl: unknown modifier .gloabl: did you mean global?"
    assert f"suspicious  {standard_error}\n" in outcome.out
    assert Outcome(("nowhere.toml", "--format", "json"), capsys, work_folder).record()["probe"]["doubts"] == [
        standard_error
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"hello", "is not a cubin, fatbin or PTX"),
        (b"", "is not a cubin, fatbin or PTX"),
        (b"\x7fELF", ""),
    ],
)
def test_files_without_kernels(
    work_folder: Path, capsys: pytest.CaptureFixture[str], content: bytes, complaint: str
) -> None:
    (work_folder / "image").write_bytes(content)
    outcome = Outcome(("block_sched", "image"), capsys, work_folder)
    assert outcome.status == 1
    assert outcome.err.startswith("tui-probe: error: image: ")
    assert complaint in outcome.err


def test_an_out_that_cannot_be_written(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work_folder / "taken").touch()
    outcome = Outcome(("block_sched", "kernels.ptx", "--out", "taken"), capsys, work_folder)
    assert outcome.status == 1
    assert "--out taken" in outcome.err


def test_image_without_ptx_is_grafted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    argv = ("block_sched", str(DATA / "image.no_ptx.cubin"), "--format", "json", "--out", str(tmp_path))
    outcome = Outcome(argv, capsys, tmp_path)
    assert outcome.status == 0
    kernels = outcome.record()["kernels"]
    assert [(kernel["name"], kernel["way"], kernel["arch"]) for kernel in kernels] == [
        ("zero_strided", "graft", "sm_90"),
        ("zero", "graft", "sm_90"),
    ]
    assert all(kernel["registers_pruned"] == 8 <= kernel["registers_probed"] <= 32 for kernel in kernels)
    assert all(kernel["instructions_added"] > 10 and kernel["spills_probed"] is None for kernel in kernels)
    files = {"original.bin", "pruned.bin", "probed.bin", "kernel.info", "sites.json", "process.log"}
    assert {path.name for path in Path(kernels[0]["directory"]).iterdir()} == files


def test_a_probe_of_values_needs_ptx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ("nan_check", str(DATA / "image.no_ptx.cubin"), "--format", "json", "--kernel", "zero")
    outcome = Outcome(argv, capsys, tmp_path)
    assert outcome.status == 1
    assert [kernel["reason_code"] for kernel in outcome.record()["kernels"]] == ["needs-instructions"]


def test_a_kernel_named_as_the_probe(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(("kernels.ptx", "probe.toml"), capsys, work_folder)
    assert outcome.status == 2
    assert (
        "kernels.ptx is not a probe; pass the probe before the file: tui-probe check PROBE kernels.ptx" in outcome.err
    )


def test_set_is_refused_with_the_names_of_its_probes(capsys: pytest.CaptureFixture[str], work_folder: Path) -> None:
    outcome = Outcome(("stalls", "kernels.ptx"), capsys, work_folder)
    assert outcome.status == 2
    assert "stalls is a set of probes; check one of them: stall_sites, stall_sites_2, " in outcome.err


LIBRARY = fatbin_of((120, ptx("sm_120", "zero"))) + fatbin_of((80, HEADER + STORE), cubin=(90, NO_PTX.read_bytes()))
"""The first image has PTX only, for a newer GPU; the second has PTX of one kernel and machine code of others."""


def test_each_kernel_of_a_library_by_the_way_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    library = tmp_path / "library.so"
    library.write_bytes(program(LIBRARY))
    argv = ("block_sched", str(library), "--arch", "sm_90")
    record = Outcome((*argv, "--format", "json"), capsys, tmp_path).record()
    assert [(kernel["name"], kernel["way"], kernel["image"], kernel["status"]) for kernel in record["kernels"]] == [
        ("store", "ptx", 2, "ok"),
        ("zero_strided", "graft", 2, "ok"),
        ("zero", "graft", 2, "ok"),
    ]
    assert record["image"]["images"] == 2
    assert record["totals"] == {"kernels": 3, "ok": {"ptx": 1, "graft": 2}, "refused": {}, "failed": {}}
    out = Outcome(argv, capsys, tmp_path).out
    assert "library.so: " in out
    assert " of elf in 2 images, PTX for sm_80, sm_120, SASS for sm_90\n" in out
    assert "\nstore: ok (sm_90, PTX, image 2 of 2)\n" in out
    assert "\nzero: ok (sm_90, SASS, image 2 of 2)\n" in out
    assert out.endswith("\n3 kernels: 1 probed in PTX, 2 grafted\n")


def test_without_an_architecture_the_newest_of_each_image_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library.so"
    library.write_bytes(program(LIBRARY))
    monkeypatch.setattr("tui_probe.engine.assembler.find_tools", lambda _: [])
    record = Outcome(("block_sched", str(library), "--format", "json"), capsys, tmp_path).record()
    assert {kernel["name"]: kernel["arch"] for kernel in record["kernels"]} == {
        "zero": "sm_120", "store": "sm_90", "zero_strided": "sm_90",
    }  # fmt: skip


def test_the_newest_that_the_assembler_knows(work_folder: Path) -> None:
    tool = work_folder / "old_ptxas"
    tool.write_text("""#!/bin/sh\necho "--gpu-name (-arch) Allowed values: 'compute_100','sm_80','sm_90','sm_90a'"\n""")
    tool.chmod(0o755)
    known = tool_architectures(Tool(tool, (12, 0), "12.0"))
    assert known == {80, 90}
    image = read_kernel_file(DATA / "image.size.fatbin").images[0]
    assert (image.newest_arch(known), image.newest_arch({80}), image.newest_arch({70}), image.newest_arch(())) == (
        90,
        80,
        90,
        90,
    )


KNOWING = """#!/bin/sh
case "$1" in --help) echo "--gpu-name (-arch) Allowed values: 'sm_75','sm_80','sm_90','sm_90a','sm_120'"; exit;; esac
case "$2" in
    -arch=sm_75|-arch=sm_80|-arch=sm_90|-arch=sm_90a|-arch=sm_120) echo binary > "$5";;
    *) echo "ptxas fatal   : Value '${2#-arch=}' is not defined for option 'gpu-name'"; exit 1;;
esac
"""
"""An assembler that knows some architectures."""


@pytest.fixture
def knowing(work_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tool = work_folder.parent / "tools" / "knowing_ptxas"
    tool.write_text(KNOWING)
    tool.chmod(0o755)
    monkeypatch.setattr("tui_probe.engine.assembler.find_tools", lambda _: [Tool(tool, (13, 0), "13.0.1")])
    return work_folder


def write_target(folder: Path, target: str, text: str = STORE) -> None:
    header = HEADER.replace("sm_80", target)
    (folder / "made.ptx").write_text(header + text)


@pytest.mark.parametrize(
    ("target", "options", "arch"),
    [
        ("sm_52", (), "sm_75"),
        ("sm_72", (), "sm_75"),
        ("sm_86", (), "sm_90"),
        ("sm_86", ("--arch", "sm_120"), "sm_120"),
        ("sm_90a", (), "sm_90"),
    ],
)
def test_ptx_for_an_unknown_target_is_compiled_for_the_oldest_known_gpu(
    target: str, options: tuple[str, ...], arch: str, knowing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_target(knowing, target)
    outcome = Outcome(("block_sched", "made.ptx", *options), capsys, knowing)
    assert (outcome.status, outcome.err) == (0, "")
    assert f"\nstore: ok ({arch}, PTX)\n" in outcome.out
    target_line = f"\n  target    {target}; compiled for {arch}, as the driver does on this architecture\n"
    assert (target_line in outcome.out) == (not target.startswith(arch))


@pytest.mark.parametrize(
    ("target", "options", "unknown", "instead"),
    [
        ("sm_52", ("--arch", "sm_61"), "sm_61", "Pass an architecture that this ptxas supports: --arch sm_75."),
        ("sm_86", ("--arch", "sm_89"), "sm_89", "Pass an architecture that this ptxas supports: --arch sm_90."),
        ("sm_101a", (), "sm_101", "Set CUDA_HOME to a CUDA toolkit whose ptxas supports this GPU"),
        ("sm_130", (), "sm_130", "Set CUDA_HOME to a CUDA toolkit whose ptxas supports this GPU"),
    ],
)
def test_architecture_that_no_assembler_knows(
    target: str, options: tuple[str, ...], unknown: str, instead: str, knowing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_target(knowing, target)
    outcome = Outcome(("block_sched", "made.ptx", *options), capsys, knowing)
    assert (outcome.status, outcome.err) == (1, "")
    assert f"\n  reason    ptxas 13.0.1 does not support {unknown}\n" in outcome.out
    assert f"\n  instead   {instead}" in outcome.out
    assert "architecture-unknown" in outcome.out


@pytest.mark.parametrize("options", [(), ("--arch", "sm_90"), ("--arch", "sm_80")])
def test_file_without_a_kernel_says_so(
    options: tuple[str, ...], knowing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_target(knowing, "sm_80", ".func f() { ret; }\n// .entry g() { ret; }\n.extern .func h")
    outcome = Outcome(("block_sched", "made.ptx", *options), capsys, knowing)
    assert outcome.status == 1
    assert outcome.err == "tui-probe: error: made.ptx: the file has PTX for sm_80, but this code contains no kernel\n"


def test_file_without_a_kernel_for_an_older_gpu_names_its_target(
    knowing: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_target(knowing, "sm_80", ".func f() { ret; }")
    outcome = Outcome(("block_sched", "made.ptx", "--arch", "sm_75"), capsys, knowing)
    assert outcome.err == "tui-probe: error: made.ptx: the file has no kernel for sm_75; it has PTX for sm_80\n"


def test_many_kernels_are_listed_in_groups(work_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = [STORE.replace("store", f"store_{number}") for number in range(70)]
    (work_folder / "many.ptx").write_text(HEADER + REFUSED + "".join(kernels) + BROKEN)
    outcome = Outcome(("block_sched", "many.ptx"), capsys, work_folder)
    assert (outcome.status, outcome.err) == (1, "")
    golden("check_many.txt", outcome.out)
    record = Outcome(("block_sched", "many.ptx", "--format", "json"), capsys, work_folder).record()
    assert len(record["kernels"]) == 72
    assert record["totals"] == {
        "kernels": 72,
        "ok": {"ptx": 70, "graft": 0},
        "refused": {"function-recursive": 1},
        "failed": {"ptxas-refused": 1},
    }


def test_nothing_is_left_of_kernels_whose_files_are_not_wanted(
    work_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(work_folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert Outcome(("block_sched", "kernels.ptx", "--kernel", "store"), capsys, work_folder).status == 0
    assert [path.name for path in work_folder.iterdir()] == ["kernels.ptx"]


def test_an_interrupt_waits_for_no_kernel(tmp_path: Path) -> None:
    """One kernel of a library may take minutes; here its assembler does."""
    tool = tmp_path / "bin" / "ptxas"
    tool.parent.mkdir()
    release = "Cuda compilation tools, release 99.0, V99.0.1"
    begun = tmp_path / "begun"
    tool.write_text(f'#!/bin/sh\ncase "$1" in --*) echo "{release}"; exit;; esac\ntouch {begun}\nexec sleep 60\n')
    tool.chmod(0o755)
    (tmp_path / "kernels.ptx").write_text(HEADER + STORE)
    command = [sys.executable, "-m", "tui_probe", "check", "block_sched", str(tmp_path / "kernels.ptx")]
    environment = os.environ | {"PATH": f"{tool.parent}:{os.environ['PATH']}", "CUDA_HOME": ""}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            while not begun.exists() and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)  # to it only, so that the assembler continues
            assert process.wait(40) == 130
        finally:
            os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    assert (out, err) == ("", "tui-probe: interrupted\n")


def test_waits_have_line_class_and_producers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the machine code in the file, whose line table is the source's, though the probe is put into its PTX.

    The summary behind them is left out: an older ptxas refuses PTX of version 9.4.
    """
    path = tmp_path / "softmax.cubin"
    path.write_bytes(corpus.cubin("softmax.sm_90"))
    argv = ("block_sched", str(path), "--waits")
    text = Outcome(argv, capsys, tmp_path).out
    golden("check_waits.txt", text[text.index("  waits ") : text.rindex("\n\n")])
    waits = Outcome((*argv, "--format", "json"), capsys, tmp_path).record()["kernels"][0]["waits"]
    (load,) = (site for site in waits["sites"] if site["class"] == "global memory")
    assert (load["sass"], load["offset"], load["loop_depth"], load["waits_itself"]) == ("FMNMX", 0x150, 0, False)
    (producer,) = load["producers"]
    assert (producer["sass"], producer["line"], producer["register_read"]) == ("LDG", 22, True)


def test_ptx_newer_than_ptxas_is_checked_in_sass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As ``run`` probes it: a package may have a newer compiler than this machine."""
    path = tmp_path / "attention.cubin"
    cubin = (Path(__file__).parents[1] / "data" / "ptx" / "attn_fwd.sm_90a.cubin").read_bytes()
    path.write_bytes(re.sub(rb"\.version 8\.\d", b".version 9.9", cubin, count=1))
    (kernel,) = Outcome(("block_sched", str(path), "--format", "json"), capsys, tmp_path).record()["kernels"]
    assert (kernel["status"], kernel["way"]) == ("ok", "graft")
    assert kernel["instructions_added"] > 0


def test_waits_need_no_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a cubin and of a program without a suffix; the sites are those that a check with a probe lists."""
    path = tmp_path / "softmax"
    path.write_bytes(corpus.cubin("softmax.sm_90"))
    (tmp_path / "softmax.cubin").symlink_to(path)
    text = Outcome((str(path), "--waits"), capsys, tmp_path).out
    assert text.startswith("file ")
    golden("check_waits.txt", text[text.index("  waits ") : -1])
    record = Outcome((f"{path}.cubin", "--waits", "--format", "json"), capsys, tmp_path).record()
    assert (record["probe"], record["error"]) == (None, None)
    (kernel,) = record["kernels"]
    assert (kernel["status"], kernel["way"], kernel["instructions_added"]) == ("ok", "graft", None)
    argv = ("block_sched", str(path), "--waits", "--format", "json")
    assert kernel["waits"] == Outcome(argv, capsys, tmp_path).record()["kernels"][0]["waits"]


@pytest.mark.parametrize(
    ("arch", "reason"),
    [
        ("sm_75", "stalls supports sm_80 and later, not sm_75"),
        ("sm_80", None),
        ("sm_87", "SASS mode does not support sm_87"),
        ("sm_90", None),
    ],
)
def test_waits_name_the_architectures_that_stalls_refuses(
    arch: str, reason: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "softmax.cubin"
    path.write_bytes(corpus.cubin(f"softmax.{arch}"))
    text = Outcome((str(path), "--waits"), capsys, tmp_path).out
    assert "  by class  " in text
    lines = [line for line in text.splitlines() if line.startswith("  measured  ")]
    assert lines == ([] if reason is None else [f"  measured  no, -p stalls cannot measure these waits: {reason}"])
    (kernel,) = Outcome((str(path), "--waits", "--format", "json"), capsys, tmp_path).record()["kernels"]
    assert kernel["waits"]["not_measurable"] == reason


def test_waits_of_ptx_are_those_of_its_assembly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The assembly has the table of source lines that the PTX has."""
    if not find_tools("ptxas"):
        pytest.skip("no ptxas on this machine: install nvidia-cuda-nvcc")
    path = tmp_path / "kernels.ptx"
    text = (HEADER + STORE).replace(".visible .entry", '.file 1 "/src/a.cu"\n.visible .entry')
    path.write_text(text.replace("st.global", ".loc 1 7 1\n\tst.global", 1))
    outcome = Outcome((str(path), "--waits"), capsys, tmp_path)
    assert outcome.status == 0
    assert "SASS assembled from its PTX" in outcome.out
    assert "a.cu:7" in outcome.out


def test_sass_older_than_the_ptx_is_checked_where_sass_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program with SASS for sm_90 and PTX for sm_120."""
    tools = find_tools("ptxas")
    if not tools or 120 not in tool_architectures(tools[0]):
        pytest.skip("no ptxas for sm_120 on this machine: install nvidia-cuda-nvcc")
    path = tmp_path / "program"
    text = (HEADER + STORE).replace(".version 8.0", ".version 8.7")
    source, binary = tmp_path / "store.ptx", tmp_path / "store.cubin"
    source.write_text(text)
    subprocess.run([tools[0].path, "-arch=sm_90", source, "-o", binary], check=True)
    newer = text.replace("sm_80", "sm_120")
    path.write_bytes(program(fatbin_of((120, newer), cubin=(90, binary.read_bytes()))))
    for words in ((str(path), "--waits"), ("stall_sites", str(path))):
        (kernel,) = Outcome((*words, "--format", "json"), capsys, tmp_path).record()["kernels"]
        assert (kernel["status"], kernel["way"], kernel["arch"]) == ("ok", "graft", "sm_90")
    (kernel,) = Outcome(("block_sched", str(path), "--format", "json"), capsys, tmp_path).record()["kernels"]
    assert (kernel["way"], kernel["arch"]) == ("ptx", "sm_120")


def test_waits_without_probe_say_why_there_are_none(no_ptxas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(("kernels.ptx", "--kernel", "store", "--waits"), capsys, no_ptxas)
    assert outcome.status == 1
    assert "  waits     – no ptxas on this machine: install" in outcome.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stalls", "kernels.ptx", "--waits"), "--waits needs no probe: tui-probe check FILE --waits"),
        (("block_sched", "--waits"), "--waits needs a file with kernels"),
        (("missing.cubin", "--waits"), "missing.cubin: no such file"),
        (("missing", "--waits"), "missing: no such file, and no probe of that name"),
    ],
)
def test_waits_without_a_file_are_refused(
    words: tuple[str, ...], message: str, work_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = Outcome(words, capsys, work_folder)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_waits_without_machine_code_say_why(no_ptxas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome(("block_sched", "kernels.ptx", "--kernel", "store", "--waits"), capsys, no_ptxas)
    assert outcome.status == 0
    assert "  waits     – the image has no SASS for sm_" in outcome.out
