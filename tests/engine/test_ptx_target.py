"""The header of probed PTX: raised to what the probe needs, where that changes nothing else."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.engine.device_maps import DeviceMaps
from tests.engine.kernels import toml_probe
from tests.simgpu.device import Device
from tui_probe.engine.insertion import build_probed_ptx, insert_probe
from tui_probe.engine.kernel import Edits, Kernel, UnusedNames
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.ptx_target import fit_to_probe
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.probe_model.probe import Probe
    from tui_probe.toolchain import Tool

BODY = """
.visible .entry kernel(.param .u64 out)
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 4 .b8 tile[8192];
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd1, %rd1;
	mov.u32 %r1, %tid.x;
	mul.lo.u32 %r2, %r1, 12;
	rem.u32 %r2, %r2, 1024;
	mov.u32 %r3, tile;
	mad.lo.u32 %r3, %r2, 8, %r3;
	rem.u32 %r4, %r1, 3;
	setp.eq.u32 %p1, %r4, 0;
	@!%p1 st.shared.u32 [%r3], %r1;
	bar.sync 0;
	ld.shared.u32 %r5, [%r3];
	mul.wide.u32 %rd2, %r2, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.u32 %r6, [%rd3];
	add.u32 %r6, %r6, %r1;
	mul.wide.u32 %rd4, %r1, 8;
	add.s64 %rd5, %rd1, %rd4;
	@%p1 st.global.u32 [%rd5+4096], %r6;
	ret;
}
"""
NEW, OLD = (9, 0, 90), ((6, 4, 75), (9, 0, 75), (6, 2, 60), (5, 0, 60))
PROBES = ("smem_conflicts", "smem_conflicts_by_line", "gmem_sectors", "gmem_sectors_by_line", "what_limits")
OPERATIONS = ("add.u32", "add.s32", "min.u32", "max.u32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32")
OTHERS = ("gmem_bytes_by_line", "block_sched", "inst_mix")


def kernel_of(major: int, minor: int, target: int | str, body: str = BODY) -> Kernel:
    return Kernel.of(parse(f".version {major}.{minor}\n.target sm_{target}\n.address_size 64\n{body}"), "kernel")


def using(code: str, registers: str = ".reg .b32 %lanes, %value;") -> Probe:
    """A probe that runs ``code`` at the end of each thread and keeps ``%value``."""
    return toml_probe(
        f'''
[map.n]
level = "thread"
regs = {{ value = "u32" }}
[probe.end]
position = "kernel"
after = """
{registers}
{code}
SAVE [ n ] {{%value}};
"""
'''
    )


def headers(kernel: Kernel, probe: Probe, arch: int = 90) -> list[str]:
    return [line.partition(" //")[0] for line in build_probed_ptx(kernel, probe, arch=arch).ptx.splitlines()[:2]]


def run(kernel: Kernel, probe: Probe | None, arch: int = 90) -> tuple[np.ndarray[Any, Any], list[bytes]]:
    """The memory that the kernel leaves, with a probe or without, and the probe's records."""
    memory, text, arguments = np.arange(4096, dtype=np.uint32), kernel.module.source, []
    maps = None
    if probe is not None:
        kernel, probe = fit_to_probe(kernel, probe, arch)
        names, edits = UnusedNames(kernel.pruned), Edits(kernel.module.source)
        sites = insert_probe(kernel, probe, names, edits).sites
        text = kernel.apply_edits(edits)
        maps = DeviceMaps(
            probe, (1,), (100,), {own_map.name: 64 for own_map in probe.maps if own_map.cap is None}, sites
        )
        arguments = maps.arguments
    Device().launch(compile_kernel(parse(text), "kernel"), memory, *arguments, grid=(1,), block=(100,))
    return memory, [file_map.slots.tobytes() for file_map in maps.of_file()] if maps else []


@pytest.mark.parametrize("header", OLD)
@pytest.mark.parametrize("name", [*PROBES, *OTHERS])
def test_old_ptx_is_assembled_with_a_probe(
    header: tuple[int, int, int], name: str, ptxas: Tool, tmp_path: Path
) -> None:
    source = tmp_path / "probed.ptx"
    source.write_text(build_probed_ptx(kernel_of(*header), load_probe(name), arch=90).ptx)
    command = [ptxas.path, "-arch=sm_90", source, "-o", tmp_path / "probed.bin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CALLED = """
.func (.param .b32 found) load(.param .b64 place)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [place];
	ld.global.u32 %r1, [%rd1];
	st.param.b32 [found], %r1;
	ret;
}
"""
CALL = """{
	.param .b64 place;
	.param .b32 found;
	st.param.b64 [place], %rd3;
	call.uni (found), load, (place);
	ld.param.b32 %r6, [found];
	}"""


@pytest.mark.parametrize("header", OLD)
def test_called_functions_are_measured_like_new(header: tuple[int, int, int], ptxas: Tool, tmp_path: Path) -> None:
    body = CALLED + BODY.replace("ld.global.u32 %r6, [%rd3];", CALL)
    probe, old, new = load_probe("gmem_sectors"), kernel_of(*header, body), kernel_of(*NEW, body)
    (memory, records), (unprobed, _) = run(old, probe), run(old, None)
    np.testing.assert_array_equal(memory, unprobed)
    assert records == run(new, probe)[1]
    source = tmp_path / "probed.ptx"
    source.write_text(build_probed_ptx(old, probe, arch=90).ptx)
    command = [ptxas.path, "-arch=sm_90", source, "-o", tmp_path / "probed.bin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", OLD)
@pytest.mark.parametrize("name", PROBES)
def test_old_ptx_is_measured_like_new(header: tuple[int, int, int], name: str) -> None:
    probe = load_probe(name)
    unprobed, _ = run(kernel_of(*header), None)
    memory, records = run(kernel_of(*header), probe)
    np.testing.assert_array_equal(memory, unprobed)
    assert records
    if name != "what_limits":  # which reads the clock
        assert records == run(kernel_of(*NEW), probe)[1]


@pytest.mark.parametrize(
    ("code", "registers"),
    [
        *(
            (f"activemask.b32 %lanes; mov.u32 %value, %laneid; {change} redux.sync.{what} %value, %value, %lanes;", "")
            for what in OPERATIONS
            for change in ("mul.lo.u32 %value, %value, 77; sub.u32 %value, %value, 900;", "add.u32 %value, %value, 6;")
        ),
        ("activemask.b32 %lanes; rem.u32 %value, %laneid, 5; match.any.sync.b32 %value, %value, %lanes;", ""),
        ("activemask.b32 %lanes; rem.u32 %value, %laneid, 5; mov.b64 %wide, {%lanes, %value};"
         " match.any.sync.b64 %value, %wide, %lanes;", ".reg .b64 %wide;"),
        *(
            (f"activemask.b32 %lanes; mov.u32 %value, %laneid; mov.b64 %wide, {{{low}, {high}}};"
             " match.all.sync.b64 %value, %wide, %lanes;", ".reg .b64 %wide;")
            for low, high in (("%value", "%lanes"), ("%lanes", "%value"), ("%lanes", "%lanes"))
        ),
        ("activemask.b32 %lanes; match.all.sync.b32 %value, %lanes, %lanes;", ""),
        ("activemask.b32 %lanes; mov.u32 %value, %laneid; setp.lt.u32 %few, %value, 9;"
         " vote.sync.ballot.b32 %lanes, %few, %lanes; @%few redux.sync.add.u32 %value, %value, %lanes;",
         ".reg .pred %few;"),
    ],
)  # fmt: skip
def test_substitutes_compute_the_same(code: str, registers: str) -> None:
    probe = using(code, f".reg .b32 %lanes, %value; {registers}")
    old, new = kernel_of(6, 2, 60), kernel_of(*NEW)
    assert "shfl.sync" in build_probed_ptx(old, probe, arch=90).ptx
    assert "shfl.sync" not in build_probed_ptx(new, probe, arch=90).ptx
    assert run(old, probe)[1] == run(new, probe)[1]


REDUX = "activemask.b32 %lanes; redux.sync.add.u32 %value, %lanes, %lanes;"


@pytest.mark.parametrize(
    ("header", "arch", "expected"),
    [
        ((6, 4, "75"), 90, [".version 7.0", ".target sm_80"]),
        ((9, 0, "75, texmode_independent"), 90, [".version 9.0", ".target sm_80, texmode_independent"]),
        ((9, 0, "75"), 75, [".version 9.0", ".target sm_75"]),  # the device has no redux
        ((9, 0, "90a"), 90, [".version 9.0", ".target sm_90a"]),
        ((9, 0, "100f"), 103, [".version 9.0", ".target sm_100f"]),
        ((6, 2, "60"), 90, [".version 6.2", ".target sm_60"]),  # its warps run in step
        ((5, 0, "61"), 90, [".version 6.2", ".target sm_61"]),
    ],
)
def test_how_far_a_header_is_raised(header: tuple[int, int, str], arch: int, expected: list[str]) -> None:
    assert headers(kernel_of(*header), using(REDUX), arch) == expected


def test_the_device_that_asks_decides(tmp_path: Path) -> None:
    expected = {"sm_75": ".target sm_75", "sm_90": ".target sm_80"}
    for arch, target in expected.items():
        folder = tmp_path / arch
        folder.mkdir()
        (folder / "original.bin").write_text(kernel_of(9, 0, 75).module.source)
        preparer = Preparer(load_probe("smem_conflicts"))
        assert preparer.prepare(folder, arch, "kernel").outcome == "ok"
        preparer.close()
        assert (folder / "probed.ptx").read_text().splitlines()[1].startswith(target)


def test_debug_information_stays_away() -> None:
    assert headers(kernel_of(6, 4, "75, debug"), using(REDUX)) == [".version 7.0", ".target sm_80"]


def test_votes_without_sync_keep_the_version() -> None:
    vote = "\tvote.ballot.b32 %r6, %p1;\n\tret;"
    kernel = kernel_of(6, 3, 75, BODY.replace("\tret;", vote))
    assert headers(kernel, using(REDUX)) == [".version 6.3", ".target sm_75"]


def test_unavailable_features_are_refused() -> None:
    probe = using(
        "activemask.b32 %value; elect.sync %lanes|%one, %value;", ".reg .b32 %lanes, %value; .reg .pred %one;"
    )
    with pytest.raises(UnsupportedKernelError) as raised:
        build_probed_ptx(kernel_of(6, 4, 75), probe, arch=80)
    assert raised.value.reason is not None
    assert raised.value.reason.code == "target-too-old"
    assert raised.value.reason.text == (
        "the probe's elect needs PTX 8.0 and the target sm_90; the kernel has PTX 6.4 for sm_75, and tui-probe"
        " cannot raise this target"
    )
    assert headers(kernel_of(6, 4, 75), probe) == [".version 8.0", ".target sm_90"]
