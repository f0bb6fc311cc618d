"""A probed kernel brought to the form that its registers allow: forms assembled beside it, one of them in its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui_probe.engine.files import write_file
from tui_probe.engine.probed_kernel import with_probe
from tui_probe.engine.registers import Chooser, may_limit, most_for
from tui_probe.errors import ToolchainError

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.assemble import Assembler, AssemblyReport
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.model import Probe
    from tui_probe.engine.registers import Choice, Form

PROBED = "probed"


def limit_unseen(kernel: Kernel, threads: int) -> int:
    """The registers that a thread may have where no assembler is here to tell how many it takes; 0: no limit.

    ``threads`` are those of the block that is launched first, 0 if they are not known.
    """
    return most_for(threads) if threads and may_limit(kernel) else 0


@dataclass(slots=True)
class Fitting:
    """Forms of one probe in one kernel, assembled in ``directory`` for a device of ``arch``."""

    kernel: Kernel
    probe: Probe
    assembler: Assembler
    directory: Path
    arch: str
    threads: int
    sampled: bool

    def choose(self, before: AssemblyReport, after: AssemblyReport) -> Choice:
        """Put the form to take into the place of ``probed.ptx`` and ``probed.bin``, of which ptxas said ``after``.

        The report in the choice is as if it had been assembled there. Raises OSError.
        """
        chooser = Chooser(self.kernel, self.probe, self.threads, self._assembled)
        choice = chooser.choose(before, after)
        for form in chooser.forms:
            for suffix in (".ptx", ".bin"):
                file = self._file(form, suffix)
                if form == choice.trial.form:
                    file.replace(self.directory / f"{PROBED}{suffix}")
                else:
                    file.unlink(missing_ok=True)
        report = choice.trial.report
        for suffix in (".ptx", ".bin"):
            place = str(self.directory / f"{PROBED}{suffix}")
            report = replace(report, command=report.command.replace(str(self._file(choice.trial.form, suffix)), place))
        return replace(choice, trial=replace(choice.trial, report=report))

    def _assembled(self, form: Form) -> AssemblyReport | ToolchainError:
        probe = self.probe.lean_form() if form.is_lean else self.probe
        device = int(self.arch.removeprefix("sm_").rstrip("af"))
        made = with_probe(self.kernel, probe, arch=device, sampled=self.sampled, most=form.most)
        source, binary = self._file(form, ".ptx"), self._file(form, ".bin")
        write_file(source, made.ptx.encode())
        try:
            return self.assembler.assemble(source, binary, self.arch, self.kernel.entry.name)
        except ToolchainError as error:
            return error

    def _file(self, form: Form, suffix: str) -> Path:
        return self.directory / f".{'lean' if form.is_lean else 'limited'}_{form.most}{suffix}"
