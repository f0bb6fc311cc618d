"""Assemble the variants of a kernel on threads: the probed one first, since a launch waits for it, and the other."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from tui_probe.engine.kernel_cache import PrunedAssemblies, link_pruned_binary
from tui_probe.errors import ToolchainError
from tui_probe.reasons import Reason, because

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from tui_probe.engine.assembler import Assembler, AssemblyReport
    from tui_probe.engine.kernel_texts import ProcessLog

Assembling: TypeAlias = "Future[AssemblyReport | ToolchainError]"


@dataclass(slots=True)
class Assemblies:
    """The assemblies of one kernel, with the probe and without."""

    probed: Assembling
    pruned: Assembling


def assembly_failure(error: ToolchainError) -> Reason:
    """Return why an assembly failed."""
    return error.reason or because("engine-defect", words=str(error))


@dataclass(frozen=True, slots=True)
class VariantAssembler:
    """Assembly of one kernel's variants: ``directory`` has ``VARIANT.ptx`` and gets ``VARIANT.bin``."""

    assembler: Assembler
    pool: ThreadPoolExecutor
    kernel_directory: Path
    directory: Path
    log: ProcessLog
    shared: PrunedAssemblies | None
    """Assemblies without the probe, shared with the other probes of the run; None where there is no other."""

    def start_and_wait(self, variant: str, arch: str, name: str) -> Assembling:
        """The assembly of one variant, whose ptxas runs when this returns: other work would take the interpreter from
        the thread that starts it.
        """
        started = threading.Event()
        assembly = self.start(variant, arch, name, started)
        started.wait()
        return assembly

    def start(self, variant: str, arch: str, name: str, started: threading.Event | None = None) -> Assembling:
        return self.pool.submit(self._assemble, variant, arch, name, started or threading.Event())

    def start_pruned(self, arch: str, name: str) -> Assembling:
        """The assembly without the probe: of several probes the first does it, the others take it over."""
        if self.shared is None:
            return self.start("pruned", arch, name)
        owner, assembly = self.shared.assembly(
            self.kernel_directory, self.directory, lambda: self.start("pruned", arch, name)
        )
        return assembly if owner == self.directory else self.pool.submit(self._reuse_pruned, owner, assembly)

    def _reuse_pruned(self, owner: Path, assembly: Assembling) -> AssemblyReport | ToolchainError:
        report = assembly.result()
        if isinstance(report, ToolchainError):
            self.log.write(f"[failed] {assembly_failure(report).written}\n{report.details}")
            return report
        link_pruned_binary(owner, self.directory)
        report = replace(report, command=report.command.replace(str(owner), str(self.directory)))
        self.log.write(f"{report.command}\n{report.output}")
        return report

    def _assemble(
        self, variant: str, arch: str, name: str, started: threading.Event
    ) -> AssemblyReport | ToolchainError:
        """Assemble one variant and log the output of ptxas; the binary gets its name once it is complete."""
        binary = self.directory / f"{variant}.bin"
        unfinished = self.directory / f".{variant}.bin.unfinished"
        try:
            report = self.assembler.assemble(self.directory / f"{variant}.ptx", unfinished, arch, name, started.set)
            unfinished.replace(binary)
        except ToolchainError as error:
            unfinished.unlink(missing_ok=True)
            self.log.write(f"[failed] {assembly_failure(error).written}\n{error.details}")
            return error
        finally:
            started.set()
        self.log.write(f"{report.command}\n{report.output}")
        return report
