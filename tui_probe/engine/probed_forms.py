"""Choose the form of a probed kernel by its registers: plain, lean, register limit, without yielding points.

``wgmma.mma_async`` run on while their warps do other things, unless ptxas finds something between them and their wait
that cannot run next to them: it then serialises them, or waits for them earlier than the kernel does, and says so. A
probe that causes this would slow the kernel down rather than measure it. So a point with ``yields = true`` is left out
of a kernel for which ptxas says so more often with it than without the probe.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import function_instructions
from tui_probe.engine.whole_files import write_file
from tui_probe.errors import ToolchainError
from tui_probe.probe_model.positions import matches
from tui_probe.ptx.control_flow import loop_heads
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tui_probe.engine.assembler import Assembler, AssemblyReport
    from tui_probe.engine.kernel import Kernel
    from tui_probe.probe_model.probe import Probe
    from tui_probe.reasons import Reason

_SERIALISED_REMARK: Final = re.compile(
    r"wgmma\.mma_async instructions are serialized|(?:wait_group|warpgroup\.wait) is injected"
)


def count_serialised(output: str) -> int:
    """Count the remarks of ptxas that it serialised ``wgmma`` instructions or waits for them by itself."""
    return len(_SERIALISED_REMARK.findall(output))


def yielding_sites(kernel: Kernel, probe: Probe) -> Counter[str]:
    """The instructions of a kernel that yielding points of a probe are at, by opcode."""
    positions = [position for point in probe.points if point.yielding for position in point.positions]
    if not positions:
        return Counter()
    return Counter(
        ".".join((instruction.opcode, *instruction.modifiers[:1]))
        for instruction in function_instructions(kernel.entry)
        if any(matches(position, instruction) for position in positions)
    )


def without_yielding(probe: Probe) -> Probe:
    """The probe without its yielding points. Its maps stay, and with them what a result looks like."""
    return replace(probe, points=tuple(point for point in probe.points if not point.yielding))


def yielding_reason(probe: Probe, sites: Counter[str], before: int | None, after: int | None) -> Reason:
    """Return why those sites were excluded: ptxas had ``before`` such remarks on the kernel and ``after`` on the probed
    one; None where no ptxas could tell.
    """
    places = ", ".join(f"{count} {opcode}" for opcode, count in sites.items())
    if before is None or after is None:
        return because("wgmma-unchecked", probe=probe.name, sites=places)
    return because("wgmma-serialised", probe=probe.name, sites=places, after=after, before=before)


# Choice of the form of a probed kernel if the probe needs more registers than the kernel can spare.
#
# ptxas takes registers as freely as its schedule can use them, a dozen for a probe that needs three. The cost follows
# from the original: a block that had its registers without the probe may not have them with it, and then
# cannot be launched; and an SM holds fewer blocks. So where a probe adds more than ``MAX_ADDED_REGISTERS``, or a block
# no longer fits, the kernel is assembled again with a limit (``.maxnreg``), and where it then spills, in the lean form
# of the probe. The first form that spills no more than before is taken. Where there is none and the block would not
# fit, the one that spills least is taken: what it records is the same, and a launch of the kernel as it was would
# record nothing.
#
# In a kernel without loops the lean form comes first. There each access comes by once at most, and where adding to
# memory at each is no more machine code than adding up and making sums over lanes at the end, as in most kernels with
# up to four accesses, nothing is lost by it.
#
# No form probes some warps only: registers are given to all warps of a kernel alike, and a choice of warps costs
# one.

MAX_ADDED_REGISTERS: Final = 8
"""Registers that a probe may add before less is tried: they are given out in units of that many."""
LARGEST_BLOCK: Final = 1024
"""Threads of a block, on every device."""
_REGISTERS_PER_SM: Final = 65536
"""Registers of a block on every device since sm_70."""
_MIN_LIMIT: Final = 24
"""ptxas keeps to no limit below, and no block is kept from an SM by so few."""
_WARP: Final = 32
_MAX_LIMIT: Final = 255
"""Registers that an instruction can name: of 8 bits the number 255 reads as 0."""


@dataclass(frozen=True, slots=True)
class KernelForm:
    """``most``: the registers that a thread may have, 0 for no limit; ``is_lean``: in the lean form of the probe."""

    most: int = 0
    is_lean: bool = False


@dataclass(frozen=True, slots=True)
class FormTrial:
    """A form, and what ptxas says of it."""

    form: KernelForm
    report: AssemblyReport


@dataclass(frozen=True, slots=True)
class ChosenForm:
    """The form that is taken. ``threads``: of the largest block that fits with it as it did without the probe.

    ``log_text`` is "" if no other form was tried; ``note`` is for the user, about unexpected behavior.
    """

    trial: FormTrial
    threads: int
    log_text: str = ""
    note: Reason | None = None


def max_registers_for(threads: int) -> int:
    """The registers that each thread of a block of that many may have."""
    warps = math.ceil(max(threads, 1) / _WARP)
    return min(_MAX_LIMIT, _REGISTERS_PER_SM // (warps * _WARP) // MAX_ADDED_REGISTERS * MAX_ADDED_REGISTERS)


def may_limit(kernel: Kernel) -> bool:
    """Return whether the registers of a kernel are not settled by itself."""
    if "maxnreg" in kernel.entry.attributes:
        return False
    return not any(instruction.opcode == "setmaxnreg" for instruction in function_instructions(kernel.entry))


def largest_block(kernel: Kernel) -> int:
    """The threads of the largest block that a kernel can be launched with, if its text says so."""
    for name in ("reqntid", "maxntid"):
        if numbers := re.findall(r"\d+", kernel.entry.attributes.get(name, "")):
            return min(LARGEST_BLOCK, math.prod(map(int, numbers)))
    return LARGEST_BLOCK


def may_need_less(after: AssemblyReport, probe: Probe) -> bool:
    """Return whether a kernel has such a number of registers that another form may be taken."""
    return after.registers is not None and after.registers > (
        MAX_ADDED_REGISTERS if probe.has_lean_snippets else _MIN_LIMIT
    )


def runs_straight(kernel: Kernel) -> bool:
    """Return whether a thread executes each instruction of a kernel at most once, according to its text."""
    return len(kernel.bodies) == 1 and not loop_heads(kernel.entry)


class FormChooser:
    """Chooses the form of one probe in one kernel. ``assemble`` makes one and tells what ptxas says, or why not.

    ``threads`` are those of the block that is launched first, 0 if they are not known.
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
        """The form to take, after what ptxas says of the kernel without and with the probe as it is."""
        plain = FormTrial(KernelForm(), after)
        if before.registers is None or after.registers is None or not self._may_limit:
            return ChosenForm(plain, LARGEST_BLOCK)
        limits = self._limits(before.registers)
        chosen = self._smaller(limits[0], before, plain)
        if not chosen and after.registers <= limits[0] and _spilled_bytes(after) <= _spilled_bytes(before):
            return ChosenForm(plain, self._reach(before.registers, after.registers))
        chosen = chosen or self._calm(limits, before, plain) or self._fitting(before.registers, plain)
        return ChosenForm(
            chosen,
            self._reach(before.registers, _registers_used(chosen)),
            self._choice_text(before, plain, chosen),
            self._note(before, plain, chosen),
        )

    def _limits(self, registers: int) -> list[int]:
        """The limits to keep to, the best first: one for every block that has its registers without the probe, one for
        the block that is launched, and two that are better than none.
        """
        usual = max(registers + MAX_ADDED_REGISTERS, _MIN_LIMIT)
        more = [(usual + MAX_ADDED_REGISTERS, self._threads), (usual + 3 * MAX_ADDED_REGISTERS, self._threads)]
        wanted = [(usual, self._largest), (usual, self._threads), *more]
        fitting = [(min(limit, _MAX_LIMIT), max_registers_for(threads)) for limit, threads in wanted]
        return list(dict.fromkeys(min(limit, most) if registers <= most else limit for limit, most in fitting))

    def _smaller(self, most: int, before: AssemblyReport, plain: FormTrial) -> FormTrial | None:
        """The lean form without a limit, if it has at most that many registers and is less of everything."""
        added = _registers_used(plain) - (before.registers or 0)
        if added <= MAX_ADDED_REGISTERS or not self._probe.has_lean_snippets or not runs_straight(self._kernel):
            return None
        trial = self._trial(KernelForm(is_lean=True))
        if trial is None or _registers_used(trial) > most or _registers_used(trial) >= _registers_used(plain):
            return None
        lean, usual = trial.report, plain.report
        if _spilled_bytes(lean) > _spilled_bytes(before) or count_serialised(lean.output) > count_serialised(
            usual.output
        ):
            return None
        no_more = lean.code_bytes is not None and usual.code_bytes is not None and lean.code_bytes <= usual.code_bytes
        return trial if no_more else None

    def _calm(self, limits: Sequence[int], before: AssemblyReport, plain: FormTrial) -> FormTrial | None:
        """The first form within a limit that spills no more than the kernel without a probe, and waits for ``wgmma`` no
        more than the probed one without a limit.
        """
        spilled, waits = _spilled_bytes(before), count_serialised(plain.report.output)
        for form in (form for most in limits for form in self._forms(most)):
            if _registers_used(plain) <= form.most and not (form.is_lean and _spilled_bytes(plain.report) > spilled):
                continue  # there is nothing to gain
            trial = self._trial(form)
            if trial and _spilled_bytes(trial.report) <= spilled and count_serialised(trial.report.output) <= waits:
                return trial
        return None

    def _fitting(self, registers: int, plain: FormTrial) -> FormTrial:
        """The form that spills least of those that the block which is launched has the registers for."""
        most = max_registers_for(self._threads)
        if registers > most:
            return plain
        if _registers_used(plain) > most:
            for form in self._forms(most):
                self._trial(form)
        fitting = [trial for trial in (plain, *self._tried.values()) if trial and _registers_used(trial) <= most]
        return min(fitting, key=lambda trial: _spilled_bytes(trial.report), default=plain)

    @property
    def forms(self) -> list[KernelForm]:
        """Forms that were assembled."""
        return list(self._tried)

    def _forms(self, most: int) -> list[KernelForm]:
        return [KernelForm(most, is_lean) for is_lean in (False, True) if not is_lean or self._probe.has_lean_form]

    def _trial(self, form: KernelForm) -> FormTrial | None:
        """A form assembled, once; None if that failed."""
        if form not in self._tried:
            report = self._assemble(form)
            self._tried[form] = None if isinstance(report, ToolchainError) else FormTrial(form, report)
        return self._tried[form]

    def _reach(self, before: int, after: int) -> int:
        most = max_registers_for(self._largest)
        return LARGEST_BLOCK if after <= most or before > most else self._threads

    def _choice_text(self, before: AssemblyReport, plain: FormTrial, chosen: FormTrial) -> str:
        form = ", in the lean form of the probe" if chosen.form.is_lean else ""
        limit = f"limited to {chosen.form.most}" if chosen.form.most else "without a limit"
        return (
            f"[registers] {_registers_used(chosen)} per thread, {limit}{form}: {before.registers} without the probe,"
            f" {_registers_used(plain)} with the probe by default; variants tried: {len(self._tried)}"
        )

    def _note(self, before: AssemblyReport, plain: FormTrial, chosen: FormTrial) -> Reason | None:
        """Return remarks for the user: that a block would not fit, that the kernel spills, that the form is another."""
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


PROBED_STEM = "probed"


def limit_without_ptxas(kernel: Kernel, threads: int) -> int:
    """The registers that a thread may have where no assembler is here to tell how many it takes; 0: no limit.

    ``threads`` are those of the block that is launched first, 0 if they are not known.
    """
    return max_registers_for(threads) if threads and may_limit(kernel) else 0


@dataclass(slots=True)
class FormAssembly:
    """Forms of one probe in one kernel, assembled in ``directory`` for a device of ``arch``."""

    kernel: Kernel
    probe: Probe
    assembler: Assembler
    directory: Path
    arch: str
    threads: int
    sampled: bool

    def choose(self, before: AssemblyReport, after: AssemblyReport) -> ChosenForm:
        """Replace ``probed.ptx`` and ``probed.bin``, about which ptxas said ``after``, by the form to take.

        The report in the choice is as if it had been assembled there. Raises OSError.
        """
        chooser = FormChooser(self.kernel, self.probe, self.threads, self._assembled)
        choice = chooser.choose(before, after)
        for form in chooser.forms:
            for suffix in (".ptx", ".bin"):
                file = self._file(form, suffix)
                if form == choice.trial.form:
                    file.replace(self.directory / f"{PROBED_STEM}{suffix}")
                else:
                    file.unlink(missing_ok=True)
        report = choice.trial.report
        for suffix in (".ptx", ".bin"):
            place = str(self.directory / f"{PROBED_STEM}{suffix}")
            report = replace(report, command=report.command.replace(str(self._file(choice.trial.form, suffix)), place))
        return replace(choice, trial=replace(choice.trial, report=report))

    def _assembled(self, form: KernelForm) -> AssemblyReport | ToolchainError:
        probe = self.probe.lean_form() if form.is_lean else self.probe
        device = int(self.arch.removeprefix("sm_").rstrip("af"))
        made = build_probed_ptx(self.kernel, probe, arch=device, sampled=self.sampled, max_registers=form.most)
        source, binary = self._file(form, ".ptx"), self._file(form, ".bin")
        write_file(source, made.ptx.encode())
        try:
            return self.assembler.assemble(source, binary, self.arch, self.kernel.entry.name)
        except ToolchainError as error:
            return error

    def _file(self, form: KernelForm, suffix: str) -> Path:
        return self.directory / f".{'lean' if form.is_lean else 'limited'}_{form.most}{suffix}"
