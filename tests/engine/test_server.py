"""The server as a hook sees it: real files, several clients, garbage, a missing assembler."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine.kernels import BLOCK_SCHED, DATA, HEADER, STORE, toml_probe
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.server import EngineServer
from tui_probe.errors import LaunchError
from tui_probe.reasons import because
from tui_probe.toolchain import Tool

PER_BLOCK = "reduce 0 block record 16 min:u64@0:u64@0 span:u32@8:u32@8:u64@0 same:u32@12:u32@12"
"""Reduction of the probe's map."""
FILES = {
    "original.bin",
    "original.ptx",
    "pruned.ptx",
    "probed.ptx",
    "pruned.bin",
    "probed.bin",
    "kernel.info",
    "process.log",
    "sites.json",
}


class Client:
    """A hook's side of the protocol."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self._requests = 0

    def send(self, data: bytes) -> str:
        self._socket.sendall(data)
        return self._lines.readline().decode().rstrip("\n")

    def prepare(self, directory: Path, name: str, arch: str = "sm_80") -> tuple[str, str]:
        """Ask for a kernel; the outcome and its text."""
        self._requests += 1
        answer = self.send(f"prepare\t{self._requests}\t{directory}\t{arch}\t{name}\t256\n".encode())
        outcome, request, text = answer.split("\t")
        assert request == str(self._requests)
        return outcome, text

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def connected(path: Path) -> Iterator[Client]:
    client = Client(path)
    try:
        yield client
    finally:
        client.close()


def kernel_directory(root: Path, image: bytes, name: str = "0_kernel") -> Path:
    directory = root / name
    directory.mkdir()
    (directory / "original.bin").write_bytes(image)
    return directory


@pytest.fixture
def server(tmp_path: Path, ptxas: Tool) -> Iterator[Path]:
    """The socket of a running server."""
    with EngineServer(tmp_path / "engine", BLOCK_SCHED, assembler=Assembler([ptxas])):
        yield tmp_path / "engine"


@pytest.fixture
def without_ptxas(tmp_path: Path) -> Iterator[Path]:
    with EngineServer(tmp_path / "engine", BLOCK_SCHED, assembler=Assembler([])):
        yield tmp_path / "engine"


def test_a_kernel_is_prepared(tmp_path: Path, ptxas: Tool) -> None:
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    options = PrepareOptions("bin", "store:x", "y")
    with (
        EngineServer(tmp_path / "engine", BLOCK_SCHED, options, Assembler([ptxas])),
        connected(tmp_path / "engine") as hook,
    ):
        assert hook.send(b"hello\t1\t77\n") == "hello\t1"
        assert hook.prepare(directory, "store") == ("ok", "probed.bin")
    assert {path.name for path in directory.iterdir()} == FILES
    info = (
        f"store\n1\n1\n1,16\nstorage 0 marked record 16 cap 1\n{PER_BLOCK}\ncallback block_sched\nblocks independent\n"
    )
    assert (directory / "kernel.info").read_text() == info
    assert (directory / "original.ptx").read_text() == HEADER + STORE
    for variant in ("pruned", "probed"):
        assert (directory / f"{variant}.bin").read_bytes().startswith(b"\x7fELF")
    log = (directory / "process.log").read_text().splitlines()
    assert log[0] == "[kernels] only store, x; without y"
    assert log[1].startswith("[objdump] original.bin is ptx of ")
    assert log[2] == "store"
    commands = {line.split()[3].rpartition("/")[2]: i for i, line in enumerate(log) if line.startswith(str(ptxas.path))}
    assert set(commands) == {"pruned.ptx", "probed.ptx"}
    for index in commands.values():
        assert any("Used " in line and " registers" in line for line in log[index : index + 8])


def test_images_of_every_kind(server: Path, tmp_path: Path) -> None:
    with connected(server) as hook:
        cubin = kernel_directory(tmp_path, (DATA / "attn_fwd.sm_90a.cubin").read_bytes(), "1")
        assert hook.prepare(cubin, "attn_fwd", "sm_90") == ("ok", "probed.bin")
        assert "-arch=sm_90a" in (cubin / "process.log").read_text()
        no_ptx = kernel_directory(tmp_path, (DATA / "image.no_ptx.cubin").read_bytes(), "2")
        assert hook.prepare(no_ptx, "gemm") == ("skipped", "no PTX in image code no-ptx")
        assert (no_ptx / "process.log").read_text().splitlines()[-1] == "[skipped] no PTX in image code no-ptx"
        assert {path.name for path in no_ptx.iterdir()} == {"original.bin", "process.log"}


def test_one_image_with_several_kernels_is_written_once(server: Path, tmp_path: Path) -> None:
    image = (DATA / "bounds.sm_80.ptx").read_bytes()
    with connected(server) as hook:
        first = kernel_directory(tmp_path, image, "1")
        second = kernel_directory(tmp_path, image, "2")
        assert hook.prepare(first, "bounded_threads")[0] == "ok"
        assert hook.prepare(second, "bounded_blocks")[0] == "ok"
    assert (first / "original.ptx").samefile(second / "original.ptx")
    shutil.rmtree(first)
    third = kernel_directory(tmp_path, image, "3")
    with connected(server) as hook:
        assert hook.prepare(third, "bounded_threads")[0] == "ok"
    assert (third / "original.ptx").read_bytes() == image


def test_names_match_exactly(server: Path, tmp_path: Path) -> None:
    directory = kernel_directory(tmp_path, (HEADER + STORE + STORE.replace("store", "store_all")).encode())
    with connected(server) as hook:
        outcome, reason = hook.prepare(directory, "stor")
        assert outcome == "skipped"
        assert "no PTX for the kernel stor " in reason
        assert hook.prepare(directory, "store")[0] == "ok"
    assert "store_all" not in (directory / "probed.ptx").read_text()


def test_kernels_that_cannot_be_probed_are_skipped(server: Path, tmp_path: Path) -> None:
    text = f"{HEADER}.func f() {{ call f; exit; }}\n.entry kernel() {{ call f; ret; }}"
    directory = kernel_directory(tmp_path, text.encode())
    with connected(server) as hook:
        reason = because("function-recursive", line=4, function="f")
        assert hook.prepare(directory, "kernel") == ("skipped", reason.written)
    assert (directory / "pruned.ptx").exists()
    assert not (directory / "kernel.info").exists()


def test_refusal_of_ptxas_is_a_failure(server: Path, tmp_path: Path, ptxas: Tool) -> None:
    directory = kernel_directory(tmp_path, f"{HEADER}.entry kernel() {{ frobnicate %r1; ret; }}".encode())
    with connected(server) as hook:
        outcome, reason = hook.prepare(directory, "kernel")
    assert outcome == "failed"
    assert reason.startswith(f"ptxas {ptxas.version}: ")
    assert "frobnicate" in reason
    log = (directory / "process.log").read_text()
    assert "Ptx assembly aborted" in log
    assert not (directory / "probed.bin").exists()


def test_damaged_ptx(server: Path, tmp_path: Path) -> None:
    directory = kernel_directory(tmp_path, f'{HEADER}.entry kernel() {{ mov.u32 "x; ret; }}'.encode())
    with connected(server) as hook:
        outcome, _ = hook.prepare(directory, "kernel")
        assert outcome == "failed"
        assert (directory / "process.log").read_text().splitlines()[-1].startswith("[failed] ")


def test_our_own_mistakes_leave_their_traceback(server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistake(*_: object, **__: object) -> None:
        raise KeyError("mistake")

    monkeypatch.setattr("tui_probe.engine.insertion.insert_probe", mistake)
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    with connected(server) as hook:
        assert hook.prepare(directory, "store") == ("failed", "KeyError: 'mistake' code engine-defect")
    log = (directory / "process.log").read_text()
    assert "Traceback (most recent call last):" in log
    assert log.rstrip().endswith("KeyError: 'mistake' code engine-defect") or "KeyError: 'mistake'\n" in log


def test_without_an_assembler_the_driver_gets_ptx(without_ptxas: Path, tmp_path: Path) -> None:
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    with connected(without_ptxas) as hook:
        assert hook.prepare(directory, "store") == ("ok", "probed.ptx")
    assert "no ptxas on this machine" in (directory / "process.log").read_text()
    assert "nvidia-cuda-nvcc" in (directory / "process.log").read_text()


def test_gpu_that_no_assembler_knows_gets_ptx(tmp_path: Path) -> None:
    tool = tmp_path / "ptxas"
    tool.write_text(
        "#!/bin/sh\necho \"ptxas fatal   : Value '${2#-arch=}' is not defined for option 'gpu-name'\"\nexit 1\n"
    )
    tool.chmod(0o755)
    server = EngineServer(
        tmp_path / "engine", BLOCK_SCHED, PrepareOptions("bin"), Assembler([Tool(tool, (13, 5), "13.5.37")])
    )
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    with server, connected(tmp_path / "engine") as hook:
        assert hook.prepare(directory, "store", "sm_80") == ("ok", "probed.ptx")
    log = (directory / "process.log").read_text()
    assert "no ptxas on this machine supports sm_80: the driver compiles probed.ptx" in log
    assert "ptxas 13.5.37 does not support sm_80 code architecture-unknown" in log
    assert {"probed.ptx", "kernel.info", "sites.json"} <= {path.name for path in directory.iterdir()}


def test_ptx_for_the_simulated_gpu_is_assembled_all_the_same(tmp_path: Path, ptxas: Tool) -> None:
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    server = EngineServer(tmp_path / "engine", BLOCK_SCHED, PrepareOptions("ptx"), Assembler([ptxas]))
    with server, connected(tmp_path / "engine") as hook:
        assert hook.prepare(directory, "store") == ("ok", "probed.ptx")
    assert {path.name for path in directory.iterdir()} == FILES


def test_hook_receives_module_variables_and_replay(server: Path, tmp_path: Path) -> None:
    text = f"""{HEADER}
.extern .func malloc;
.visible .global .align 4 .u32 visits;
.visible .const .align 4 .u32 limit;
.entry kernel(.param .u32 x) {{
.reg .b32 %r<3>;
ld.const.u32 %r1, [limit];
atom.global.add.u32 %r2, [visits], %r1;
call malloc;
ret;
}}"""
    directory = kernel_directory(tmp_path, text.encode())
    with connected(server) as hook:
        hook.prepare(directory, "kernel")
    assert (directory / "kernel.info").read_text().splitlines() == [
        "kernel",
        "1",
        "1",
        "1,16",
        "storage 0 marked record 16 cap 1",
        PER_BLOCK,
        "callback block_sched",
        "global visits",
        "global limit",
        "no-replay the kernel calls malloc code calls-host",
    ]


def test_counts_are_maps_of_their_own(tmp_path: Path) -> None:
    probe = toml_probe(
        '[map.m]\nlevel = "thread"\ncap = 4\nregs = { x = "u64" }\n'
        '[probe.p]\nposition = "st.global"\nbefore = "SAVE [ m ] {ADDR};"'
    )
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    with EngineServer(tmp_path / "engine", probe, assembler=Assembler([])), connected(tmp_path / "engine") as hook:
        assert hook.prepare(directory, "store")[0] == "ok"
    assert (directory / "kernel.info").read_text().splitlines() == [
        *("store", "1", "2", "0,32", "0,4"),
        "storage 0 rows record 8 cap 4",
        "storage 1 counts",
        "blocks independent",
    ]


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"\n", "failed\t-\tthe probe engine received an unknown request code request-unknown"),
        (b"\x00\xff\xfe\n", "failed\t-\tthe probe engine received an unknown request code request-unknown"),
        (b"prepare\t7\n", "failed\t7\tthe probe engine received an unknown request code request-unknown"),
        (b"prepare\t7\ta\tb\tc\td\n", "failed\t7\tthe probe engine received an unknown request code request-unknown"),
        (b"hello\t2\t1\n", "failed\t-\tthe probe engine uses version 1 of the protocol code protocol"),
        (
            b"prepare\t7\ta\tsm_80\t" + b"k" * 3_000_000 + b"\t1\n",
            "failed\t-\tthe probe engine received an unknown request code request-unknown",
        ),
        (b"x" * 70000 + b"\n", "failed\t-\tthe probe engine received an unknown request code request-unknown"),
    ],
)
def test_garbage_is_answered(without_ptxas: Path, tmp_path: Path, line: bytes, answer: str) -> None:
    with connected(without_ptxas) as hook:
        assert hook.send(line) == answer
        directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
        assert hook.prepare(directory, "store")[0] == "ok"


@pytest.mark.parametrize(
    ("directory", "arch", "name", "reason"),
    [
        ("/no/such/place", "sm_80", "store", "No such file"),
        ("/no\0place", "sm_80", "store", "null"),
        ("{here}", "sm_80", "store", "original.bin: No such file"),
        ("{here}", "fast", "store", "fast is not an architecture"),
    ],
)
def test_requests_that_cannot_be_met(
    without_ptxas: Path, tmp_path: Path, directory: str, arch: str, name: str, reason: str
) -> None:
    with connected(without_ptxas) as hook:
        outcome, text = hook.prepare(Path(directory.format(here=tmp_path)), name, arch)
        assert outcome == "failed"
        assert reason in text
        assert hook.send(b"hello\t1\t1\n") == "hello\t1"


def test_many_clients_at_once(server: Path, tmp_path: Path) -> None:
    image = (DATA / "bounds.sm_80.ptx").read_bytes()
    names = ["bounded_threads", "bounded_blocks", "bounded_registers", "constant_parameters"]
    directories = [kernel_directory(tmp_path, image, f"{i}") for i in range(8)]
    answers: dict[int, tuple[str, str]] = {}

    def ask(index: int) -> None:
        with connected(server) as hook:
            assert hook.send(b"hello\t1\t1\n") == "hello\t1"
            answers[index] = hook.prepare(directories[index], names[index % 4])

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    with connected(server) as rude:
        rude.send(b"nonsense\n")
    for thread in threads:
        thread.join()
    assert answers == dict.fromkeys(range(8), ("ok", "probed.bin"))
    for index, directory in enumerate(directories):
        assert (directory / "kernel.info").read_text().startswith(names[index % 4] + "\n")


def test_a_client_that_leaves_in_the_middle_harms_nobody(server: Path, tmp_path: Path) -> None:
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode())
    gone = socket.socket(socket.AF_UNIX)
    gone.connect(str(server))
    gone.sendall(f"prepare\t1\t{directory}\tsm_80\tstore\t256\nprepare\t2\t".encode())
    gone.close()
    with connected(server) as hook:
        assert hook.prepare(kernel_directory(tmp_path, (HEADER + STORE).encode(), "1"), "store")[0] == "ok"


def test_stopping_finishes_the_assemblies_under_way(tmp_path: Path, ptxas: Tool) -> None:
    directory = kernel_directory(tmp_path, (DATA / "attn_fwd.sm_90a.cubin").read_bytes())
    server = EngineServer(tmp_path / "engine", BLOCK_SCHED, PrepareOptions("ptx"), Assembler([ptxas]))
    server.start()
    with connected(tmp_path / "engine") as hook:
        assert hook.prepare(directory, "attn_fwd", "sm_90") == ("ok", "probed.ptx")
        server.stop()
    assert {path.name for path in directory.iterdir()} == FILES
    assert not (tmp_path / "engine").exists()


def test_a_socket_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot create the engine's socket"):
        EngineServer(tmp_path / "none" / "engine", BLOCK_SCHED, assembler=Assembler([])).start()
