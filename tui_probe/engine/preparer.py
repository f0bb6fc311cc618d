"""Prepare kernels with one probe: every request gets an answer and a log."""

from __future__ import annotations

import re
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.assembler import Assembler
from tui_probe.engine.cache import default_cache_directory
from tui_probe.engine.grafting.graft_gate import Gate, GraftGate
from tui_probe.engine.insertion import build_probed_ptx
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_cache import (
    PREPARED_FILES,
    ImageCache,
    KernelCache,
    PrepareOptions,
    PrunedAssemblies,
)
from tui_probe.engine.kernel_texts import ProcessLog
from tui_probe.engine.kernel_work import KernelWork, StartCallback
from tui_probe.engine.prepare_job import CacheCounts, PrepareJob
from tui_probe.engine.reception import Answer
from tui_probe.engine.site_file import site_file
from tui_probe.engine.source_copies import SourceCopies
from tui_probe.errors import ImageError, ProbeError, UnsupportedKernelError
from tui_probe.ptx.parser import parse
from tui_probe.reasons import Reason, because, because_of_file

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.engine.cache import Cache
    from tui_probe.engine.grafting.grafts import Grafter
    from tui_probe.probe_model.probe import Probe

KERNEL_FILES: Final = frozenset({"original.bin", "original.ptx", *PREPARED_FILES, "process.log"})
"""Files of a kernel's directory; that of a refused kernel lacks those that could not be made."""

_MAX_ASSEMBLERS: Final = 4
"""More processes would take cores from the program, which starts at the same time."""
_WARM_UP_PTX: Final = """.version 8.0
.target sm_80
.address_size 64
.global .u32 counter;
.visible .entry sample(.param .u64 output)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [output];
	ld.global.v2.u32 {%r1, %r2}, [%rd1+8];
	setp.gt.u32 %p1, %r1, 2;
	@%p1 bra $end;
	atom.global.add.u32 %r3, [counter], 1;
$end:
	ret;
}
"""


def do_nothing() -> None:
    """Do nothing when a ptxas starts."""


class Preparer:
    """Prepares kernels with one probe. Safe to use from several threads; ``close`` waits for what still runs."""

    def __init__(
        self,
        probe: Probe,
        options: PrepareOptions | None = None,
        assembler: Assembler | None = None,
        cache: Cache | None = None,
        image_cache: ImageCache | None = None,
        pruned: PrunedAssemblies | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._probe = probe
        self._options = options or PrepareOptions()
        self._assembler = assembler or Assembler()
        self._image_cache = image_cache or ImageCache()
        self._pruned = pruned
        self._pool = ThreadPoolExecutor(_MAX_ASSEMBLERS, thread_name_prefix="assemble")
        self._cache = cache
        self._sources = SourceCopies(self._options.sources) if self._options.sources else None
        self._kernel_cache: KernelCache | None = None
        self._lock = threading.Lock()
        self._gate = gate
        self._grafter: Grafter | None = None
        self.counts = CacheCounts()
        self.is_ahead = False
        """True in a process that prepares ahead of launches."""
        self._pending_stores: list[Future[None]] = []

    def find_assemblers(self) -> None:
        """Find assemblers, and compute the key of the cache."""
        self._open_kernel_cache()

    def warm_up(self) -> None:
        """Run once through all the code, so that the first kernel does not wait for it."""
        with suppress(UnsupportedKernelError):
            sample = Kernel.of(parse(_WARM_UP_PTX), "sample")
            site_file(self._probe.name, sample, build_probed_ptx(sample, self._probe).notes, b"")

    def close(self) -> None:
        """Wait for assemblies that no one waits for, and let the threads go."""
        self._pool.shutdown(wait=True)
        if self._grafter is not None:
            self._grafter.close()

    def _open_kernel_cache(self) -> KernelCache | None:
        """Return the cache, once the assemblers are known; None without one."""
        with self._lock:  # held while tools are searched: the key of the cache has their versions
            tools = self._assembler.tools()
            if self._kernel_cache is None and self._cache is not None:
                self._kernel_cache = KernelCache(self._cache, self._probe, self._options, tools)
            return self._kernel_cache

    @property
    def cache_inputs(self) -> str:
        """All that decides which kernels can be prepared, except the image and the device; "" without a cache."""
        cache = self._open_kernel_cache()
        return f"{cache.input_digest} {self._options.machine_code}" if cache else ""

    def _graft_gate(self) -> Gate:
        with self._lock:
            if self._gate is None:
                self._gate = GraftGate(default_cache_directory("grafts"), self._assembler.tools())
            return self._gate

    def _find_grafter(self) -> Grafter:
        from tui_probe.engine.grafting.grafts import Grafter  # with its code, which kernels with PTX need not

        with self._lock:
            if self._grafter is None:
                self._grafter = Grafter(
                    self._probe, self._assembler, self._cache, samples_blocks=self._options.samples_blocks
                )
            return self._grafter

    def prepare(
        self, directory: Path, arch: str, name: str, threads: int = 0, on_start: StartCallback = do_nothing
    ) -> Answer:
        """Prepare the kernel ``name`` of ``directory/original.bin`` for a device of ``arch``.

        That is ``sm_90``, and the layout of tensor maps as :func:`tensor_maps.split_target` reads it.
        ``threads`` are those of the block that is launched first, 0 if they are not known.
        ``on_start`` is called when a ptxas works, and at the end: from then on this process has time for another probe.
        Writes the files of a kernel's directory. Never raises: a failure is an answer, its details in process.log.
        """
        probe_directory = directory / self._options.folder
        try:
            if probe_directory != directory:
                probe_directory.mkdir(exist_ok=True)
            log = ProcessLog(probe_directory / "process.log")
        except (OSError, ValueError) as error:
            on_start()
            return Answer.refusal("failed", directory_reason(directory, error))
        with log:
            return self._answer(directory, arch, name, threads, log, on_start)

    def _answer(
        self, directory: Path, arch: str, name: str, threads: int, log: ProcessLog, on_start: StartCallback
    ) -> Answer:
        probe_directory = directory / self._options.folder
        stores: list[Future[None]] = []
        try:
            work = KernelWork(
                self._probe,
                self._options,
                self._assembler,
                self._pool,
                directory,
                probe_directory,
                log,
                self._open_kernel_cache(),
                self._pruned,
                on_start,
                self.is_ahead,
                stores,
            )
            job = PrepareJob(work, self.counts, self._find_grafter, self._graft_gate())
            answer = job.run(self._image_cache, arch, name, threads)
            if self._sources is not None and not self.is_ahead:
                self._pool.submit(self._sources.add, probe_directory, directory)
            return answer
        except (UnsupportedKernelError, ImageError) as error:
            return _log_answer(log, "skipped", error.reason)
        except ProbeError as error:
            return _log_answer(log, "failed", error.reason or because("engine-defect", words=str(error)))
        except OSError as error:
            return _log_answer(log, "failed", because_of_file(error.filename or directory, error), str(error))
        except Exception as error:  # noqa: BLE001  after any error the program's own kernel runs instead
            defect = because("engine-defect", words=f"{type(error).__name__}: {error}")
            return _log_answer(log, "failed", defect, traceback.format_exc())
        finally:
            on_start()
            if self.is_ahead:
                self._pending_stores += stores

    def wait_for_stores(self) -> None:
        """Wait until the kernels that were prepared ahead are in the cache."""
        while self._pending_stores:
            self._pending_stores.pop().exception()


def directory_reason(directory: Path, error: OSError | ValueError) -> Reason:
    """Return why nothing can be written to a kernel's directory; a ValueError is about its name."""
    if isinstance(error, OSError):
        return because_of_file(directory, error)
    return because("file-error", path=repr(str(directory)), error=re.sub(r"[:()]", " ", str(error)))


def _log_answer(log: ProcessLog, outcome: Literal["skipped", "failed"], reason: Reason, details: str = "") -> Answer:
    """Write how it ended to the log and make the answer of it."""
    try:
        log.write(f"[{outcome}] {reason.written}\n{details}")
    except OSError as error:
        reason = reason._replace(text=f"{reason.text} (process.log: {error.strerror})")
    return Answer.refusal(outcome, reason)
