"""Kernels from the cache: the same folder as when they were prepared, and never someone else's."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.kernels import BLOCK_SCHED, DATA, HEADER, STORE, toml_probe
from tests.engine.test_server import connected, kernel_directory
from tui_probe.engine import kernel_cache
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import Cache, digest
from tui_probe.engine.kernel_cache import ImageCache, PrepareOptions, SharedDigests, digest_in_parts
from tui_probe.engine.preparer import Preparer
from tui_probe.engine.reception import Answer
from tui_probe.engine.server import EngineServer
from tui_probe.probe_model.probe import Probe
from tui_probe.toolchain import Tool
from tui_probe.trace.kernel_files import read_process_log

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGE = (HEADER + STORE).encode()
PREPARED = ("original.ptx", "pruned.ptx", "probed.ptx", "pruned.bin", "probed.bin", "kernel.info", "sites.json")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


class Runs:
    """Prepares kernels, each in a run of its own."""

    def __init__(self, folder: Path, cache: Cache, tools: list[Tool]) -> None:
        self.folder = folder
        self.cache = cache
        self.tools = tools
        self.directory = folder

    def __call__(
        self,
        image: bytes = IMAGE,
        name: str = "store",
        arch: str = "sm_80",
        probe: Probe = BLOCK_SCHED,
        load: str = "bin",
    ) -> tuple[Answer, int]:
        """Return the answer without the key of the cache, and the number of hits."""
        self.directory = kernel_directory(self.folder, image, f"run {len(list(self.folder.iterdir()))}")
        options = PrepareOptions("ptx" if load == "ptx" else "bin")
        preparer = Preparer(probe, options, Assembler(self.tools), self.cache)
        answer = preparer.prepare(self.directory, arch, name)
        preparer.close()
        return replace(answer, key=""), preparer.counts.hits


@pytest.fixture
def runs(tmp_path: Path, cache: Cache, ptxas: Tool) -> Runs:
    return Runs(tmp_path, cache, [ptxas])


def contents(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in PREPARED}


@pytest.mark.parametrize("load", ["bin", "ptx"])
def test_the_second_run_finds_what_the_first_prepared(runs: Runs, load: str) -> None:
    assert runs(load=load) == (Answer("ok", f"probed.{load}"), 0)
    first = runs.directory
    assert runs(load=load) == (Answer("ok", f"probed.{load}"), 1)
    assert contents(runs.directory) == contents(first)
    log = (runs.directory / "process.log").read_text()
    assert "[cache] prepared earlier: all files are from " in log
    assert f"'{runs.directory}/pruned.ptx'" in log
    assert str(first) not in log
    assert read_process_log(runs.directory / "process.log") == read_process_log(first / "process.log")
    assert read_process_log(first / "process.log").complete


def test_each_file_is_opened_once_for_a_hit(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs()
    opened: list[str] = []
    monkeypatch.setattr(os, "open", _telling(os.open, opened))
    monkeypatch.setattr("io.open", _telling(io.open, opened))
    assert runs()[1] == 1
    names = [Path(path).name for path in opened if Path(path).parent == runs.directory]
    put_there, read = "original.bin", "original.bin"
    assert sorted(names) == sorted([*PREPARED, put_there, read, "process.log"])


def _telling(function: Callable[..., Any], opened: list[str]) -> Callable[..., Any]:
    """The function, which notes its first argument."""

    def told(path: Any, *others: Any, **named: Any) -> Any:
        opened.append(os.fspath(path))
        return function(path, *others, **named)

    return told


def test_nothing_is_parsed_for_a_hit(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs()

    def refuse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr("tui_probe.engine.kernel_cache.parse", refuse)
    monkeypatch.setattr("tui_probe.engine.kernel_cache.held_ptx", refuse)
    assert runs() == (Answer("ok", "probed.bin"), 1)


@pytest.mark.parametrize(
    "change",
    [
        {"image": IMAGE + b"\n"},
        {"arch": "sm_90"},
        {"load": "ptx"},
        {"probe": replace(BLOCK_SCHED, name="renamed")},
        {"probe": replace(BLOCK_SCHED, source=BLOCK_SCHED.source + "\n")},
    ],
)
def test_whatever_decides_the_outcome_is_in_the_key(runs: Runs, change: dict[str, object]) -> None:
    runs()
    assert runs(**change)[1] == 0  # type: ignore[arg-type]
    assert runs()[1] == 1


def test_another_assembler_prepares_anew(runs: Runs) -> None:
    runs()
    runs.tools = [runs.tools[0]._replace(version="99.9")]
    assert runs()[1] == 0
    runs.tools = []
    assert runs() == (Answer("ok", "probed.ptx"), 0)
    assert runs() == (Answer("ok", "probed.ptx"), 1)
    assert "no ptxas on this machine" in (runs.directory / "process.log").read_text()


def test_another_version_of_our_code_prepares_anew(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs()
    monkeypatch.setattr(kernel_cache, "code_digest", lambda: "another")
    assert runs()[1] == 0


def test_damaged_entries_are_prepared_anew(runs: Runs) -> None:
    runs()
    for path in runs.cache.folder.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert runs() == (Answer("ok", "probed.bin"), 0)
    assert runs() == (Answer("ok", "probed.bin"), 1)


def test_entry_of_an_image_may_vanish(runs: Runs) -> None:
    runs()
    (original,) = (path for path in runs.cache.folder.iterdir() if b"original.ptx" in path.read_bytes()[:100])
    original.unlink()
    assert runs() == (Answer("ok", "probed.bin"), 0)
    assert runs() == (Answer("ok", "probed.bin"), 1)


def test_failures_are_not_kept(runs: Runs) -> None:
    image = f"{HEADER}.entry store() {{ frobnicate %r1; ret; }}".encode()
    for _ in range(2):
        answer, hits = runs(image)
        assert (answer.outcome, hits) == ("failed", 0)
    assert runs.cache.usage().entries == 0
    answer, hits = runs(image, load="ptx")  # the driver may take what this ptxas refuses
    assert (answer.outcome, hits, runs.cache.usage().entries) == ("ok", 0, 0)


def test_unwritable_cache_is_logged(runs: Runs) -> None:
    runs.cache.folder.touch()
    for _ in range(2):
        assert runs() == (Answer("ok", "probed.bin"), 0)
        assert (f"[cache] not saved for other runs: {runs.cache.folder}: ") in (
            runs.directory / "process.log"
        ).read_text()


def test_many_kernels_of_an_image_keep_its_ptx_once(tmp_path: Path, cache: Cache) -> None:
    image = (DATA / "bounds.sm_80.ptx").read_bytes()
    for run in range(2):
        with (
            EngineServer(tmp_path / "engine", BLOCK_SCHED, assembler=Assembler([]), cache=cache) as server,
            connected(tmp_path / "engine") as hook,
        ):
            first, second = (kernel_directory(tmp_path, image, f"{run}{number}") for number in range(2))
            assert hook.prepare(first, "bounded_threads")[0] == "ok"
            assert hook.prepare(second, "bounded_blocks")[0] == "ok"
            assert server.counts.total() == (2 * run, 2 - 2 * run)
        assert (first / "original.ptx").samefile(second / "original.ptx")
        assert (first / "original.ptx").read_bytes() == image
    assert cache.usage().entries == 3


def test_a_trace_may_be_changed_by_hand(runs: Runs) -> None:
    runs()
    for name in PREPARED:
        (runs.directory / name).write_text("spoilt")
    assert runs() == (Answer("ok", "probed.bin"), 1)
    assert (runs.directory / "original.ptx").read_bytes() == IMAGE
    assert (runs.directory / "probed.bin").read_bytes().startswith(b"\x7fELF")


def test_two_probes_of_one_name(runs: Runs) -> None:
    text = '[map.m]\nlevel = "warp"\nregs = { x = "u64" }\n[probe.p]\nposition = "kernel"\nafter = "SAVE [ m ] {%s};"'
    for register in ("%clock64", "%globaltimer"):
        assert runs(probe=toml_probe(text % register)) == (Answer("ok", "probed.bin"), 0)
        assert register in (runs.directory / "probed.ptx").read_text()


def test_image_of_several_kernels_is_read_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(IMAGE)
    os.link(first, second)
    originals = ImageCache()
    image = originals.read(first)
    assert image == IMAGE
    assert originals.read(second) is image
    second.unlink()
    second.write_bytes(b"another")
    assert originals.read(second) == b"another"


def test_digest_of_an_image_is_computed_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process reads nothing of an image whose kernels are in the cache; a changed file has another digest."""
    image = tmp_path / "original.bin"
    image.write_bytes(b"image")
    originals = ImageCache()
    if not (child := os.fork()):
        originals.digest(image)
        os._exit(0)
    os.waitpid(child, 0)
    monkeypatch.setattr(ImageCache, "read", lambda *_: pytest.fail("the image was read"))
    assert originals.digest(image) == digest(b"image").encode()
    monkeypatch.undo()
    image.write_bytes(b"another")
    assert originals.digest(image) == digest(b"another").encode()


def test_digest_that_two_processes_wrote_at_a_time_is_none() -> None:
    digests = SharedDigests()
    file = (1, 2, 3, 4)
    digests.put(file, b"a" * 64)
    assert digests.get(file) == b"a" * 64
    at = digests._offset(file) + 40
    digests._memory[at : at + 1] = b"b"
    assert digests.get(file) is None


def test_digest_in_parts_depends_on_all_of_them() -> None:
    image = bytes(3 << 20) + b"end"
    changed = {digest_in_parts(image[:at] + b"x" + image[at + 1 :]) for at in (0, 1 << 20, (3 << 20) - 1, 3 << 20)}
    assert len({*changed, digest_in_parts(image), digest_in_parts(image[:-3])}) == 6
