"""One request for a kernel: the files, log and cache of the work on it, and the assembly of its variants on threads."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tui_probe.engine.kernel_cache import link_pruned_binary
from tui_probe.engine.kernel_texts import note_in
from tui_probe.engine.probed_forms import LARGEST_BLOCK
from tui_probe.engine.whole_files import write_file
from tui_probe.errors import ToolchainError
from tui_probe.reasons import Reason, because

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from tui_probe.engine.assembler import Assembler, AssemblyReport
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.kernel_cache import DriverNeed, KernelCache, OriginalModule, PrepareOptions, PrunedAssemblies
    from tui_probe.engine.kernel_texts import ProcessLog
    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.probe_model.probe import Probe

PendingAssembly: TypeAlias = "Future[AssemblyReport | ToolchainError]"
StartCallback: TypeAlias = "Callable[[], object]"


class HeldLock:
    """A lock that is acquired at construction and that any thread may release. Only the first release counts."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._release_lock = lock, threading.Lock()
        lock.acquire()

    def release(self) -> None:
        """Release the lock, unless that was done before."""
        # Atomic: of two threads that release, the second must not release the lock of the next holder.
        if self._release_lock.acquire(blocking=False):
            self._lock.release()


@dataclass(slots=True)
class Assemblies:
    """The assemblies of one kernel, with the probe and without."""

    probed: PendingAssembly
    pruned: PendingAssembly


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
    shared_assemblies: PrunedAssemblies | None
    """Assemblies without the probe, shared with the other probes of the run; None where there is no other."""
    on_start: StartCallback
    """Called when a ptxas works."""
    has_lines: bool = False
    """The probed variant gets a table of source lines, by which phases are checked."""

    def start_and_wait(self, variant: str, arch: str, name: str) -> PendingAssembly:
        """Start the assembly of one variant, and wait until its ptxas runs: other work would take the interpreter from
        the thread that starts it.
        """
        start_event = threading.Event()
        assembly = self.start(variant, arch, name, start_event)
        start_event.wait()
        return assembly

    def start(self, variant: str, arch: str, name: str, start_event: threading.Event | None = None) -> PendingAssembly:
        return self.pool.submit(self._assemble, variant, arch, name, start_event or threading.Event())

    def start_pruned(self, arch: str, name: str) -> PendingAssembly:
        """Return the assembly without the probe: the first probe of a kernel starts it, the others reuse it."""
        if self.shared_assemblies is None:
            return self.start("pruned", arch, name)
        owner, assembly = self.shared_assemblies.assembly(
            self.kernel_directory, self.directory, lambda: self.start("pruned", arch, name)
        )
        return assembly if owner == self.directory else self.pool.submit(self._reuse_pruned, owner, assembly)

    def _reuse_pruned(self, owner: Path, assembly: PendingAssembly) -> AssemblyReport | ToolchainError:
        report = assembly.result()
        if isinstance(report, ToolchainError):
            self.log.write(f"[failed] {assembly_failure(report).written}\n{report.details}")
            return report
        link_pruned_binary(owner, self.directory)
        report = replace(report, command=report.command.replace(str(owner), str(self.directory)))
        self.log.write(f"{report.command}\n{report.output}")
        return report

    def _assemble(
        self, variant: str, arch: str, name: str, start_event: threading.Event
    ) -> AssemblyReport | ToolchainError:
        """Assemble one variant and log the output of ptxas; the binary gets its name once it is complete."""

        def note_start() -> None:
            start_event.set()
            self.on_start()

        binary = self.directory / f"{variant}.bin"
        unfinished = self.directory / f".{variant}.bin.unfinished"
        try:
            source, lines = self.directory / f"{variant}.ptx", self.has_lines and variant == "probed"
            report = self.assembler.assemble(source, unfinished, arch, name, note_start, lines=lines)
            unfinished.replace(binary)
        except ToolchainError as error:
            unfinished.unlink(missing_ok=True)
            self.log.write(f"[failed] {assembly_failure(error).written}\n{error.details}")
            return error
        finally:
            start_event.set()
        self.log.write(f"{report.command}\n{report.output}")
        return report


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A requested kernel, and the part of the image that it is from."""

    arch: str
    """Architecture of the device, ``sm_90a``."""
    arch_number: int
    name: str
    threads: int
    """Threads of the block that is launched; 0: unknown."""
    key: str
    """Key in the cache; "" without one."""
    description: str = ""
    """Description of the part of the image; "" until it is found."""
    map_layout: MapLayout | None = None
    """Layout of tensor maps on the device; None if it is not known."""


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The work on one kernel: its probe, tools, directories and log."""

    probe: Probe
    options: PrepareOptions
    assembler: Assembler
    pool: ThreadPoolExecutor
    kernel_directory: Path
    directory: Path
    """The probe's directory in ``kernel_directory``; the same one if there is no other probe."""
    log: ProcessLog
    cache: KernelCache | None
    pruned: PrunedAssemblies | None
    """Shared with the other probes of the run; None where there is no other."""
    on_start: StartCallback
    """Called when a ptxas works on the kernel."""
    is_ahead: bool = False
    """True if no launch waits for the kernel."""
    cache_stores: list[Future[None]] = field(default_factory=list)
    """Puts the kernel into the cache, after the answer."""

    @property
    def is_sass_off(self) -> bool:
        """True if the user allows no probe in SASS."""
        return self.options.machine_code == "off"

    @property
    def variants(self) -> VariantAssembler:
        """Assembler of the kernel with the probe and without."""
        folders = self.kernel_directory, self.directory
        has_lines = bool(self.probe.phases)
        return VariantAssembler(self.assembler, self.pool, *folders, self.log, self.pruned, self.on_start, has_lines)

    def write(self, file: str, text: str) -> None:
        """Write a file of the probe's directory."""
        write_file(self.directory / file, text.encode("utf-8"))

    def write_unprobed(self, original: OriginalModule, kernel: Kernel) -> None:
        """Write the PTX of the module and of the kernel without the probe."""
        with original.lock:
            original.write(self.kernel_directory / "original.ptx")
        self.write("pruned.ptx", kernel.pruned)

    def log_header(self, description: str, name: str) -> str:
        """Return the log lines that name the image, the kernel and the probe."""
        sample = ", for a sample of blocks" if self.options.samples_blocks else ""
        return (
            f"[objdump] original.bin is {description}\n{name}\n[probe] {self.probe.name} from {self.probe.path}{sample}"
        )

    def log_note(self, info: str) -> None:
        """Log the note of a kernel.info, if it has one."""
        if note := note_in(info):
            self.log.write(f"[note] {note}")

    def keep_later(self, keep: Callable[..., None], *arguments: object) -> None:
        """Put the kernel into the cache next to what follows, if there is one."""
        if self.cache is not None:
            self.cache_stores.append(self.pool.submit(keep, *arguments))

    def keep_files(
        self,
        request: KernelRequest,
        load: str,
        outputs: Sequence[str],
        driver_needs: Sequence[DriverNeed] = (),
        threads: int = LARGEST_BLOCK,
    ) -> None:
        """Put the files into the cache, if there is one; an error is only logged."""
        if self.cache is None:
            return
        try:
            self.cache.keep(
                request.key,
                self.directory,
                self.kernel_directory,
                load,
                request.description,
                outputs,
                driver_needs,
                threads,
                ahead=self.is_ahead,
            )
        except OSError as error:
            with contextlib.suppress(OSError):  # the trace is gone or the disk full, and this is only a remark
                self.log.write(f"[cache] not saved for other runs: {error.filename}: {error.strerror}")
