"""One request for a kernel, and the files, log and cache of the work on it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tui_probe.engine.cache import write_file
from tui_probe.engine.kernel_texts import note_in
from tui_probe.engine.probed_forms import LARGEST_BLOCK
from tui_probe.engine.variant_assembly import VariantAssembler

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from pathlib import Path

    from tui_probe.engine.assembler import Assembler
    from tui_probe.engine.kernel import Kernel
    from tui_probe.engine.kernel_cache import DriverNeed, KernelCache, Original, PrepareOptions, PrunedAssemblies
    from tui_probe.engine.kernel_texts import ProcessLog
    from tui_probe.probe_model.probe import Probe


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
    is_ahead: bool = False
    """True if no launch waits for the kernel."""
    kept: list[Future[None]] = field(default_factory=list)
    """Puts the kernel into the cache, after the answer."""

    @property
    def is_sass_off(self) -> bool:
        """True if the user allows no probe in SASS."""
        return self.options.machine_code == "off"

    @property
    def variants(self) -> VariantAssembler:
        """Assembler of the kernel with the probe and without."""
        return VariantAssembler(self.assembler, self.pool, self.kernel_directory, self.directory, self.log, self.pruned)

    def write(self, file: str, text: str) -> None:
        """Write a file of the probe's directory."""
        write_file(self.directory / file, text.encode("utf-8"))

    def write_unprobed(self, original: Original, kernel: Kernel) -> None:
        """Write the PTX of the module and of the kernel without the probe."""
        with original.lock:
            original.write(self.kernel_directory / "original.ptx")
        self.write("pruned.ptx", kernel.pruned)

    def log_header(self, description: str, name: str) -> str:
        """Return the log lines that name the image, the kernel and the probe."""
        sample = ", in a sample of blocks" if self.options.sampled else ""
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
            self.kept.append(self.pool.submit(keep, *arguments))

    def keep_files(
        self,
        request: KernelRequest,
        load: str,
        outputs: Sequence[str],
        needs: Sequence[DriverNeed] = (),
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
                needs,
                threads,
                ahead=self.is_ahead,
            )
        except OSError as error:
            with contextlib.suppress(OSError):  # the trace is gone or the disk full, and this is only a remark
                self.log.write(f"[cache] not kept for other runs: {error.filename}: {error.strerror}")
