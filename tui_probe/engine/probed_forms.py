"""Choose the form of a probed kernel if the probe needs more registers than the kernel can spare.

ptxas takes registers as freely as its schedule can use them, a dozen for a probe that needs three. As a consequence, a
block that could be launched without the probe may no longer fit, and an SM may hold fewer blocks. So where a probe adds
more than ``MAX_ADDED_REGISTERS``, or a block no longer fits, the kernel is assembled again with a register limit
(``.maxnreg``), and if it then spills, in the lean variant of the probe. The first form that spills no more than the
kernel without a probe is chosen. If there is none and the block does not fit, the form that spills least is
chosen: it records the same, while an unprobed launch would record nothing.

In a kernel without loops the lean variant is tried first. There each access is executed at most once. With up to about
four accesses, adding to memory at each takes no more machine code than sums over lanes at the end.

No form probes only some warps: all warps of a kernel get the same number of registers, and selecting warps takes one.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.assembler import count_serialised
from tui_probe.engine.kernel import function_instructions
from tui_probe.errors import ToolchainError
from tui_probe.ptx.control_flow import loop_heads
from tui_probe.reasons import because
from tui_probe.trace.launch_shape import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.engine.assembler import AssemblyReport
    from tui_probe.engine.kernel import Kernel
    from tui_probe.probe_model.probe import Probe
    from tui_probe.reasons import Reason

MAX_ADDED_REGISTERS: Final = 8
"""Registers that a probe may add before less is tried: they are given out in units of that many."""
LARGEST_BLOCK: Final = 1024
"""Threads of a block, on every device."""
_REGISTERS_PER_SM: Final = 65536
"""Registers of a block on every device since sm_70."""
_MIN_LIMIT: Final = 24
"""ptxas keeps to no limit below, and no block is kept from an SM by so few."""
_MAX_LIMIT: Final = 255
"""Registers that an instruction can name: of 8 bits the number 255 reads as 0."""


class KernelForm(NamedTuple):
    """A way to build a probed kernel."""

    register_limit: int = 0
    """Registers that a thread may have; 0: no limit."""
    is_lean: bool = False
    """True for the lean variant of the probe."""


class FormTrial(NamedTuple):
    """A form that was assembled, with the report of ptxas."""

    form: KernelForm
    report: AssemblyReport


class ChosenForm(NamedTuple):
    """The chosen form, with its effects on launches."""

    trial: FormTrial
    threads: int
    """Threads of the largest block that fits with this form as it did without the probe."""
    log_text: str = ""
    """Line for the log; "" if no other form was tried."""
    note: Reason | None = None
    """Note for the user about spilling, a lean variant or blocks that no longer fit."""


def max_registers_for(threads: int) -> int:
    """Return the registers that each thread of a block of ``threads`` threads may have."""
    warps = math.ceil(max(threads, 1) / WARP_SIZE)
    return min(_MAX_LIMIT, _REGISTERS_PER_SM // (warps * WARP_SIZE) // MAX_ADDED_REGISTERS * MAX_ADDED_REGISTERS)


def may_limit(kernel: Kernel) -> bool:
    """Return whether the kernel leaves its number of registers to ptxas."""
    if "maxnreg" in kernel.entry.attributes:
        return False
    return not any(instruction.opcode == "setmaxnreg" for instruction in function_instructions(kernel.entry))


def largest_block(kernel: Kernel) -> int:
    """Return the threads of the largest block that a kernel can be launched with, by its text or on any device."""
    for name in ("reqntid", "maxntid"):
        if numbers := re.findall(r"\d+", kernel.entry.attributes.get(name, "")):
            return min(LARGEST_BLOCK, math.prod(map(int, numbers)))
    return LARGEST_BLOCK


def may_need_less(probed_report: AssemblyReport, probe: Probe) -> bool:
    """Return whether a probed kernel has enough registers for another form to need fewer."""
    return probed_report.registers is not None and probed_report.registers > (
        MAX_ADDED_REGISTERS if probe.has_lean_snippets else _MIN_LIMIT
    )


def runs_straight(kernel: Kernel) -> bool:
    """Return whether a thread executes each instruction of a kernel at most once, according to its text."""
    return len(kernel.bodies) == 1 and not loop_heads(kernel.entry)


class FormChooser:
    """Chooses the form of one probe in one kernel. ``assemble`` assembles a form and returns the report or the error.

    ``threads`` are those of the block that is launched first, 0 if unknown.
    """

    def __init__(
        self,
        kernel: Kernel,
        probe: Probe,
        threads: int,
        assemble: Callable[[KernelForm], AssemblyReport | ToolchainError],
    ) -> None:
        self._kernel = kernel
        self._probe = probe
        self._may_limit = may_limit(kernel)
        self._max_threads = max(largest_block(kernel), threads)
        self._threads = threads or self._max_threads
        self._assemble = assemble
        self._trials: dict[KernelForm, FormTrial | None] = {}

    def choose(self, pruned_report: AssemblyReport, probed_report: AssemblyReport) -> ChosenForm:
        """Choose by the reports of ptxas on the kernel without the probe and with its plain form."""
        plain_trial = FormTrial(KernelForm(), probed_report)
        if pruned_report.registers is None or probed_report.registers is None or not self._may_limit:
            return ChosenForm(plain_trial, LARGEST_BLOCK)
        limits = self._limits(pruned_report.registers)
        trial = self._lean_form_if_smaller(limits[0], pruned_report, plain_trial)
        if (
            not trial
            and probed_report.registers <= limits[0]
            and _spilled_bytes(probed_report) <= _spilled_bytes(pruned_report)
        ):
            return ChosenForm(
                plain_trial, self._largest_launchable_block(pruned_report.registers, probed_report.registers)
            )
        trial = trial or self._first_without_spills(limits, pruned_report, plain_trial)
        trial = trial or self._least_spilling(pruned_report.registers, plain_trial)
        return ChosenForm(
            trial,
            self._largest_launchable_block(pruned_report.registers, _registers_used(trial)),
            self._choice_text(pruned_report, plain_trial, trial),
            self._note(pruned_report, plain_trial, trial),
        )

    def first_form(self, pruned_report: AssemblyReport) -> KernelForm | None:
        """Return the form within a limit that is tried first; None if ptxas gets no limit."""
        if pruned_report.registers is None or not self._may_limit:
            return None
        return KernelForm(self._limits(pruned_report.registers)[0])

    def _limits(self, registers: int) -> list[int]:
        """Return the register limits to try, the best first: one for the largest block, one for the block that is
        launched, and two higher ones.
        """
        default_limit = max(registers + MAX_ADDED_REGISTERS, _MIN_LIMIT)
        higher_limits = [
            (default_limit + MAX_ADDED_REGISTERS, self._threads),
            (default_limit + 3 * MAX_ADDED_REGISTERS, self._threads),
        ]
        candidates = [(default_limit, self._max_threads), (default_limit, self._threads), *higher_limits]
        fitting = [(min(limit, _MAX_LIMIT), max_registers_for(threads)) for limit, threads in candidates]
        return list(
            dict.fromkeys(
                min(limit, max_registers) if registers <= max_registers else limit for limit, max_registers in fitting
            )
        )

    def _lean_form_if_smaller(
        self, register_limit: int, pruned_report: AssemblyReport, plain_trial: FormTrial
    ) -> FormTrial | None:
        """Return the lean variant without a limit if it has at most ``register_limit`` registers, fewer than the plain
        form, no more serialisation and code than that, and spills no more than the kernel without a probe.
        """
        added_registers = _registers_used(plain_trial) - (pruned_report.registers or 0)
        if (
            added_registers <= MAX_ADDED_REGISTERS
            or not self._probe.has_lean_snippets
            or not runs_straight(self._kernel)
        ):
            return None
        trial = self._trial(KernelForm(is_lean=True))
        if (
            trial is None
            or _registers_used(trial) > register_limit
            or _registers_used(trial) >= _registers_used(plain_trial)
        ):
            return None
        lean_report, plain_report = trial.report, plain_trial.report
        if _spilled_bytes(lean_report) > _spilled_bytes(pruned_report):
            return None
        if count_serialised(lean_report.output) > count_serialised(plain_report.output):
            return None
        is_no_larger = (
            lean_report.code_bytes is not None
            and plain_report.code_bytes is not None
            and lean_report.code_bytes <= plain_report.code_bytes
        )
        return trial if is_no_larger else None

    def _first_without_spills(
        self, limits: Sequence[int], pruned_report: AssemblyReport, plain_trial: FormTrial
    ) -> FormTrial | None:
        """Return the first form within a limit that spills no more than the kernel without a probe, and serialises
        ``wgmma`` no more than the plain form.
        """
        spill_bytes, serialised_count = _spilled_bytes(pruned_report), count_serialised(plain_trial.report.output)
        plain_spills_more = _spilled_bytes(plain_trial.report) > spill_bytes
        for form in (form for limit in limits for form in self._forms(limit)):
            if _registers_used(plain_trial) <= form.register_limit and not (form.is_lean and plain_spills_more):
                continue  # there is nothing to gain
            trial = self._trial(form)
            if trial is None or count_serialised(trial.report.output) > serialised_count:
                continue
            if _spilled_bytes(trial.report) <= spill_bytes:
                return trial
        return None

    def _least_spilling(self, registers: int, plain_trial: FormTrial) -> FormTrial:
        """Return the form that spills least among those with which the launched block fits; plain if none fits."""
        register_limit = max_registers_for(self._threads)
        if registers > register_limit:
            return plain_trial
        if _registers_used(plain_trial) > register_limit:
            for form in self._forms(register_limit):
                self._trial(form)
        trials = [trial for trial in (plain_trial, *self._trials.values()) if trial]
        fitting_trials = [trial for trial in trials if _registers_used(trial) <= register_limit]
        return min(fitting_trials, key=lambda trial: _spilled_bytes(trial.report), default=plain_trial)

    @property
    def forms(self) -> list[KernelForm]:
        """Forms that were assembled."""
        return list(self._trials)

    def _forms(self, register_limit: int) -> list[KernelForm]:
        lean_forms = [KernelForm(register_limit, is_lean=True)] if self._probe.has_lean_form else []
        return [KernelForm(register_limit), *lean_forms]

    def _trial(self, form: KernelForm) -> FormTrial | None:
        """Assemble a form once; None if that failed."""
        if form not in self._trials:
            report = self._assemble(form)
            self._trials[form] = None if isinstance(report, ToolchainError) else FormTrial(form, report)
        return self._trials[form]

    def _largest_launchable_block(self, pruned_registers: int, probed_registers: int) -> int:
        """Return the threads of the largest block that still fits when the probe adds registers."""
        available = max_registers_for(self._max_threads)
        return LARGEST_BLOCK if probed_registers <= available or pruned_registers > available else self._threads

    def _choice_text(self, pruned_report: AssemblyReport, plain_trial: FormTrial, trial: FormTrial) -> str:
        form = ", in the probe's variant with fewer registers" if trial.form.is_lean else ""
        limit = f"limited to {trial.form.register_limit}" if trial.form.register_limit else "without a limit"
        return (
            f"[registers] {_registers_used(trial)} per thread, {limit}{form} ({pruned_report.registers} without the"
            f" probe, {_registers_used(plain_trial)} with the probe by default; variants tried: {len(self._trials)})"
        )

    def _note(self, pruned_report: AssemblyReport, plain_trial: FormTrial, trial: FormTrial) -> Reason | None:
        """Return a note for the user if the kernel spills, has the lean variant, or would not fit without the limit."""
        if trial is plain_trial:
            return None
        spill_bytes = _spilled_bytes(trial.report)
        name, registers, plain_registers = self._probe.name, _registers_used(trial), _registers_used(plain_trial)
        if spill_bytes > max(_spilled_bytes(pruned_report), _spilled_bytes(plain_trial.report)):
            return because(
                "registers-spilled", probe=name, registers=registers, threads=self._threads, bytes=spill_bytes
            )
        if trial.form.is_lean:
            return because("registers-lean", probe=name, registers=registers, needed=plain_registers)
        max_threads = next(
            (size for size in (self._max_threads, self._threads) if registers <= max_registers_for(size)), 0
        )
        if plain_registers <= max_registers_for(max_threads):
            return None
        return because(
            "registers-limited", probe=name, registers=registers, needed=plain_registers, threads=max_threads
        )


def _registers_used(trial: FormTrial) -> int:
    return trial.report.registers or _MAX_LIMIT


def _spilled_bytes(report: AssemblyReport) -> int:
    return (report.spill_store_bytes or 0) + (report.spill_load_bytes or 0)


def limit_without_ptxas(kernel: Kernel, threads: int) -> int:
    """Return the registers that a thread may have where no ptxas reports how many the kernel takes; 0: no limit.

    ``threads`` are those of the block that is launched first, 0 if unknown.
    """
    return max_registers_for(threads) if threads and may_limit(kernel) else 0
