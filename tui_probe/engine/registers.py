"""Which form of a probed kernel is taken, where the probe needs more registers than the kernel can spare.

ptxas takes registers as freely as its schedule can use them, a dozen for a probe that needs three. What that costs is
told by the original: a block that had its registers without the probe may not have them with it, and then cannot be
launched; and an SM holds fewer blocks. So where a probe adds more than ``ADDED``, or a block no longer fits, the
kernel is assembled again with a limit (``.maxnreg``), and where it then spills, in the lean form of the probe. The
first form that spills no more than before is taken. Where there is none and the block would not fit, the one that
spills least is taken: what it records is the same, and a launch of the kernel as it was would record nothing.

In a kernel without loops the lean form comes first. There each access comes by once at most, and where adding to memory
at each is no more machine code than adding up and making sums over lanes at the end, as in most kernels with up to four
accesses, nothing is lost by it.

No form probes some warps alone: registers are given to all warps of a kernel alike, and a choice of warps costs one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.engine.serialisation import serialised
from tui_probe.engine.walk import instructions
from tui_probe.errors import ToolchainError
from tui_probe.ptx.basic_blocks import loop_heads
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tui_probe.engine.assemble import AssemblyReport
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Probe
    from tui_probe.reasons import Reason

ADDED: Final = 8
"""Registers that a probe may add before less is tried: they are given out in units of so many."""
LARGEST_BLOCK: Final = 1024
_REGISTERS: Final = 65536
"""Of a block, on every device since sm_70."""
_LEAST: Final = 24
"""ptxas keeps to no limit below, and no block is kept from an SM by so few."""
_WARP: Final = 32
_MOST: Final = 255


@dataclass(frozen=True, slots=True)
class Form:
    """``most``: the registers that a thread may have, 0 for no limit; ``is_lean``: in the lean form of the probe."""

    most: int = 0
    is_lean: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """A form, and what ptxas says of it."""

    form: Form
    report: AssemblyReport


@dataclass(frozen=True, slots=True)
class Choice:
    """The form that is taken. ``threads``: of the largest block that fits with it as it did without the probe.

    ``said`` is for the log, "" where nothing was tried; ``note`` for people, of what they would not expect.
    """

    trial: Trial
    threads: int
    said: str = ""
    note: Reason | None = None


def most_for(threads: int) -> int:
    """The registers that each thread of a block of so many may have."""
    warps = math.ceil(max(threads, 1) / _WARP)
    return min(_MOST, _REGISTERS // (warps * _WARP) // ADDED * ADDED)


def may_limit(kernel: Kernel) -> bool:
    """Whether the registers of a kernel are not settled by itself."""
    if "maxnreg" in kernel.entry.attributes:
        return False
    return not any(one.opcode == "setmaxnreg" for one in instructions(kernel.entry))


def largest_block(kernel: Kernel) -> int:
    """The threads of the largest block that a kernel can be launched with, as far as its text says."""
    for name in ("reqntid", "maxntid"):
        if numbers := re.findall(r"\d+", kernel.entry.attributes.get(name, "")):
            return min(LARGEST_BLOCK, math.prod(map(int, numbers)))
    return LARGEST_BLOCK


def may_need_less(after: AssemblyReport, probe: Probe) -> bool:
    """Whether a kernel has so many registers that another form may be taken."""
    return after.registers is not None and after.registers > (ADDED if probe.has_lean_snippets else _LEAST)


def runs_straight(kernel: Kernel) -> bool:
    """Whether a thread executes each instruction of a kernel at most once, as far as its text says."""
    return len(kernel.bodies) == 1 and not loop_heads(kernel.entry)


class Chooser:
    """Chooses the form of one probe in one kernel. ``assemble`` makes one and tells what ptxas says, or why not.

    ``threads`` are those of the block that is launched first, 0 if they are not known.
    """

    def __init__(
        self, kernel: Kernel, probe: Probe, threads: int, assemble: Callable[[Form], AssemblyReport | ToolchainError]
    ) -> None:
        self._kernel = kernel
        self._probe = probe
        self._may_limit = may_limit(kernel)
        self._largest = max(largest_block(kernel), threads)
        self._threads = threads or self._largest
        self._assemble = assemble
        self._tried: dict[Form, Trial | None] = {}

    def choose(self, before: AssemblyReport, after: AssemblyReport) -> Choice:
        """The form to take, after what ptxas says of the kernel without and with the probe as it is."""
        plain = Trial(Form(), after)
        if before.registers is None or after.registers is None or not self._may_limit:
            return Choice(plain, LARGEST_BLOCK)
        limits = self._limits(before.registers)
        chosen = self._smaller(limits[0], before, plain)
        if not chosen and after.registers <= limits[0] and _spilled(after) <= _spilled(before):
            return Choice(plain, self._reach(before.registers, after.registers))
        chosen = chosen or self._calm(limits, before, plain) or self._fitting(before.registers, plain)
        return Choice(
            chosen,
            self._reach(before.registers, _used(chosen)),
            self._said(before, plain, chosen),
            self._note(before, plain, chosen),
        )

    def _limits(self, registers: int) -> list[int]:
        """The limits to keep to, the best first: one for every block that has its registers without the probe, one for
        the block that is launched, and two that are better than none.
        """
        usual = max(registers + ADDED, _LEAST)
        more = [(usual + ADDED, self._threads), (usual + 3 * ADDED, self._threads)]
        wanted = [(usual, self._largest), (usual, self._threads), *more]
        fitting = [(min(limit, _MOST), most_for(threads)) for limit, threads in wanted]
        return list(dict.fromkeys(min(limit, most) if registers <= most else limit for limit, most in fitting))

    def _smaller(self, most: int, before: AssemblyReport, plain: Trial) -> Trial | None:
        """The lean form without a limit, if it has at most so many registers and is less of everything."""
        added = _used(plain) - (before.registers or 0)
        if added <= ADDED or not self._probe.has_lean_snippets or not runs_straight(self._kernel):
            return None
        trial = self._trial(Form(is_lean=True))
        if trial is None or _used(trial) > most or _used(trial) >= _used(plain):
            return None
        lean, usual = trial.report, plain.report
        if _spilled(lean) > _spilled(before) or serialised(lean.output) > serialised(usual.output):
            return None
        no_more = lean.code_bytes is not None and usual.code_bytes is not None and lean.code_bytes <= usual.code_bytes
        return trial if no_more else None

    def _calm(self, limits: Sequence[int], before: AssemblyReport, plain: Trial) -> Trial | None:
        """The first form within a limit that spills no more than the kernel without a probe, and waits for ``wgmma`` no
        more than the probed one without a limit.
        """
        spilled, waits = _spilled(before), serialised(plain.report.output)
        for form in (form for most in limits for form in self._forms(most)):
            if _used(plain) <= form.most and not (form.is_lean and _spilled(plain.report) > spilled):
                continue  # there is nothing to gain
            trial = self._trial(form)
            if trial and _spilled(trial.report) <= spilled and serialised(trial.report.output) <= waits:
                return trial
        return None

    def _fitting(self, registers: int, plain: Trial) -> Trial:
        """The form that spills least of those that the block which is launched has the registers for."""
        most = most_for(self._threads)
        if registers > most:
            return plain
        if _used(plain) > most:
            for form in self._forms(most):
                self._trial(form)
        fitting = [trial for trial in (plain, *self._tried.values()) if trial and _used(trial) <= most]
        return min(fitting, key=lambda trial: _spilled(trial.report), default=plain)

    @property
    def forms(self) -> list[Form]:
        """Those that were assembled."""
        return list(self._tried)

    def _forms(self, most: int) -> list[Form]:
        return [Form(most, is_lean) for is_lean in (False, True) if not is_lean or self._probe.has_lean_form]

    def _trial(self, form: Form) -> Trial | None:
        """A form assembled, once; None if that failed."""
        if form not in self._tried:
            report = self._assemble(form)
            self._tried[form] = None if isinstance(report, ToolchainError) else Trial(form, report)
        return self._tried[form]

    def _reach(self, before: int, after: int) -> int:
        most = most_for(self._largest)
        return LARGEST_BLOCK if after <= most or before > most else self._threads

    def _said(self, before: AssemblyReport, plain: Trial, chosen: Trial) -> str:
        form = ", in the lean form of the probe" if chosen.form.is_lean else ""
        limit = f"limited to {chosen.form.most}" if chosen.form.most else "without a limit"
        return (
            f"[registers] {_used(chosen)} of a thread, {limit}{form}: {before.registers} without the probe,"
            f" {_used(plain)} with it as the assembler would have it; {len(self._tried)} more tried"
        )

    def _note(self, before: AssemblyReport, plain: Trial, chosen: Trial) -> Reason | None:
        """What a person should know: that a block would not fit, that the kernel spills, that the form is another."""
        if chosen is plain:
            return None
        spilled = _spilled(chosen.report)
        name, used, needed = self._probe.name, _used(chosen), _used(plain)
        if spilled > max(_spilled(before), _spilled(plain.report)):
            return because("registers-spilled", probe=name, registers=used, threads=self._threads, bytes=spilled)
        if chosen.form.is_lean:
            return because("registers-lean", probe=name, registers=used, needed=needed)
        fits = next((size for size in (self._largest, self._threads) if used <= most_for(size)), 0)
        if needed <= most_for(fits):
            return None
        return because("registers-limited", probe=name, registers=used, needed=needed, threads=fits)


def _used(trial: Trial) -> int:
    return trial.report.registers or _MOST


def _spilled(report: AssemblyReport) -> int:
    return (report.spill_store_bytes or 0) + (report.spill_load_bytes or 0)
