"""Prepare one kernel: take it from the cache, choose PTX or SASS mode for it, and graft the probe in SASS mode."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.graft_gate import TrialPart, trial_part
from tui_probe.engine.grafting.snippet_ptx import is_graftable
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.engine.insertion import count_snippets
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import DriverNeed
from tui_probe.engine.kernel_texts import SASS_MODE_LINE
from tui_probe.engine.kernel_work import KernelRequest
from tui_probe.engine.map_layout import split_target
from tui_probe.engine.ptx_preparation import NO_ASSEMBLER_TEXT, PtxPreparation
from tui_probe.engine.reception import Answer
from tui_probe.engine.whole_files import read_file, write_file
from tui_probe.errors import ImageError, NewerPtxError, ProbeError, ToolchainError, UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.trace.kernel_files import SITES_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from tui_probe.engine.cache import KeyLock
    from tui_probe.engine.grafting.graft_gate import Gate
    from tui_probe.engine.grafting.grafts import GraftedKernel, Grafter
    from tui_probe.engine.kernel_cache import ImageCache, OriginalModule, RestoredKernel
    from tui_probe.engine.kernel_work import KernelWork

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_NO_PTX_REASONS: Final = frozenset({"no-ptx", "ptx-for-other-gpu", "ptx-of-other-code", "no-ptx-for-kernel"})
"""Codes of images that may have SASS of the kernel."""


_LOCK_SECONDS: Final = 10.0
"""Seconds to wait for another process that prepares the same kernel: more than ptxas mostly takes, and less than what
a launch waits for the engine.
"""
_MORE_REGISTERS_REASONS: Final = frozenset({"graft-uniform", "graft-calls"})


@dataclass(frozen=True, slots=True)
class SassPreparation:
    """Preparation of one kernel from its SASS. ``grafter`` imports the code that grafts, which PTX does not need."""

    work: KernelWork
    grafter: Callable[[], Grafter]
    gate: Gate

    def prepare(self, image: bytes, request: KernelRequest, error: ProbeError) -> Answer:
        """Graft the probe into the kernel of an image.

        Raises ``error``, the reason why no PTX is used, if the image has no SASS of the kernel either; ProbeError.
        """
        try:
            cubin, description = find_cubin(image, request.name, request.arch_number)
        except ImageError:
            raise error from None
        self.work.log.write(self.work.log_header(description, request.name))
        for file in (self.work.kernel_directory / "original.ptx", *self.work.directory.glob("*.ptx")):
            file.unlink(missing_ok=True)  # of an attempt in PTX mode
        pruned, prune_log = self._prune_cubin(cubin, request)
        if prune_log:
            self.work.log.write(prune_log)
        write_file(self.work.directory / "pruned.bin", pruned.image)
        request = replace(request, description=description)
        return self._graft_and_write(pruned, request, prune_log, is_pruned=pruned is not cubin)

    def prefer_for_many_snippets(
        self, original: OriginalModule, kernel: Kernel, request: KernelRequest
    ) -> Answer | None:
        """Prepare a kernel with PTX in SASS, as ptxas assembles it without the probe, if its PTX would have too many
        snippets. Return None for other kernels, where its SASS cannot be probed, and while the self-test runs, which
        takes longer than ptxas.
        """
        work = self.work
        limit = work.options.max_assembled_snippets
        if limit is None or work.is_sass_off or not work.assembler.tools():
            return None
        if not self.gate.is_known(request.arch_number):
            return None
        if (count := count_snippets(kernel, work.probe)) <= limit:
            return None
        work.write_unprobed(original, kernel)
        if isinstance(work.variants.start_pruned(request.arch, request.name).result(), ToolchainError):
            return None
        work.log.write(
            f"[graft] inserting {count} snippets into the SASS, because ptxas would take seconds to assemble them"
        )
        try:
            pruned = Cubin.read(read_file(work.directory / "pruned.bin"))
            return self._graft_and_write(pruned, request)
        except (ImageError, UnsupportedKernelError) as error:
            work.log.write(f"[graft] {error}; inserting the snippets into the PTX")
            return None

    def allows(self, arch: int, need: DriverNeed) -> bool:
        """Return whether a cached kernel with this need may be used. No self-test where all are refused."""
        if self.work.is_sass_off:
            return True
        match need:
            case DriverNeed.SLOTS:
                return self.gate.allows_slots(arch)
            case DriverNeed.PRUNED:
                return not self.gate.pruning_fault(arch)
            case DriverNeed.SHORT_RECORDS:
                return self.gate.refusal(arch, TrialPart.SHORT_RECORDS) is None
            case DriverNeed.COPIES:
                return self.gate.refusal(arch, TrialPart.COPIES) is None

    def refuse_if_closed(self, arch: int, part: TrialPart | None = None) -> None:
        """Remove the probe's files and raise UnsupportedKernelError where nothing may be grafted into SASS, or not this
        part; by default, that of the probe.
        """
        is_off = self.work.is_sass_off
        part = part or trial_part(self.work.probe)
        reason = because("machine-code-off") if is_off else self.gate.refusal(arch, part)
        if reason is not None:
            for file in ("probed.bin", "kernel.info", SITES_FILE):
                (self.work.directory / file).unlink(missing_ok=True)
            raise UnsupportedKernelError(reason)

    def _prune_cubin(self, cubin: Cubin, request: KernelRequest) -> tuple[Cubin, str]:
        """Return the cubin to graft, and its log text. Where the kernel will be refused anyway, no self-test is run."""
        from tui_probe.sass.prune import kernel_cubin  # a third of the engine's code, which a kernel with PTX needs not

        fault = "" if self.work.is_sass_off else self.gate.pruning_fault(request.arch_number)
        return kernel_cubin(cubin, request.name, fault)

    def _graft_and_write(
        self, cubin: Cubin, request: KernelRequest, prune_log: str = "", *, is_pruned: bool = False
    ) -> Answer:
        """Graft the kernel and write its files. ``is_pruned``: the driver must load cubins that were cut."""
        work = self.work
        grafted = self._graft_or_use_slots(cubin, request)
        if grafted.short_records and not self.allows(request.arch_number, DriverNeed.SHORT_RECORDS):
            with contextlib.suppress(UnsupportedKernelError):  # a kernel that leaves too few registers for others
                grafted = self.grafter().graft(cubin, request.name, request.map_layout, short_records=False)
        self.refuse_if_closed(request.arch_number, _part_of(grafted))
        write_file(work.directory / "probed.bin", grafted.probed_image)
        work.write("kernel.info", grafted.info)
        work.write(SITES_FILE, grafted.sites)
        work.log.write(grafted.log_text)
        requirements = {
            DriverNeed.SLOTS: grafted.in_slots,
            DriverNeed.PRUNED: is_pruned,
            DriverNeed.SHORT_RECORDS: grafted.short_records,
            DriverNeed.COPIES: grafted.copies_only,
        }
        driver_needs = [need for need, is_needed in requirements.items() if is_needed]
        work.keep_later(work.keep_files, request, "probed.bin", [prune_log, grafted.log_text], driver_needs)
        return Answer("ok", "probed.bin")

    def _graft_or_use_slots(self, cubin: Cubin, request: KernelRequest) -> GraftedKernel:
        """Return the kernel with the probe in it; if it leaves no register for values, they are kept in slots, of a
        probe of entries and exits.

        Only then: on an H200 a reduction took 3.2 times its time with slots, and 1.4 times with one register more,
        although an SM then had room for three blocks instead of four.
        """
        try:
            return self.grafter().graft(cubin, request.name, request.map_layout)
        except UnsupportedKernelError as error:
            if error.reason.code not in _MORE_REGISTERS_REASONS or not is_graftable(self.work.probe):
                raise
            if not self.gate.allows_slots(request.arch_number):
                raise
            return self.grafter().graft(cubin, request.name, request.map_layout, in_slots=True)


def _part_of(grafted: GraftedKernel) -> TrialPart | None:
    """Return the part of the self-test that code of its own needs; None without such code."""
    if grafted.copies_only:
        return TrialPart.COPIES
    return TrialPart.SHORT_RECORDS if grafted.short_records else None


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

    def run(self, image_cache: ImageCache, target: str, name: str, threads: int = 0) -> Answer:
        """Write the files of the kernel and return the answer for the hook.

        ``target`` is the device's architecture, ``sm_90a``, and layout of tensor maps; ``threads`` are those of the
        launched block, 0 if unknown. Raises ProbeError; of these UnsupportedKernelError and ImageError are skipped
        kernels, and OSError.
        """
        arch, layout = split_target(target)
        work, number = self._work, _arch_number(arch)
        work.log.write(_selection_line(work.options.kernels, work.options.excluded_kernels))
        image = work.kernel_directory / "original.bin"
        key = work.cache.key(image_cache.digest(image), target, name) if work.cache else ""
        request = KernelRequest(arch, number, name, threads, key, map_layout=layout)
        if work.cache is None:
            return self._prepare(image_cache, image, request)
        entry, lock = self._restore(request), None
        if entry is None:
            lock, was_held = work.cache.locks.take(key, 0)
            if was_held and not work.is_ahead:
                work.on_start()  # another process works on it
                lock, _ = work.cache.locks.take(key, _LOCK_SECONDS)
            if was_held and work.is_ahead:
                return late_answer()
            entry = self._restore(request) if was_held else None
        try:
            self._counts.add(hit=entry is not None and not entry.is_ahead)
            answer = self._prepare(image_cache, image, request) if entry is None else self._log_restored(entry, request)
            return replace(answer, key=key)
        finally:
            if lock is not None:
                _release_later(lock, work.cache_stores)

    def _prepare(self, image_cache: ImageCache, file: Path, request: KernelRequest) -> Answer:
        work, name, image = self._work, request.name, image_cache.read(file)
        if work.probe.needs_machine_code:
            return self._sass.prepare(image, request, ImageError(because("needs-sass", probe=work.probe.name)))
        try:
            is_simulated = work.options.load == "ptx"
            original, description = image_cache.find(image, name, request.arch_number, simulated=is_simulated)
        except ImageError as error:
            if error.reason.code in _NO_PTX_REASONS and work.options.load == "bin":
                return self._sass.prepare(image, request, error)
            raise
        work.log.write(work.log_header(description, name))
        kernel = replace(self._kernel(original, name), image=image, map_layout=request.map_layout)
        request = replace(request, description=description)
        sass_answer = self._sass.prefer_for_many_snippets(original, kernel, request)
        try:
            return sass_answer or PtxPreparation(work, original, kernel, request).prepare()
        except NewerPtxError as error:
            # Its compiler is newer than this machine's ptxas, as that of a Python package may be.
            return self._sass.prepare(image, request, error)

    def _kernel(self, original: OriginalModule, name: str) -> Kernel:
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
        occasion = "ahead of this launch" if entry.is_ahead else "earlier"
        cached = f"[cache] prepared {occasion}: all files are from {work.cache.entry_path(request.key)}"
        header = work.log_header(entry.source, request.name)
        work.log.write("\n".join([header, cached, entry.log_text or NO_ASSEMBLER_TEXT]))
        work.log_note(entry.info)
        if SASS_MODE_LINE in entry.info.splitlines():
            self._sass.refuse_if_closed(request.arch_number)
        return Answer("ok", entry.load)


def late_answer() -> Answer:
    """Return the answer for a kernel that another process or thread still prepares."""
    return Answer.refusal("skipped", because("being-prepared"))


def _release_later(lock: KeyLock, stores: Sequence[Future[None]]) -> None:
    """Release the lock of a kernel when it is in the cache, or now if it will not be."""
    if stores:
        stores[-1].add_done_callback(lambda _: lock.release())
    else:
        lock.release()


def _arch_number(arch: str) -> int:
    """Convert ``sm_90a`` to 90. Raises ProbeError."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ProbeError(because("unknown-architecture", architecture=arch))
    return int(match[1])


def _selection_line(patterns: str, excluded_patterns: str) -> str:
    """Return which kernels the user chose, for the first line of the log."""
    text = f"only {patterns.replace(':', ', ')}" if patterns else "all"
    return f"[kernels] {text}" + (f"; without {excluded_patterns.replace(':', ', ')}" if excluded_patterns else "")
