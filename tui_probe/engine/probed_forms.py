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


def may_need_less(after: AssemblyReport, probe: Probe) -> bool:
    """Return whether a probed kernel has enough registers for another form to need fewer."""
    return after.registers is not None and after.registers > (
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
        self._largest = max(largest_block(kernel), threads)
        self._threads = threads or self._largest
        self._assemble = assemble
        self._tried: dict[KernelForm, FormTrial | None] = {}

    def choose(self, before: AssemblyReport, after: AssemblyReport) -> ChosenForm:
        """Choose by the reports of ptxas on the kernel without the probe and with its plain form."""
        plain = FormTrial(KernelForm(), after)
        if before.registers is None or after.registers is None or not self._may_limit:
            return ChosenForm(plain, LARGEST_BLOCK)
        limits = self._limits(before.registers)
        chosen = self._lean_form_if_smaller(limits[0], before, plain)
        if not chosen and after.registers <= limits[0] and _spilled_bytes(after) <= _spilled_bytes(before):
            return ChosenForm(plain, self._largest_launchable_block(before.registers, after.registers))
        chosen = chosen or self._first_without_spills(limits, before, plain)
        chosen = chosen or self._least_spilling(before.registers, plain)
        return ChosenForm(
            chosen,
            self._largest_launchable_block(before.registers, _registers_used(chosen)),
            self._choice_text(before, plain, chosen),
            self._note(before, plain, chosen),
        )

    def first_form(self, before: AssemblyReport) -> KernelForm | None:
        """Return the form within a limit that is tried first; None if ptxas gets no limit."""
        if before.registers is None or not self._may_limit:
            return None
        return KernelForm(self._limits(before.registers)[0])

    def _limits(self, registers: int) -> list[int]:
        """Return the register limits to try, the best first: one for the largest block, one for the block that is
        launched, and two higher ones.
        """
        usual = max(registers + MAX_ADDED_REGISTERS, _MIN_LIMIT)
        more = [(usual + MAX_ADDED_REGISTERS, self._threads), (usual + 3 * MAX_ADDED_REGISTERS, self._threads)]
        wanted = [(usual, self._largest), (usual, self._threads), *more]
        fitting = [(min(limit, _MAX_LIMIT), max_registers_for(threads)) for limit, threads in wanted]
        return list(dict.fromkeys(min(limit, most) if registers <= most else limit for limit, most in fitting))

    def _lean_form_if_smaller(self, register_limit: int, before: AssemblyReport, plain: FormTrial) -> FormTrial | None:
        """Return the lean variant without a limit if it has at most ``register_limit`` registers, fewer than the plain
        form, no more serialisation and code than that, and spills no more than the kernel without a probe.
        """
        added = _registers_used(plain) - (before.registers or 0)
        if added <= MAX_ADDED_REGISTERS or not self._probe.has_lean_snippets or not runs_straight(self._kernel):
            return None
        trial = self._trial(KernelForm(is_lean=True))
        if trial is None or _registers_used(trial) > register_limit or _registers_used(trial) >= _registers_used(plain):
            return None
        lean, usual = trial.report, plain.report
        if _spilled_bytes(lean) > _spilled_bytes(before):
            return None
        if count_serialised(lean.output) > count_serialised(usual.output):
            return None
        no_more = lean.code_bytes is not None and usual.code_bytes is not None and lean.code_bytes <= usual.code_bytes
        return trial if no_more else None

    def _first_without_spills(
        self, limits: Sequence[int], before: AssemblyReport, plain: FormTrial
    ) -> FormTrial | None:
        """Return the first form within a limit that spills no more than the kernel without a probe, and serialises
        ``wgmma`` no more than the plain form.
        """
        spilled, serialised = _spilled_bytes(before), count_serialised(plain.report.output)
        plain_spills_more = _spilled_bytes(plain.report) > spilled
        for form in (form for limit in limits for form in self._forms(limit)):
            if _registers_used(plain) <= form.register_limit and not (form.is_lean and plain_spills_more):
                continue  # there is nothing to gain
            trial = self._trial(form)
            if trial is None or count_serialised(trial.report.output) > serialised:
                continue
            if _spilled_bytes(trial.report) <= spilled:
                return trial
        return None

    def _least_spilling(self, registers: int, plain: FormTrial) -> FormTrial:
        """Return the form that spills least among those with which the launched block fits; plain if none fits."""
        register_limit = max_registers_for(self._threads)
        if registers > register_limit:
            return plain
        if _registers_used(plain) > register_limit:
            for form in self._forms(register_limit):
                self._trial(form)
        trials = [trial for trial in (plain, *self._tried.values()) if trial]
        fitting = [trial for trial in trials if _registers_used(trial) <= register_limit]
        return min(fitting, key=lambda trial: _spilled_bytes(trial.report), default=plain)

    @property
    def forms(self) -> list[KernelForm]:
        """Forms that were assembled."""
        return list(self._tried)

    def _forms(self, register_limit: int) -> list[KernelForm]:
        lean_forms = [KernelForm(register_limit, is_lean=True)] if self._probe.has_lean_form else []
        return [KernelForm(register_limit), *lean_forms]

    def _trial(self, form: KernelForm) -> FormTrial | None:
        """Assemble a form once; None if that failed."""
        if form not in self._tried:
            report = self._assemble(form)
            self._tried[form] = None if isinstance(report, ToolchainError) else FormTrial(form, report)
        return self._tried[form]

    def _largest_launchable_block(self, before: int, after: int) -> int:
        """Return the threads of the largest block that still fits when registers rise from ``before`` to ``after``."""
        available = max_registers_for(self._largest)
        return LARGEST_BLOCK if after <= available or before > available else self._threads

    def _choice_text(self, before: AssemblyReport, plain: FormTrial, chosen: FormTrial) -> str:
        form = ", in the probe's variant with fewer registers" if chosen.form.is_lean else ""
        limit = f"limited to {chosen.form.register_limit}" if chosen.form.register_limit else "without a limit"
        return (
            f"[registers] {_registers_used(chosen)} per thread, {limit}{form} ({before.registers} without the probe,"
            f" {_registers_used(plain)} with the probe by default; variants tried: {len(self._tried)})"
        )

    def _note(self, before: AssemblyReport, plain: FormTrial, chosen: FormTrial) -> Reason | None:
        """Return a note for the user if the kernel spills, has the lean variant, or would not fit without the limit."""
        if chosen is plain:
            return None
        spilled = _spilled_bytes(chosen.report)
        name, used, needed = self._probe.name, _registers_used(chosen), _registers_used(plain)
        if spilled > max(_spilled_bytes(before), _spilled_bytes(plain.report)):
            return because("registers-spilled", probe=name, registers=used, threads=self._threads, bytes=spilled)
        if chosen.form.is_lean:
            return because("registers-lean", probe=name, registers=used, needed=needed)
        fits = next((size for size in (self._largest, self._threads) if used <= max_registers_for(size)), 0)
        if needed <= max_registers_for(fits):
            return None
        return because("registers-limited", probe=name, registers=used, needed=needed, threads=fits)


def _registers_used(trial: FormTrial) -> int:
    return trial.report.registers or _MAX_LIMIT


def _spilled_bytes(report: AssemblyReport) -> int:
    return (report.spill_store_bytes or 0) + (report.spill_load_bytes or 0)


def limit_without_ptxas(kernel: Kernel, threads: int) -> int:
    """Return the registers that a thread may have where no ptxas reports how many the kernel takes; 0: no limit.

    ``threads`` are those of the block that is launched first, 0 if unknown.
    """
    return max_registers_for(threads) if threads and may_limit(kernel) else 0
