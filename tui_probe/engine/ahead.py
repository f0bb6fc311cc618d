"""Prepare the kernels of an image when it is loaded, ahead of their first launch.

    hook → engine   file TAB sm_XY      a datagram to SOCKET.ahead; the engine removes the file

The file has the bytes of ``original.bin``, so that kernels get the keys in the cache under which their launches look.
All kernels get the probes that are ready soon first, and then those that the engine is not hurried to prepare: its
counting probes together. So most launches of a short program have a result.
The cache keeps a record of each image: kernels that it has already, and those that are refused, are passed over, so a
program whose images are known needs no other process.
Processes next to those that serve launches do it. Bounds: images of up to 16 MiB (``MOST_BYTES`` of ahead.c) and
``MAX_IMAGE_KERNELS`` kernels, since a larger one is that of a library of which few are launched; of a run,
``MAX_RUN_KERNELS`` kernels and ``MAX_RUN_SECONDS`` of work, and one directory per process on the disk.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import re
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.cache import digest
from tui_probe.engine.image_kernels import read_kernel_file
from tui_probe.engine.reception import AHEAD_SUFFIX
from tui_probe.engine.whole_files import read_file
from tui_probe.errors import ImageError, PtxError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.engine.cache import Cache

MAX_IMAGE_KERNELS: Final = 64
MAX_RUN_KERNELS: Final = 256
MAX_RUN_SECONDS: Final = 60.0
CLOSED_NAMES: Final = ("cublas", "cudnn", "cusparse", "cufft", "cusolver", "cutensor", "nvjet_", "nvjpeg", "nvshmem")
"""Beginnings of names of kernels whose SASS is left unchanged unless the user asks, as ``closed_names`` of
machine_code.c.
"""
_CLOSED_NAME: Final = re.compile(rf"(?:_ZN?\d*)?(?:{'|'.join(CLOSED_NAMES)})")
_RECORD_ENTRY: Final = "ahead"
_ARCH: Final = re.compile(r"sm_(\d+)")
_MAX_DATAGRAM: Final = 4096
"""Bytes of a message: a path and an architecture."""
_WAKE: Final = b"stop"


class KernelChoice(NamedTuple):
    """Kernels that the run may probe: parts of their names, as the hook has them, and closed ones or not."""

    name_parts: Sequence[str]
    excluded_parts: Sequence[str]
    includes_closed: bool

    def includes(self, name: str) -> bool:
        """Return whether a kernel of this name is chosen."""
        is_named = not self.name_parts or any(part in name for part in self.name_parts)
        return (
            is_named
            and not any(part in name for part in self.excluded_parts)
            and (self.includes_closed or not _CLOSED_NAME.match(name))
        )


EVERY_KERNEL: Final = KernelChoice((), (), includes_closed=True)


class ImageRecord:
    """Kernels of one image that were prepared ahead, each with a step: the keys of their entries in the cache.

    A kernel without keys is refused. Safe to use from several threads.
    """

    def __init__(self, cache: Cache, key: str) -> None:
        self._cache, self._key = cache, key
        entry = cache.get(key)
        self._keys: dict[str, list[str]] = json.loads(entry[_RECORD_ENTRY]) if entry else {}
        self._is_changed = False
        self._lock = threading.Lock()

    def is_done(self, step: int, name: str) -> bool:
        """Return whether nothing is to be done for a kernel: its entries are still there, or it has none."""
        keys = self._keys.get(f"{step} {name}")
        return keys is not None and all(self._cache.path(key).exists() for key in keys)

    def add(self, step: int, name: str, keys: list[str]) -> None:
        """Note a kernel that is done."""
        with self._lock:
            self._keys[f"{step} {name}"] = keys
            self._is_changed = True

    def save(self) -> None:
        """Put what was noted into the cache; without space there, the next run does the same again."""
        with self._lock:
            if self._is_changed:
                with contextlib.suppress(OSError):
                    self._cache.put(self._key, {_RECORD_ENTRY: json.dumps(self._keys).encode()})
            self._is_changed = False


class ImageRecords:
    """The records of images in a cache. ``inputs`` are all other inputs of what comes of a kernel."""

    def __init__(self, cache: Cache, inputs: str) -> None:
        self._cache, self._inputs = cache, inputs

    def find(self, image: bytes, arch: str) -> ImageRecord:
        """Return the record of an image on a device of ``arch``, empty if there is none."""
        inputs = (_RECORD_ENTRY, self._inputs, arch)
        return ImageRecord(self._cache, digest(*(text.encode() for text in inputs), image))


class _QueuedImage:
    """The file of an image, with the number of requests for its kernels that are still to be made."""

    def __init__(self, path: Path, arch: str, requests: int, record: ImageRecord | None) -> None:
        self.path, self.arch, self.record = path, arch, record
        self._open_requests = requests
        self._lock = threading.Lock()

    def finish_request(self) -> None:
        """Count a request as done, and remove the file after the last one."""
        with self._lock:
            self._open_requests -= 1
            if not self._open_requests:
                if self.record is not None:
                    self.record.save()
                self.path.unlink(missing_ok=True)


class _AheadRequest(NamedTuple):
    """One kernel to be prepared with the probes of a step; requests are sorted by step, then in order of arrival."""

    step: int
    number: int
    image: _QueuedImage | None = None
    """None: there are no more requests."""
    name: str = ""


class AheadPreparer:
    """Receives images at ``source`` and has their kernels prepared.

    ``hand_over`` gives a connection to another process, which answers ``ahead`` requests over it, or returns False.
    Kernels are prepared below ``folder``, in as many ``steps``, except those that ``records`` have.
    """

    def __init__(
        self,
        source: socket.socket,
        folder: Path,
        choice: KernelChoice,
        hand_over: Callable[[socket.socket], bool],
        steps: int = 1,
        records: ImageRecords | None = None,
    ) -> None:
        self._source, self._folder, self._steps = source, folder, steps
        self._image_prefix = source.getsockname().removesuffix(AHEAD_SUFFIX) + ".image."
        """Beginning of the paths of images that the hook writes; no other file is read or removed."""
        self._choice = choice
        self._hand_over = hand_over
        self._records = records
        self._used_records: list[ImageRecord] = []
        self._requests: queue.PriorityQueue[_AheadRequest] = queue.PriorityQueue()
        self._threads: list[threading.Thread] = []
        self._numbers = itertools.count()
        """Numbers of requests and their directories, since a preparer remembers the kernel of each."""
        self._kernels_left = MAX_RUN_KERNELS
        self._busy_seconds = 0.0
        self._stop_event = threading.Event()
        self._lock = threading.Lock()

    def start(self, workers: int) -> None:
        """Take images, and prepare as many kernels at a time."""
        self._threads = [threading.Thread(target=self._receive, name="images", daemon=True)]
        self._threads += [threading.Thread(target=self._feed, name="ahead", daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin no more kernels; those under way are left to their processes."""
        self._stop_event.set()
        for record in list(self._used_records):
            record.save()
        for _ in self._threads:  # behind the kernels that are left, which the threads pass over
            self._requests.put(_AheadRequest(self._steps, next(self._numbers)))
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(_WAKE, self._source.getsockname())

    def _receive(self) -> None:
        while not self._stop_event.is_set():
            try:
                fields = self._source.recv(_MAX_DATAGRAM).decode("utf-8", "surrogateescape").split("\t")
            except OSError:
                return
            if (
                len(fields) == 2
                and fields[0].startswith(self._image_prefix)
                and "/" not in fields[0][len(self._image_prefix) :]
            ):
                self._add(Path(fields[0]), fields[1])

    def _add(self, path: Path, arch: str) -> None:
        """Queue the kernels of an image. The file stays for them, or is removed if there are none to prepare."""
        names = self._kernel_names(path, arch)
        if len(names) > MAX_IMAGE_KERNELS:
            names = []
        names = names[: self._kernels_left]
        self._kernels_left -= len(names)  # those that are done, too: the next run takes no others
        record = self._find_record(path, arch) if names else None
        steps = {name: open_steps for name in names if (open_steps := self._open_steps(record, name))}
        if not steps:
            path.unlink(missing_ok=True)
            return
        image = _QueuedImage(path, arch, sum(map(len, steps.values())), record)
        for name, open_steps in steps.items():
            for step in open_steps:
                self._requests.put(_AheadRequest(step, next(self._numbers), image, name))

    def _find_record(self, path: Path, arch: str) -> ImageRecord | None:
        if self._records is None:
            return None
        try:
            record = self._records.find(read_file(path), arch)
        except OSError:  # the file is gone
            return None
        self._used_records.append(record)
        return record

    def _open_steps(self, record: ImageRecord | None, name: str) -> list[int]:
        return [step for step in range(self._steps) if record is None or not record.is_done(step, name)]

    def _kernel_names(self, path: Path, arch: str) -> list[str]:
        number = _ARCH.fullmatch(arch.partition("+")[0])
        try:
            kernels = read_kernel_file(path).kernels(int(number[1])) if number else ()
            names = [kernel.name for kernel in kernels]
        except (ImageError, PtxError):  # the first launch finds the same, and reports it
            return []
        return [name for name in names if name.isprintable() and self._choice.includes(name)]

    def _feed(self) -> None:
        """Give a process one kernel after another."""
        process: _Process | None = None
        while (request := self._requests.get()).image is not None:
            if not self._stop_event.is_set() and self._busy_seconds < MAX_RUN_SECONDS:
                start = time.monotonic()
                with contextlib.suppress(OSError):  # the process is gone, or the disk full: its launch reports it
                    process = process or _Process(self._hand_over)
                    self._prepare(process, request, request.image)
                with self._lock:  # += reads and writes in two steps
                    self._busy_seconds += time.monotonic() - start
            request.image.finish_request()
        if process is not None:
            process.close()

    def _prepare(self, process: _Process, request: _AheadRequest, image: _QueuedImage) -> None:
        """Prepare one kernel in a directory of its own, which is removed. Raises OSError."""
        directory = self._folder / f"ahead.{request.number}"
        directory.mkdir()
        try:
            os.link(image.path, directory / "original.bin")
            keys = process.prepare(request.step, directory, image.arch, request.name)
            if keys is not None and image.record is not None:
                image.record.add(request.step, request.name, keys)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


class _Process:
    """A connection to a process that prepares kernels. Raises OSError where there is none."""

    def __init__(self, hand_over: Callable[[socket.socket], bool]) -> None:
        self._socket, peer = socket.socketpair()
        self._answers = self._socket.makefile("rb")
        if not hand_over(peer):
            peer.close()
            self.close()
            raise BrokenPipeError

    def close(self) -> None:
        """Let the process go."""
        self._answers.close()
        self._socket.close()

    def prepare(self, step: int, directory: Path, arch: str, name: str) -> list[str] | None:
        """Wait until a kernel is in the cache, or turns out to be refused. Raises OSError.

        Returns the keys of its entries; None if the next run may get another answer.
        """
        self._socket.sendall(f"ahead\t{step}\t{directory}\t{arch}\t{name}\n".encode("utf-8", "surrogateescape"))
        answer = self._answers.readline().decode().rstrip("\n").split("\t")
        if len(answer) != 3:  # it was ended
            raise BrokenPipeError
        outcome, _, keys = answer
        return keys.split() if outcome == "ok" else None
