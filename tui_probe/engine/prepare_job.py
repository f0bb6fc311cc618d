"""Prepare one kernel: take it from the cache, or choose PTX or SASS mode for it."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui_probe.engine.cache import read_file
from tui_probe.engine.grafting.grafts import SASS_MODE_LINE
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_work import KernelRequest
from tui_probe.engine.ptx_preparation import NO_ASSEMBLER_TEXT, PtxPreparation
from tui_probe.engine.reception import Answer
from tui_probe.engine.sass_preparation import SassPreparation
from tui_probe.errors import ImageError, ProbeError
from tui_probe.reasons import because

if TYPE_CHECKING:
    from tui_probe.engine.grafting.graft_gate import Gate
    from tui_probe.engine.grafting.grafts import Grafter
    from tui_probe.engine.kernel_cache import Original, Originals
    from tui_probe.engine.kernel_work import KernelWork

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_NO_PTX_REASONS: Final = frozenset({"no-ptx", "ptx-for-other-gpu", "no-ptx-for-kernel"})
"""Codes of images that may have SASS of the kernel."""


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

    def __init__(self, work: KernelWork, counts: CacheCounts, grafter: Grafter, gate: Gate) -> None:
        self._work = work
        self._counts = counts
        self._sass = SassPreparation(work, grafter, gate)

    def run(self, originals: Originals, arch: str, name: str, threads: int = 0) -> Answer:
        """Write the files of the kernel and return the answer for the hook.

        ``arch`` is that of the device, ``sm_90a``; ``threads`` are those of the launched block, 0 if unknown. Raises
        ProbeError, of which UnsupportedKernelError and ImageError are skipped kernels, and OSError.
        """
        work, number = self._work, _arch_number(arch)
        work.log.write(f"{work.options.kernels.split(':')} {work.options.filtered.split(':')}")
        image = read_file(work.kernel_directory / "original.bin")
        key = work.cache.key(image, arch, name) if work.cache else ""
        request = KernelRequest(arch, number, name, threads, key)
        if (ready := self._from_cache(request)) is not None:
            return ready
        if work.probe.needs_machine_code:
            return self._sass.prepare(image, request, ImageError(because("needs-sass", probe=work.probe.name)))
        try:
            original, description = originals.find(image, name, number)
        except ImageError as error:
            if error.reason.code in _NO_PTX_REASONS and work.options.load == "bin":
                return self._sass.prepare(image, request, error)
            raise
        work.log.write(work.log_header(description, name))
        kernel = replace(self._kernel(original, name), image=image)
        request = replace(request, description=description)
        in_sass = self._sass.prefer_for_many_snippets(original, kernel, request)
        return in_sass or PtxPreparation(work, original, kernel, request).prepare()

    def _kernel(self, original: Original, name: str) -> Kernel:
        with original.lock:
            try:
                return Kernel.of(original.module, name)
            except Exception:
                original.write(self._work.kernel_directory / "original.ptx")
                raise

    def _from_cache(self, request: KernelRequest) -> Answer | None:
        """Return the kernel as this run or an earlier one prepared it; None if it is not in the cache."""
        work = self._work
        if work.cache is None:
            return None
        allows = partial(self._sass.allows, request.arch_number)
        entry = work.cache.restore(request.key, work.directory, work.kernel_directory, request.threads, allows=allows)
        self._counts.add(hit=entry is not None)
        if entry is None:
            return None
        cached = f"[cache] prepared before: all files are from {work.cache.place(request.key)}"
        header = work.log_header(entry.found, request.name)
        work.log.write("\n".join([header, cached, entry.log_text or NO_ASSEMBLER_TEXT]))
        work.log_note(entry.info)
        if SASS_MODE_LINE in entry.info.splitlines():
            self._sass.refuse_if_closed(request.arch_number)
        return Answer("ok", entry.load)


def _arch_number(arch: str) -> int:
    """Convert ``sm_90a`` to 90. Raises ProbeError."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ProbeError(because("unknown-architecture", architecture=arch))
    return int(match[1])
