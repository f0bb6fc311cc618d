"""Modules that a program has loaded: their PTX, linked and with the device runtime, variables and compiled kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeGuard

import numpy as np

from tui_probe.binaries import elf
from tui_probe.errors import ImageError, PtxError, SimulationError
from tui_probe.ptx.constants import fold_constant
from tui_probe.ptx.images import find_ptx, ptx_texts
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Directive, Function, Variable, statements_in
from tui_probe.simgpu.executor import (
    HEAP,
    HEAP_BYTES,
    DeviceMemory,
    Kernel,
    compile_kernel,
    function_addresses,
)
from tui_probe.simgpu.executor.scalars import TYPES, literal
from tui_probe.simgpu.executor.scope import name_inside, natural_align
from tui_probe.simgpu.registers import estimate_registers, register_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.ptx.tree import Module

ARCHIVE: Final = b"!<arch>\n"
"""Magic of an archive of objects. The runtime's device libraries have SASS only, which no program here uses."""


_NEWEST_CAPABILITY: Final = 90
"""Compute capability of the newest simulated GPU, that of ``run --sim-arch sm_90``."""
_PTX_ONLY_TEXT: Final = (
    "the simulated GPU executes PTX only. Load PTX from nvcc -ptx or NVRTC, and link PTX with cuLinkAddData"
    " instead of nvJitLink"
)


def ptx_of(image: bytes, compute_capability: int) -> str:
    """The PTX of an image for a GPU of a compute capability, 80 for sm_80. Raises ImageError where there is none.

    Of a cubin that was linked from several, the PTX of all of them.
    """
    if image.startswith(elf.MAGIC) and len(texts := ptx_texts(image)) > 1:
        return _link_modules([parse(text.text) for text in texts])
    try:
        return find_ptx(image, arch=compute_capability)
    except ImageError as error:
        if error.reason.code == "no-ptx":
            raise ImageError(f"{error}: {_PTX_ONLY_TEXT}") from None
        if error.reason.code == "ptx-for-other-gpu" and _has_ptx_for_newest(image):
            raise ImageError(f"{error}; run with --sim-arch sm_{_NEWEST_CAPABILITY}") from None
        raise


def _has_ptx_for_newest(image: bytes) -> bool:
    """Return whether the newest simulated GPU can run the PTX of an image."""
    try:
        find_ptx(image, arch=_NEWEST_CAPABILITY)
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
    return _link_modules(modules).encode() + b"\0"


def _link_modules(modules: Sequence[Module]) -> str:
    newest_module = max(modules, key=lambda module: module.version)
    major, minor = newest_module.version
    head = f".version {major}.{minor}\n.target {newest_module.target}\n.address_size 64\n"
    return "\n".join([head, *_item_texts(modules), ""])


def _item_texts(modules: Sequence[Module]) -> Iterator[str]:
    """Yield the text of each alias, function and variable: once, and the definition instead of declarations."""
    defined_names, yielded_names = _defined_names(modules), set[str]()
    for module in modules:
        for item in module.items:
            if isinstance(item, Directive):
                if item.name == "alias":
                    yield item.text
                continue
            if item.name in defined_names and (item.name in yielded_names or not _is_definition(item)):
                continue
            yielded_names.add(item.name)
            yield module.source[item.span.start : item.span.end]


def _defined_names(modules: Sequence[Module]) -> set[str]:
    """Return the names that modules define. Raises PtxError for one that is visible and defined twice."""
    names: set[str] = set()
    for item in (item for module in modules for item in module.items if not isinstance(item, Directive)):
        if not _is_definition(item):
            continue
        if item.name in names and item.linkage == "visible":
            raise PtxError(f"{item.name} is defined in two of the linked images")
        names.add(item.name)
    return names


def _is_definition(item: Function | Variable) -> bool:
    return item.body is not None if isinstance(item, Function) else item.linkage != "extern"


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
    defined_names = {item.name for item in module.items if isinstance(item, Function) and item.body is not None}
    declared_names = {item.name for item in module.items if isinstance(item, Function)} - defined_names
    texts = dict.fromkeys(text for name, text in _RUNTIME_PTX.items() if name in declared_names)
    return parse("\n".join([module.source, *texts])) if texts else module


# Variables of a module: their bytes in device memory, and the addresses that go into them.

_REFERENCE_TYPES: Final = ("texref", "samplerref", "surfref")
_ADDRESS: Final = re.compile(r"(?:generic\(\s*([\w$%]+)\s*\)|([A-Za-z_$%][\w$]*))(?:\s*([+-])\s*(\w+))?")
"""An initial value that is an address: ``generic(table)+8``, ``function``."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """Eight bytes at ``offset`` of a variable hold the address of ``symbol`` plus ``addend``."""

    offset: int
    symbol: str
    addend: int


@dataclass(frozen=True, slots=True)
class ModuleVariable:
    """A module-scope variable in ``space`` ``global`` or ``const``; both live in device memory.

    ``initial`` has ``size`` bytes. Addresses in it are to be filled in by ``relocations``.
    """

    name: str
    space: str
    size: int
    align: int
    initial: bytes
    relocations: tuple[Relocation, ...] = ()


def module_variables(module: Module) -> list[ModuleVariable]:
    """The module's variables in device memory, those that it defines itself, and those inside its functions.

    References to textures are none: the kernels that do not use them run.
    """
    module_scope = [_module_variable(item, item.name) for item in module.items if _is_in_device_memory(item)]
    function_scope = [
        node
        for function in module.functions()
        for node in statements_in(function.body or ())
        if _is_in_device_memory(node)
    ]
    return module_scope + [_module_variable(node, name_inside(node)) for node in function_scope]


def _is_in_device_memory(node: object) -> TypeGuard[Variable]:
    if not isinstance(node, Variable) or node.space not in ("global", "const"):
        return False
    return node.linkage != "extern" and node.type not in _REFERENCE_TYPES


def _module_variable(variable: Variable, name: str) -> ModuleVariable:
    kind = TYPES.get(variable.type)
    if kind is None:
        raise PtxError(f"{variable.name} has type .{variable.type}, whose size is unknown", variable.span.line)
    initial = bytearray(variable.size_bytes)
    relocations = []
    for number, value_text in enumerate(_initial_values(variable.initializer)):
        offset, text = number * kind.bytes, fold_constant(value_text)
        symbol = _ADDRESS.fullmatch(text)
        if symbol is not None:
            relocations.append(_relocation(offset, symbol))
        elif offset + kind.bytes <= len(initial):
            initial[offset : offset + kind.bytes] = literal(text, kind).tobytes()
    align = max(variable.align, natural_align(variable))
    return ModuleVariable(name, variable.space, variable.size_bytes, align, bytes(initial), tuple(relocations))


def _relocation(offset: int, match: re.Match[str]) -> Relocation:
    generic_name, plain_name, sign, number = match.groups()
    addend = int(number, 0) if number else 0
    return Relocation(offset, generic_name or plain_name, -addend if sign == "-" else addend)


def _initial_values(text: str) -> list[str]:
    """The values of an initialiser, in order. Nested braces of full rows flatten to that order."""
    without_comments = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    return [part.strip() for part in re.split(r"[{},]", without_comments) if part.strip()]


LAST_VERSIONS: Final = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8, 9: 5}
"""The last PTX version of each major one, as of CUDA 13.5."""


class PtxVersionError(PtxError):
    """PTX of a version that is not known, and may mean something else."""


def _refuse_unknown_version(module: Module) -> None:
    major, minor = module.version
    if minor > LAST_VERSIONS.get(major, -1):
        newest_version = "{}.{}".format(*max(LAST_VERSIONS.items()))
        raise PtxVersionError(f"unsupported .version {major}.{minor}; the newest supported version is {newest_version}")


@dataclass(slots=True)
class LoadedModule:
    """PTX out of an image. ``registers`` are those of the image's machine code, by kernel, where it has some."""

    tree: Module
    names: tuple[str, ...]
    variables: tuple[ModuleVariable, ...]
    registers: dict[str, int]
    addresses: dict[str, int] = field(default_factory=dict)
    kernels: dict[int, Kernel] = field(default_factory=dict)

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

    def place_variables(self, addresses: tuple[int, ...], memory: DeviceMemory) -> None:
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
        if index not in self.kernels:
            self.kernels[index] = compile_kernel(self.tree, self.names[index])
        return self.kernels[index]
