"""Prepare one kernel in PTX mode: insert the probe, assemble with and without it, and choose the form to load."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.engine.assembler import AssemblyReport
from tui_probe.engine.insertion import ProbedPtx, build_probed_ptx
from tui_probe.engine.kernel_texts import with_note
from tui_probe.engine.kernel_work import Assemblies, assembly_failure
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
from tui_probe.errors import ToolchainError, UnsupportedKernelError
from tui_probe.toolchain import PTXAS_HINT
from tui_probe.trace.sites import SITES_FILE

if TYPE_CHECKING:
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.kernel_cache import Original
    from tui_probe.engine.kernel_work import KernelRequest, KernelWork
    from tui_probe.probe_model.probe import Probe
    from tui_probe.reasons import Reason

NO_ASSEMBLER_TEXT: Final = f"[assemble] no ptxas on this machine: the driver compiles probed.ptx; {PTXAS_HINT}"
_UNKNOWN_ARCHITECTURE: Final = "architecture-unknown"


@dataclass(frozen=True, slots=True)
class PtxPreparation:
    """Preparation of one kernel from its PTX."""

    work: KernelWork
    original: Original
    kernel: Kernel
    request: KernelRequest

    def prepare(self) -> Answer:
        """Write the files of the kernel and put them into the cache. Raises ProbeError and OSError."""
        work, kernel, request = self.work, self.kernel, self.request
        max_registers = 0 if work.assembler.tools() else limit_without_ptxas(kernel, request.threads)
        probe, probed = work.probe, self._insert_or_refuse(max_registers)
        assemblies = self._start_assemblies(probed)
        if note := self._yielding_refusal(assemblies):
            probe = without_yielding(work.probe)
            probed = self._insert(probe, max_registers, note)
            self._write_probed_files(probed)
            if assemblies is not None:
                assemblies.probed = work.variants.start("probed", request.arch, request.name)
        load = "probed.bin" if assemblies is not None and work.options.load == "bin" else "probed.ptx"
        if assemblies is not None and load == "probed.bin":
            failure = assemblies.probed.result()
            if isinstance(failure, ToolchainError):
                assemblies.pruned.result()
                return self._answer_failed_assembly(failure)
        sampled, threads = work.options.sampled, request.threads
        form = FormAssembly(kernel, probe, work.assembler, work.directory, request.arch, threads, sampled)
        max_threads = max(threads, 1) if assemblies is None else self._choose_form(form, probed.info, assemblies)
        work.keep_later(self._keep, load, assemblies, max_threads)
        return Answer("ok", load)

    def _answer_failed_assembly(self, failure: ToolchainError) -> Answer:
        if failure.reason is not None and failure.reason.code == _UNKNOWN_ARCHITECTURE:
            return self._answer_driver_compiles()
        return Answer.refusal("failed", assembly_failure(failure))

    def _answer_driver_compiles(self) -> Answer:
        """Let the driver compile the PTX for a GPU that this ptxas does not support, such as one older than its CUDA
        release.
        """
        probed = self._insert(self.work.probe, limit_without_ptxas(self.kernel, self.request.threads))
        self._write_probed_files(probed)
        arch = self.request.arch
        self.work.log.write(f"[assemble] no ptxas on this machine supports {arch}: the driver compiles probed.ptx")
        return Answer("ok", "probed.ptx")

    def _insert_or_refuse(self, max_registers: int) -> ProbedPtx:
        """Return the kernel with the probe. A kernel that cannot be probed still gets the files without the probe."""
        work = self.work
        try:
            return self._insert(work.probe, max_registers)
        except Exception as error:
            work.write_unprobed(self.original, self.kernel)
            if work.assembler.tools() and isinstance(error, UnsupportedKernelError):
                work.variants.start_pruned(self.request.arch, self.request.name)
            raise

    def _insert(self, probe: Probe, max_registers: int, note: Reason | None = None) -> ProbedPtx:
        arch, sampled = self.request.arch_number, self.work.options.sampled
        return build_probed_ptx(self.kernel, probe, arch=arch, sampled=sampled, note=note, max_registers=max_registers)

    def _start_assemblies(self, probed: ProbedPtx) -> Assemblies | None:
        """Write the kernel with the probe and without, and start to assemble both; None without tools."""
        work, request = self.work, self.request
        # The launch waits only for the probed kernel, so its ptxas starts first and the rest follows.
        work.write("probed.ptx", probed.ptx)
        if not work.assembler.tools():
            work.write_unprobed(self.original, self.kernel)
            self._write_info(probed)
            self._write_sites(probed)
            work.log.write(NO_ASSEMBLER_TEXT)
            return None
        assembly = work.variants.start_and_wait("probed", request.arch, request.name)
        work.write_unprobed(self.original, self.kernel)
        self._write_info(probed)
        assemblies = Assemblies(assembly, work.variants.start_pruned(request.arch, request.name))
        self._write_sites(probed)
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
            self.work.log.write(choice.log_text)
        if choice.note is not None:
            self.work.write("kernel.info", with_note(info, choice.note))
            self.work.log.write(f"[note] {choice.note.text}")
        if choice.trial.report != after:
            self.work.log.write(f"{choice.trial.report.command}\n{choice.trial.report.output}")
            assemblies.probed = Future()
            assemblies.probed.set_result(choice.trial.report)
        return choice.threads

    def _yielding_refusal(self, assemblies: Assemblies | None) -> Reason | None:
        """Return why the probe's yielding points must be left out of this kernel, else None."""
        probe = self.work.probe
        sites = yielding_sites(self.kernel, probe)
        if not sites:
            return None
        if assemblies is None:
            return yielding_reason(probe, sites, None, None)
        probed = assemblies.probed.result()
        after = count_serialised(probed.output) if isinstance(probed, AssemblyReport) else 0
        if not after:
            return None
        pruned = assemblies.pruned.result()
        before = count_serialised(pruned.output) if isinstance(pruned, AssemblyReport) else 0
        return yielding_reason(probe, sites, before, after) if after > before else None

    def _write_probed_files(self, probed: ProbedPtx) -> None:
        self.work.write("probed.ptx", probed.ptx)
        self._write_info(probed)
        self._write_sites(probed)

    def _write_info(self, probed: ProbedPtx) -> None:
        self.work.write("kernel.info", probed.info)
        self.work.log_note(probed.info)

    def _write_sites(self, probed: ProbedPtx) -> None:
        self.work.write(SITES_FILE, site_file(self.work.probe.name, self.kernel, probed.notes, self.kernel.image))

    def _keep(self, load: str, assemblies: Assemblies | None, max_threads: int) -> None:
        """Put the kernel into the cache once its assemblies, which were submitted before this, have ended well."""
        reports = [] if assemblies is None else [assemblies.probed.result(), assemblies.pruned.result()]
        outputs = [f"{report.command}\n{report.output}" for report in reports if isinstance(report, AssemblyReport)]
        if len(outputs) == len(reports):
            self.work.keep_files(self.request, load, outputs, threads=max_threads)
