"""Prepare one kernel in SASS mode: cut it out of its cubin and graft the probe, where the self-test allows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.graft_gate import TrialPart, trial_part
from tui_probe.engine.image_kernels import find_cubin
from tui_probe.engine.insertion import count_snippets
from tui_probe.engine.kernel_cache import DriverNeed
from tui_probe.engine.reception import Answer
from tui_probe.engine.whole_files import read_file, write_file
from tui_probe.errors import ImageError, ToolchainError, UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.trace.sites import SITES_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tui_probe.engine.grafting.graft_gate import Gate
    from tui_probe.engine.grafting.grafts import GraftedKernel, Grafter
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.kernel_cache import Original
    from tui_probe.engine.kernel_work import KernelRequest, KernelWork
    from tui_probe.errors import ProbeError

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

    def prefer_for_many_snippets(self, original: Original, kernel: Kernel, request: KernelRequest) -> Answer | None:
        """Prepare a kernel with PTX in SASS, as ptxas assembles it without the probe, if its PTX would have too many
        snippets. Return None for other kernels, where its SASS cannot be probed, and while the self-test runs, which
        takes longer than ptxas.
        """
        work = self.work
        limit = work.options.most_assembled
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
            case DriverNeed.FEW_REGISTERS:
                return self.gate.closed(arch, TrialPart.FEW_REGISTERS) is None

    def refuse_if_closed(self, arch: int, *, few_registers: bool = False) -> None:
        """Remove the probe's files and raise UnsupportedKernelError where nothing may be grafted into SASS, or with
        ``few_registers`` no records into a kernel that leaves few.
        """
        off = self.work.is_sass_off
        part = TrialPart.FEW_REGISTERS if few_registers else trial_part(self.work.probe)
        closed = because("machine-code-off") if off else self.gate.closed(arch, part)
        if closed is not None:
            for file in ("probed.bin", "kernel.info", SITES_FILE):
                (self.work.directory / file).unlink(missing_ok=True)
            raise UnsupportedKernelError(closed)

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
        self.refuse_if_closed(request.arch_number, few_registers=grafted.few_registers)
        write_file(work.directory / "probed.bin", grafted.probed)
        work.write("kernel.info", grafted.info)
        work.write(SITES_FILE, grafted.sites)
        work.log.write(grafted.log_text)
        needed = {
            DriverNeed.SLOTS: grafted.in_slots,
            DriverNeed.PRUNED: is_pruned,
            DriverNeed.FEW_REGISTERS: grafted.few_registers,
        }
        needs = [need for need, is_needed in needed.items() if is_needed]
        work.keep_later(work.keep_files, request, "probed.bin", [prune_log, grafted.log_text], needs)
        return Answer("ok", "probed.bin")

    def _graft_or_use_slots(self, cubin: Cubin, request: KernelRequest) -> GraftedKernel:
        """Return the kernel with the probe in it; if it leaves no register for values, they are kept in slots.

        Only then: on an H200 a reduction took 3.2 times its time with slots, and 1.4 times with one register more,
        although an SM then had room for three blocks instead of four.
        """
        try:
            return self.grafter().graft(cubin, request.name, request.map_layout)
        except UnsupportedKernelError as error:
            if error.reason.code not in _MORE_REGISTERS_REASONS or not self.gate.allows_slots(request.arch_number):
                raise
            return self.grafter().graft(cubin, request.name, request.map_layout, in_slots=True)
