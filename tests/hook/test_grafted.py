"""Real machine code, grafted by the real engine, as the hook loads and launches it; the stub driver does not run it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.server import EngineServer
from tui_probe.probe_files.loading import load_probe
from tui_probe.trace.follow import open_trace

from .conftest import Build, Engine, Host

graft_gate = pytest.importorskip("tui_probe.engine.grafting.graft_gate")

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 8 .u64 shared_variable;
.visible .const .align 8 .u64 shared_constant;
.visible .entry constant__8(.param .u64 output)
{
    .reg .b64 %rd<8>;
    .reg .b32 %r<4>;
    .reg .pred %p;
    ld.param.u64 %rd1, [output];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @%p exit;
    ld.const.u64 %rd2, [shared_constant];
    add.u64 %rd2, %rd2, 1;
    atom.global.add.u64 %rd3, [%rd1], %rd2;
    st.global.u64 [shared_variable], %rd3;
    ret;
}
"""


@pytest.fixture
def cubin(tmp_path: Path) -> Path:
    ptxas = shutil.which("ptxas")
    if ptxas is None:
        pytest.skip("needs ptxas")
    (tmp_path / "k.ptx").write_text(PTX)
    subprocess.run([ptxas, "-arch=sm_90", "-o", tmp_path / "k.cubin", tmp_path / "k.ptx"], check=True)
    return tmp_path / "k.cubin"


@pytest.fixture
def host(built: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """With the engine itself; grafts are on as if the trial had passed."""
    monkeypatch.setattr(graft_gate.GraftGate, "refusal", lambda *_, **__: None)
    place = Engine.__new__(Engine)
    place.path = tmp_path / "engine.sock"
    with EngineServer(place.path, load_probe("block_sched"), PrepareOptions()):
        yield Host(built, tmp_path, place)


SCRIPT = """
context()
m = c_void_p()
call("cuModuleLoad", byref(m), {cubin!r}.encode())
f = function(m, "constant__8")
constant, variable, size = c_uint64(), c_uint64(), c_size_t()
call("cuModuleGetGlobal_v2", byref(constant), byref(size), m, b"shared_constant")
call("cuModuleGetGlobal_v2", byref(variable), byref(size), m, b"shared_variable")
c_uint64.from_address(constant.value).value = 10
w = word()
launch(f, w)
launch(f, w, name="cuLaunchKernelEx_ptsz")
print(read(w), variable.value)
"""


def test_a_kernel_without_ptx_runs_with_what_the_engine_made(host: Host, cubin: Path, tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    # the stub reads parameters out of names only, and those that a graft has are in the file
    run = host.python(SCRIPT.format(cubin=str(cubin)), STUB_SAVE=str(loaded), STUB_NO_PARAM_INFO="1")
    assert run.status == 0, run.stderr
    assert run.outcomes() == [("probed", "constant__8", "-")]
    word, variable = map(int, run.stdout.split())
    assert word == 22
    assert [line for line in run.calls if line.startswith("copy")] == ["copy null", "copy thread"]
    (kernel,) = open_trace(run.directory).kernels
    assert (kernel.mode, kernel.launches_probed) == ("graft", 2)
    info = (run.directory / "kernel").glob("*/kernel.info")
    fields = [line.split() for line in next(info).read_text().splitlines()]
    patches = [field[1:] for field in fields if field[0] == "patch"]
    assert patches
    assert {field[3] for field in patches} == {"shared_variable"}
    assert ["constant", "shared_constant", "8"] in fields
    expected = bytearray(next((run.directory / "kernel").glob("*/probed.bin")).read_bytes())
    for kind, offset, addend, _ in patches:
        value = variable + int(addend)
        value = {"abs64": value, "abs32lo": value & 0xFFFFFFFF, "abs32hi": value >> 32}[kind]
        width = 8 if kind == "abs64" else 4
        expected[int(offset) : int(offset) + width] = value.to_bytes(width, "little")
    assert bytes(expected).startswith(loaded.read_bytes())
    assert len(loaded.read_bytes()) > 1000
