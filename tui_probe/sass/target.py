"""A kernel of a cubin as the target of a graft: registers, parameters and exits."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import CODE_PREFIX, CallGraph
from tui_probe.binaries.line_tables import call_chains, source_locations
from tui_probe.errors import ImageError, UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass import nv_info
from tui_probe.sass.nv_info import read_attributes
from tui_probe.sass.words import EXIT, WORD_BYTES, operation_of, words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.binaries.cubin import Cubin, Symbol
    from tui_probe.binaries.elf import Section
    from tui_probe.sass.nv_info import Attribute
    from tui_probe.sass.words import Word

INFO_PREFIX: Final = ".nv.info"
PARAMETER_BYTES: Final = 8
"""Bytes of an added parameter: each is an address or a pair of numbers."""
_CONSTANTS_PREFIX: Final = ".nv.constant0."
_EXIT: Final = operation_of(EXIT)
_FUNCTION: Final = 2
"""STT_FUNC."""
SET_REGISTERS: Final = 0x1C8
"""USETMAXREG, with the number in 63:32 or in a uniform register."""
_NUMBER_FORM: Final = 4
_MAX_FUNCTION_BYTES: Final = 4 << 20
"""Some seconds of looking at each instruction. The program waits that long for its kernel."""
MIN_REGISTERS: Final = 24
"""Minimum number of registers left to a warp."""
_PARAMETER: Final = struct.Struct("<IHHI")
_SIZE_SHIFT: Final = 18
"""Lowest bit of the size in bytes in a ``PARAMETER``, above other facts."""


@dataclass(frozen=True)
class GraftTarget:
    """A kernel. ``base`` is where its parameters begin in bank 0, ``parameter_bytes`` how many there are of them.

    ``functions`` are the code sections of its module that belong to no kernel: the kernel may call any of them.
    """

    cubin: Cubin
    symbol: Symbol
    code: Section
    info: Section
    constants: Section
    functions: tuple[Section, ...]
    words: tuple[Word, ...]
    attributes: tuple[Attribute, ...]
    base: int
    parameter_bytes: int
    registers: int

    @classmethod
    def from_cubin(cls, cubin: Cubin, name: str) -> GraftTarget:
        """Read kernel ``name``. Raises ImageError for a damaged cubin, UnsupportedKernelError for an unknown layout."""
        symbol = cubin.kernel_symbol(name)
        code, info = cubin.section(CODE_PREFIX + name), cubin.section(f"{INFO_PREFIX}.{name}")
        constants = cubin.section(_CONSTANTS_PREFIX + name)
        if symbol.section != code.number or symbol.value or symbol.size != code.size or code.size % WORD_BYTES:
            raise UnsupportedKernelError(because("graft-code-layout", section=code.name))
        attributes = tuple(read_attributes(cubin.content(info)))
        base, size = _parameter_layout(attributes, constants)
        if base + size != constants.size:
            raise UnsupportedKernelError(because("graft-parameters"))
        code_words = words_of(cubin.content(code))
        registers = _register_count(cubin, symbol)
        return cls(
            cubin, symbol, code, info, constants, functions_of(cubin), code_words, attributes, base, size, registers
        )

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.symbol.name

    @property
    def arch(self) -> int:
        """90 for sm_90a."""
        return self.cubin.arch

    @property
    def parameters(self) -> int:
        """Number of its parameters."""
        return sum(attribute.number in (nv_info.PARAMETER, nv_info.LONG_PARAMETER) for attribute in self.attributes)

    def parameter_ranges(self) -> Iterator[tuple[int, range]]:
        """Yield the number of each parameter and its bytes in bank 0."""
        for attribute in self.attributes:
            of_parameter = attribute.number in (nv_info.PARAMETER, nv_info.LONG_PARAMETER)
            if of_parameter and len(attribute.value) >= _PARAMETER.size:
                _, number, offset, facts = _PARAMETER.unpack_from(attribute.value)
                size = facts >> _SIZE_SHIFT if attribute.number == nv_info.PARAMETER else facts
                yield number, range(self.base + offset, self.base + offset + size)

    def source_lines(self) -> dict[int, tuple[str, int]]:
        """Return source file and line by byte offset in the kernel; {} without a readable line table."""
        try:
            return source_locations(self.cubin.image, self.name, self.code.size)
        except ImageError:
            return {}

    def inlined_calls(self) -> dict[int, tuple[tuple[str, int], ...]]:
        """Return file and line of the calls inlined around an instruction, the innermost first, by byte offset."""
        try:
            return call_chains(self.cubin.image, self.name, self.code.size)
        except ImageError:
            return {}

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that a block has by its declarations."""
        section = self.cubin.find_section(f".nv.shared.{self.name}")
        return section.size if section else 0

    @property
    def added_offset(self) -> int:
        """Offset of the first added parameter."""
        return -(-self.parameter_bytes // PARAMETER_BYTES) * PARAMETER_BYTES

    @cached_property
    def min_registers(self) -> int:
        """Minimum of registers that the kernel leaves a warp, where its warps pass registers on to each other."""
        minimum = self.registers
        for word in self.words:
            if word.operation == SET_REGISTERS:
                has_number = word.form == _NUMBER_FORM
                minimum = min(minimum, word.field(32, 32) if has_number else MIN_REGISTERS)
        return minimum

    @cached_property
    def has_unseen_calls(self) -> bool:
        """True if it calls functions by addresses which are of none in its module."""
        graph = CallGraph.from_cubin(self.cubin)
        code_numbers = {self.code.number, *(section.number for section in self.functions)}
        return not graph.has_addressed and not code_numbers.isdisjoint(graph.by_address)

    def all_words(self) -> Iterator[Word]:
        """Yield its instructions, then those of the functions of its module."""
        yield from self.words
        for section in self.functions:
            yield from words_of(self.cubin.content(section))

    def exits(self) -> list[int]:
        """Return the byte offset of each ``EXIT``. Raises UnsupportedKernelError if the file lists others."""
        offsets = [index * WORD_BYTES for index, word in enumerate(self.words) if word.operation == _EXIT]
        exit_lists = [attribute.words() for attribute in self.attributes if attribute.number == nv_info.EXITS]
        if sorted(offset for row in exit_lists for offset in row) != offsets:
            raise UnsupportedKernelError(because("graft-exits"))
        return offsets

    def refuse_functions(self) -> None:
        """Raise UnsupportedKernelError if a function may end the kernel, or if there are too many to look through."""
        size = sum(section.size for section in self.functions)
        if size > _MAX_FUNCTION_BYTES:
            raise UnsupportedKernelError(because("graft-large", megabytes=size >> 20))
        for section in self.functions:
            if may_exit(self.cubin.content(section)):
                function = section.name.removeprefix(CODE_PREFIX)
                raise UnsupportedKernelError(because("graft-function", function=function))


def may_exit(code: bytes) -> bool:
    """Return whether code has an instruction by which lanes leave the kernel. The code of a module may be 100 MB."""
    low_bytes, high_bytes = code[::WORD_BYTES], code[1::WORD_BYTES]
    index = low_bytes.find(_EXIT & 0xFF)
    while index >= 0:
        if high_bytes[index] & 1 == _EXIT >> 8:
            return True
        index = low_bytes.find(_EXIT & 0xFF, index + 1)
    return False


def _parameter_layout(attributes: tuple[Attribute, ...], constants: Section) -> tuple[int, int]:
    """Return the start of the parameters, and their bytes; a kernel without any has them behind all that is in the
    section.
    """
    for attribute in attributes:
        if attribute.number == nv_info.PARAMETER_BANK:
            base, size = struct.unpack_from("<HH", attribute.value.ljust(8, b"\0"), 4)
            return base, size
    return constants.size, 0


def functions_of(cubin: Cubin) -> tuple[Section, ...]:
    """Return the code sections that belong to no kernel. Raises ImageError."""
    kernels = {symbol.section for symbol in cubin.symbols if symbol.is_kernel}
    functions = {symbol.section for symbol in cubin.symbols if symbol.kind == _FUNCTION} - kernels
    return tuple(
        section
        for section in cubin.sections
        if section.number in functions and section.number and section.name.startswith(CODE_PREFIX)
    )


def _register_count(cubin: Cubin, symbol: Symbol) -> int:
    for attribute in read_attributes(cubin.content(cubin.section(INFO_PREFIX))):
        if attribute.number == nv_info.REGISTERS and attribute.words()[:1] == [symbol.number]:
            return [*attribute.words(), 0][1]
    raise UnsupportedKernelError(because("graft-parameters"))
