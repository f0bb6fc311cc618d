"""Prepare one kernel: from its captured image to a probed binary and the files that describe it."""

from __future__ import annotations

import contextlib
import re
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.engine.assembler import Assembler, AssemblyReport
from tui_probe.engine.cache import read_file, write_file
from tui_probe.engine.graft_gate import trial_part
from tui_probe.engine.grafts import GRAFT_WAY, GraftedKernel, Grafter
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.engine.insertion import ProbedPtx, build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import DriverNeed, PrunedAssemblies, link_pruned_binary
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
from tui_probe.errors import ImageError, ProbeError, ToolchainError, UnsupportedKernelError
from tui_probe.reasons import Reason, because
from tui_probe.sass.prune import kernel_cubin
from tui_probe.toolchain import PTXAS_HINT
from tui_probe.trace.sites import SITES_FILE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from tui_probe.binaries.cubin import Cubin
    from tui_probe.engine.graft_gate import Gate
    from tui_probe.engine.kernel_cache import KernelCache, Original, Originals, PrepareOptions
    from tui_probe.engine.kernel_texts import ProcessLog
    from tui_probe.probe_model.probe import Probe

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_MORE_REGISTERS_REASONS: Final = frozenset({"graft-uniform", "graft-calls"})
_NO_PTX_REASONS: Final = frozenset({"no-ptx", "ptx-for-other-gpu", "no-ptx-for-kernel"})
"""Codes of images in which there may be machine code all the same."""
_UNKNOWN_ARCHITECTURE: Final = "architecture-unknown"
_NO_ASSEMBLER_TEXT: Final = f"[assemble] no ptxas on this machine: the driver compiles probed.ptx; {PTXAS_HINT}"


Assembling: TypeAlias = "Future[AssemblyReport | ToolchainError]"


@dataclass(frozen=True, slots=True)
class _KernelSource:
    """A kernel that was asked for, where its PTX is."""

    arch: str
    name: str
    threads: int
    key: str
    """Its key in the cache, "" without one."""
    found: str
    """Description of the part of the image that is the PTX."""


@dataclass(slots=True)
class CacheCounts:
    """Kernels that were ready in the cache, and those that were looked for in vain."""

    hits: int = 0
    misses: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, hit: bool) -> None:
        """Count one more kernel."""
        with self._lock:
            self.hits += hit
            self.misses += not hit


def assembly_failure(error: ToolchainError) -> Reason:
    """Return why an assembly failed."""
    return error.reason or because("engine-defect", words=str(error))


@dataclass(slots=True)
class PrepareJob:
    """The work on one kernel."""

    probe: Probe
    options: PrepareOptions
    assembler: Assembler
    pool: ThreadPoolExecutor
    kernel: Path
    """The kernel's folder; ``directory`` is that of the probe in it, the same one if there is no other probe."""
    directory: Path
    log: ProcessLog
    kept: KernelCache | None = None
    counts: CacheCounts = field(default_factory=CacheCounts)
    pruned: PrunedAssemblies | None = None
    """Shared with the other probes of the run; None where there is no other."""
    grafter: Grafter | None = None
    gate: Gate | None = None

    def run(self, originals: Originals, arch: str, name: str, threads: int = 0) -> Answer:
        """``threads`` are those of the block that is launched, 0 if they are not known."""
        number = _arch_number(arch)
        self.log.write(f"{self.options.kernels.split(':')} {self.options.filtered.split(':')}")
        image = read_file(self.kernel / "original.bin")
        key = self.kept.key(image, arch, name) if self.kept else ""
        if (ready := self._from_cache(key, name, number, threads)) is not None:
            return ready
        try:
            original, description = originals.find(image, name, number)
        except ImageError as error:
            if error.reason.code in _NO_PTX_REASONS and self.options.load == "bin":
                return self._grafted(image, name, number, key, error)
            raise
        self.log.write(self._subject(description, name))
        kernel = replace(self._kernel(original, name), image=image)
        return self._from_ptx(original, kernel, _KernelSource(arch, name, threads, key, description))

    def _from_ptx(self, original: Original, kernel: Kernel, asked: _KernelSource) -> Answer:
        tools = self.assembler.tools()
        most = 0 if tools else limit_without_ptxas(kernel, asked.threads)
        probe, probed = self.probe, self._inserted(original, kernel, asked, most)
        assemblies = self._begin(original, kernel, probed, asked)
        if note := self._to_yield(kernel, assemblies):
            probe = without_yielding(self.probe)
            probed = self._with(probe, kernel, asked, most, note)
            self._write("probed.ptx", probed.ptx)
            self._write_info(probed)
            self._write_sites(kernel, probed)
            assemblies[:1] = [self._start("probed", asked.arch, asked.name)] if tools else []
        load = "probed.bin" if tools and self.options.load == "bin" else "probed.ptx"
        if load == "probed.bin" and isinstance(failure := assemblies[0].result(), ToolchainError):
            assemblies[1].result()
            if failure.reason is not None and failure.reason.code == _UNKNOWN_ARCHITECTURE:
                return self._left_to_driver(kernel, asked)
            return Answer.refusal("failed", assembly_failure(failure))
        sampled, threads = self.options.sampled, asked.threads
        fitting = FormAssembly(kernel, probe, self.assembler, self.directory, asked.arch, threads, sampled)
        reach = self._fit(fitting, probed.info, assemblies) if tools else max(threads, 1)
        if self.kept is not None:
            self.pool.submit(self._keep, self.kept, asked.key, load, asked.found, assemblies, reach)
        return Answer("ok", load)

    def _left_to_driver(self, kernel: Kernel, asked: _KernelSource) -> Answer:
        """Of a GPU that no ptxas here knows, as those that are older than its CUDA release: its driver knows it."""
        probed = self._with(self.probe, kernel, asked, limit_without_ptxas(kernel, asked.threads))
        self._write("probed.ptx", probed.ptx)
        self._write_info(probed)
        self._write_sites(kernel, probed)
        self.log.write(f"[assemble] no ptxas on this machine knows {asked.arch}: the driver compiles probed.ptx")
        return Answer("ok", "probed.ptx")

    def _inserted(self, original: Original, kernel: Kernel, asked: _KernelSource, most: int) -> ProbedPtx:
        """The kernel with the probe. Of one that cannot be probed, all is there that needs no probe."""
        try:
            return self._with(self.probe, kernel, asked, most)
        except Exception as error:
            self._write_unprobed(original, kernel)
            if self.assembler.tools() and isinstance(error, UnsupportedKernelError):
                self._start_pruned(asked.arch, asked.name)
            raise

    def _with(
        self, probe: Probe, kernel: Kernel, asked: _KernelSource, most: int, note: Reason | None = None
    ) -> ProbedPtx:
        arch, sampled = _arch_number(asked.arch), self.options.sampled
        return build_probed_ptx(kernel, probe, arch=arch, sampled=sampled, note=note, most=most)

    def _begin(self, original: Original, kernel: Kernel, probed: ProbedPtx, asked: _KernelSource) -> list[Assembling]:
        """Write the kernel with the probe and without, and begin to assemble both, in this order; [] without tools."""
        # The launch waits for the probed kernel alone, so that one comes first, and all else once its ptxas runs.
        self._write("probed.ptx", probed.ptx)
        tools = self.assembler.tools()
        assemblies = [self._running("probed", asked.arch, asked.name)] if tools else []
        self._write_unprobed(original, kernel)
        self._write_info(probed)
        if tools:
            assemblies.append(self._start_pruned(asked.arch, asked.name))
        self._write_sites(kernel, probed)
        if not tools:
            self.log.write(_NO_ASSEMBLER_TEXT)
        return assemblies

    def _fit(self, fitting: FormAssembly, info: str, assemblies: list[Assembling]) -> int:
        """Take another form of the probed kernel if this one has too many registers. The threads of the largest block
        that it is good for.
        """
        after = assemblies[0].result()
        if isinstance(after, ToolchainError) or not may_need_less(after, fitting.probe):
            return LARGEST_BLOCK
        before = assemblies[1].result()
        if isinstance(before, ToolchainError):
            return LARGEST_BLOCK
        choice = fitting.choose(before, after)
        if choice.said:
            self.log.write(choice.said)
        if choice.note is not None:
            self._write("kernel.info", with_note(info, choice.note))
            self.log.write(f"[note] {choice.note.text}")
        if choice.trial.report != after:
            self.log.write(f"{choice.trial.report.command}\n{choice.trial.report.output}")
            assemblies[0] = Future()
            assemblies[0].set_result(choice.trial.report)
        return choice.threads

    def _grafted(self, image: bytes, name: str, arch: int, key: str, error: ImageError) -> Answer:
        """Prepare a kernel in machine code, since there is no PTX for the reason that ``error`` tells."""
        assert self.grafter is not None
        try:
            cubin, description = find_cubin(image, name, arch)
        except ImageError:
            raise error from None
        self.log.write(self._subject(description, name))
        alone, about = self._alone(cubin, name, arch)
        if about:
            self.log.write(about)
        write_file(self.directory / "pruned.bin", alone.image)
        made = self._made(self.grafter, alone, name, arch)
        self._refuse_graft(arch)
        write_file(self.directory / "probed.bin", made.probed)
        self._write("kernel.info", made.info)
        self._write(SITES_FILE, made.sites)
        self.log.write(made.said)
        if self.kept is not None:
            used = {DriverNeed.SLOTS: made.in_slots, DriverNeed.PRUNED: alone is not cubin}
            needs = [need for need, is_used in used.items() if is_used]
            self.pool.submit(self._keep_files, self.kept, key, "probed.bin", description, [about, made.said], needs)
        return Answer("ok", "probed.bin")

    def _alone(self, cubin: Cubin, name: str, arch: int) -> tuple[Cubin, str]:
        """The cubin to put the probe into, and what to say of it. Where the kernel will be refused anyway, no trial is
        waited for.
        """
        assert self.gate is not None
        off = self.options.machine_code == "off"
        return kernel_cubin(cubin, name, "" if off else self.gate.pruning_fault(arch))

    def _made(self, grafter: Grafter, cubin: Cubin, name: str, arch: int) -> GraftedKernel:
        """The kernel with the probe in it; if it leaves no register for values, they are kept in slots.

        Only then: on an H200 a reduction took 3.2 times its time with slots, and 1.4 times with one register more,
        although an SM then had room for three blocks in the place of four.
        """
        assert self.gate is not None
        try:
            return grafter.graft(cubin, name)
        except UnsupportedKernelError as error:
            if error.reason.code not in _MORE_REGISTERS_REASONS or not self.gate.allows_slots(arch):
                raise
            return grafter.graft(cubin, name, in_slots=True)

    def _to_yield(self, kernel: Kernel, assemblies: Sequence[Assembling]) -> Reason | None:
        """Return why the yielding points of the probe must not be in this kernel; "" if they may, or are not in it."""
        sites = yielding_sites(kernel, self.probe)
        if not sites:
            return None
        if not assemblies:
            return yielding_reason(self.probe, sites, None, None)
        probed = assemblies[0].result()
        after = count_serialised(probed.output) if isinstance(probed, AssemblyReport) else 0
        if not after:
            return None
        pruned = assemblies[1].result()
        before = count_serialised(pruned.output) if isinstance(pruned, AssemblyReport) else 0
        return yielding_reason(self.probe, sites, before, after) if after > before else None

    def _kernel(self, original: Original, name: str) -> Kernel:
        with original.lock:
            try:
                return Kernel.of(original.module, name)
            except Exception:
                original.write(self.kernel / "original.ptx")
                raise

    def _write_unprobed(self, original: Original, kernel: Kernel) -> None:
        with original.lock:
            original.write(self.kernel / "original.ptx")
        self._write("pruned.ptx", kernel.pruned)

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
        if self.kept is None:
            return None
        entry = self.kept.restore(key, self.directory, self.kernel, threads, allows=partial(self._allows, arch))
        self.counts.add(hit=entry is not None)
        if entry is None:
            return None
        cached = f"[cache] prepared before: all files are from {self.kept.place(key)}"
        self.log.write("\n".join([self._subject(entry.found, name), cached, entry.said or _NO_ASSEMBLER_TEXT]))
        self._tell_note(entry.info)
        if GRAFT_WAY in entry.info.splitlines():
            self._refuse_graft(arch)
        return Answer("ok", entry.load)

    def _allows(self, arch: int, need: DriverNeed) -> bool:
        """Return whether a kernel may have been prepared like that. Where all are refused, no trial is waited for."""
        assert self.gate is not None
        if self.options.machine_code == "off":
            return True
        return self.gate.allows_slots(arch) if need is DriverNeed.SLOTS else not self.gate.pruning_fault(arch)

    def _refuse_graft(self, arch: int) -> None:
        """Raises UnsupportedKernelError where nothing may be put into machine code. What lies there already goes."""
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
        key: str,
        load: str,
        description: str,
        assemblies: list[Assembling],
        threads: int,
    ) -> None:
        """Put the kernel into the cache once its assemblies, which were submitted before this, have ended well."""
        reports = [assembly.result() for assembly in assemblies]
        outputs = [f"{report.command}\n{report.output}" for report in reports if isinstance(report, AssemblyReport)]
        if len(outputs) == len(reports):
            self._keep_files(cache, key, load, description, outputs, threads=threads)

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
            cache.keep(key, self.directory, self.kernel, load, description, outputs, needs, threads)
        except OSError as error:
            with contextlib.suppress(OSError):  # the trace is gone or the disk full, and this is only a remark
                self.log.write(f"[cache] not kept for other runs: {error.filename}: {error.strerror}")

    def _write(self, file: str, text: str) -> None:
        write_file(self.directory / file, text.encode("utf-8"))

    def _running(self, variant: str, arch: str, name: str) -> Assembling:
        """The assembly of one variant, whose ptxas runs when this returns: other work would take the interpreter from
        the thread that starts it.
        """
        started = threading.Event()
        assembly = self._start(variant, arch, name, started)
        started.wait()
        return assembly

    def _start(self, variant: str, arch: str, name: str, started: threading.Event | None = None) -> Assembling:
        return self.pool.submit(self._assemble, variant, arch, name, started or threading.Event())

    def _start_pruned(self, arch: str, name: str) -> Assembling:
        """The assembly without the probe: of several probes the first does it, the others take it over."""
        if self.pruned is None:
            return self._start("pruned", arch, name)
        made, assembly = self.pruned.assembly(self.kernel, self.directory, lambda: self._start("pruned", arch, name))
        return assembly if made == self.directory else self.pool.submit(self._taken_over, made, assembly)

    def _taken_over(self, made: Path, assembly: Assembling) -> AssemblyReport | ToolchainError:
        report = assembly.result()
        if isinstance(report, ToolchainError):
            self.log.write(f"[failed] {assembly_failure(report).written}\n{report.details}")
            return report
        link_pruned_binary(made, self.directory)
        report = replace(report, command=report.command.replace(str(made), str(self.directory)))
        self.log.write(f"{report.command}\n{report.output}")
        return report

    def _assemble(
        self, variant: str, arch: str, name: str, started: threading.Event
    ) -> AssemblyReport | ToolchainError:
        """Assemble one variant; its binary appears under its name when it is whole. What ptxas says is logged."""
        try:
            return self._assembled(variant, arch, name, started)
        finally:
            started.set()

    def _assembled(
        self, variant: str, arch: str, name: str, started: threading.Event
    ) -> AssemblyReport | ToolchainError:
        binary = self.directory / f"{variant}.bin"
        unfinished = self.directory / f".{variant}.bin.unfinished"
        try:
            report = self.assembler.assemble(self.directory / f"{variant}.ptx", unfinished, arch, name, started.set)
            unfinished.replace(binary)
        except ToolchainError as error:
            unfinished.unlink(missing_ok=True)
            self.log.write(f"[failed] {assembly_failure(error).written}\n{error.details}")
            return error
        self.log.write(f"{report.command}\n{report.output}")
        return report


def _arch_number(arch: str) -> int:
    """``sm_90a`` -> 90. Raises ProbeError."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ProbeError(because("unknown-architecture", architecture=arch))
    return int(match[1])
