"""Prepare one kernel in PTX mode: insert the probe, assemble with and without it, and choose the form to load.

``wgmma.mma_async`` instructions run asynchronously unless ptxas finds an instruction between them and their wait that
cannot run next to them. It then serialises them, or inserts an earlier wait, and reports this. A probe that causes this
would slow the kernel down rather than measure it. So points with ``yields = true`` are left out of a kernel for which
ptxas reports this more often with the probe than without.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.assembler import AssemblyReport, count_serialised
from tui_probe.engine.insertion import ProbedPtx, build_probed_ptx
from tui_probe.engine.kernel import function_instructions
from tui_probe.engine.kernel_texts import with_note
from tui_probe.engine.kernel_work import Assemblies, assembly_failure
from tui_probe.engine.probed_forms import LARGEST_BLOCK, FormChooser, limit_without_ptxas, may_need_less
from tui_probe.engine.reception import Answer
from tui_probe.engine.site_file import site_file
from tui_probe.engine.whole_files import write_file
from tui_probe.errors import NewerPtxError, ToolchainError, UnsupportedKernelError
from tui_probe.probe_model import FUSED_NAME
from tui_probe.probe_model.positions import matches
from tui_probe.reasons import because
from tui_probe.toolchain import PTXAS_HINT
from tui_probe.trace.kernel_files import SITES_FILE

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from tui_probe.engine.assembler import Assembler
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.kernel_cache import OriginalModule
    from tui_probe.engine.kernel_work import KernelRequest, KernelWork, PendingAssembly
    from tui_probe.engine.probed_forms import ChosenForm, KernelForm
    from tui_probe.probe_model.probe import Probe
    from tui_probe.reasons import Reason

NO_ASSEMBLER_TEXT: Final = f"[assemble] no ptxas on this machine: the driver compiles probed.ptx; {PTXAS_HINT}"
_UNKNOWN_ARCHITECTURE: Final = "architecture-unknown"
PROBED_STEM: Final = "probed"
_SUFFIXES: Final = (".ptx", ".bin")


@dataclass(frozen=True, slots=True)
class PtxPreparation:
    """Preparation of one kernel from its PTX."""

    work: KernelWork
    original: OriginalModule
    kernel: Kernel
    request: KernelRequest

    def prepare(self) -> Answer:
        """Write the files of the kernel and put them into the cache.

        Raises NewerPtxError where the PTX is newer than this machine's ptxas; ProbeError and OSError.
        """
        work, kernel, request = self.work, self.kernel, self.request
        max_registers = 0 if work.assembler.tools() else limit_without_ptxas(kernel, request.threads)
        probe, probed_ptx = work.probe, self._insert_or_refuse(max_registers)
        assemblies = self._start_assemblies(probed_ptx)
        if note := self._yielding_refusal(assemblies):
            probe = without_yielding(work.probe)
            probed_ptx = self._insert(probe, max_registers, note)
            self._write_probed_files(probed_ptx)
            if assemblies is not None:
                assemblies.probed = work.variants.start("probed", request.arch, request.name)
        load = "probed.bin" if assemblies is not None and work.options.load == "bin" else "probed.ptx"
        samples_blocks, threads = work.options.samples_blocks, request.threads
        form = FormAssembly(kernel, probe, work.assembler, work.directory, request.arch, threads, samples_blocks)
        if assemblies is not None and load == "probed.bin":
            if work.options.folder == FUSED_NAME:
                form.start_early_form(assemblies.pruned, work.pool)
            failure = assemblies.probed.result()
            if isinstance(failure, ToolchainError):
                form.drop_early_form()
                assemblies.pruned.result()
                return self._answer_failed_assembly(failure)
        max_threads = max(threads, 1) if assemblies is None else self._choose_form(form, probed_ptx.info, assemblies)
        form.drop_early_form()
        work.keep_later(self._keep, load, assemblies, max_threads)
        return Answer("ok", load)

    def _answer_failed_assembly(self, failure: ToolchainError) -> Answer:
        if failure.reason is not None and failure.reason.code == _UNKNOWN_ARCHITECTURE:
            return self._leave_to_driver()
        if isinstance(failure, NewerPtxError):
            raise failure
        return Answer.refusal("failed", assembly_failure(failure))

    def _leave_to_driver(self) -> Answer:
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
        arch, samples_blocks = self.request.arch_number, self.work.options.samples_blocks
        return build_probed_ptx(
            self.kernel, probe, arch=arch, samples_blocks=samples_blocks, note=note, max_registers=max_registers
        )

    def _start_assemblies(self, probed_ptx: ProbedPtx) -> Assemblies | None:
        """Write the kernel with the probe and without, and start to assemble both; None without tools."""
        work, request = self.work, self.request
        # The launch waits only for the probed kernel, so its ptxas starts first and the rest follows.
        work.write("probed.ptx", probed_ptx.ptx)
        if not work.assembler.tools():
            work.write_unprobed(self.original, self.kernel)
            self._write_info(probed_ptx)
            self._write_sites(probed_ptx)
            work.log.write(NO_ASSEMBLER_TEXT)
            return None
        assembly = work.variants.start_and_wait("probed", request.arch, request.name)
        work.write_unprobed(self.original, self.kernel)
        self._write_info(probed_ptx)
        assemblies = Assemblies(assembly, work.variants.start_pruned(request.arch, request.name))
        self._write_sites(probed_ptx)
        return assemblies

    def _choose_form(self, form: FormAssembly, info: str, assemblies: Assemblies) -> int:
        """Take another form of the probed kernel if this one has too many registers. Return the threads of the largest
        block that the form supports.
        """
        probed_report = assemblies.probed.result()
        if isinstance(probed_report, ToolchainError) or not may_need_less(probed_report, form.probe):
            return LARGEST_BLOCK
        pruned_report = assemblies.pruned.result()
        if isinstance(pruned_report, ToolchainError):
            return LARGEST_BLOCK
        choice = form.install_chosen_form(pruned_report, probed_report)
        if choice.log_text:
            self.work.log.write(choice.log_text)
        if choice.note is not None:
            self.work.write("kernel.info", with_note(info, choice.note))
            self.work.log.write(f"[note] {choice.note.text}")
        if choice.trial.report != probed_report:
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
        probed_report = assemblies.probed.result()
        probed_count = count_serialised(probed_report.output) if isinstance(probed_report, AssemblyReport) else 0
        if not probed_count:
            return None
        pruned_report = assemblies.pruned.result()
        pruned_count = count_serialised(pruned_report.output) if isinstance(pruned_report, AssemblyReport) else 0
        return yielding_reason(probe, sites, pruned_count, probed_count) if probed_count > pruned_count else None

    def _write_probed_files(self, probed_ptx: ProbedPtx) -> None:
        self.work.write("probed.ptx", probed_ptx.ptx)
        self._write_info(probed_ptx)
        self._write_sites(probed_ptx)

    def _write_info(self, probed_ptx: ProbedPtx) -> None:
        self.work.write("kernel.info", probed_ptx.info)
        self.work.log_note(probed_ptx.info)

    def _write_sites(self, probed_ptx: ProbedPtx) -> None:
        self.work.write(SITES_FILE, site_file(self.work.probe.name, self.kernel, probed_ptx.notes, self.kernel.image))

    def _keep(self, load: str, assemblies: Assemblies | None, max_threads: int) -> None:
        """Put the kernel into the cache once its assemblies, which were submitted before this, have ended well."""
        reports = [] if assemblies is None else [assemblies.probed.result(), assemblies.pruned.result()]
        outputs = [f"{report.command}\n{report.output}" for report in reports if isinstance(report, AssemblyReport)]
        if len(outputs) == len(reports):
            self.work.keep_files(self.request, load, outputs, threads=max_threads)


def yielding_sites(kernel: Kernel, probe: Probe) -> Counter[str]:
    """Count the instructions of a kernel that yielding points of a probe are at, by opcode."""
    positions = [position for point in probe.points if point.yielding for position in point.positions]
    if not positions:
        return Counter()
    return Counter(
        ".".join((instruction.opcode, *instruction.modifiers[:1]))
        for instruction in function_instructions(kernel.entry)
        if any(matches(position, instruction) for position in positions)
    )


def without_yielding(probe: Probe) -> Probe:
    """Return the probe without its yielding points. Its maps stay, so the layout of results does not change."""
    return replace(probe, points=tuple(point for point in probe.points if not point.yielding))


def yielding_reason(probe: Probe, sites: Counter[str], pruned_count: int | None, probed_count: int | None) -> Reason:
    """Return why the points at ``sites`` were left out.

    ptxas reported serialisation ``pruned_count`` times without the probe and ``probed_count`` times with it; None
    without ptxas.
    """
    site_counts = ", ".join(f"{count} {opcode}" for opcode, count in sites.items())
    if pruned_count is None or probed_count is None:
        return because("wgmma-unchecked", probe=probe.name, sites=site_counts)
    return because("wgmma-serialised", probe=probe.name, sites=site_counts, after=probed_count, before=pruned_count)


class _EarlyForm(NamedTuple):
    """A form that is assembled before it is known whether it will be tried."""

    form: KernelForm
    assembly: Future[AssemblyReport | ToolchainError]


@dataclass(slots=True)
class FormAssembly:
    """Assembles forms of one probe in one kernel, in ``directory`` for a device of ``arch``.

    Most kernels need the first form within a limit for their counting probes together, so ptxas works on it next to the
    plain form: one after another, these take twice as long.
    """

    kernel: Kernel
    probe: Probe
    assembler: Assembler
    directory: Path
    arch: str
    threads: int
    samples_blocks: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _early_form: _EarlyForm | None = None
    _is_early_over: bool = False
    """True once no form may be begun early."""

    def start_early_form(self, pruned: PendingAssembly, pool: ThreadPoolExecutor) -> None:
        """Assemble the first form within a limit when the kernel without the probe is assembled, unless that is too
        late.
        """
        pruned.add_done_callback(lambda assembly: self._start_early_form(assembly.result(), pool))

    def _start_early_form(self, pruned_report: AssemblyReport | ToolchainError, pool: ThreadPoolExecutor) -> None:
        form = None if isinstance(pruned_report, ToolchainError) else self._chooser().first_form(pruned_report)
        with self._lock, suppress(RuntimeError):  # the engine ends
            if form is not None and not self._is_early_over:
                self._early_form = _EarlyForm(form, pool.submit(self._assemble, form))

    def _chooser(self) -> FormChooser:
        return FormChooser(self.kernel, self.probe, self.threads, self._assemble_or_wait)

    def drop_early_form(self) -> None:
        """Remove the files of the form that was begun early, if it was not tried, once they are complete."""
        with self._lock:
            self._is_early_over, early_form = True, self._early_form
            self._early_form = None
        if early_form is not None and not early_form.assembly.cancel():
            early_form.assembly.add_done_callback(lambda _: self._remove(early_form.form))

    def _remove(self, form: KernelForm) -> None:
        for suffix in _SUFFIXES:
            self._form_path(form, suffix).unlink(missing_ok=True)

    def install_chosen_form(self, pruned_report: AssemblyReport, probed_report: AssemblyReport) -> ChosenForm:
        """Choose a form, move its files to ``probed.ptx`` and ``probed.bin``, and delete those of all other forms.

        ``pruned_report`` is the report on the kernel without the probe, ``probed_report`` that on the files that are
        there now. The chosen report names the files by their new paths. Raises OSError.
        """
        chooser = self._chooser()
        choice = chooser.choose(pruned_report, probed_report)
        for form in chooser.forms:
            if form != choice.trial.form:
                self._remove(form)
            else:
                for suffix in _SUFFIXES:
                    self._form_path(form, suffix).replace(self._installed_path(suffix))
        # The log shows this command so that the user can run it again, so it must name the files that remain.
        command = choice.trial.report.command
        for suffix in _SUFFIXES:
            command = command.replace(
                str(self._form_path(choice.trial.form, suffix)), str(self._installed_path(suffix))
            )
        trial = choice.trial._replace(report=replace(choice.trial.report, command=command))
        return choice._replace(trial=trial)

    def _installed_path(self, suffix: str) -> Path:
        return self.directory / f"{PROBED_STEM}{suffix}"

    def _assemble_or_wait(self, form: KernelForm) -> AssemblyReport | ToolchainError:
        """Return the outcome of a form, which may be under way."""
        with self._lock:
            self._is_early_over, early_form = True, self._early_form
            if early_form is not None and early_form.form == form:
                self._early_form = None
        if early_form is not None and early_form.form == form and not early_form.assembly.cancel():
            return early_form.assembly.result()
        return self._assemble(form)

    def _assemble(self, form: KernelForm) -> AssemblyReport | ToolchainError:
        probe = self.probe.lean_form() if form.is_lean else self.probe
        device = int(self.arch.removeprefix("sm_").rstrip("af"))
        limit = form.register_limit
        probed_ptx = build_probed_ptx(
            self.kernel, probe, arch=device, samples_blocks=self.samples_blocks, max_registers=limit
        )
        source, binary = self._form_path(form, ".ptx"), self._form_path(form, ".bin")
        write_file(source, probed_ptx.ptx.encode())
        try:
            return self.assembler.assemble(source, binary, self.arch, self.kernel.entry.name)
        except ToolchainError as error:
            return error

    def _form_path(self, form: KernelForm, suffix: str) -> Path:
        return self.directory / f".{'lean' if form.is_lean else 'limited'}_{form.register_limit}{suffix}"
