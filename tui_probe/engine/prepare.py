"""One kernel from its captured image to a probed binary, and the files that tell of it."""

from __future__ import annotations

import contextlib
import re
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tui_probe.engine.assemble import Assembler, AssemblyReport
from tui_probe.engine.cache_folder import default_folder
from tui_probe.engine.edits import Edits
from tui_probe.engine.files import read_file, write_file
from tui_probe.engine.graft_gate import Gate, GraftGate
from tui_probe.engine.grafts import WAY, GraftedKernel, Grafter
from tui_probe.engine.insertion import insert_probe
from tui_probe.engine.kept_kernels import PREPARED_FILES, KeptKernels
from tui_probe.engine.kernel import Kernel
from tui_probe.engine.kernel_info import kernel_info, note_in
from tui_probe.engine.machine_code import find_cubin
from tui_probe.engine.module_variables import replay_hazard, share_variables
from tui_probe.engine.names import Names
from tui_probe.engine.originals import Original, Originals
from tui_probe.engine.process_log import ProcessLog
from tui_probe.engine.pruned import PrunedAssemblies, take_over
from tui_probe.engine.serialisation import reason, serialised, without_yielding, yielding_sites
from tui_probe.engine.site_file import site_file
from tui_probe.engine.source_copies import SourceCopies
from tui_probe.engine.storage import map_slots
from tui_probe.engine.toolchain import INSTALL_HINT
from tui_probe.errors import ImageError, ProbeError, ToolchainError, UnsupportedKernelError
from tui_probe.ptx.parser import parse
from tui_probe.reasons import Reason, because, because_of_file
from tui_probe.trace.sites import NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.engine.cache import Cache
    from tui_probe.engine.model import Probe
    from tui_probe.engine.site_notes import SiteNotes
    from tui_probe.sass.cubin import Cubin

Load: TypeAlias = Literal["bin", "ptx"]
MachineCode: TypeAlias = Literal["auto", "all", "off"]
"""Which kernels without PTX are probed in machine code. Of closed libraries the hook asks with ``all`` alone."""

KERNEL_FILES: Final = frozenset({"original.bin", "original.ptx", *PREPARED_FILES, "process.log"})
"""What a kernel's folder holds; that of a refused kernel lacks what could not be made."""

_ARCH: Final = re.compile(r"sm_(\d+)[af]?")
_ASSEMBLERS: Final = 4
_LACK_REGISTERS: Final = frozenset({"graft-uniform", "graft-calls"})
_WITHOUT_PTX: Final = frozenset({"no-ptx", "ptx-for-other-gpu", "no-ptx-for-kernel"})
"""Codes of images in which there may be machine code all the same."""
_SHORT: Final = 500
_NO_ASSEMBLER: Final = f"[assemble] no ptxas on this machine: the driver compiles probed.ptx; {INSTALL_HINT}"
_SAMPLE: Final = """.version 8.0
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a kernel: ``ok`` with the file to load, ``skipped`` or ``failed`` with a reason.

    ``text`` is on one line: the file, or the words of the reason. ``code`` is that of the reason, None for ``ok``.
    """

    outcome: Literal["ok", "skipped", "failed"]
    text: str
    code: str | None = None

    @classmethod
    def refusal(cls, outcome: Literal["skipped", "failed"], reason: Reason) -> Answer:
        """A kernel that is not probed, for a reason that is cut short if it is very long."""
        return cls(outcome, *reason.shortened(_SHORT))

    @property
    def reason(self) -> Reason | None:
        """Why it is not probed."""
        return None if self.code is None else Reason(self.text, self.code)

    @property
    def written(self) -> str:
        """As the hook is told it."""
        return self.text if self.reason is None else self.reason.written


@dataclass(frozen=True, slots=True)
class Options:
    """``load``: what the driver is given, machine code or PTX. The filters are those of the run, for the log.

    ``sampled``: only the blocks of a sample are probed, which the hook tells each launch.
    """

    load: Load = "bin"
    kernels: str = ""
    filtered: str = ""
    sources: int = 0
    """Bytes that copies of source files may have in each trace; 0: there are none."""
    sampled: bool = False
    folder: str = ""
    """Where in a kernel's folder the files of this probe go, when it is one of several; "": they are the only ones."""
    machine_code: MachineCode = "auto"
    """Which kernels without PTX are probed in their machine code; the hook leaves out closed libraries."""


@dataclass(frozen=True, slots=True)
class Probed:
    """A kernel with a probe in it: its PTX, the text of its kernel.info, and what was learned of the probe's sites."""

    ptx: str
    info: str
    notes: SiteNotes


def probed_kernel(kernel: Kernel, probe: Probe, *, sampled: bool = False) -> tuple[str, str]:
    """The probed PTX of a kernel, and the text of its kernel.info. Raises UnsupportedKernelError."""
    probed = with_probe(kernel, probe, sampled=sampled)
    return probed.ptx, probed.info


def with_probe(kernel: Kernel, probe: Probe, *, sampled: bool = False, note: Reason | None = None) -> Probed:
    """A kernel with a probe in it, and a ``note`` for people in its kernel.info. Raises UnsupportedKernelError."""
    names, edits = Names(kernel.pruned), Edits(kernel.module.source)
    shared = share_variables(kernel, names, edits)
    inserted = insert_probe(kernel, probe, names, edits, shared, sampled=sampled)
    info = kernel_info(
        kernel.entry.name,
        len(kernel.entry.parameters),
        map_slots(probe, inserted.sites),
        probe.callback,
        shared.variables,
        replay_hazard(kernel),
        sampled=sampled,
        note=note or (because("matched-nothing", probe=probe.name) if inserted.in_vain else None),
    )
    return Probed(kernel.edited(edits), info, inserted.notes)


@dataclass(slots=True)
class CacheCounts:
    """Kernels that were ready in the cache, and those that were looked for in vain."""

    hits: int = 0
    misses: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, hit: bool) -> None:
        """Count one more kernel."""
        with self._lock:
            self.hits += hit
            self.misses += not hit


class Preparer:
    """Prepares kernels with one probe. Safe to use from several threads; ``close`` waits for what still runs."""

    def __init__(
        self,
        probe: Probe,
        options: Options | None = None,
        assembler: Assembler | None = None,
        cache: Cache | None = None,
        originals: Originals | None = None,
        pruned: PrunedAssemblies | None = None,
        gate: Gate | None = None,
    ) -> None:
        self._probe = probe
        self._options = options or Options()
        self._assembler = assembler or Assembler()
        self._originals = originals or Originals()
        self._pruned = pruned
        self._pool = ThreadPoolExecutor(_ASSEMBLERS, thread_name_prefix="assemble")
        self._cache = cache
        self._sources = SourceCopies(self._options.sources) if self._options.sources else None
        self._kept: KeptKernels | None = None
        self._lock = threading.Lock()
        self._gate = gate
        self._grafter = Grafter(probe, self._assembler, sampled=self._options.sampled)
        self.counts = CacheCounts()

    def warm_up(self) -> None:
        """Do now what the first kernel would have to wait for: find assemblers, run once through all the code."""
        self._kept_kernels()
        with contextlib.suppress(UnsupportedKernelError):
            sample = Kernel.of(parse(_SAMPLE), "sample")
            site_file(self._probe.name, sample, with_probe(sample, self._probe).notes, b"")

    def close(self) -> None:
        """Wait for assemblies that nobody waits for, let the threads go, and keep the cache within its limit."""
        self._pool.shutdown(wait=True)
        if self._cache is not None:
            with contextlib.suppress(OSError):  # the next run trims again
                self._cache.trim()

    def _kept_kernels(self) -> KeptKernels | None:
        """The cache, once the assemblers are known; None without one."""
        with self._lock:
            tools = self._assembler.tools()
            if self._kept is None and self._cache is not None:
                self._kept = KeptKernels(
                    self._cache, self._probe, self._options.load, tools, sampled=self._options.sampled
                )
            return self._kept

    def _graft_gate(self) -> Gate:
        with self._lock:
            if self._gate is None:
                self._gate = GraftGate(default_folder("grafts"), self._assembler.tools())
            return self._gate

    def prepare(self, directory: Path, arch: str, name: str) -> Answer:
        """Prepare the kernel ``name`` of ``directory/original.bin`` for a device of ``arch`` (``sm_90``).

        Writes the files of a kernel's directory. Never raises: a failure is an answer, its details in process.log.
        """
        own = directory / self._options.folder
        try:
            if own != directory:
                own.mkdir(exist_ok=True)
            log = ProcessLog(own / "process.log")
        except (OSError, ValueError) as error:
            return Answer.refusal("failed", _of_directory(directory, error))
        with log:
            return self._answer(directory, arch, name, log)

    def _answer(self, directory: Path, arch: str, name: str, log: ProcessLog) -> Answer:
        own = directory / self._options.folder
        try:
            work = _Preparation(self._probe, self._options, self._assembler, self._pool, directory, own, log)
            work.kept, work.counts, work.pruned = self._kept_kernels(), self.counts, self._pruned
            work.grafter, work.gate = self._grafter, self._graft_gate()
            answer = work.run(self._originals, arch, name)
            if self._sources is not None:
                self._pool.submit(self._sources.add, own, directory)
            return answer
        except (UnsupportedKernelError, ImageError) as error:
            return _ended(log, "skipped", error.reason)
        except ProbeError as error:
            return _ended(log, "failed", error.reason or because("engine-defect", words=str(error)))
        except OSError as error:
            return _ended(log, "failed", because_of_file(error.filename or directory, error), str(error))
        except Exception as error:  # noqa: BLE001  whatever it is, the program's own kernel runs instead
            defect = because("engine-defect", words=f"{type(error).__name__}: {error}")
            return _ended(log, "failed", defect, traceback.format_exc())


def _of_directory(directory: Path, error: OSError | ValueError) -> Reason:
    """Why nothing can be written to a kernel's directory; a ValueError is about its name."""
    if isinstance(error, OSError):
        return because_of_file(directory, error)
    return because("file-error", path=repr(str(directory)), error=re.sub(r"[:()]", " ", str(error)))


def _of_assembler(error: ToolchainError) -> Reason:
    return error.reason or because("engine-defect", words=str(error))


def _ended(log: ProcessLog, outcome: Literal["skipped", "failed"], reason: Reason, details: str = "") -> Answer:
    """Write how it ended to the log and make the answer of it."""
    try:
        log.write(f"[{outcome}] {reason.written}\n{details}")
    except OSError as error:
        reason = reason._replace(text=f"{reason.text} (process.log: {error.strerror})")
    return Answer.refusal(outcome, reason)


@dataclass(slots=True)
class _Preparation:
    """The work on one kernel."""

    probe: Probe
    options: Options
    assembler: Assembler
    pool: ThreadPoolExecutor
    kernel: Path
    """The kernel's folder; ``directory`` is that of the probe in it, the same one if there is no other probe."""
    directory: Path
    log: ProcessLog
    kept: KeptKernels | None = None
    counts: CacheCounts = field(default_factory=CacheCounts)
    pruned: PrunedAssemblies | None = None
    """Shared with the other probes of the run; None where there is no other."""
    grafter: Grafter | None = None
    gate: Gate | None = None

    def run(self, originals: Originals, arch: str, name: str) -> Answer:
        match = _ARCH.fullmatch(arch)
        if match is None:
            raise ProbeError(because("unknown-architecture", architecture=arch))
        self.log.write(f"{self.options.kernels.split(':')} {self.options.filtered.split(':')}")
        image = read_file(self.kernel / "original.bin")
        key = self.kept.key(image, arch, name) if self.kept else ""
        if (ready := self._from_cache(key, name, int(match[1]))) is not None:
            return ready
        try:
            original, found = originals.find(image, name, int(match[1]))
        except ImageError as error:
            if error.reason.code in _WITHOUT_PTX and self.options.load == "bin":
                return self._grafted(image, name, int(match[1]), key, error)
            raise
        self.log.write(self._subject(found, name))
        kernel = self._kernel(original, name)
        tools = self.assembler.tools()
        try:
            probed = with_probe(kernel, self.probe, sampled=self.options.sampled)
        except Exception as error:
            self._write_unprobed(original, kernel)
            if tools and isinstance(error, UnsupportedKernelError):
                self._start_pruned(arch, name)
            raise
        # The launch waits for the probed kernel alone, so that one comes first, and all else once its ptxas runs.
        self._write("probed.ptx", probed.ptx)
        assemblies = [self._running("probed", arch, name)] if tools else []
        self._write_unprobed(original, kernel)
        self._write_info(probed)
        if tools:
            assemblies.append(self._start_pruned(arch, name))
        self._write(NAME, site_file(self.probe.name, kernel, probed.notes, image))
        if not tools:
            self.log.write(_NO_ASSEMBLER)
        if note := self._to_yield(kernel, assemblies):
            without = without_yielding(self.probe)
            probed = with_probe(kernel, without, sampled=self.options.sampled, note=note)
            self._write("probed.ptx", probed.ptx)
            self._write_info(probed)
            self._write(NAME, site_file(self.probe.name, kernel, probed.notes, image))
            assemblies[:1] = [self._start("probed", arch, name)] if tools else []
        load = "probed.bin" if tools and self.options.load == "bin" else "probed.ptx"
        if load == "probed.bin" and isinstance(failure := assemblies[0].result(), ToolchainError):
            assemblies[1].result()
            return Answer.refusal("failed", _of_assembler(failure))
        if self.kept is not None:
            self.pool.submit(self._keep, self.kept, key, load, found, assemblies)
        return Answer("ok", load)

    def _grafted(self, image: bytes, name: str, arch: int, key: str, error: ImageError) -> Answer:
        """Prepare a kernel in machine code, since there is no PTX for the reason that ``error`` tells."""
        assert self.grafter is not None
        try:
            cubin, found = find_cubin(image, name, arch)
        except ImageError:
            raise error from None
        self.log.write(self._subject(found, name))
        write_file(self.directory / "pruned.bin", cubin.image)
        made = self._made(self.grafter, cubin, name, arch)
        self._refuse_graft(arch)
        write_file(self.directory / "probed.bin", made.probed)
        self._write("kernel.info", made.info)
        self.log.write(made.said)
        if self.kept is not None and not made.in_slots:  # whether that is allowed may change
            self.pool.submit(self._keep_files, self.kept, key, "probed.bin", found, [made.said])
        return Answer("ok", "probed.bin")

    def _made(self, grafter: Grafter, cubin: Cubin, name: str, arch: int) -> GraftedKernel:
        """The kernel with the probe in it; if it leaves no register for values, they are kept in slots."""
        assert self.gate is not None
        try:
            return grafter.graft(cubin, name)
        except UnsupportedKernelError as error:
            if error.reason.code not in _LACK_REGISTERS or not self.gate.allows_slots(arch):
                raise
            return grafter.graft(cubin, name, in_slots=True)

    def _to_yield(self, kernel: Kernel, assemblies: Sequence[Future[AssemblyReport | ToolchainError]]) -> Reason | None:
        """Why the yielding points of the probe must not be in this kernel; "" if they may, or are not in it."""
        sites = yielding_sites(kernel, self.probe)
        if not sites:
            return None
        if not assemblies:
            return reason(self.probe, sites, None, None)
        probed = assemblies[0].result()
        after = serialised(probed.output) if isinstance(probed, AssemblyReport) else 0
        if not after:
            return None
        pruned = assemblies[1].result()
        before = serialised(pruned.output) if isinstance(pruned, AssemblyReport) else 0
        return reason(self.probe, sites, before, after) if after > before else None

    def _kernel(self, original: Original, name: str) -> Kernel:
        with original.lock:
            try:
                return Kernel.of(original.module, name)
            except Exception:
                original.write(self.kernel / "original.ptx")
                raise

    def _write_unprobed(self, original: Original, kernel: Kernel) -> None:
        with original.lock:
            original.write(self.kernel / "original.ptx")
        self._write("pruned.ptx", kernel.pruned)

    def _write_info(self, probed: Probed) -> None:
        self._write("kernel.info", probed.info)
        self._tell_note(probed.info)

    def _subject(self, found: str, name: str) -> str:
        """What is prepared, with what: the next lines of the log."""
        sample = ", in a sample of blocks" if self.options.sampled else ""
        return f"[objdump] original.bin is {found}\n{name}\n[probe] {self.probe.name} from {self.probe.path}{sample}"

    def _from_cache(self, key: str, name: str, arch: int) -> Answer | None:
        """The kernel as it was prepared before, by this run or an earlier one."""
        if self.kept is None:
            return None
        entry = self.kept.restore(key, self.directory, self.kernel)
        self.counts.add(hit=entry is not None)
        if entry is None:
            return None
        cached = f"[cache] prepared before: all files are from {self.kept.place(key)}"
        self.log.write("\n".join([self._subject(entry.found, name), cached, entry.said or _NO_ASSEMBLER]))
        self._tell_note(entry.info)
        if WAY in entry.info.splitlines():
            self._refuse_graft(arch)
        return Answer("ok", entry.load)

    def _refuse_graft(self, arch: int) -> None:
        """Raises UnsupportedKernelError where nothing may be put into machine code. What lies there already goes."""
        assert self.gate is not None
        closed = because("machine-code-off") if self.options.machine_code == "off" else self.gate.closed(arch)
        if closed is not None:
            for file in ("probed.bin", "kernel.info"):
                (self.directory / file).unlink(missing_ok=True)
            raise UnsupportedKernelError(closed)

    def _tell_note(self, info: str) -> None:
        if note := note_in(info):
            self.log.write(f"[note] {note}")

    def _keep(
        self,
        kept: KeptKernels,
        key: str,
        load: str,
        found: str,
        assemblies: list[Future[AssemblyReport | ToolchainError]],
    ) -> None:
        """Put the kernel into the cache once its assemblies, which were submitted before this, have ended well."""
        reports = [assembly.result() for assembly in assemblies]
        said = [f"{report.command}\n{report.output}" for report in reports if isinstance(report, AssemblyReport)]
        if len(said) == len(reports):
            self._keep_files(kept, key, load, found, said)

    def _keep_files(self, kept: KeptKernels, key: str, load: str, found: str, said: Sequence[str]) -> None:
        try:
            kept.keep(key, self.directory, self.kernel, load, found, said)
        except OSError as error:
            with contextlib.suppress(OSError):  # the trace is gone or the disk full, and this is only a remark
                self.log.write(f"[cache] not kept for other runs: {error.filename}: {error.strerror}")

    def _write(self, file: str, text: str) -> None:
        write_file(self.directory / file, text.encode("utf-8"))

    def _running(self, variant: str, arch: str, name: str) -> Future[AssemblyReport | ToolchainError]:
        """The assembly of one variant, whose ptxas runs when this returns: other work would take the interpreter from
        the thread that starts it.
        """
        started = threading.Event()
        assembly = self._start(variant, arch, name, started)
        started.wait()
        return assembly

    def _start(
        self, variant: str, arch: str, name: str, started: threading.Event | None = None
    ) -> Future[AssemblyReport | ToolchainError]:
        return self.pool.submit(self._assemble, variant, arch, name, started or threading.Event())

    def _start_pruned(self, arch: str, name: str) -> Future[AssemblyReport | ToolchainError]:
        """The assembly without the probe: of several probes the first does it, the others take it over."""
        if self.pruned is None:
            return self._start("pruned", arch, name)
        made, assembly = self.pruned.assembly(self.kernel, self.directory, lambda: self._start("pruned", arch, name))
        return assembly if made == self.directory else self.pool.submit(self._taken_over, made, assembly)

    def _taken_over(
        self, made: Path, assembly: Future[AssemblyReport | ToolchainError]
    ) -> AssemblyReport | ToolchainError:
        report = assembly.result()
        if isinstance(report, ToolchainError):
            self.log.write(f"[failed] {_of_assembler(report).written}\n{report.details}")
            return report
        take_over(made, self.directory)
        report = replace(report, command=report.command.replace(str(made), str(self.directory)))
        self.log.write(f"{report.command}\n{report.output}")
        return report

    def _assemble(
        self, variant: str, arch: str, name: str, started: threading.Event
    ) -> AssemblyReport | ToolchainError:
        """Assemble one variant; its binary appears under its name when it is whole. What ptxas says is logged."""
        try:
            return self._assembled(variant, arch, name, started)
        finally:
            started.set()

    def _assembled(
        self, variant: str, arch: str, name: str, started: threading.Event
    ) -> AssemblyReport | ToolchainError:
        binary = self.directory / f"{variant}.bin"
        unfinished = self.directory / f".{variant}.bin.unfinished"
        try:
            report = self.assembler.assemble(self.directory / f"{variant}.ptx", unfinished, arch, name, started.set)
            unfinished.replace(binary)
        except ToolchainError as error:
            unfinished.unlink(missing_ok=True)
            self.log.write(f"[failed] {_of_assembler(error).written}\n{error.details}")
            return error
        self.log.write(f"{report.command}\n{report.output}")
        return report
