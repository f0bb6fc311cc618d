"""Kernels of loaded images are in the cache before a launch asks for them."""

from __future__ import annotations

import errno
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine.kernels import BLOCK_SCHED, HEADER, STORE
from tests.engine.test_server import Client, connected, kernel_directory
from tui_probe.engine.ahead import CLOSED_NAMES, EVERY_KERNEL, MAX_IMAGE_KERNELS, KernelChoice
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import Cache, KeyLocks
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.reception import AHEAD_SUFFIX, receive_at
from tui_probe.engine.server import EngineServer
from tui_probe.engine.workers import Workers
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_model import FUSED_NAME
from tui_probe.toolchain import Tool
from tui_probe.trace.kernel_files import SITES_FILE

LIMIT = 60
"""Seconds; reaching it means that something hangs."""
NAMES = [f"store{number}" for number in range(3)]
HOOK = Path(__file__).parents[2] / "hook" / "src"


def image_of(names: list[str]) -> bytes:
    return (HEADER + "".join(STORE.replace("store", name) for name in names)).encode()


@contextmanager
def serving(tmp_path: Path, ptxas: Tool, choice: KernelChoice = EVERY_KERNEL) -> Iterator[EngineServer]:
    """An engine with one worker for images."""
    cache, path = Cache(tmp_path / "cache"), tmp_path / "engine"
    with (
        receive_at(path) as images,
        EngineServer(
            path, BLOCK_SCHED, assembler=Assembler([ptxas]), cache=cache, images=images, choice=choice, ahead_workers=1
        ) as server,
    ):
        yield server
    Path(f"{path}{AHEAD_SUFFIX}").unlink()


def load(tmp_path: Path, image: bytes, name: str = "engine.image.1.0") -> Path:
    """Send an image as the hook does; its file."""
    file = tmp_path / name
    file.write_bytes(image)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hook:
        hook.connect(f"{tmp_path / 'engine'}{AHEAD_SUFFIX}")
        hook.send(f"{file}\tsm_80".encode())
    return file


def wait_until_removed(file: Path) -> None:
    """The engine removes an image after the last of its kernels."""
    deadline = time.monotonic() + LIMIT
    while file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_only_images_of_the_hook_are_removed(tmp_path: Path, ptxas: Tool) -> None:
    (tmp_path / "engine.image.").mkdir()
    with serving(tmp_path, ptxas):
        others = [load(tmp_path, b"no image", name) for name in ("notes.txt", "engine.image./../other")]
        wait_until_removed(load(tmp_path, b"no image"))
        assert all(file.exists() for file in others)


COUNTING = ("gmem_bytes", "divergence")


class NotingCache(Cache):
    """A cache that notes which kind of kernel it gets, in a file: another process puts it there."""

    def __init__(self, folder: Path, noted: Path) -> None:
        super().__init__(folder)
        self._noted = noted

    def put(self, key: str, files: Mapping[str, bytes]) -> None:
        super().put(key, files)
        if SITES_FILE in files:
            name = FUSED_NAME if b'"p0_' in files[SITES_FILE] else BLOCK_SCHED.name
            with self._noted.open("a") as file:
                file.write(f"{name}\n")


def is_prepared_ahead(hook: Client, directory: Path, name: str) -> bool:
    assert hook.prepare(directory, name) == ("ok", "probed.bin")
    return "prepared ahead of this launch" in (directory / "process.log").read_text()


def test_kernels_of_a_loaded_image_are_prepared_ahead(tmp_path: Path, ptxas: Tool) -> None:
    image = image_of(NAMES)
    with serving(tmp_path, ptxas) as server, connected(tmp_path / "engine") as hook:
        wait_until_removed(load(tmp_path, image))
        for name in NAMES:
            directory = kernel_directory(tmp_path, image, name)
            assert is_prepared_ahead(hook, directory, name)
            assert (directory / "probed.bin").read_bytes().startswith(b"\x7fELF")
        assert server.counts.total() == (0, 3), "they were not there before this run"
        assert not list(tmp_path.glob("ahead.*"))


def test_next_run_counts_kernels_of_this_one_as_hits(tmp_path: Path, ptxas: Tool) -> None:
    image = image_of(NAMES[:1])
    with serving(tmp_path, ptxas):
        wait_until_removed(load(tmp_path, image))
    with serving(tmp_path, ptxas) as server, connected(tmp_path / "engine") as hook:
        assert not is_prepared_ahead(hook, kernel_directory(tmp_path, image), NAMES[0])
        assert server.counts.total() == (1, 0)


class Workforce:
    """Counts the connections that are given to workers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connections = 0
        take_ahead = Workers.take_ahead

        def take(workers: Workers, connection: socket.socket) -> bool:
            self.connections += 1
            return take_ahead(workers, connection)

        monkeypatch.setattr(Workers, "take_ahead", take)


def connections_of_run(tmp_path: Path, ptxas: Tool, workforce: Workforce, image: bytes) -> int:
    """The connections of a run that loads an image."""
    before = workforce.connections
    with serving(tmp_path, ptxas):
        wait_until_removed(load(tmp_path, image))
    return workforce.connections - before


def test_next_run_starts_workers_only_for_kernels_whose_entries_are_gone(
    tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, workforce, cache = image_of(NAMES), Workforce(monkeypatch), Cache(tmp_path / "cache")
    runs = [connections_of_run(tmp_path, ptxas, workforce, image) for _ in range(2)]
    kernels = {path for path in cache.folder.glob("*.entry") if SITES_FILE in (cache.get(path.stem) or {})}
    assert len(kernels) == len(NAMES)
    removed = min(kernels)
    removed.unlink()
    runs += [connections_of_run(tmp_path, ptxas, workforce, image) for _ in range(2)]
    assert runs == [1, 0, 1, 0]
    assert removed.exists()


def test_next_run_takes_no_other_kernels_than_the_first(
    tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_probe.engine.ahead.MAX_RUN_KERNELS", len(NAMES) - 1)
    image, workforce = image_of(NAMES), Workforce(monkeypatch)
    assert [connections_of_run(tmp_path, ptxas, workforce, image) for _ in range(2)] == [1, 0]


def test_refused_kernel_is_tried_ahead_in_one_run(tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    recursive = f"{HEADER}.func f() {{ call f; exit; }}\n.entry kernel() {{ call f; ret; }}".encode()
    workforce = Workforce(monkeypatch)
    assert [connections_of_run(tmp_path, ptxas, workforce, recursive) for _ in range(2)] == [1, 0]


def test_kernel_that_fails_is_tried_again_in_the_next_run(
    tmp_path: Path, ptxas: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    workforce, image = Workforce(monkeypatch), image_of(NAMES[:1])
    with monkeypatch.context() as broken:
        broken.setattr(Assembler, "assemble", raise_no_space)
        assert connections_of_run(tmp_path, ptxas, workforce, image) == 1
    assert [connections_of_run(tmp_path, ptxas, workforce, image) for _ in range(2)] == [1, 0]


def raise_no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("count", [MAX_IMAGE_KERNELS + 1, 0])
def test_image_of_a_library_is_left_to_launches(tmp_path: Path, ptxas: Tool, count: int) -> None:
    with serving(tmp_path, ptxas):
        wait_until_removed(load(tmp_path, image_of([f"store{number}" for number in range(count)])))
        assert Cache(tmp_path / "cache").usage().entries == 0


def test_choice_has_kernels_as_the_hook_filters_them() -> None:
    choice = KernelChoice(["gemm"], ["split"], includes_closed=False)
    assert [choice.includes(name) for name in ("my_gemm", "gemm_splitk", "saxpy", "cublas_gemm")] == [1, 0, 0, 0]
    assert KernelChoice([], [], includes_closed=True).includes("_ZN6cublas4gemvE")
    assert not KernelChoice([], [], includes_closed=False).includes("_ZN6cublas4gemvE")


def test_closed_names_are_those_of_the_hook() -> None:
    text = (HOOK / "images" / "machine_code.c").read_text()
    listed = re.search(r"closed_names\[\] = \{(.*?)\}", text, re.DOTALL)
    assert listed is not None
    assert tuple(re.findall(r'"(\w+)"', listed[1])) == CLOSED_NAMES


def test_key_lock_has_one_holder(tmp_path: Path) -> None:
    first, second = KeyLocks(tmp_path), KeyLocks(tmp_path)
    lock, was_held = first.take("ab" * 16, 0)
    assert lock is not None
    assert not was_held
    assert second.take("ab" * 16, 0) == (None, True)
    other, was_held = second.take("cd" * 16, 0)
    assert other is not None
    assert not was_held
    lock.release()
    lock.release()
    again, _ = second.take("ab" * 16, 0)
    assert again is not None


def test_key_lock_without_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert KeyLocks(tmp_path / "file").take("ab" * 16, LIMIT) == (None, False)


def test_probes_that_are_ready_soon_come_before_those_that_take_long(tmp_path: Path, ptxas: Tool) -> None:
    """All kernels of an image have their times before any has its counting probes."""
    image, path = image_of(NAMES), tmp_path / "engine"
    (counting, *others), timing = [load_probe(name) for name in COUNTING], BLOCK_SCHED
    options = [(probe, PrepareOptions(folder=probe.name)) for probe in (counting, *others, timing)]
    cache = NotingCache(tmp_path / "cache", tmp_path / "noted")
    with (
        receive_at(path) as images,
        EngineServer(
            path, *options[0], assembler=Assembler([ptxas]), cache=cache, other_probes=options[1:], fused=(0, 1),
            patience=0, images=images, ahead_workers=1,
        ),
    ):  # fmt: skip
        wait_until_removed(load(tmp_path, image))
    folders = (tmp_path / "noted").read_text().split()
    assert folders == [timing.name] * len(NAMES) + [FUSED_NAME] * len(NAMES)
