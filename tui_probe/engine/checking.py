"""A probe tried on the kernels of a file, without a GPU: pruned, probed and assembled as for a run."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from tui_probe.engine.edits import inserted_instructions
from tui_probe.engine.graft_gate import OpenGate
from tui_probe.engine.kernel_info import note_in
from tui_probe.engine.machine_code import find_cubin, kernels_in
from tui_probe.engine.prepare import KERNEL_FILES, Preparer
from tui_probe.errors import ImageError
from tui_probe.ptx.images import PtxText, choose_ptx, image_kind, ptx_texts
from tui_probe.reasons import advice_on
from tui_probe.trace.sites import read_sites

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tui_probe.engine.answers import Answer
    from tui_probe.engine.assemble import Assembler
    from tui_probe.engine.model import Probe

_AT_ONCE: Final = 4
_NO_PTX: Final = "compile with PTX in it, such as -gencode arch=compute_90,code=compute_90"
_NOT_FOR_THIS_GPU: Final = re.compile(r"is not defined for option 'gpu-name'")
_COMPLAINT: Final = re.compile(
    r"ptxas (?!\d[\d.]*: )\S.*?/probed\.ptx, line (?P<line>\d+); (?:error|fatal) *: (?P<words>.+)"
)
_MOST_COMPLAINTS: Final = 4
_ADDED: Final = re.compile(r"^\[graft\] added (\d+) instructions", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Image:
    """A file with kernels. ``kind`` is that of an event log, ``elf`` for executables and objects too."""

    path: Path
    kind: str
    size: int
    texts: list[PtxText]
    data: bytes = b""
    """What the file holds, where it has no PTX."""
    machine_code: dict[str, int] = field(default_factory=dict)
    """The kernels that it has machine code for, where it has no PTX, and the newest architecture of each (90)."""

    @property
    def way(self) -> Literal["ptx", "graft"]:
        """How its kernels are probed."""
        return "ptx" if self.texts else "graft"

    def kernel_names(self) -> list[str]:
        """The names of all kernels that it has PTX for, or else machine code, in order."""
        return list(dict.fromkeys(name for text in self.texts for name in text.entry_names())) or list(
            self.machine_code
        )


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """What became of one kernel.

    ``arch`` is what it was assembled for, None if there was nothing to assemble; ``reason`` and ``instead`` say why it
    is not ``ok`` and what to write instead; ``line`` is that of ``directory/original.ptx``, 0 for none. ``added`` is
    the number of instructions that the probe put in, None if it put in none. ``note`` is what a run would remark.
    ``said`` are the assembler's errors, each with the line of probed PTX that it is about.
    """

    name: str
    status: Literal["ok", "refused", "failed"]
    arch: str | None
    directory: Path
    reason: str = ""
    line: int = 0
    instead: str = ""
    added: int | None = None
    note: str = ""
    said: tuple[str, ...] = ()
    code: str | None = None
    """That of the reason."""
    way: Literal["ptx", "graft"] = "ptx"
    matched: tuple[tuple[str, int], ...] = ()
    """Of each part of the probe that is at instructions, blocks or lines, its name and how many places it matched."""


def read_image(path: Path) -> Image:
    """Read PTX, a cubin, a fatbin, an executable or an object. Raises ImageError where there is no kernel to be had."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ImageError(f"{path}: {error.strerror}") from error
    try:
        texts = ptx_texts(data)
        if texts:
            return Image(path, image_kind(data), len(data), texts)
        image = Image(path, image_kind(data), len(data), [], data, kernels_in(data))
    except ImageError as error:
        raise ImageError(f"{path}: {error}") from error
    if not image.machine_code:
        raise ImageError(f"{path}: there is neither PTX nor machine code of a kernel in it: {_NO_PTX}")
    return image


def check_kernels(
    probe: Probe, image: Image, names: Sequence[str], arch: str | None, out: Path, assembler: Assembler
) -> list[KernelCheck]:
    """Prepare each kernel for a device of ``arch`` (sm_90), or else for the one that its PTX is for.

    ``out`` receives a folder for each, ``<index>_<sha1 of name>``, whose original.bin is the PTX module that the
    kernel is in. Raises OSError where it cannot be written.
    """
    preparer = Preparer(probe, assembler=assembler, gate=OpenGate())

    def check(numbered: tuple[int, str]) -> KernelCheck:
        index, name = numbered
        directory = out / f"{index}_{hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()}"
        directory.mkdir(parents=True, exist_ok=True)
        return _check(preparer, probe, image, name, arch, directory)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        checks = list(pool.map(check, enumerate(names)))
    preparer.close()
    return checks


def _check(preparer: Preparer, probe: Probe, image: Image, name: str, arch: str | None, directory: Path) -> KernelCheck:
    if image.way == "graft":
        return _check_graft(preparer, probe, image, name, arch, directory)
    try:
        text = choose_ptx(image.texts, name, int(re.sub(r"\D", "", arch)) if arch else None)
    except ImageError as error:
        return KernelCheck(name, "failed", None, directory, str(error), code=error.reason.code)
    _clear(directory)
    (directory / "original.bin").write_text(text.text, encoding="utf-8")
    arch = arch or f"sm_{text.arch}"
    return _checked(probe, preparer.prepare(directory, arch, name), name, arch, directory)


def _check_graft(
    preparer: Preparer, probe: Probe, image: Image, name: str, arch: str | None, directory: Path
) -> KernelCheck:
    """As ``_check``, of an image with machine code alone."""
    number = int(re.sub(r"\D", "", arch)) if arch else image.machine_code.get(name, 0)
    try:
        cubin, _ = find_cubin(image.data, name, number)
    except ImageError as error:
        return KernelCheck(name, "failed", None, directory, str(error), code=error.reason.code, way="graft")
    _clear(directory)
    (directory / "original.bin").write_bytes(cubin.image)
    arch = arch or f"sm_{number}"
    answer = preparer.prepare(directory, arch, name)
    if answer.reason is not None:
        return replace(_checked(probe, answer, name, arch, directory), way="graft")
    log = (directory / "process.log").read_text(encoding="utf-8")
    added = _ADDED.search(log)
    number_added = int(added[1]) if added else None
    matched = _matched(probe, directory)
    return KernelCheck(name, "ok", arch, directory, added=number_added, way="graft", matched=matched)


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


def _checked(probe: Probe, answer: Answer, name: str, arch: str, directory: Path) -> KernelCheck:
    if (reason := answer.reason) is not None:
        instead = advice_on(reason.code, reason.parameters) if answer.outcome == "skipped" else ""
        if _NOT_FOR_THIS_GPU.search(reason.text):
            instead = "Name an architecture that this ptxas knows: --arch sm_90."
        elif (directory / "probed.ptx").exists() and not (directory / "pruned.bin").exists():
            instead = "Compile its PTX anew: ptxas refuses this kernel without the probe too."
        words = _COMPLAINT.sub(lambda found: found["words"], reason.sentence)
        status: Literal["refused", "failed"] = "refused" if answer.outcome == "skipped" else "failed"
        said = tuple(_complaints(directory))
        return KernelCheck(name, status, arch, directory, words, reason.line, instead, said=said, code=reason.code)
    added = inserted_instructions((directory / "probed.ptx").read_text(encoding="utf-8"))
    note = note_in((directory / "kernel.info").read_text(encoding="utf-8"))
    return KernelCheck(name, "ok", arch, directory, added=added, note=note, matched=_matched(probe, directory))


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
