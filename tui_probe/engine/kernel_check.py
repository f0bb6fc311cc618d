"""Check a probe on the kernels of a file without a GPU: prune, probe and assemble as a run does.

Without a probe, the wait sites of the kernels are listed. Wait sites and spills are read from the machine code of the
kernel, with the source line of each instruction.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.binaries.cubin import Cubin
from tui_probe.engine.grafting.graft_gate import OpenGate
from tui_probe.engine.kernel import Kernel, count_inserted_instructions
from tui_probe.engine.kernel_cache import PRUNED_FILE, ImageCache
from tui_probe.engine.kernel_texts import note_in
from tui_probe.engine.kernel_work import assembly_failure
from tui_probe.engine.preparer import KERNEL_FILES, Preparer
from tui_probe.engine.refusals import refuse_architecture
from tui_probe.errors import ImageError, PtxError, ToolchainError, UnsupportedKernelError
from tui_probe.ptx.images import PtxText
from tui_probe.ptx.parser import parse
from tui_probe.reasons import advice_on, because
from tui_probe.sass.accesses import spills_by_line, stack_accesses
from tui_probe.sass.flow import FlowGraph
from tui_probe.sass.operations import operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.wait_probe import FIRST_ARCHITECTURE
from tui_probe.sass.wait_sites import wait_sites
from tui_probe.toolchain import tool_architectures
from tui_probe.trace.kernel_files import ProcessLog, read_process_log
from tui_probe.trace.sites import read_sites
from tui_probe.trace.source_lines import is_of_toolkit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.engine.assembler import Assembler
    from tui_probe.engine.image_kernels import FileKernel
    from tui_probe.probe_model.probe import Probe
    from tui_probe.reasons import Reason
    from tui_probe.sass.accesses import SpillLine
    from tui_probe.sass.scoreboards import Producer
    from tui_probe.sass.wait_sites import WaitSite
    from tui_probe.trace.launch_events import ProbeMode

_MAX_CONCURRENT: Final = 4
"""Kernels that are prepared at the same time: their assemblers are processes, a library has 10 000 kernels."""
_BATCH_SIZE: Final = 64
"""Kernels whose files exist at the same time unless they are kept: a cubin of a library may have 100 MB."""
_PROGRESS_SECONDS: Final = 0.25
"""Minimum time between two progress texts."""
_DRIVER_ASSEMBLED: Final = "probed.ptx"
"""Answer of the engine if the driver is to assemble the PTX: no ptxas here knows the architecture."""
_COMPLAINT: Final = re.compile(
    r"ptxas (?!\d[\d.]*: )\S.*?/probed\.ptx, line (?P<line>\d+); (?:error|fatal) *: (?P<words>.+)"
)
_MAX_COMPLAINTS: Final = 4
"""Errors of the assembler that are shown; the others are counted."""
_ADDED_INSTRUCTIONS: Final = re.compile(r"^\[graft\] added (\d+) instructions", re.MULTILINE)


@dataclass(frozen=True)
class KernelWaits:
    """The wait sites of a kernel; ``reason`` says why they are unknown. ``lines`` has file and line by offset."""

    sites: tuple[WaitSite, ...] = ()
    names: tuple[str, ...] = ()
    lines: dict[int, tuple[str, int]] | None = None
    reason: Reason | None = None
    spills: tuple[SpillLine, ...] = ()
    """Accesses of the stack by source line."""
    refusal: Reason | None = None
    """Reason why a run cannot measure them on this architecture."""

    @property
    def instructions(self) -> int:
        """Number of instructions, padding included."""
        return len(self.names)

    def name(self, site: WaitSite | Producer) -> str:
        """Return the name of an instruction, ``LDG``."""
        return self.names[site.index]

    def line(self, site: WaitSite | Producer) -> tuple[str, int] | None:
        """Return the source file and line of an instruction; None without a line table."""
        return (self.lines or {}).get(site.offset)


def kernel_waits(kernel: FileKernel, directory: Path) -> KernelWaits:
    """Return the wait sites of a kernel that was prepared in ``directory``.

    Without machine code in its file they are those of the code that ptxas made of its PTX.
    """
    try:
        cubin = kernel.sass_cubin() or _assembled_cubin(directory, f"sm_{kernel.arch}")
        target = GraftTarget.from_cubin(cubin, kernel.name)
        names = tuple(operation_name(word, target.arch) or f"{word.operation:#05x}" for word in target.words)
        graph, lines = FlowGraph.from_target(target), _program_lines(target)
        spills = tuple(spills_by_line(stack_accesses(target, graph), lines))
        return KernelWaits(tuple(wait_sites(target, graph)), names, lines, None, spills, _refusal_reason(target.arch))
    except (ImageError, UnsupportedKernelError) as error:
        return KernelWaits(reason=error.reason)


def _refusal_reason(arch: int) -> Reason | None:
    """Return the reason why waits cannot be measured on an architecture; None where they can."""
    try:
        refuse_architecture(arch)
    except UnsupportedKernelError as error:
        return error.reason
    return because("waits-architecture", probe="stalls", gpu=f"sm_{arch}") if arch < FIRST_ARCHITECTURE else None


def _program_lines(target: GraftTarget) -> dict[int, tuple[str, int]]:
    """Return the source lines by offset; of code from headers of the CUDA Toolkit those that call it."""
    lines = target.source_lines()
    calls = target.inlined_calls() if any(is_of_toolkit(file) for file, _ in lines.values()) else {}
    for offset, (file, _) in lines.items():
        if is_of_toolkit(file):
            lines[offset] = next((call for call in calls.get(offset, ()) if not is_of_toolkit(call[0])), lines[offset])
    return lines


def _assembled_cubin(directory: Path, arch: str) -> Cubin:
    try:
        return Cubin.read((directory / PRUNED_FILE).read_bytes())
    except FileNotFoundError:
        raise UnsupportedKernelError(because("no-machine-code", gpu=arch)) from None


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """Result of the check of one kernel.

    ``arch`` is what it was prepared for; ``reason`` and ``advice`` say why it is not ``ok`` and what to write instead;
    ``line`` is that of ``directory/original.ptx``, 0 for none. ``added_instructions`` is the number of instructions
    that the probe inserted, None if it inserted none. ``note`` is what a run would remark. ``complaints`` are the
    assembler's errors, each with the line of probed PTX that it is about.
    """

    name: str
    status: Literal["ok", "refused", "failed"]
    arch: str
    directory: Path
    reason: str = ""
    line: int = 0
    advice: str = ""
    added_instructions: int | None = None
    note: str = ""
    complaints: tuple[str, ...] = ()
    code: str | None = None
    """Code of the reason."""
    mode: ProbeMode = "ptx"
    image: int = 1
    """Image of the file that contains it."""
    match_counts: tuple[tuple[str, int], ...] = ()
    """Name and number of matched positions of each part of the probe that is at instructions, blocks or lines."""
    target: str = ""
    """Architecture of its PTX or SASS, which may be older than ``arch``."""
    waits: KernelWaits | None = None
    """Wait sites of its warps; None if they were not asked for."""


def check_kernels(
    probe: Probe,
    kernels: Sequence[FileKernel],
    arch: str | None,
    output: Path,
    assembler: Assembler,
    *,
    keep: bool = True,
    waits: bool = False,
    progress: Callable[[float], object] = lambda _: None,
) -> list[tuple[KernelCheck, ProcessLog]]:
    """Prepare each kernel for a device of ``arch`` (sm_90), or else for the one that it was found for.

    ``output`` receives a folder for each, ``<index>_<sha1 of name>``, whose original.bin is the PTX module or the cubin
    that the kernel is in; unless ``keep``, they go again soon: a library may have 10 000 kernels. ``waits`` adds
    their wait sites. Raises OSError where a folder cannot be written.
    """
    image_cache = ImageCache()
    all_checks: list[tuple[KernelCheck, ProcessLog]] = []
    for begin in range(0, len(kernels), _BATCH_SIZE):
        batch = _Batch(probe, arch, output, begin, kernels[begin : begin + _BATCH_SIZE], assembler, keep=keep)
        preparer = Preparer(probe, assembler=assembler, image_cache=image_cache, gate=OpenGate())
        checks = batch.check(preparer, progress, len(kernels))
        preparer.close()  # waits for the assemblies that no launch would wait for
        if waits:
            checks = [_add_waits(*check, kernel) for check, kernel in zip(checks, batch.kernels, strict=True)]
        all_checks += [(check, _read_log(check) if log is None else log) for check, log in checks]
        if not keep:
            for check, _ in checks:
                shutil.rmtree(check.directory, ignore_errors=True)
    return all_checks


def list_waits(
    kernels: Sequence[FileKernel],
    arch: str | None,
    output: Path,
    assembler: Assembler,
    progress: Callable[[float], object] = lambda _: None,
) -> list[tuple[KernelCheck, ProcessLog]]:
    """Return the wait sites of each kernel without a probe, as ``check_kernels`` does with one.

    A kernel without machine code is pruned and assembled in its folder in ``output``.
    """
    checks: list[tuple[KernelCheck, ProcessLog]] = []
    for number, kernel in enumerate(kernels):
        progress(number / len(kernels))
        directory = _kernel_directory(output, number, kernel)
        checks.append((_check_waits(kernel, directory, arch or f"sm_{kernel.arch}", assembler), ProcessLog()))
    return checks


def _check_waits(kernel: FileKernel, directory: Path, arch: str, assembler: Assembler) -> KernelCheck:
    """Return the wait sites of a kernel in its machine code, or in the code that ptxas makes of its PTX."""
    code = kernel.in_sass_mode()
    try:
        if code.mode == "ptx":
            _assemble_pruned(kernel, directory, arch, assembler)
        waits = kernel_waits(kernel, directory)
    except ToolchainError as error:
        waits = KernelWaits(reason=assembly_failure(error))
    except PtxError as error:
        waits = KernelWaits(reason=because("engine-defect", words=str(error)))
    reason = waits.reason
    return KernelCheck(
        kernel.name,
        "ok" if reason is None else "failed",
        arch,
        directory,
        reason=reason.sentence if reason else "",
        code=reason.code if reason else None,
        mode=code.mode,
        image=kernel.image,
        target=code.target,
        waits=waits,
    )


def _assemble_pruned(kernel: FileKernel, directory: Path, arch: str, assembler: Assembler) -> None:
    """Assemble the PTX of a kernel with its source lines. Raises PtxError, ToolchainError."""
    assert isinstance(kernel.source, PtxText)
    source = directory / "pruned.ptx"
    source.write_text(Kernel.of(parse(kernel.source.text), kernel.name).pruned, encoding="utf-8")
    assembler.assemble(source, directory / PRUNED_FILE, arch, kernel.name, lines=True)


def _kernel_directory(output: Path, number: int, kernel: FileKernel) -> Path:
    """Make the folder of a kernel, without outputs of an earlier check."""
    name = hashlib.sha1(kernel.name.encode(), usedforsecurity=False).hexdigest()
    directory = output / f"{number}_{name}"
    directory.mkdir(parents=True, exist_ok=True)
    _remove_outputs(directory)
    return directory


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some of the kernels; the first has the number ``first_number``."""

    probe: Probe
    arch: str | None
    output: Path
    first_number: int
    kernels: Sequence[FileKernel]
    assembler: Assembler
    keep: bool

    def check(
        self, preparer: Preparer, progress: Callable[[float], object], total: int
    ) -> list[tuple[KernelCheck, ProcessLog | None]]:
        """Prepare each kernel; ``progress`` receives the share done of the ``total`` of all batches now and then.

        The log is None where work may still continue behind the answer, until the preparer is closed. An interrupt
        waits for no kernel: the code of a library may take minutes.
        """
        pool = ThreadPoolExecutor(_MAX_CONCURRENT, thread_name_prefix="check")
        attempts = [
            pool.submit(self._check_and_clean, preparer, number, kernel)
            for number, kernel in enumerate(self.kernels, self.first_number)
        ]
        try:
            pending = set(attempts)
            while pending:
                pending = wait(pending, _PROGRESS_SECONDS, FIRST_COMPLETED).not_done
                progress((self.first_number + len(attempts) - len(pending)) / total)
            return [attempt.result() for attempt in attempts]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _check_and_clean(
        self, preparer: Preparer, number: int, kernel: FileKernel
    ) -> tuple[KernelCheck, ProcessLog | None]:
        check = self._check(preparer, number, kernel)
        if self.keep or kernel.mode == "ptx":
            return check, None
        # Removed now, since no work continues in it: each kernel may have copies of a cubin of 100 MB.
        log = _read_log(check)
        shutil.rmtree(check.directory, ignore_errors=True)
        return check, log

    def _check(self, preparer: Preparer, number: int, kernel: FileKernel) -> KernelCheck:
        directory = _kernel_directory(self.output, number, kernel)
        kernel = kernel.in_sass_mode() if self.probe.needs_machine_code else kernel
        (directory / "original.bin").write_bytes(kernel.content())
        arch = self.arch or f"sm_{kernel.arch}"
        answer = preparer.prepare(directory, arch, kernel.name)
        check = KernelCheck(
            kernel.name, "ok", arch, directory, mode=kernel.mode, image=kernel.image, target=kernel.target
        )
        reason = answer.reason
        if reason is None and answer.text == _DRIVER_ASSEMBLED and (tools := self.assembler.tools()):
            # A run leaves it to the driver of such a GPU. Here nothing has shown that it can be assembled.
            reason = because("architecture-unknown", version=tools[0].version, gpu=arch)
        if reason is None:
            if kernel.mode == "ptx" and not (directory / _DRIVER_ASSEMBLED).exists():
                # As a run does: this ptxas is older than the PTX.
                check = replace(check, mode="graft", target=kernel.in_sass_mode().target)
            return _probed_check(self.probe, check)
        return _refused_check(
            check, "failed" if answer.reason is None else answer.outcome, reason, self._supported_architecture(kernel)
        )

    def _supported_architecture(self, kernel: FileKernel) -> str:
        """Return the oldest architecture with an assembler here that the PTX of a kernel runs on; "" for none."""
        architectures = {arch for tool in self.assembler.tools() for arch in tool_architectures(tool)}
        text = kernel.source
        return next(
            (f"sm_{arch}" for arch in sorted(architectures) if isinstance(text, PtxText) and text.runs_on(arch)), ""
        )


def _add_waits(check: KernelCheck, log: ProcessLog | None, kernel: FileKernel) -> tuple[KernelCheck, ProcessLog | None]:
    return replace(check, waits=kernel_waits(kernel, check.directory)), log


def _read_log(check: KernelCheck) -> ProcessLog:
    return read_process_log(check.directory / "process.log")


def _match_counts(probe: Probe, directory: Path) -> tuple[tuple[str, int], ...]:
    """Count the sites of each point of the probe; in a kernel whose records are bulk copies only, those of the copies.

    Raises TraceError.
    """
    probe_sites = read_sites(directory) or ()
    if copies := sum(site.copy is not None for sites in probe_sites for site in sites.sites):
        return (("bulk copies", copies),)
    point_counts = Counter(point for check in probe_sites for site in check.sites for point in site.points)
    points = [point.name for point in probe.points if not all(position.is_kernel for position in point.positions)]
    return tuple((name, point_counts[name]) for name in points)


def _remove_outputs(directory: Path) -> None:
    """Remove the files that an earlier check left, and no others: the user named the directory."""
    for file in directory.iterdir():
        if file.name in KERNEL_FILES:
            file.unlink()


def _refused_check(check: KernelCheck, outcome: str, reason: Reason, supported_arch: str) -> KernelCheck:
    """Return the check of a refused kernel: reason, advice and complaints. ``supported_arch`` is an architecture that
    fits, or "".
    """
    directory = check.directory
    is_unknown = reason.code == "architecture-unknown"
    advice = advice_on(reason.code, reason.parameters) if outcome == "skipped" or is_unknown else ""
    if is_unknown and supported_arch:
        advice = f"Pass an architecture that this ptxas supports: --arch {supported_arch}."
    elif not is_unknown and (directory / "probed.ptx").exists() and not (directory / "pruned.bin").exists():
        advice = "Compile the kernel's PTX again; ptxas refuses this kernel without the probe, too."
    return replace(
        check,
        status="refused" if outcome == "skipped" else "failed",
        reason=_COMPLAINT.sub(lambda match: match["words"], reason.sentence),
        line=reason.line,
        advice=advice,
        complaints=tuple(_complaints(directory)),
        code=reason.code,
    )


def _probed_check(probe: Probe, check: KernelCheck) -> KernelCheck:
    """Return the check of a probed kernel: instructions added, note, matched positions. Raises TraceError."""
    directory = check.directory
    if check.mode == "graft":
        match = _ADDED_INSTRUCTIONS.search((directory / "process.log").read_text(encoding="utf-8"))
        added_instructions = int(match[1]) if match else None
    else:
        added_instructions = count_inserted_instructions((directory / "probed.ptx").read_text(encoding="utf-8"))
    note = note_in((directory / "kernel.info").read_text(encoding="utf-8"))
    match_counts = _match_counts(probe, directory)
    return replace(check, added_instructions=added_instructions, note=note, match_counts=match_counts)


def _complaints(directory: Path) -> Iterator[str]:
    """Yield the assembler's complaints about the probed kernel: ``line 13 of probed.ptx, 'frobnicate;': words``."""
    try:
        log = (directory / "process.log").read_text(encoding="utf-8")
        lines = (directory / "probed.ptx").read_text(encoding="utf-8").splitlines()
    except OSError:  # it did not come to assembling
        return
    messages = "\n".join(line for line in log.splitlines() if not line.startswith("[failed] "))
    complaints = dict.fromkeys((int(match["line"]), match["words"]) for match in _COMPLAINT.finditer(messages))
    for number, complaint in list(complaints)[:_MAX_COMPLAINTS]:
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        yield f"line {number} of probed.ptx, {text!r}: {complaint}"
    if len(complaints) > _MAX_COMPLAINTS:
        yield f"and {len(complaints) - _MAX_COMPLAINTS} more"
