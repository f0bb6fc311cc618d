"""SASS of a kernel in a trace: original, pruned and probed, disassembled and aligned, with links between its waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Final

from tui_probe.engine.image_kernels import find_cubin
from tui_probe.errors import ImageError, ToolchainError, TraceError
from tui_probe.input_limits import ORIGINAL_IMAGE
from tui_probe.pages.code.alignment import align_probed, with_labels
from tui_probe.pages.code.code_lines import read_lines
from tui_probe.pages.code.sass_text import count_classes, instruction_purposes, parse_sass, ptx_lines
from tui_probe.ptx.images import image_kind
from tui_probe.sass.wait_classes import WAIT_CLASSES
from tui_probe.toolchain import NVDISASM_HINT, disassemble, find_disassembler
from tui_probe.trace.kernel_files import Offset, read_kernel_info
from tui_probe.trace.plain_file import open_plain, read_within
from tui_probe.trace.sites import read_sites
from tui_probe.trace.source_lines import source_position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.draw.view import Progress
    from tui_probe.pages.code.alignment import LinePair
    from tui_probe.pages.code.sass_text import SassCode
    from tui_probe.toolchain import Tool
    from tui_probe.trace.kernel_files import Graft
    from tui_probe.trace.model import KernelFacts
    from tui_probe.trace.sites import Site, SiteInstruction

SASS_FILES: Final = ("pruned.bin", "probed.bin")
ORIGINAL_SIDE: Final = "original.bin"
_IMAGE_HEAD_BYTES: Final = 1 << 16
"""Bytes of an image by which its kind is recognised."""
_PTX_FILES: Final = ("original.ptx", "pruned.ptx", "probed.ptx")
SASS_PAGE_HINT: Final = "the kernel's code is on the page SASS"


@dataclass(frozen=True)
class KernelSass:
    """``codes`` by side, pruned and probed, as ``tool`` printed them.

    ``origins`` gives, for each line of each code, the line of pruned.ptx that it came from, counted from 1, None where
    that is not known; ``owners`` the probe of each line of the probed code that came from an inserted line of PTX.
    ``inserted`` gives that inserted line, counted from 1 in probed.ptx.
    ``graft`` is there of a kernel that was probed in its machine code: its ``origins`` are offsets in the pruned code,
    in bytes.
    """

    tool: str
    codes: dict[str, SassCode]
    origins: dict[str, list[int | None]]
    owners: list[str | None]
    graft: Graft | None = None
    inserted: list[int | None] = field(default_factory=list)

    @cached_property
    def purposes(self) -> dict[str, list[int | None]]:
        """The origins of only those instructions that do what their line of PTX says."""
        if self.graft is not None:
            return self.origins
        return {side: instruction_purposes(self.codes[side], self.origins[side]) for side in self.codes}

    @property
    def has_ptx_lines(self) -> bool:
        """True if the PTX line of some instruction is known."""
        return self.graft is None and any(line is not None for line in self.origins["pruned"])


def has_both_sides(kernel: KernelFacts) -> bool:
    """Return whether the trace has the SASS of the pruned and of the probed kernel."""
    return all(kernel.file(name) is not None for name in SASS_FILES)


def has_original(kernel: KernelFacts) -> bool:
    """Return whether the trace has the image that the program loaded, and this is more than PTX text."""
    path = kernel.file(ORIGINAL_SIDE)
    if path is None:
        return False
    try:
        with open_plain(path) as file:
            return image_kind(file.read(_IMAGE_HEAD_BYTES)) != "ptx"
    except (OSError, ImageError):
        return False


def missing_code_reason(kernel: KernelFacts) -> str | None:
    """Return why there is no SASS, or nothing to read it with."""
    if not has_both_sides(kernel) and not has_original(kernel):
        absent = " and ".join(name for name in SASS_FILES if kernel.file(name) is None)
        return kernel.reason or f"the trace lacks {absent} of this kernel; ptxas creates these files"
    return None if find_disassembler() is not None else f"no nvdisasm on this machine: {NVDISASM_HINT}"


def read_original(kernel: KernelFacts, progress: Progress) -> tuple[str, SassCode]:
    """Return the disassembler's name, and the SASS that the program loaded. Raises TraceError if it is unreadable."""
    tool, path = _disassembler(), kernel.file(ORIGINAL_SIDE)
    if path is None:
        raise TraceError(f"the {ORIGINAL_SIDE} of kernel #{kernel.index} was deleted")
    progress(0.1)
    return f"{tool.path.name} {tool.version}", _read_kernel(tool, path, kernel)


def _disassembler() -> Tool:
    tool = find_disassembler()
    if tool is None:
        raise TraceError(f"no nvdisasm on this machine: {NVDISASM_HINT}")
    return tool


def read_code(kernel: KernelFacts, progress: Progress) -> KernelSass:
    """Read both codes. Raises TraceError if one is absent or cannot be read."""
    tool, info = _disassembler(), kernel.read_info()
    if info is None and kernel.mode == "graft" and (path := kernel.file("kernel.info")) is not None:
        read_kernel_info(path)  # raises: as PTX such code would be shown wrongly
    graft = None if info is None else info.graft
    paths = {name.removesuffix(".bin"): kernel.file(name) for name in SASS_FILES}
    existing = {side: path for side, path in paths.items() if path is not None}
    if len(existing) < len(paths):
        raise TraceError(
            f"{' and '.join(f'{side}.bin' for side in sorted(paths.keys() - existing.keys()))} of kernel"
            f" #{kernel.index} {'was' if existing else 'were'} deleted"
        )
    progress(0.1)
    read_side = partial(_read_cubin, tool) if graft is None else partial(_read_kernel, tool, kernel=kernel)
    with ThreadPoolExecutor(len(existing)) as pool:  # each is a process of its own
        codes = dict(zip(existing, pool.map(read_side, existing.values()), strict=True))
    progress(0.8)
    if graft is not None:
        owner = (info.callback if info else None) or "probe"
        return _grafted_sass(f"{tool.path.name} {tool.version}", codes, graft, owner)
    origins = {side: ptx_lines(path, codes[side]) for side, path in existing.items()}
    pairs = _probed_lines(kernel) if any(origins["probed"]) else {}
    lines = origins["probed"]
    line_pairs = [None if line is None else pairs.get(line - 1) for line in lines]
    origins["probed"] = [None if pair is None or pair.left is None else pair.left + 1 for pair in line_pairs]
    line_owners = [pair.owner if pair is not None and pair.change == "added" else None for pair in line_pairs]
    owners = with_labels(line_owners, codes["probed"])
    inserted = [None if owner is None else line for line, owner in zip(lines, line_owners, strict=True)]
    return KernelSass(f"{tool.path.name} {tool.version}", codes, origins, owners, inserted=inserted)


def _read_cubin(tool: Tool, path: Path) -> SassCode:
    """Return the code of a cubin; the last ones are kept, for users who step to other kernels and back."""
    try:
        return _disassemble_file(tool, path, path.stat().st_mtime_ns)
    except (ToolchainError, OSError) as error:
        raise TraceError(str(error)) from error


def _grafted_sass(tool: str, codes: dict[str, SassCode], graft: Graft, owner: str) -> KernelSass:
    """Instructions that stayed have the offsets that they had; those from ``appended`` on are of the probe."""
    pruned = codes["pruned"]
    probed = _without_padding(codes["probed"], pruned, graft)
    owners = _line_owners(probed, graft, owner)
    pruned_offsets = [offset if owner is None else None for offset, owner in zip(_offsets(probed), owners, strict=True)]
    sources = ["" if owner else source for owner, source in zip(owners, probed.sources, strict=True)]
    probed = replace(probed, sources=sources)  # nvdisasm repeats the line before; added code has none
    return KernelSass(
        tool,
        {"pruned": pruned, "probed": probed},
        {"pruned": _offsets(pruned), "probed": pruned_offsets},
        owners,
        graft,
    )


def _without_padding(probed: SassCode, pruned: SassCode, graft: Graft) -> SassCode:
    """The probed code without what filled the space between the end of the original and the code that was added."""
    end = max((address for address in pruned.addresses if address is not None), default=-1)
    indices = [i for i, at in enumerate(probed.addresses) if at is None or not end < at < graft.appended_offset]
    lines = [probed.lines[i] for i in indices]
    return replace(
        probed,
        lines=lines,
        addresses=[probed.addresses[i] for i in indices],
        sources=[probed.sources[i] for i in indices],
        counts=count_classes(lines),
    )


def _line_owners(probed: SassCode, graft: Graft, owner: str) -> list[str | None]:
    """``owner`` for each line of the added code, the labels before its instructions included, None of others."""
    owners: list[str | None] = []
    next_address: int | None = None
    for address in reversed(probed.addresses):
        next_address = address if address is not None else next_address
        owners.append(owner if next_address is not None and next_address >= graft.appended_offset else None)
    return owners[::-1]


def _offsets(code: SassCode) -> list[int | None]:
    return [None if address is None else Offset(address) for address in code.addresses]


def _read_kernel(tool: Tool, path: Path, kernel: KernelFacts) -> SassCode:
    """Return the code of this kernel only, out of an image that may have hundreds."""
    device = kernel.trace.state.device
    major, _, minor = ("" if device is None else device.capability).partition(".")
    arch = int(major + minor) if (major + minor).isdecimal() else None
    try:
        return _disassemble_kernel(tool, path, path.stat().st_mtime_ns, kernel.name, arch)
    except (ToolchainError, ImageError, OSError) as error:
        text = str(error)
        raise TraceError(text if str(path) in text else f"{path}: {text}") from error


@lru_cache(maxsize=16)
def _disassemble_kernel(tool: Tool, path: Path, mtime_ns: int, kernel: str, arch: int | None) -> SassCode:
    del mtime_ns
    cubin, _ = find_cubin(read_within(path, ORIGINAL_IMAGE), kernel, arch)
    with NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin.image)
        file.flush()
        return parse_sass(disassemble(tool, Path(file.name), cubin.kernel_symbol(kernel).number))


@lru_cache(maxsize=16)
def _disassemble_file(tool: Tool, path: Path, mtime_ns: int) -> SassCode:
    del mtime_ns
    return parse_sass(disassemble(tool, path))


def _probed_lines(kernel: KernelFacts) -> dict[int, LinePair]:
    """Origin of each line of probed.ptx, counted from 0; empty where that is not exactly known."""
    paths = [kernel.file(name) for name in ("pruned.ptx", "probed.ptx")]
    try:
        texts = [read_lines(path) for path in paths if path is not None]
    except OSError:
        return {}
    alignment = align_probed(*texts) if len(texts) == len(paths) else None
    if alignment is None or not alignment.is_exact:
        return {}
    return {pair.right: pair for pair in alignment.pairs if pair.right is not None}


def has_only_sass(kernel: KernelFacts) -> bool:
    """Return whether the trace has SASS of a kernel, and no PTX."""
    return not any(kernel.file(name) for name in _PTX_FILES) and (has_both_sides(kernel) or has_original(kernel))


def no_ptx_reason(kernel: KernelFacts, otherwise: str) -> str:
    """Return why there is no PTX to show, and where else to look: ``otherwise`` where no more is known."""
    if not has_only_sass(kernel):
        return kernel.reason or otherwise
    if kernel.status == "probed":
        return f"the kernel was probed in SASS and has no PTX; {SASS_PAGE_HINT}"
    return f"{kernel.reason or otherwise}; {SASS_PAGE_HINT}"


@dataclass(frozen=True)
class WaitLinks:
    """The site of a wait by offset, and the first wait for the result of a producer."""

    waits: dict[int, Site] = field(default_factory=dict)
    first_waits: dict[int, Site] = field(default_factory=dict)

    def is_linked(self, offset: int) -> bool:
        """Return whether a wait was measured at an instruction or for its result."""
        return offset in self.waits or offset in self.first_waits

    def target(self, offset: int) -> int | None:
        """Return the producer of a wait, of a producer the wait for it; None for other instructions."""
        if (site := self.waits.get(offset)) is not None and (producer := _producer(site)) is not None:
            return producer.line
        site = self.first_waits.get(offset)
        return None if site is None else site.instruction.line

    def texts(self, offset: int) -> list[str]:
        """Return what warps wait for at an instruction, and which instruction waits for it."""
        texts = []
        if (site := self.waits.get(offset)) is not None and site.wait is not None:
            title, producer = WAIT_CLASSES.get(site.wait.kind, site.wait.kind), _producer(site)
            texts.append(f"waits for {title}" + (f": {_instruction_text(producer)}" if producer else ""))
        if (site := self.first_waits.get(offset)) is not None:
            texts.append(f"{_instruction_text(site.instruction)} waits for this instruction")
        return texts


def wait_links(kernel: KernelFacts) -> WaitLinks:
    """Return the links of a kernel; none where no probe measured waits."""
    links = WaitLinks()
    for site in _wait_sites(kernel):
        links.waits[site.instruction.line] = site
        if (producer := _producer(site)) is not None and producer.line != site.instruction.line:
            links.first_waits.setdefault(producer.line, site)
    return links


def _wait_sites(kernel: KernelFacts) -> Iterator[Site]:
    """Yield the wait sites of all probes of the run, in the order in which these began."""
    for probed_kernel in kernel.by_probe():
        try:
            probes = (read_sites(probed_kernel.folder) if probed_kernel.folder else None) or ()
        except TraceError:
            continue
        yield from (site for probe in probes for site in probe.sites if site.wait is not None)


def _producer(site: Site) -> SiteInstruction | None:
    return site.wait.producers[0] if site.wait is not None and site.wait.producers else None


def _instruction_text(instruction: SiteInstruction) -> str:
    """Return ``LDG attn.py:49``, with the offset where the source is unknown."""
    return f"{instruction.opcode} {source_position(instruction.source) or f'{instruction.line:#06x}'}"
