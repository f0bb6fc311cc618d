"""Prepare one kernel: take it from the cache, or choose PTX or SASS mode for it."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_texts import SASS_MODE_LINE
from tui_probe.engine.kernel_work import KernelRequest
from tui_probe.engine.map_layout import split_target
from tui_probe.engine.ptx_preparation import NO_ASSEMBLER_TEXT, PtxPreparation
from tui_probe.engine.reception import Answer
from tui_probe.engine.sass_preparation import SassPreparation
from tui_probe.engine.whole_files import read_file
from tui_probe.errors import ImageError, NewerPtxError, ProbeError
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    from tui_probe.engine.cache import KeyLock
    from tui_probe.engine.grafting.graft_gate import Gate
    from tui_probe.engine.grafting.grafts import Grafter
    from tui_probe.engine.kernel_cache import Original, Originals, RestoredKernel
    from tui_probe.engine.kernel_work import KernelWork

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_NO_PTX_REASONS: Final = frozenset({"no-ptx", "ptx-for-other-gpu", "no-ptx-for-kernel"})
"""Codes of images that may have SASS of the kernel."""


_LOCK_SECONDS: Final = 10.0
"""Seconds to wait for another process that prepares the same kernel: more than ptxas mostly takes, and less than what
a launch waits for the engine.
"""


@dataclass(slots=True)
class CacheCounts:
    """Number of kernels found in the cache, and of those that were not."""

    hits: int = 0
    misses: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, hit: bool) -> None:
        """Count one more kernel."""
        with self._lock:
            self.hits += hit
            self.misses += not hit


class PrepareJob:
    """Prepares one kernel with one probe."""

    def __init__(self, work: KernelWork, counts: CacheCounts, grafter: Callable[[], Grafter], gate: Gate) -> None:
        self._work = work
        self._counts = counts
        self._sass = SassPreparation(work, grafter, gate)

    def run(self, originals: Originals, target: str, name: str, threads: int = 0) -> Answer:
        """Write the files of the kernel and return the answer for the hook.

        ``target`` is the device's architecture, ``sm_90a``, and layout of tensor maps; ``threads`` are those of the
        launched block, 0 if unknown. Raises ProbeError; of these UnsupportedKernelError and ImageError are skipped
        kernels, and OSError.
        """
        arch, layout = split_target(target)
        work, number = self._work, _arch_number(arch)
        work.log.write(_selection(work.options.kernels, work.options.filtered))
        image = read_file(work.kernel_directory / "original.bin")
        key = work.cache.key(image, target, name) if work.cache else ""
        request = KernelRequest(arch, number, name, threads, key, map_layout=layout)
        if work.cache is None:
            return self._prepare(originals, image, request)
        entry, lock = self._restore(request), None
        if entry is None:
            lock, was_held = work.cache.locks.take(key, 0 if work.is_ahead else _LOCK_SECONDS)
            if was_held and work.is_ahead:
                return late_answer()
            entry = self._restore(request) if was_held else None
        try:
            self._counts.add(hit=entry is not None and not entry.ahead)
            answer = self._prepare(originals, image, request) if entry is None else self._log_restored(entry, request)
            return replace(answer, key=key)
        finally:
            if lock is not None:
                _release_later(lock, work.kept)

    def _prepare(self, originals: Originals, image: bytes, request: KernelRequest) -> Answer:
        work, name = self._work, request.name
        if work.probe.needs_machine_code:
            return self._sass.prepare(image, request, ImageError(because("needs-sass", probe=work.probe.name)))
        try:
            original, description = originals.find(image, name, request.arch_number)
        except ImageError as error:
            if error.reason.code in _NO_PTX_REASONS and work.options.load == "bin":
                return self._sass.prepare(image, request, error)
            raise
        work.log.write(work.log_header(description, name))
        kernel = replace(self._kernel(original, name), image=image, map_layout=request.map_layout)
        request = replace(request, description=description)
        in_sass = self._sass.prefer_for_many_snippets(original, kernel, request)
        try:
            return in_sass or PtxPreparation(work, original, kernel, request).prepare()
        except NewerPtxError as error:
            # Its compiler is newer than this machine's ptxas, as that of a Python package may be.
            return self._sass.prepare(image, request, error)

    def _kernel(self, original: Original, name: str) -> Kernel:
        with original.lock:
            try:
                return Kernel.of(original.module, name)
            except Exception:
                original.write(self._work.kernel_directory / "original.ptx")
                raise

    def _restore(self, request: KernelRequest) -> RestoredKernel | None:
        """Return the kernel as this run or an earlier one prepared it; None if it is not in the cache."""
        work = self._work
        assert work.cache is not None
        allows = partial(self._sass.allows, request.arch_number)
        return work.cache.restore(request.key, work.directory, work.kernel_directory, request.threads, allows=allows)

    def _log_restored(self, entry: RestoredKernel, request: KernelRequest) -> Answer:
        work = self._work
        assert work.cache is not None
        when = "ahead of this launch" if entry.ahead else "earlier"
        cached = f"[cache] prepared {when}: all files are from {work.cache.place(request.key)}"
        header = work.log_header(entry.found, request.name)
        work.log.write("\n".join([header, cached, entry.log_text or NO_ASSEMBLER_TEXT]))
        work.log_note(entry.info)
        if SASS_MODE_LINE in entry.info.splitlines():
            self._sass.refuse_if_closed(request.arch_number)
        return Answer("ok", entry.load)


def late_answer() -> Answer:
    """Return the answer for a kernel that another process or thread still prepares."""
    return Answer.refusal("skipped", because("being-prepared"))


def _release_later(lock: KeyLock, kept: Sequence[Future[None]]) -> None:
    """Release the lock of a kernel when it is in the cache, or now if it will not be."""
    if kept:
        kept[-1].add_done_callback(lambda _: lock.release())
    else:
        lock.release()


def _arch_number(arch: str) -> int:
    """Convert ``sm_90a`` to 90. Raises ProbeError."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ProbeError(because("unknown-architecture", architecture=arch))
    return int(match[1])


def _selection(only: str, excluded: str) -> str:
    """Return which kernels the user chose, for the first line of the log."""
    chosen = f"only {only.replace(':', ', ')}" if only else "all"
    return f"[kernels] {chosen}" + (f"; without {excluded.replace(':', ', ')}" if excluded else "")
