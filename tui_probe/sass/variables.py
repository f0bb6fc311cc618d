"""Make a kernel use the module variables that the program loaded, not copies in the grafted cubin.

A grafted cubin is loaded next to the original, and has variables of its own, with which it would compute wrongly. So
the loader's relocations for them are dropped, and the code that loads the file writes the addresses of the original's
variables there. Constant memory has its place in the code: its contents are to be copied before each launch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import relocation_bytes
from tui_probe.errors import UnsupportedKernelError
from tui_probe.reasons import because
from tui_probe.sass.words import constant_bank, constant_bytes, constant_offset, is_indexed_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.binaries.cubin import Cubin, Relocation, Symbol
    from tui_probe.binaries.elf import Section
    from tui_probe.sass.target import GraftTarget
    from tui_probe.sass.words import Word

ADDRESS_SECTION: Final = ".nv.constant4"
CONSTANT_SECTION: Final = ".nv.constant3"
_CONSTANT_BANK: Final = 3
_ADDRESS_BANK: Final = 4
VARIABLES: Final = (".nv.global", ".nv.global.init")
_PRIVATE: Final = re.compile(r"_?\$.*|__unnamed_\d+|__cudart_.*|(?:assert|printf)[A-Z]\w*_\d+|\.(?:L\.)?str(?:\.\d+)?")
"""Names that compilers give to strings and tables, which no program asks for."""
_FUNCTION: Final = 2
_OBJECT_KINDS: Final = frozenset({1, 13})
"""Kinds of symbols: variables, the second kind CUDA's own."""
_REFERENCE_KINDS: Final = frozenset({10, 11, 12, 14, 15})
"""Textures, surfaces, samplers, and kinds that are not known."""
_ADDRESS_RELOCATIONS: Final = frozenset({2, 4})
"""Relocations of 64 bits."""
_LOW_HALF_RELOCATION, _HIGH_HALF_RELOCATION = 56, 57
"""Relocations of the number in bits 63:32 of an instruction."""
_IMMEDIATE_AT: Final = 4
_ADDRESS_BYTES: Final = 8
_NO_ADDRESSES: Final = frozenset(
    {*range(0, 0x18, 4), 0x20, 0x24, 0x28, 0x2C, 0x118, 0x11C, 0x208, 0x20C, 0x358, 0x35C, *range(0x360, 0x380, 4)}
)
"""Offsets below the parameters: sizes of grid and block, stack, and what goes with every access of global memory."""
_WORD_BYTES: Final = 4
_NEVER_RETURNS: Final = "__assertfail"
BY_ADDRESS: Final = "functions called by address"


@dataclass(frozen=True, slots=True)
class AddressPatch:
    """``address of the original's NAME + addend``, to be written at an offset in a section. ``kind`` is as in
    kernel.info: abs64, abs32lo or abs32hi.
    """

    kind: str
    section: int
    offset: int
    addend: int
    name: str


@dataclass(frozen=True, slots=True)
class SharedVariables:
    """Variables that a kernel shares with its original: addresses to write, constants (name, bytes) to copy, and the
    contents of sections of relocations without those for them, by number.
    """

    patches: tuple[AddressPatch, ...] = ()
    constants: tuple[tuple[str, int], ...] = ()
    relocations: dict[int, bytes] = field(default_factory=dict)


def shared_variables(target: GraftTarget) -> SharedVariables:
    """Return the variables that a kernel and the functions of its module share. Raises UnsupportedKernelError for what
    is not understood.
    """
    return _KernelRelocations(target).shared_variables()


def calls_outside(target: GraftTarget) -> str:
    """Return the name of a function outside of the module that the kernel may call and that returns; "" for none.

    ``BY_ADDRESS`` stands for those that are known by their addresses only.
    """
    if target.has_unseen_calls:
        return BY_ADDRESS
    for _, relocation in _KernelRelocations(target).reachable():
        symbol = target.cubin.symbol(relocation.symbol)
        if symbol.kind == _FUNCTION and not symbol.section and symbol.name != _NEVER_RETURNS:
            return symbol.name
    return ""


class _KernelRelocations:
    """The relocations of one kernel."""

    def __init__(self, target: GraftTarget) -> None:
        self._target = target
        self._cubin: Cubin = target.cubin
        self._words = list(target.all_words())

    def shared_variables(self) -> SharedVariables:
        patches: list[AddressPatch] = []
        dropped_relocations: dict[int, set[Relocation]] = {}
        for table, relocation in self.reachable():
            patch = self._patch(self._cubin.sections[table.info], relocation)
            if patch is not None:
                patches.append(patch)
                dropped_relocations.setdefault(table.number, set()).add(relocation)
        contents = {
            number: self._remaining_relocations(number, relocations)
            for number, relocations in dropped_relocations.items()
        }
        return SharedVariables(tuple(patches), tuple(self._constants()), contents)

    def _remaining_relocations(self, number: int, dropped_relocations: set[Relocation]) -> bytes:
        relocations = self._cubin.relocations(self._cubin.sections[number])
        return relocation_bytes([relocation for relocation in relocations if relocation not in dropped_relocations])

    def reachable(self) -> Iterator[tuple[Section, Relocation]]:
        """Yield the relocations of what the kernel can reach, with the section that holds them."""
        codes = {self._target.code.number, *(section.number for section in self._target.functions)}
        own_bank = re.compile(rf"\.nv\.constant\d+\.{re.escape(self._target.symbol.name)}")
        offsets = None if self._target.has_unseen_calls else address_offsets(self._words)
        for table in self._cubin.relocation_sections():
            if table.info >= len(self._cubin.sections):
                continue
            section = self._cubin.sections[table.info]
            for relocation in self._cubin.relocations(table):
                if (
                    table.info in codes
                    or own_bank.fullmatch(section.name)
                    or (section.name == ADDRESS_SECTION and (offsets is None or overlaps(relocation.offset, offsets)))
                ):
                    yield table, relocation

    def _patch(self, section: Section, relocation: Relocation) -> AddressPatch | None:
        """Return the patch that replaces a relocation; None if it can stay."""
        symbol = self._cubin.symbol(relocation.symbol)
        if symbol.kind in _REFERENCE_KINDS:
            raise _refusal(symbol.name, "a texture, sampler or surface reference")
        if not 0 < symbol.section < len(self._cubin.sections):
            return None
        if self._cubin.sections[symbol.section].name not in VARIABLES:
            return None
        variable, addend = self._variable(symbol, self._addend(section, relocation))
        if _is_private(variable):
            return None
        return self._address_patch(section, relocation, variable, addend)

    def _addend(self, section: Section, relocation: Relocation) -> int:
        """Return the offset added to the address. Older architectures have it in the place that is written to."""
        if relocation.addend is not None:
            return relocation.addend
        offset = section.offset + relocation.offset
        if not _is_code(section):
            return int.from_bytes(self._cubin.image[offset : offset + _ADDRESS_BYTES], "little", signed=True)
        if any(self._cubin.image[offset + _IMMEDIATE_AT : offset + _ADDRESS_BYTES]):
            raise _refusal(self._cubin.symbol(relocation.symbol).name, "in an instruction with an unknown constant")
        return 0

    def _address_patch(self, section: Section, relocation: Relocation, variable: Symbol, addend: int) -> AddressPatch:
        is_code = _is_code(section)
        if _count_objects(self._cubin, variable.name) > 1:
            raise _refusal(variable.name, "a name that several variables of the module have")
        if not is_code and relocation.kind in _ADDRESS_RELOCATIONS:
            return AddressPatch("abs64", section.number, relocation.offset, addend, variable.name)
        if is_code and relocation.kind in (_LOW_HALF_RELOCATION, _HIGH_HALF_RELOCATION):
            kind = "abs32lo" if relocation.kind == _LOW_HALF_RELOCATION else "abs32hi"
            return AddressPatch(kind, section.number, relocation.offset + _IMMEDIATE_AT, addend, variable.name)
        raise _refusal(variable.name, f"in a relocation of unknown kind {relocation.kind}")

    def _variable(self, symbol: Symbol, addend: int) -> tuple[Symbol, int]:
        """Return the variable that a symbol stands for, which may be its section, and how far from its start."""
        if symbol.kind in _OBJECT_KINDS:
            return symbol, addend
        offset = symbol.value + addend
        variable = variable_at(self._cubin, symbol.section, offset)
        if variable is None:
            raise _refusal(symbol.name, "memory without a symbol name")
        return variable, offset - variable.value

    def _constants(self) -> Iterator[tuple[str, int]]:
        section = self._cubin.find_section(CONSTANT_SECTION)
        if section is None or not self._reaches_constants():
            return
        for symbol in self._cubin.symbols:
            if (
                symbol.section == section.number
                and symbol.kind in _OBJECT_KINDS
                and symbol.size
                and not _is_private(symbol)
            ):
                if _count_objects(self._cubin, symbol.name) > 1:
                    raise _refusal(symbol.name, "a name that several variables of the module have")
                yield symbol.name, symbol.size

    def _reaches_constants(self) -> bool:
        """Return whether the kernel may read constant memory: in its bank, or by its address, which bank 0 holds
        somewhere.
        """
        if self._target.has_unseen_calls or _read_offsets(self._words, _CONSTANT_BANK) != set():
            return True
        read_offsets = _read_offsets(self._words, 0)
        return read_offsets is None or any(
            offset < self._target.base and offset not in _NO_ADDRESSES for offset in read_offsets
        )


def _is_code(section: Section) -> bool:
    return section.name.startswith(".text.")


def variable_at(cubin: Cubin, section: int, offset: int) -> Symbol | None:
    """Return the variable that has the byte ``offset`` of a section; None for memory without a name."""
    for symbol in cubin.symbols:
        if (
            symbol.kind in _OBJECT_KINDS
            and symbol.section == section
            and symbol.value <= offset < symbol.value + max(symbol.size, 1)
        ):
            return symbol
    return None


def is_shared(cubin: Cubin, variable: Symbol) -> bool:
    """Return whether a graft uses the original's variable instead of its own, or refuses the kernel."""
    return not _is_private(variable) and _count_objects(cubin, variable.name) == 1


def _count_objects(cubin: Cubin, name: str) -> int:
    return sum(symbol.kind in _OBJECT_KINDS and symbol.name == name for symbol in cubin.symbols)


def _is_private(variable: Symbol) -> bool:
    """Return whether nothing can tell a copy of the variable from the variable."""
    return variable.binding == 0 and _PRIVATE.fullmatch(variable.name) is not None


def _read_offsets(words: Iterable[Word], bank: int) -> set[int] | None:
    """Return the offsets of the words in a bank that instructions read; None if a register may say which."""
    offsets: set[int] = set()
    for word in words:
        if constant_bank(word) == bank:
            if is_indexed_constant(word):
                return None
            offsets.update(range(constant_offset(word), constant_offset(word) + constant_bytes(word), _WORD_BYTES))
    return offsets


def address_offsets(words: Iterable[Word]) -> set[int] | None:
    """Return the offsets in the section of addresses that instructions read; None if a register may say which."""
    return _read_offsets(words, _ADDRESS_BANK)


def overlaps(offset: int, read_offsets: set[int]) -> bool:
    """Return whether one of the words that are read is part of an address."""
    return any(offset - _WORD_BYTES < word_offset < offset + _ADDRESS_BYTES for word_offset in read_offsets)


def _refusal(variable: str, property_text: str) -> UnsupportedKernelError:
    """Return the error for a kernel with a variable that cannot be shared."""
    return UnsupportedKernelError(because("graft-variable", variable=variable or "?", what=property_text))
