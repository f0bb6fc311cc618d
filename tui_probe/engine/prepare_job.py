"""Prepare one kernel: from its captured image to a probed binary and the files that describe it."""

from __future__ import annotations

import contextlib
import re
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.cache import read_file, write_file
from tui_probe.engine.grafting.graft_gate import trial_part
from tui_probe.engine.grafting.grafts import SASS_MODE_LINE, GraftedKernel, Grafter
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.engine.insertion import ProbedPtx, build_probed_ptx, count_snippets
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import DriverNeed, PrunedAssemblies
from tui_probe.engine.kernel_texts import note_in, with_note
from tui_probe.engine.probed_forms import (
    LARGEST_BLOCK,
    FormAssembly,
    count_serialised,
    limit_without_ptxas,
    may_need_less,
    without_yielding,
    yielding_reason,
    yielding_sites,
)
from tui_probe.engine.reception import Answer
from tui_probe.engine.site_file import site_file
from tui_probe.engine.variant_assembly import Assemblies, VariantAssembler, assembly_failure
from tui_probe.errors import ImageError, ProbeError, ToolchainError, UnsupportedKernelError
from tui_probe.reasons import Reason, because
from tui_probe.sass.prune import kernel_cubin
from tui_probe.toolchain import PTXAS_HINT
from tui_probe.trace.sites import SITES_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from tui_probe.engine.grafting.graft_gate import Gate
    from tui_probe.engine.kernel_cache import KernelCache, Original, Originals, PrepareOptions
    from tui_probe.engine.kernel_texts import ProcessLog
    from tui_probe.probe_model.probe import Probe

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_MORE_REGISTERS_REASONS: Final = frozenset({"graft-uniform", "graft-calls"})
_NO_PTX_REASONS: Final = frozenset({"no-ptx", "ptx-for-other-gpu", "no-ptx-for-kernel"})
"""Codes of images in which there may be machine code all the same."""
_UNKNOWN_ARCHITECTURE: Final = "architecture-unknown"
_NO_ASSEMBLER_TEXT: Final = f"[assemble] no ptxas on this machine: the driver compiles probed.ptx; {PTXAS_HINT}"


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A requested kernel, and the part of the image that has its PTX."""

    arch: str
    name: str
    threads: int
    key: str
    """Its key in the cache, "" without one."""
    description: str
    """Description of the part of the image that is the PTX."""


@dataclass(slots=True)
class CacheCounts:
    """Kernels that were ready in the cache, and those that were looked for without success."""

    hits: int = 0
    misses: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, hit: bool) -> None:
        """Count one more kernel."""
        with self._lock:
            self.hits += hit
            self.misses += not hit


@dataclass(slots=True)
class PrepareJob:
    """The work on one kernel."""

    probe: Probe
    options: PrepareOptions
    assembler: Assembler
    pool: ThreadPoolExecutor
    kernel_directory: Path
    """``directory`` is the probe's directory in it, the same one if there is no other probe."""
    directory: Path
    log: ProcessLog
    cache: KernelCache | None = None
    counts: CacheCounts = field(default_factory=CacheCounts)
    pruned: PrunedAssemblies | None = None
    """Shared with the other probes of the run; None where there is no other."""
    grafter: Grafter | None = None
    gate: Gate | None = None

    def run(self, originals: Originals, arch: str, name: str, threads: int = 0) -> Answer:
        """``threads`` are those of the block that is launched, 0 if they are not known."""
        number = _arch_number(arch)
        self.log.write(f"{self.options.kernels.split(':')} {self.options.filtered.split(':')}")
        image = read_file(self.kernel_directory / "original.bin")
        key = self.cache.key(image, arch, name) if self.cache else ""
        if (ready := self._from_cache(key, name, number, threads)) is not None:
            return ready
        if self.probe.needs_machine_code:
            return self._grafted(image, name, number, key, ImageError(because("needs-sass", probe=self.probe.name)))
        try:
            original, description = originals.find(image, name, number)
        except ImageError as error:
            if error.reason.code in _NO_PTX_REASONS and self.options.load == "bin":
                return self._grafted(image, name, number, key, error)
            raise
        self.log.write(self._subject(description, name))
        kernel = replace(self._kernel(original, name), image=image)
        request = KernelRequest(arch, name, threads, key, description)
        return self._grafted_instead(original, kernel, request) or self._from_ptx(original, kernel, request)

    def _from_ptx(self, original: Original, kernel: Kernel, request: KernelRequest) -> Answer:
        max_registers = 0 if self.assembler.tools() else limit_without_ptxas(kernel, request.threads)
        probe, probed = self.probe, self._insert_or_refuse(original, kernel, request, max_registers)
        assemblies = self._start_assemblies(original, kernel, probed, request)
        if note := self._yielding_refusal(kernel, assemblies):
            probe = without_yielding(self.probe)
            probed = self._insert(probe, kernel, request, max_registers, note)
            self._write_probed_files(kernel, probed)
            if assemblies is not None:
                assemblies.probed = self._variants.start("probed", request.arch, request.name)
        load = "probed.bin" if assemblies is not None and self.options.load == "bin" else "probed.ptx"
        if assemblies is not None and load == "probed.bin":
            failure = assemblies.probed.result()
            if isinstance(failure, ToolchainError):
                assemblies.pruned.result()
                return self._answer_failed_assembly(kernel, request, failure)
        sampled, threads = self.options.sampled, request.threads
        form = FormAssembly(kernel, probe, self.assembler, self.directory, request.arch, threads, sampled)
        max_threads = max(threads, 1) if assemblies is None else self._choose_form(form, probed.info, assemblies)
        if self.cache is not None:
            self.pool.submit(self._keep, self.cache, request, load, assemblies, max_threads)
        return Answer("ok", load)

    def _answer_failed_assembly(self, kernel: Kernel, request: KernelRequest, failure: ToolchainError) -> Answer:
        if failure.reason is not None and failure.reason.code == _UNKNOWN_ARCHITECTURE:
            return self._answer_driver_compiles(kernel, request)
        return Answer.refusal("failed", assembly_failure(failure))

    def _answer_driver_compiles(self, kernel: Kernel, request: KernelRequest) -> Answer:
        """Let the driver compile the PTX for a GPU that this ptxas does not support, such as one older than its CUDA
        release.
        """
        probed = self._insert(self.probe, kernel, request, limit_without_ptxas(kernel, request.threads))
        self._write_probed_files(kernel, probed)
        self.log.write(f"[assemble] no ptxas on this machine knows {request.arch}: the driver compiles probed.ptx")
        return Answer("ok", "probed.ptx")

    def _insert_or_refuse(
        self, original: Original, kernel: Kernel, request: KernelRequest, max_registers: int
    ) -> ProbedPtx:
        """Return the kernel with the probe. A kernel that cannot be probed still gets the files without the probe."""
        try:
            return self._insert(self.probe, kernel, request, max_registers)
        except Exception as error:
            self._write_unprobed(original, kernel)
            if self.assembler.tools() and isinstance(error, UnsupportedKernelError):
                self._variants.start_pruned(request.arch, request.name)
            raise

    def _insert(
        self, probe: Probe, kernel: Kernel, request: KernelRequest, max_registers: int, note: Reason | None = None
    ) -> ProbedPtx:
        arch, sampled = _arch_number(request.arch), self.options.sampled
        return build_probed_ptx(kernel, probe, arch=arch, sampled=sampled, note=note, most=max_registers)

    def _start_assemblies(
        self, original: Original, kernel: Kernel, probed: ProbedPtx, request: KernelRequest
    ) -> Assemblies | None:
        """Write the kernel with the probe and without, and start to assemble both; None without tools."""
        # The launch waits only for the probed kernel, so its ptxas starts first and the rest follows.
        self._write("probed.ptx", probed.ptx)
        if not self.assembler.tools():
            self._write_unprobed(original, kernel)
            self._write_info(probed)
            self._write_sites(kernel, probed)
            self.log.write(_NO_ASSEMBLER_TEXT)
            return None
        assembly = self._variants.start_and_wait("probed", request.arch, request.name)
        self._write_unprobed(original, kernel)
        self._write_info(probed)
        assemblies = Assemblies(assembly, self._variants.start_pruned(request.arch, request.name))
        self._write_sites(kernel, probed)
        return assemblies

    def _choose_form(self, form: FormAssembly, info: str, assemblies: Assemblies) -> int:
        """Take another form of the probed kernel if this one has too many registers. Return the threads of the largest
        block that the form supports.
        """
        after = assemblies.probed.result()
        if isinstance(after, ToolchainError) or not may_need_less(after, form.probe):
            return LARGEST_BLOCK
        before = assemblies.pruned.result()
        if isinstance(before, ToolchainError):
            return LARGEST_BLOCK
        choice = form.choose(before, after)
        if choice.log_text:
            self.log.write(choice.log_text)
        if choice.note is not None:
            self._write("kernel.info", with_note(info, choice.note))
            self.log.write(f"[note] {choice.note.text}")
        if choice.trial.report != after:
            self.log.write(f"{choice.trial.report.command}\n{choice.trial.report.output}")
            assemblies.probed = Future()
            assemblies.probed.set_result(choice.trial.report)
        return choice.threads

    def _grafted(self, image: bytes, name: str, arch: int, key: str, error: ImageError) -> Answer:
        """Prepare a kernel in machine code, since there is no PTX for the reason that ``error`` tells."""
        try:
            cubin, description = find_cubin(image, name, arch)
        except ImageError:
            raise error from None
        self.log.write(self._subject(description, name))
        pruned, about = self._prune_cubin(cubin, name, arch)
        if about:
            self.log.write(about)
        write_file(self.directory / "pruned.bin", pruned.image)
        return self._graft_into(pruned, name, arch, key, description, about, is_pruned=pruned is not cubin)

    def _graft_into(
        self,
        cubin: Cubin,
        name: str,
        arch: int,
        key: str,
        description: str,
        about: str = "",
        *,
        is_pruned: bool = False,
    ) -> Answer:
        """Put the probe into the kernel of a cubin. ``is_pruned``: the driver must load cubins that were cut."""
        assert self.grafter is not None
        grafted = self._graft(self.grafter, cubin, name, arch)
        self._refuse_graft(arch)
        write_file(self.directory / "probed.bin", grafted.probed)
        self._write("kernel.info", grafted.info)
        self._write(SITES_FILE, grafted.sites)
        self.log.write(grafted.log_text)
        if self.cache is not None:
            used = {DriverNeed.SLOTS: grafted.in_slots, DriverNeed.PRUNED: is_pruned}
            needs = [need for need, is_used in used.items() if is_used]
            self.pool.submit(
                self._keep_files, self.cache, key, "probed.bin", description, [about, grafted.log_text], needs
            )
        return Answer("ok", "probed.bin")

    def _grafted_instead(self, original: Original, kernel: Kernel, request: KernelRequest) -> Answer | None:
        """Prepare a kernel with PTX in its machine code, as ptxas makes it without the probe, if its PTX would have too
        many snippets. None for others, and where its machine code cannot be probed.
        """
        most = self.options.most_assembled
        if most is None or self.options.machine_code == "off" or not self.assembler.tools():
            return None
        if (count := count_snippets(kernel, self.probe)) <= most:
            return None
        self._write_unprobed(original, kernel)
        if isinstance(self._variants.start_pruned(request.arch, request.name).result(), ToolchainError):
            return None
        self.log.write(f"[graft] {count} snippets, which ptxas would take seconds for: they go into the machine code")
        try:
            pruned = Cubin.read(read_file(self.directory / "pruned.bin"))
            return self._graft_into(pruned, request.name, _arch_number(request.arch), request.key, request.description)
        except (ImageError, UnsupportedKernelError) as error:
            self.log.write(f"[graft] {error}: the snippets go into the PTX")
            return None

    def _prune_cubin(self, cubin: Cubin, name: str, arch: int) -> tuple[Cubin, str]:
        """Return the cubin to put the probe into, and its log text.

        Where the kernel will be refused anyway, no trial is waited for.
        """
        assert self.gate is not None
        off = self.options.machine_code == "off"
        return kernel_cubin(cubin, name, "" if off else self.gate.pruning_fault(arch))

    def _graft(self, grafter: Grafter, cubin: Cubin, name: str, arch: int) -> GraftedKernel:
        """Return the kernel with the probe in it; if it leaves no register for values, they are kept in slots.

        Only then: on an H200 a reduction took 3.2 times its time with slots, and 1.4 times with one register more,
        although an SM then had room for three blocks instead of four.
        """
        assert self.gate is not None
        try:
            return grafter.graft(cubin, name)
        except UnsupportedKernelError as error:
            if error.reason.code not in _MORE_REGISTERS_REASONS or not self.gate.allows_slots(arch):
                raise
            return grafter.graft(cubin, name, in_slots=True)

    def _yielding_refusal(self, kernel: Kernel, assemblies: Assemblies | None) -> Reason | None:
        """Return why the probe's yielding points must be left out of this kernel, else None."""
        sites = yielding_sites(kernel, self.probe)
        if not sites:
            return None
        if assemblies is None:
            return yielding_reason(self.probe, sites, None, None)
        probed = assemblies.probed.result()
        after = count_serialised(probed.output) if isinstance(probed, AssemblyReport) else 0
        if not after:
            return None
        pruned = assemblies.pruned.result()
        before = count_serialised(pruned.output) if isinstance(pruned, AssemblyReport) else 0
        return yielding_reason(self.probe, sites, before, after) if after > before else None

    @property
    def _variants(self) -> VariantAssembler:
        return VariantAssembler(self.assembler, self.pool, self.kernel_directory, self.directory, self.log, self.pruned)

    def _kernel(self, original: Original, name: str) -> Kernel:
        with original.lock:
            try:
                return Kernel.of(original.module, name)
            except Exception:
                original.write(self.kernel_directory / "original.ptx")
                raise

    def _write_unprobed(self, original: Original, kernel: Kernel) -> None:
        with original.lock:
            original.write(self.kernel_directory / "original.ptx")
        self._write("pruned.ptx", kernel.pruned)

    def _write_probed_files(self, kernel: Kernel, probed: ProbedPtx) -> None:
        self._write("probed.ptx", probed.ptx)
        self._write_info(probed)
        self._write_sites(kernel, probed)

    def _write_info(self, probed: ProbedPtx) -> None:
        self._write("kernel.info", probed.info)
        self._tell_note(probed.info)

    def _write_sites(self, kernel: Kernel, probed: ProbedPtx) -> None:
        self._write(SITES_FILE, site_file(self.probe.name, kernel, probed.notes, kernel.image))

    def _subject(self, description: str, name: str) -> str:
        """Return the log lines that name the kernel and its tools."""
        sample = ", in a sample of blocks" if self.options.sampled else ""
        return (
            f"[objdump] original.bin is {description}\n{name}\n[probe] {self.probe.name} from {self.probe.path}{sample}"
        )

    def _from_cache(self, key: str, name: str, arch: int, threads: int) -> Answer | None:
        """The kernel as it was prepared before, by this run or an earlier one."""
        if self.cache is None:
            return None
        entry = self.cache.restore(
            key, self.directory, self.kernel_directory, threads, allows=partial(self._allows, arch)
        )
        self.counts.add(hit=entry is not None)
        if entry is None:
            return None
        cached = f"[cache] prepared before: all files are from {self.cache.place(key)}"
        self.log.write("\n".join([self._subject(entry.found, name), cached, entry.log_text or _NO_ASSEMBLER_TEXT]))
        self._tell_note(entry.info)
        if SASS_MODE_LINE in entry.info.splitlines():
            self._refuse_graft(arch)
        return Answer("ok", entry.load)

    def _allows(self, arch: int, need: DriverNeed) -> bool:
        """Return whether a kernel may have been prepared like that. Where all are refused, no trial is waited for."""
        assert self.gate is not None
        if self.options.machine_code == "off":
            return True
        return self.gate.allows_slots(arch) if need is DriverNeed.SLOTS else not self.gate.pruning_fault(arch)

    def _refuse_graft(self, arch: int) -> None:
        """Raises UnsupportedKernelError where nothing may be grafted into machine code. Removes its files."""
        assert self.gate is not None
        off = self.options.machine_code == "off"
        closed = because("machine-code-off") if off else self.gate.closed(arch, trial_part(self.probe))
        if closed is not None:
            for file in ("probed.bin", "kernel.info", SITES_FILE):
                (self.directory / file).unlink(missing_ok=True)
            raise UnsupportedKernelError(closed)

    def _tell_note(self, info: str) -> None:
        if note := note_in(info):
            self.log.write(f"[note] {note}")

    def _keep(
        self,
        cache: KernelCache,
        request: KernelRequest,
        load: str,
        assemblies: Assemblies | None,
        max_threads: int,
    ) -> None:
        """Put the kernel into the cache once its assemblies, which were submitted before this, have ended well."""
        reports = [] if assemblies is None else [assemblies.probed.result(), assemblies.pruned.result()]
        outputs = [f"{report.command}\n{report.output}" for report in reports if isinstance(report, AssemblyReport)]
        if len(outputs) == len(reports):
            self._keep_files(cache, request.key, load, request.description, outputs, threads=max_threads)

    def _keep_files(
        self,
        cache: KernelCache,
        key: str,
        load: str,
        description: str,
        outputs: Sequence[str],
        needs: Sequence[DriverNeed] = (),
        threads: int = LARGEST_BLOCK,
    ) -> None:
        try:
            cache.keep(key, self.directory, self.kernel_directory, load, description, outputs, needs, threads)
        except OSError as error:
            with contextlib.suppress(OSError):  # the trace is gone or the disk full, and this is only a remark
                self.log.write(f"[cache] not kept for other runs: {error.filename}: {error.strerror}")

    def _write(self, file: str, text: str) -> None:
        write_file(self.directory / file, text.encode("utf-8"))


def _arch_number(arch: str) -> int:
    """``sm_90a`` -> 90. Raises ProbeError."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ProbeError(because("unknown-architecture", architecture=arch))
    return int(match[1])
