"""Modules that a program has loaded: their PTX, linked and with the device runtime, their compiled kernels, and the
registers of these.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.binaries import elf
from tui_probe.errors import ImageError, PtxError, SimulationError
from tui_probe.ptx.images import find_ptx, ptx_texts
from tui_probe.ptx.lexer import NAME
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import references
from tui_probe.ptx.tree import Directive, Function, Instruction, Label, Symbol, Variable, statements_in
from tui_probe.simgpu.executor import (
    HEAP,
    HEAP_BYTES,
    DeviceMemory,
    Kernel,
    ModuleVariable,
    compile_kernel,
    function_addresses,
    module_variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tui_probe.ptx.tree import Module, Statement, TopLevel

ARCHIVE: Final = b"!<arch>\n"
"""Magic of an archive of objects. The runtime's device libraries have SASS only, which no program here uses."""


_NEWEST: Final = 90
"""Compute capability of the newest simulated GPU, that of ``run --sim-arch sm_90``."""
_PTX_ONLY: Final = (
    "the simulated GPU executes PTX only. Load PTX from nvcc -ptx or NVRTC, and link PTX with cuLinkAddData"
    " instead of nvJitLink"
)


def ptx_of(image: bytes, compute_capability: int) -> str:
    """The PTX of an image for a GPU of a compute capability, 80 for sm_80. Raises ImageError where there is none.

    Of a cubin that was linked from several, the PTX of all of them.
    """
    if image.startswith(elf.MAGIC) and len(texts := ptx_texts(image)) > 1:
        return _linked([parse(text.text) for text in texts])
    try:
        return find_ptx(image, arch=compute_capability)
    except ImageError as error:
        if error.reason.code == "no-ptx":
            raise ImageError(f"{error}: {_PTX_ONLY}") from None
        if error.reason.code == "ptx-for-other-gpu" and _runs_on_newest(image):
            raise ImageError(f"{error}; run with --sim-arch sm_{_NEWEST}") from None
        raise


def _runs_on_newest(image: bytes) -> bool:
    """Return whether the newest simulated GPU can run the PTX of an image."""
    try:
        find_ptx(image, arch=_NEWEST)
    except ImageError:
        return False
    return True


def link(images: Sequence[bytes], compute_capability: int) -> bytes:
    """The PTX of all images, for a GPU of a compute capability (80 for sm_80), as text that ends with a NUL.

    Raises ImageError for an image without PTX for this GPU, PtxError where two define one name.
    """
    modules = [parse(ptx_of(image, compute_capability)) for image in images if not image.startswith(ARCHIVE)]
    if not modules:
        raise PtxError("nothing to link: no image with PTX was added")
    return _linked(modules).encode() + b"\0"


def _linked(modules: Sequence[Module]) -> str:
    newest = max(modules, key=lambda module: module.version)
    head = f".version {newest.version[0]}.{newest.version[1]}\n.target {newest.target}\n.address_size 64\n"
    return "\n".join([head, *_item_texts(modules), ""])


def _item_texts(modules: Sequence[Module]) -> Iterator[str]:
    """The text of each function and variable, once, definitions instead of declarations."""
    defined: dict[str, str] = {}
    for module in modules:
        for item in module.items:
            if _is_definition(item) and _item_name(item) in defined and item.linkage == "visible":  # type: ignore[union-attr]
                raise PtxError(f"{_item_name(item)} is defined in two of the linked images")
            if _is_definition(item):
                defined.setdefault(_item_name(item), _item_source(module, item))
    given = set()
    for module in modules:
        for item in module.items:
            name = _item_name(item)
            if isinstance(item, Directive) and item.name == "alias":
                yield item.text
            if isinstance(item, Directive) or (name in defined and name in given):
                continue
            if name in defined and not _is_definition(item):
                continue
            given.add(name)
            yield _item_source(module, item)


def _is_definition(item: TopLevel) -> bool:
    if isinstance(item, Function):
        return item.body is not None
    return isinstance(item, Variable) and item.linkage != "extern"


def _item_name(item: TopLevel) -> str:
    return item.name if isinstance(item, (Function, Variable)) else ""


def _item_source(module: Module, item: TopLevel) -> str:
    return module.source[item.span.start : item.span.end]


# What the device's runtime library (``cudadevrt``) and its driver have for kernels, as PTX.
#
# Compilers only declare these functions; a linker finds them in a library of machine code, which is not executed
# here. ``malloc``, ``free``, ``vprintf`` and ``__assertfail`` are the executor's own, and the first two need a heap.

_HEAP_PTX: Final = f".visible .global .align 16 .b8 {HEAP}[{HEAP_BYTES}];"
_GRID_HANDLE_PTX: Final = """
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd;
    mov.u32 %r1, %envreg1;
    mov.u32 %r2, %envreg2;
    mov.b64 %rd, {%r2, %r1};
    st.param.b64 [result], %rd;
    ret;
}
"""
# The barrier of cooperative groups: a thread of each block adds 1, that of the first one what turns the highest
# bit once all have come, which each of them waits for. A launch that is not cooperative has no memory for it.
_GRID_BARRIER_PTX: Final = """
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
    .reg .pred %first, %others, %waits, %none;
    .reg .b32 %r<8>;
    .reg .b64 %rd;
    ld.param.b64 %rd, [handle];
    setp.eq.u64 %none, %rd, 0;
    @%none trap;
    bar.sync 0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    or.b32 %r1, %r1, %r2;
    mov.u32 %r2, %tid.z;
    or.b32 %r1, %r1, %r2;
    setp.ne.u32 %others, %r1, 0;
    @%others bra done;
    mov.u32 %r1, %nctaid.x;
    mov.u32 %r2, %nctaid.y;
    mul.lo.u32 %r1, %r1, %r2;
    mov.u32 %r2, %nctaid.z;
    mul.lo.u32 %r1, %r1, %r2;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ctaid.y;
    or.b32 %r3, %r3, %r4;
    mov.u32 %r4, %ctaid.z;
    or.b32 %r3, %r3, %r4;
    setp.eq.u32 %first, %r3, 0;
    sub.u32 %r5, 0x80000001, %r1;
    selp.b32 %r5, %r5, 1, %first;
    membar.gl;
    atom.global.add.u32 %r6, [%rd+4], %r5;
again:
    ld.volatile.global.u32 %r7, [%rd+4];
    xor.b32 %r7, %r7, %r6;
    setp.ge.s32 %waits, %r7, 0;
    @%waits bra again;
    membar.gl;
done:
    bar.sync 0;
    st.param.b32 [result], 0;
    ret;
}
"""
_RUNTIME_PTX: Final = {
    "malloc": _HEAP_PTX,
    "free": _HEAP_PTX,
    "cudaCGGetIntrinsicHandle": _GRID_HANDLE_PTX,
    "cudaCGSynchronize": _GRID_BARRIER_PTX,
}


def with_runtime(module: Module) -> Module:
    """The module with those of these functions that it declares, and does not define."""
    defined = {item.name for item in module.items if isinstance(item, Function) and item.body is not None}
    declared = {item.name for item in module.items if isinstance(item, Function)} - defined
    texts = dict.fromkeys(text for name, text in _RUNTIME_PTX.items() if name in declared)
    return parse("\n".join([module.source, *texts])) if texts else module


LAST_VERSIONS: Final = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8, 9: 5}
"""The last PTX version of each major one, as of CUDA 13.5."""


class PtxVersionError(PtxError):
    """PTX of a version that is not known, and may mean something else."""


def _refuse_unknown_version(module: Module) -> None:
    major, minor = module.version
    if minor > LAST_VERSIONS.get(major, -1):
        newest = max(LAST_VERSIONS.items())
        raise PtxVersionError(
            f"unsupported .version {major}.{minor}; the newest supported version is {newest[0]}.{newest[1]}"
        )


@dataclass(slots=True)
class LoadedModule:
    """PTX out of an image. ``registers`` are those of the image's machine code, by kernel, where it has some."""

    tree: Module
    names: tuple[str, ...]
    variables: tuple[ModuleVariable, ...]
    registers: dict[str, int]
    addresses: dict[str, int] = field(default_factory=dict)
    compiled: dict[int, Kernel] = field(default_factory=dict)

    @classmethod
    def from_image(cls, image: bytes, compute_capability: int) -> LoadedModule:
        """The module for a GPU of a compute capability, 80 for sm_80.

        Raises ImageError for an image without PTX for it, PtxError for PTX that cannot be read or is of a version that
        is not known.
        """
        tree = with_runtime(parse(ptx_of(image, compute_capability)))
        _refuse_unknown_version(tree)
        names = tuple(entry.name for entry in tree.entries())
        return cls(tree, names, tuple(module_variables(tree)), register_counts(image))

    @property
    def target(self) -> int:
        """80 for ``.target sm_80``."""
        match = re.search(r"sm_(\d+)", self.tree.target)
        return int(match[1]) if match else 0

    def place(self, addresses: tuple[int, ...], memory: DeviceMemory) -> None:
        """Give each variable its address. Where its initial value holds an address, that is written to ``memory``."""
        if len(addresses) != len(self.variables):
            raise SimulationError(f"{len(addresses)} addresses for {len(self.variables)} variables")
        self.addresses = dict(zip((variable.name for variable in self.variables), addresses, strict=True))
        symbols = function_addresses(self.tree) | self.addresses
        for variable, address in zip(self.variables, addresses, strict=True):
            for relocation in variable.relocations:
                if relocation.symbol not in symbols:
                    raise SimulationError(
                        f"the variable {variable.name} refers to the undefined symbol {relocation.symbol}"
                    )
                value = symbols[relocation.symbol] + relocation.addend
                place = np.array([address + relocation.offset], np.uint64)
                memory.scatter(place, np.array([value], np.uint64))

    def estimated_registers(self, index: int) -> int:
        """An estimate of the registers of the kernel at ``index`` of ``names``."""
        return estimate_registers(self.tree, self.tree.entries()[index])

    def kernel(self, index: int) -> Kernel:
        """The kernel at ``index`` of ``names``. Raises SimulationError for PTX that the GPU does not execute."""
        if index >= len(self.names):
            raise SimulationError(f"kernel {index} of {len(self.names)}")
        if index not in self.compiled:
            self.compiled[index] = compile_kernel(self.tree, self.names[index])
        return self.compiled[index]


# Registers per thread of a kernel: the count in its cubin, or an estimate from its PTX.
#
# ``.nv.info`` is a list of attributes: u8 format, u8 attribute, u16 size, then that many bytes. The register count
# (attribute 0x2f, format 4) is u32 symbol index, u32 registers. ``cuobjdump -elf`` prints it as EIATTR_REGCOUNT.

REGISTER_COUNT: Final = 0x2F
"""EIATTR_REGCOUNT."""
SIZED_VALUE: Final = 0x04
"""EIFMT_SVAL: a size of 16 bits and that many bytes follow."""
SYMBOL: Final = struct.Struct("<IBBHQQ")


def register_counts(image: bytes) -> dict[str, int]:
    """Registers of a thread of each kernel, by name; empty for anything but a cubin. Raises ImageError."""
    if not image.startswith(elf.MAGIC):
        return {}
    sections = elf.Sections(image)
    names = symbol_names(sections.get(".symtab", b""), sections.get(".strtab", b""))
    info = sections.get(".nv.info", b"")
    counts = {}
    position = 0
    while position + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, position)
        content = info[position + 4 : position + 4 + size] if form == SIZED_VALUE else b""
        if attribute == REGISTER_COUNT and len(content) == 8:
            symbol, count = struct.unpack("<II", content)
            if symbol < len(names):
                counts[names[symbol]] = count
        position += 4 + len(content)
    return counts


def symbol_names(table: bytes, strings: bytes) -> list[str]:
    """The names of an ELF file's symbols, by index."""
    entries = table[: len(table) // SYMBOL.size * SYMBOL.size]
    starts = [fields[0] for fields in SYMBOL.iter_unpack(entries)]
    return [strings[start : strings.find(b"\0", start)].decode("utf-8", "replace") for start in starts]


# An estimate of the registers of a thread, for kernels with PTX only.
#
# The simulated GPU allocates no registers, but programs choose launch shapes by their number. The estimate is the
# largest number of 32-bit registers that hold a value between its first and its last mention, loops counted as a
# whole, and a few for addresses and the ABI. It is half to twice of what ptxas takes for the kernels of the test
# corpus.

_NAME: Final = re.compile(NAME)
_NUMBERED: Final = re.compile(r"(.*?)\d+\Z", re.DOTALL)
_RESERVED_REGISTERS: Final = 6
"""Registers for addresses, the stack and what an instruction needs on the way."""
_MIN_REGISTERS: Final = 8
"""Devices give out registers in units of 8 per thread."""
_MAX_REGISTERS: Final = 255
"""Registers that an instruction can name: of 8 bits the number 255 reads as 0."""
_WIDTHS: Final = {"64": 2, "128": 4}


def estimate_registers(module: Module, kernel: Function) -> int:
    """The estimate for a kernel and the functions that it needs. Raises PtxError for a damaged body."""
    names = references(module, kernel)
    called = [callee for callee in module.functions() if callee.name in names and callee.body_span is not None]
    needed = _pressure(kernel, module.source) + max((_pressure(callee, module.source) for callee in called), default=0)
    limit = re.search(r"\d+", kernel.attributes.get("maxnreg", ""))
    return min(
        max(needed + _RESERVED_REGISTERS, _MIN_REGISTERS), int(limit[0]) if limit else _MAX_REGISTERS, _MAX_REGISTERS
    )


def _pressure(function: Function, source: str) -> int:
    """The most 32-bit registers in use at the same time."""
    statements = list(statements_in(function.body or ()))
    widths = _widths(statements)
    ranges = _ranges(statements, widths, source)
    for first, last in _loops(statements):
        for name, (begin, end) in ranges.items():
            if begin < first <= end < last:
                ranges[name] = (begin, last)
    changes = [0] * (len(statements) + 1)
    for name, (begin, end) in ranges.items():
        changes[begin] += widths[_stem(name, widths)]
        changes[end] -= widths[_stem(name, widths)]
    return max(accumulate(changes))


def _widths(statements: Iterable[Statement]) -> dict[str, int]:
    """Return the 32-bit registers that each register takes, by its name or the stem of its number; predicates are left
    out.
    """
    counts = {}
    for node in statements:
        if isinstance(node, Variable) and node.space == "reg" and node.type != "pred":
            bits = re.sub(r"\D", "", node.type.partition("x")[0])
            counts[node.name] = _WIDTHS.get(bits, 1) * node.vector
    return counts


def _stem(name: str, widths: Mapping[str, int]) -> str:
    match = _NUMBERED.match(name)
    return name if name in widths or match is None else match[1]


def _ranges(statements: Sequence[Statement], widths: Mapping[str, int], source: str) -> dict[str, tuple[int, int]]:
    """Return the first and last mention of each register, by name, as positions in ``statements``."""
    ranges: dict[str, tuple[int, int]] = {}
    for place, node in enumerate(statements):
        if isinstance(node, Instruction):
            for name in _NAME.findall(source, node.span.start, node.span.end):
                if _stem(name, widths) in widths:
                    ranges[name] = (ranges.get(name, (place, place))[0], place)
    return ranges


def _loops(statements: Sequence[Statement]) -> list[tuple[int, int]]:
    """Return the loops, from each label to each later branch that leads there, inner loops first."""
    labels = {node.name: place for place, node in enumerate(statements) if isinstance(node, Label)}
    candidates = [
        (labels[operand.name], place)
        for place, node in enumerate(statements)
        if isinstance(node, Instruction) and node.opcode == "bra"
        for operand in node.operands
        if isinstance(operand, Symbol) and labels.get(operand.name, place) < place
    ]
    return sorted(candidates, key=lambda loop: loop[1] - loop[0])
