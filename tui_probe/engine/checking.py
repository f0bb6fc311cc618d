"""A probe tried on the kernels of a file, without a GPU: pruned, probed and assembled as for a run."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.edits import inserted_instructions
from tui_probe.engine.graft_gate import OpenGate
from tui_probe.engine.kernel_info import note_in
from tui_probe.engine.originals import Originals
from tui_probe.engine.prepare import KERNEL_FILES, Preparer
from tui_probe.engine.toolchain import architectures
from tui_probe.ptx.images import PtxText
from tui_probe.reasons import advice_on, because
from tui_probe.trace.kernels import read_process_log
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.engine.assemble import Assembler
    from tui_probe.engine.kernel_file import FoundKernel, Way
    from tui_probe.engine.model import Probe
    from tui_probe.reasons import Reason
    from tui_probe.trace.kernels import ProcessLog

_AT_ONCE: Final = 4
_BATCH: Final = 64
"""Kernels whose files are there at once, where they do not stay."""
_SECONDS: Final = 0.25
"""Between two words about how far it is."""
_LEFT_TO_DRIVER: Final = "probed.ptx"
_COMPLAINT: Final = re.compile(
    r"ptxas (?!\d[\d.]*: )\S.*?/probed\.ptx, line (?P<line>\d+); (?:error|fatal) *: (?P<words>.+)"
)
_MOST_COMPLAINTS: Final = 4
_ADDED: Final = re.compile(r"^\[graft\] added (\d+) instructions", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """What became of one kernel.

    ``arch`` is what it was prepared for; ``reason`` and ``instead`` say why it
    is not ``ok`` and what to write instead; ``line`` is that of ``directory/original.ptx``, 0 for none. ``added`` is
    the number of instructions that the probe put in, None if it put in none. ``note`` is what a run would remark.
    ``said`` are the assembler's errors, each with the line of probed PTX that it is about.
    """

    name: str
    status: Literal["ok", "refused", "failed"]
    arch: str
    directory: Path
    reason: str = ""
    line: int = 0
    instead: str = ""
    added: int | None = None
    note: str = ""
    said: tuple[str, ...] = ()
    code: str | None = None
    """That of the reason."""
    way: Way = "ptx"
    image: int = 1
    """Which image of the file it is from."""
    matched: tuple[tuple[str, int], ...] = ()
    """Of each part of the probe that is at instructions, blocks or lines, its name and how many places it matched."""
    target: str = ""
    """What its PTX or machine code is for, which may be older than ``arch``."""


def check_kernels(
    probe: Probe,
    kernels: Sequence[FoundKernel],
    arch: str | None,
    out: Path,
    assembler: Assembler,
    *,
    keep: bool = True,
    progress: Callable[[float], object] = lambda _: None,
) -> list[tuple[KernelCheck, ProcessLog]]:
    """Prepare each kernel for a device of ``arch`` (sm_90), or else for the one that it was found for.

    ``out`` receives a folder for each, ``<index>_<sha1 of name>``, whose original.bin is the PTX module or the cubin
    that the kernel is in; unless ``keep``, they go again soon: a library may have 10 000 kernels.
    Raises OSError where a folder cannot be written.
    """
    originals = Originals()
    found: list[tuple[KernelCheck, ProcessLog]] = []
    for begin in range(0, len(kernels), _BATCH):
        batch = _Batch(probe, arch, out, keep, begin, kernels[begin : begin + _BATCH], assembler)
        preparer = Preparer(probe, assembler=assembler, originals=originals, gate=OpenGate())
        checks = batch.check(preparer, progress, len(kernels))
        preparer.close()  # waits for the assemblies that no launch would wait for
        found += [(check, _log(check) if log is None else log) for check, log in checks]
        if not keep:
            for check, _ in checks:
                shutil.rmtree(check.directory, ignore_errors=True)
    return found


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some of the kernels, of which the first has the number ``begin``."""

    probe: Probe
    arch: str | None
    out: Path
    keep: bool
    begin: int
    kernels: Sequence[FoundKernel]
    assembler: Assembler

    def check(
        self, preparer: Preparer, progress: Callable[[float], object], of: int
    ) -> list[tuple[KernelCheck, ProcessLog | None]]:
        """What becomes of each; ``progress`` is told now and then the share that is done ``of`` all kernels.

        The log is None where work may still go on behind the answer, until the preparer is closed. An interrupt waits
        for no kernel: the code of a library may take minutes.
        """
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="check")
        tried = [
            pool.submit(self._tried, preparer, number, kernel) for number, kernel in enumerate(self.kernels, self.begin)
        ]
        try:
            pending = set(tried)
            while pending:
                pending = wait(pending, _SECONDS, FIRST_COMPLETED).not_done
                progress((self.begin + len(tried) - len(pending)) / of)
            return [each.result() for each in tried]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _tried(self, preparer: Preparer, number: int, kernel: FoundKernel) -> tuple[KernelCheck, ProcessLog | None]:
        check = self._check(preparer, number, kernel)
        if self.keep or kernel.way == "ptx":
            return check, None
        # Each may have copies of a cubin of 100 MB, and no work goes on.
        log = _log(check)
        shutil.rmtree(check.directory, ignore_errors=True)
        return check, log

    def _check(self, preparer: Preparer, number: int, kernel: FoundKernel) -> KernelCheck:
        name = hashlib.sha1(kernel.name.encode(), usedforsecurity=False).hexdigest()
        directory = self.out / f"{number}_{name}"
        directory.mkdir(parents=True, exist_ok=True)
        _clear(directory)
        (directory / "original.bin").write_bytes(kernel.content())
        arch = self.arch or f"sm_{kernel.arch}"
        answer = preparer.prepare(directory, arch, kernel.name)
        check = KernelCheck(
            kernel.name, "ok", arch, directory, way=kernel.way, image=kernel.image, target=kernel.target
        )
        reason = answer.reason
        if reason is None and answer.text == _LEFT_TO_DRIVER and (tools := self.assembler.tools()):
            # A run leaves it to the driver of such a GPU. Here nothing has shown that it can be assembled.
            reason = because("architecture-unknown", version=tools[0].version, gpu=arch)
        if reason is None:
            return _probed(self.probe, check)
        return _refused(check, "failed" if answer.reason is None else answer.outcome, reason, self._known(kernel))

    def _known(self, kernel: FoundKernel) -> str:
        """The oldest architecture that the PTX of a kernel runs on, of those that there is an assembler for; ""."""
        known = {arch for tool in self.assembler.tools() for arch in architectures(tool)}
        text = kernel.source
        return next((f"sm_{arch}" for arch in sorted(known) if isinstance(text, PtxText) and text.runs_on(arch)), "")


def _log(check: KernelCheck) -> ProcessLog:
    return read_process_log(check.directory / "process.log")


def _matched(probe: Probe, directory: Path) -> tuple[tuple[str, int], ...]:
    """How many places each part of the probe is at. Raises TraceError."""
    known = read_sites(directory) or ()
    named = Counter(point for each in known for site in each.sites for point in site.points)
    points = [point.name for point in probe.points if not all(position.is_kernel for position in point.positions)]
    return tuple((name, named[name]) for name in points)


def _clear(directory: Path) -> None:
    """Remove what an earlier check left."""
    for file in directory.iterdir():
        if file.name in KERNEL_FILES:
            file.unlink()


def _refused(check: KernelCheck, outcome: str, reason: Reason, known: str) -> KernelCheck:
    """Of a kernel that was not probed: why, and what to write instead. ``known`` is an architecture that would do."""
    directory = check.directory
    is_unknown = reason.code == "architecture-unknown"
    instead = advice_on(reason.code, reason.parameters) if outcome == "skipped" or is_unknown else ""
    if is_unknown and known:
        instead = f"Name an architecture that this ptxas knows: --arch {known}."
    elif not is_unknown and (directory / "probed.ptx").exists() and not (directory / "pruned.bin").exists():
        instead = "Compile its PTX anew: ptxas refuses this kernel without the probe too."
    return replace(
        check,
        status="refused" if outcome == "skipped" else "failed",
        reason=_COMPLAINT.sub(lambda found: found["words"], reason.sentence),
        line=reason.line,
        instead=instead,
        said=tuple(_complaints(directory)),
        code=reason.code,
    )


def _probed(probe: Probe, check: KernelCheck) -> KernelCheck:
    """Of a kernel with the probe in it: how much was added, and where. Raises TraceError."""
    directory = check.directory
    if check.way == "graft":
        found = _ADDED.search((directory / "process.log").read_text(encoding="utf-8"))
        added = int(found[1]) if found else None
    else:
        added = inserted_instructions((directory / "probed.ptx").read_text(encoding="utf-8"))
    note = note_in((directory / "kernel.info").read_text(encoding="utf-8"))
    return replace(check, added=added, note=note, matched=_matched(probe, directory))


def _complaints(directory: Path) -> Iterator[str]:
    """What the assembler says of the probed kernel: ``line 13 of probed.ptx, 'frobnicate;': words``."""
    try:
        log = (directory / "process.log").read_text(encoding="utf-8")
        lines = (directory / "probed.ptx").read_text(encoding="utf-8").splitlines()
    except OSError:  # it did not come to assembling
        return
    said = "\n".join(line for line in log.splitlines() if not line.startswith("[failed] "))
    found = dict.fromkeys((int(each["line"]), each["words"]) for each in _COMPLAINT.finditer(said))
    for number, words in list(found)[:_MOST_COMPLAINTS]:
        text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        yield f"line {number} of probed.ptx, {text!r}: {words}"
    if len(found) > _MOST_COMPLAINTS:
        yield f"and {len(found) - _MOST_COMPLAINTS} more"
