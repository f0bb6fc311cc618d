"""Several probes in one kernel: prepared side by side, with what does not depend on them made once."""

from __future__ import annotations

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import BLOCK_SCHED, HEADER, STORE
from tests.engine.test_server import connected, kernel_directory
from tui_probe.engine import multi_preparer
from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.cache import Cache
from tui_probe.engine.grafting.graft_gate import OpenGate
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.multi_preparer import MultiPreparer
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.reception import Answer
from tui_probe.engine.server import EngineServer
from tui_probe.engine.whole_files import put_file, put_link
from tui_probe.probe_files.loading import load_probe
from tui_probe.reasons import because
from tui_probe.toolchain import Tool
from tui_probe.trace.kernel_files import read_process_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.engine.grafting.graft_gate import TrialPart
    from tui_probe.engine.kernel_cache import MachineCode
    from tui_probe.engine.kernel_work import StartCallback
    from tui_probe.reasons import Reason

NAMES = ("one", "two", "three")
PROBES = [(replace(BLOCK_SCHED, name=name), PrepareOptions(folder=name)) for name in NAMES]
ANY_BLOCK = replace(BLOCK_SCHED, name="two", about=BLOCK_SCHED.about._replace(every_block=False))


class Counting(Assembler):
    """An assembler that notes which variants it assembled."""

    def __init__(self, tool: Tool) -> None:
        super().__init__([tool])
        self.assembled: list[str] = []

    def assemble(
        self,
        ptx: Path,
        binary: Path,
        arch: str,
        entry: str,
        started: Callable[[], object] | None = None,
        *,
        lines: bool = False,
    ) -> AssemblyReport:
        self.assembled.append(ptx.name)
        return super().assemble(ptx, binary, arch, entry, started, lines=lines)


def test_the_kernel_without_a_probe_is_assembled_once(tmp_path: Path, ptxas: Tool) -> None:
    assembler = Counting(ptxas)
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), "k")
    preparers = MultiPreparer(PROBES, assembler)
    answers = list(preparers.prepare(directory, "sm_80", "store"))
    preparers.close()
    assert [(answer.outcome, answer.text) for answer in answers] == [("ok", "probed.bin")] * 3
    assert sorted(assembler.assembled) == ["probed.ptx"] * 3 + ["pruned.ptx"]
    pruned = {(directory / name / "pruned.bin").read_bytes() for name in NAMES}
    assert len(pruned) == 1
    for name in NAMES:
        log = read_process_log(directory / name / "process.log")
        assert log.complete
        text = (directory / name / "process.log").read_text()
        assert not [other for other in NAMES if other != name and f"/{other}/" in text]
    assert (directory / "original.ptx").read_text() == HEADER + STORE
    assert not list(directory.rglob(".*"))


def test_each_probe_is_found_in_the_cache(tmp_path: Path, ptxas: Tool) -> None:
    cache = Cache(tmp_path / "cache")
    counts = []
    for run in ("first", "second"):
        directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), run)
        preparers = MultiPreparer(PROBES, Assembler([ptxas]), cache)
        assert [answer.outcome for answer in preparers.prepare(directory, "sm_80", "store")] == ["ok"] * 3
        preparers.close()
        counts.append((preparers.counts.hits, preparers.counts.misses))
        assert (directory / "original.ptx").read_text() == HEADER + STORE
        assert all((directory / name / "pruned.bin").exists() for name in NAMES)
    assert counts == [(0, 3), (3, 0)]


def test_a_server_answers_once_for_each_probe(tmp_path: Path) -> None:
    socket = tmp_path / "engine"
    server = EngineServer(socket, *PROBES[0], assembler=Assembler([]), other_probes=PROBES[1:])
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), "k")
    with server, connected(socket) as hook:
        first = hook.send(f"prepare\t7\t{directory}\tsm_80\tstore\t256\n".encode())
        assert [first, hook.send(b""), hook.send(b"")] == ["ok\t7\tprobed.ptx"] * 3
        first = hook.send(f"prepare\t8\t{directory}\tsm_80\tnothing\t256\n".encode())
        assert [line.split("\t")[:2] for line in (first, hook.send(b""), hook.send(b""))] == [["skipped", "8"]] * 3


def test_a_form_for_samples_is_made_on_demand(tmp_path: Path, ptxas: Tool) -> None:
    """Next to what is there: of the probe that is asked for, told which blocks to measure, and found in the cache."""
    cache = Cache(tmp_path / "cache")
    for run in ("first", "second"):
        directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), run)
        preparers = MultiPreparer([PROBES[0], (ANY_BLOCK, PrepareOptions(folder="two"))], Assembler([ptxas]), cache)
        list(preparers.prepare(directory, "sm_80", "store"))
        answer = preparers.prepare_sampled(1, directory, "sm_80", "store")
        preparers.close()
        assert (answer.outcome, answer.text) == ("ok", "probed.bin")
        unsampled, sampled = ((directory / "two" / own / "kernel.info").read_text() for own in ("", "sampled"))
        assert sampled.replace("blocks sampled\n", "") == unsampled
        assert sampled != unsampled
        assert not (directory / "one" / "sampled").exists()
    assert "[cache]" in (directory / "two" / "sampled" / "process.log").read_text()


def test_a_server_makes_forms_for_samples(tmp_path: Path) -> None:
    socket = tmp_path / "engine"
    others = [(ANY_BLOCK, PrepareOptions(folder="two"))]
    server = EngineServer(
        socket, BLOCK_SCHED, PrepareOptions(folder="one"), assembler=Assembler([]), other_probes=others
    )
    directory = kernel_directory(tmp_path, (HEADER + STORE).encode(), "k")
    for name in ("one", "two"):
        (directory / name).mkdir()
    with server, connected(socket) as hook:
        assert hook.send(f"sample\t1\t{directory}\tsm_80\tstore\t1\t256\n".encode()) == "ok\t1\tprobed.ptx"
        refused = hook.send(f"sample\t2\t{directory}\tsm_80\tstore\t0\t256\n".encode())
        assert refused.split("\t")[:2] == ["skipped", "2"]
        assert refused.endswith(
            "block_sched needs every block, but the records of all blocks do not fit into probe memory"
            " code needs-every-block"
        )
        for place in ("2", "x"):
            assert hook.send(f"sample\t3\t{directory}\tsm_80\tstore\t{place}\t256\n".encode()).startswith("failed\t3\t")


@pytest.mark.parametrize("there", [None, "other", "same"])
def test_a_file_is_put_in_the_place_of_what_is_there(tmp_path: Path, there: str | None) -> None:
    made, path = tmp_path / "made", tmp_path / "path"
    made.write_bytes(b"whole")
    if there == "other":
        path.write_bytes(b"old")
    elif there == "same":
        os.link(made, path)
    assert put_link(made, path)
    assert path.samefile(made)
    put_file(path, b"new")
    assert (path.read_bytes(), sorted(path_there.name for path_there in tmp_path.iterdir())) == (
        b"new",
        ["made", "path"],
    )


def test_impossible_link_is_reported(tmp_path: Path) -> None:
    assert not put_link(tmp_path / "nothing", tmp_path / "path")
    with pytest.raises(OSError, match="No such file"):
        put_file(tmp_path / "nowhere" / "path", b"")


ACCESSES = 30
LONG = "".join(
    f"ld.global.b32 %r1, [%rd1+{4 * at}]; st.global.b32 [%rd1+{4 * at + 4}], %r1;\n" for at in range(ACCESSES)
)
LONG_KERNEL = (
    HEADER
    + ".visible .entry long(.param .u64 x)\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
    + f"ld.param.u64 %rd1, [x];\n{LONG}ret;\n}}\n"
)


@pytest.mark.parametrize(
    ("most", "patience", "machine_code", "in_machine_code"),
    [(100, 60, "auto", True), (150, 60, "auto", False), (100, None, "auto", False), (100, 60, "off", False)],
)
def test_kernel_with_many_snippets_gets_them_in_its_machine_code(
    most: int,
    patience: float | None,
    machine_code: MachineCode,
    in_machine_code: bool,
    tmp_path: Path,
    ptxas: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two probes at 60 accesses: 120 snippets. A run that waits for everything, or is to leave machine code alone,
    takes the PTX.
    """
    monkeypatch.setattr(multi_preparer, "MAX_ASSEMBLED_SNIPPETS", most)
    monkeypatch.setattr(Preparer, "_graft_gate", lambda _: OpenGate())
    directory = kernel_directory(tmp_path, LONG_KERNEL.encode(), "k")
    names = ("gmem_sectors_by_line", "divergence_by_line", "block_sched")
    probes = [(load_probe(name), PrepareOptions(folder=name, machine_code=machine_code)) for name in names]
    preparers = MultiPreparer(probes, Assembler([ptxas]), fused=(0, 1), patience=patience)
    answers = list(preparers.prepare(directory, "sm_90", "long"))
    preparers.close()
    assert [answer.outcome for answer in answers] == ["ok"] * 4
    ways = ["way graft" in (directory / name / "kernel.info").read_text() for name in (*names, "fused")]
    assert ways == [in_machine_code, in_machine_code, False, in_machine_code]
    assert (directory / "fused" / "pruned.ptx").exists()
    assert (directory / "fused" / "probed.ptx").exists() is not in_machine_code


class UntestedGate(OpenGate):
    """A GPU whose self-test still runs: who asks for its outcome waits."""

    def is_known(self, _arch: int) -> bool:
        return False

    def refusal(self, _arch: int, _part: TrialPart) -> Reason | None:
        raise AssertionError("waited for the self-test")


def test_kernel_with_many_snippets_does_not_wait_for_the_self_test(
    tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multi_preparer, "MAX_ASSEMBLED_SNIPPETS", 100)
    monkeypatch.setattr(Preparer, "_graft_gate", lambda _: UntestedGate())
    directory = kernel_directory(tmp_path, LONG_KERNEL.encode(), "k")
    names = ("gmem_sectors_by_line", "divergence_by_line", "block_sched")
    probes = [(load_probe(name), PrepareOptions(folder=name)) for name in names]
    preparers = MultiPreparer(probes, Assembler([ptxas]), fused=(0, 1), patience=60)
    answers = list(preparers.prepare(directory, "sm_90", "long"))
    preparers.close()
    assert [answer.outcome for answer in answers] == ["ok"] * 4
    assert "way graft" not in (directory / "fused" / "kernel.info").read_text()


def test_fused_probe_begins_behind_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch waits for the first probe, which would take twice as long next to the fused one."""
    begun, fused_begun = threading.Event(), threading.Event()
    early: list[bool] = []

    def prepare(self: Preparer, _folder: Path, _arch: str, _name: str, _threads: int, begin: StartCallback) -> Answer:
        if self._options.folder == "three":
            early.append(fused_begun.wait(0.2))
            begin()
            begun.set()
        else:
            fused_begun.set()
        return Answer.refusal("skipped", because("no-ptx"))

    monkeypatch.setattr(Preparer, "prepare", prepare)
    preparers = MultiPreparer(PROBES, Assembler([]), fused=(0, 1))
    answers = list(preparers.prepare(tmp_path, "sm_90", "k"))
    preparers.close()
    assert len(answers) == 4
    assert begun.is_set()
    assert early == [False]


def test_counting_probes_of_one_kernel_at_a_time_use_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work, most_at_work = 0, []

    def prepare(self: Preparer, _folder: Path, _arch: str, _name: str, _threads: int, begin: StartCallback) -> Answer:
        nonlocal at_work
        if self._options.folder != "three":
            at_work += 1
            most_at_work.append(at_work)
            time.sleep(0.01)
            at_work -= 1
        begin()
        begin()  # the thread of ptxas and that of the kernel may both say so
        return Answer.refusal("skipped", because("no-ptx"))

    monkeypatch.setattr(Preparer, "prepare", prepare)
    preparers = MultiPreparer(PROBES, Assembler([]), fused=(0, 1))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: list(preparers.prepare(tmp_path, "sm_90", name)), "abcd"))
    preparers.close()
    assert set(most_at_work) == {1}
    assert len(most_at_work) == 12


COUNTED = ("gmem_sectors_by_line", "divergence_by_line", "block_sched")


def counting_preparers(tool: Tool) -> MultiPreparer:
    probes = [(load_probe(name), PrepareOptions(folder=name)) for name in COUNTED]
    return MultiPreparer(probes, Assembler([tool]), fused=(0, 1), patience=60)


def without_ptx(tmp_path: Path, tool: Tool) -> bytes:
    (tmp_path / "store.ptx").write_text(HEADER + STORE)
    Assembler([tool]).assemble(tmp_path / "store.ptx", tmp_path / "store.bin", "sm_90", "store")
    return (tmp_path / "store.bin").read_bytes()


@pytest.mark.parametrize("has_ptx", [False, True])
def test_counting_probes_of_machine_code_are_prepared_elsewhere(
    has_ptx: bool, tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process is a thread here, which answers with what its own preparers make in the same directory."""
    monkeypatch.setattr(Preparer, "_graft_gate", lambda _: OpenGate())
    image = (HEADER + STORE).encode() if has_ptx else without_ptx(tmp_path, ptxas)
    directory = kernel_directory(tmp_path, image, "k")
    own, its = socket.socketpair()
    asked: list[str] = []

    def serve() -> None:
        with its, its.makefile("rb") as lines:
            for line in lines:
                _, place, folder, arch, name, threads = line.decode().split("\t")
                asked.append(place)
                answer = others.prepare_counting(int(place), Path(folder), arch, name, int(threads))
                its.sendall(f"{answer.outcome}\t{place}\t{answer.reply_text}\n".encode())

    preparers, others = counting_preparers(ptxas), counting_preparers(ptxas)
    preparers.count_elsewhere(lambda: own)
    server = threading.Thread(target=serve)
    server.start()
    answers = list(preparers.prepare(directory, "sm_90", "store"))
    preparers.close()
    own.close()  # it was not needed for a kernel with PTX
    server.join()
    others.close()
    assert [answer.outcome for answer in answers] == ["ok"] * 4
    assert asked == ([] if has_ptx else ["3"])
    assert ("way graft" in (directory / "fused" / "kernel.info").read_text()) is not has_ptx
    assert all((directory / name / "kernel.info").exists() for name in COUNTED)


def test_counting_probes_are_prepared_here_if_the_other_process_has_ended(
    tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Preparer, "_graft_gate", lambda _: OpenGate())
    directory = kernel_directory(tmp_path, without_ptx(tmp_path, ptxas), "k")
    own, its = socket.socketpair()
    its.close()
    preparers = counting_preparers(ptxas)
    preparers.count_elsewhere(lambda: own)
    answers = list(preparers.prepare(directory, "sm_90", "store"))
    preparers.close()
    assert [answer.outcome for answer in answers] == ["ok"] * 4
