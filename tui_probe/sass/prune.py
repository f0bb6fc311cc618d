"""Cut one kernel out of a cubin, into a cubin of its own.

Taken are the kernel's sections, those of the functions that it calls, and what the module has for all: variables,
constants and their addresses. Other kernels and functions are left out, and so is what debuggers read, but for the
kernel's own lines. Functions that are called by an address are left out where the addresses come from variables that a
graft shares with the original: they are those of the original's functions. Where the kernel may have the address of a
function from elsewhere, or the file holds something that is not known, the cubin stays whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.binaries.cubin import CODE_PREFIX, CallGraph, Cubin
from tui_probe.binaries.line_tables import cut_table
from tui_probe.errors import ImageError
from tui_probe.sass.excerpt import INFO, INFO_LINK, Excerpt, KeptWholeError
from tui_probe.sass.nv_info import EXTERNS, read_attributes
from tui_probe.sass.target import functions_of, may_exit
from tui_probe.sass.variables import ADDRESS_SECTION, VARIABLES, address_offsets, is_shared, overlaps, variable_at
from tui_probe.sass.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tui_probe.binaries.cubin import Relocation, Symbol
    from tui_probe.binaries.elf import Section
    from tui_probe.sass.words import Word

    CutLines = Callable[[bytes, Collection[int], Collection[int]], tuple[bytes, dict[int, int]]]

_LINE_SECTION: Final = ".debug_line"
_FOR_ALL: Final = re.compile(
    r"(?:\.shstrtab|\.strtab|\.symtab|\.nv\.(?:info|compat|callgraph|prototype|rel\.action|global|global\.init)"
    r"|\.note\.nv\.\w+|\.nv\.constant\d+|\.nv\.shared\.reserved\.\d+)?"
)
"""Sections of a module."""
_FUNCTION_SECTIONS: Final = re.compile(r"\.(?:nv\.info|nv\.constant\d+|nv\.shared|nv\.local)\.(.+)", re.DOTALL)
_RELOCATIONS: Final = re.compile(r"\.rela?(\..+)", re.DOTALL)
_OMITTED_PREFIXES: Final = (
    *(".debug_", ".nv_debug_", ".nv_debug.", ".nv.merc.", ".nv.capmerc."),
    *(".rel.debug_", ".rela.debug_", ".rel.nv_debug_", ".rela.nv_debug_"),
)
"""Sections for debuggers, and a second form of the code, which a graft leaves out as well."""
_RESERVED: Final = ".nv.reservedSmem."
_SPECIAL_SECTIONS: Final = 0xFF00
"""SHN_LORESERVE: numbers from here on are not those of sections, but of absolute and common symbols."""
_OBJECTS: Final = frozenset({1, 13})


def prune_cubin(cubin: Cubin, name: str, cut_lines: CutLines) -> Cubin:
    """Return the cubin with one kernel only, or itself if there is nothing but the kernel in it.

    ``cut_lines`` gets a line table, the places in it where addresses of code are stored, and those of them to keep; it
    gives the shorter table, and the new place of each that was kept, or raises ImageError.
    Raises KeptWholeError, with words, for one that must stay whole, and ImageError.
    """
    functions = sum(section.name.startswith(CODE_PREFIX) for section in cubin.sections)
    return cubin if functions == 1 else Cubin.read(_Pruner(cubin, name, cut_lines).excerpt().image())


@dataclass
class _Pruner:
    cubin: Cubin
    name: str
    cut_lines: CutLines
    _contents: dict[int, bytes] = field(default_factory=dict)
    _relocations: dict[int, list[Relocation]] = field(default_factory=dict)
    _named_symbols: set[int] = field(default_factory=set)
    """Symbols that something taken names."""

    def excerpt(self) -> Excerpt:
        self._refuse_unseen_exits()
        sections = [section.number for section in self.cubin.sections if self._is_taken(section)]
        for table in self.cubin.relocation_sections():
            if table.number in sections:
                self._take_relocations(table, set(sections))
        sections = self._with_lines(sections)
        symbols = tuple(self._symbols(set(sections)))
        return Excerpt(self.cubin, tuple(sections), symbols, self._contents, self._relocations)

    @cached_property
    def _code(self) -> dict[int, Section]:
        """All code sections by number: functions of different files may have the same name."""
        return {section.number: section for section in self.cubin.sections if section.name.startswith(CODE_PREFIX)}

    @cached_property
    def _graph(self) -> CallGraph:
        return CallGraph.from_cubin(self.cubin)

    @cached_property
    def _reached_code(self) -> dict[int, Section]:
        """The code sections of the kernel and of all that it calls, by number."""
        code_sections: dict[int, Section] = {}
        pending = [self.cubin.kernel_symbol(self.name)]
        while pending:
            symbol = pending.pop()
            self._named_symbols.add(symbol.number)
            if not symbol.section or symbol.section in code_sections:
                continue
            code = self._code.get(symbol.section)
            if code is None or code.name != CODE_PREFIX + symbol.name:
                raise KeptWholeError(f"function {symbol.name} has no section of its own")
            code_sections[code.number] = code
            pending += [self.cubin.symbol(number) for number in self._graph.calls.get(code.number, ())]
        return code_sections

    @cached_property
    def _calls_by_address(self) -> bool:
        return not self._graph.by_address.isdisjoint(self._reached_code)

    def _refuse_unseen_exits(self) -> None:
        """A function that is left out must not end the kernel, since no one could record that."""
        for section in functions_of(self.cubin) if self._calls_by_address else ():
            if section.number not in self._reached_code and may_exit(self.cubin.content(section)):
                raise KeptWholeError(f"{section.name} has an EXIT and may be called by address")

    @cached_property
    def _variables(self) -> frozenset[int]:
        return frozenset(section.number for section in self.cubin.sections if section.name in VARIABLES)

    @cached_property
    def _code_words(self) -> list[Word]:
        return [word for section in self._reached_code.values() for word in words_of(self.cubin.content(section))]

    def _is_taken(self, section: Section) -> bool:
        """Raise KeptWholeError for a section that is not known."""
        name = section.name
        if _FOR_ALL.fullmatch(name):
            return True
        if section.number in self._code:
            return section.number in self._reached_code
        if match := _FUNCTION_SECTIONS.fullmatch(name):
            return self._is_of_reached(section, match[1])
        if match := _RELOCATIONS.fullmatch(name):
            owner = self.cubin.sections[section.info] if section.info < len(self.cubin.sections) else None
            if owner is not None and owner.name == match[1] and owner.number != section.number:
                return self._is_taken(owner)
        if name.startswith(_OMITTED_PREFIXES):
            return False
        raise KeptWholeError(f"unknown section {name}")

    def _is_of_reached(self, section: Section, function: str) -> bool:
        """Return whether a section that is a function's is one of those that are taken. Raises KeptWholeError."""
        if section.flags & INFO_LINK:
            return section.info in self._reached_code
        functions = [section for section in self._code.values() if section.name == CODE_PREFIX + function]
        if len(functions) != 1:
            raise KeptWholeError(f"section {section.name} belongs to no function or to several functions")
        return functions[0].number in self._reached_code

    def _take_relocations(self, table: Section, sections: set[int]) -> None:
        section = self.cubin.sections[table.info]
        relocations, has_dropped = [], False
        for relocation in self.cubin.relocations(table):
            symbol = self.cubin.symbol(relocation.symbol)
            if (
                symbol.section in sections
                or not 0 < symbol.section < _SPECIAL_SECTIONS
                or self._calls_it(section, symbol)
            ):
                self._named_symbols.add(symbol.number)
                relocations.append(relocation)
            elif self._may_use(section, relocation):
                if not self._is_of_original(section, relocation):
                    raise KeptWholeError(f"{section.name} contains the address of {symbol.name}")
                has_dropped = True
        if has_dropped and (pointer := self._own_pointer(section, relocations)):
            raise KeptWholeError(f"{section.name} contains the address of {pointer}")
        self._relocations[table.number] = relocations

    def _is_of_original(self, section: Section, relocation: Relocation) -> bool:
        """Return whether a relocation is for a variable that the original replaces, so that this one is never
        read.
        """
        if section.name not in VARIABLES:
            return False
        variable = variable_at(self.cubin, section.number, relocation.offset)
        return variable is not None and is_shared(self.cubin, variable)

    def _own_pointer(self, section: Section, relocations: list[Relocation]) -> str:
        """Return the name of a variable whose address something that is not shared holds, "" for none."""
        for relocation in relocations:
            symbol = self.cubin.symbol(relocation.symbol)
            is_variable = symbol.section in self._variables or symbol.kind in _OBJECTS
            if is_variable and not self._is_of_original(section, relocation):
                return symbol.name
        return ""

    def _calls_it(self, section: Section, symbol: Symbol) -> bool:
        return section.number in self._reached_code and symbol.section in self._reached_code

    def _may_use(self, section: Section, relocation: Relocation) -> bool:
        """Return whether the kernel may come to know what a relocation writes."""
        if section.name == ADDRESS_SECTION:
            read_offsets = None if self._calls_by_address else address_offsets(self._code_words)
            return read_offsets is None or overlaps(relocation.offset, read_offsets)
        return section.name not in VARIABLES or section.number in self._read_variables

    @cached_property
    def _read_variables(self) -> frozenset[int]:
        """The sections of variables whose addresses the kernel may come to know."""
        variables = set()
        for table in self.cubin.relocation_sections():
            section = self.cubin.sections[table.info] if table.info < len(self.cubin.sections) else table
            if not self._is_taken(section) or section.name in VARIABLES:
                continue
            for relocation in self.cubin.relocations(table):
                if section.name != ADDRESS_SECTION or self._may_use(section, relocation):
                    variables.add(self.cubin.symbol(relocation.symbol).section)
        return frozenset(variables)

    def _with_lines(self, sections: list[int]) -> list[int]:
        """Return the sections, and the line table with the lines of the taken code only, if there are any."""
        lines = self.cubin.find_section(_LINE_SECTION)
        tables = [table for table in self.cubin.relocation_sections() if lines and table.info == lines.number]
        if lines is None or len(tables) != 1:
            return sections
        relocations = self.cubin.relocations(tables[0])
        code_relocations = [
            relocation
            for relocation in relocations
            if self.cubin.symbol(relocation.symbol).section in self._reached_code
        ]
        if not code_relocations:
            return sections
        try:
            content, places = self.cut_lines(
                self.cubin.content(lines),
                [relocation.offset for relocation in relocations],
                [relocation.offset for relocation in code_relocations],
            )
        except ImageError:  # a damaged line table takes nothing but the lines
            return sections
        self._contents[lines.number] = content
        self._relocations[tables[0].number] = [
            relocation._replace(offset=places[relocation.offset]) for relocation in code_relocations
        ]
        self._named_symbols.update(relocation.symbol for relocation in code_relocations)
        return sorted([*sections, lines.number, tables[0].number])

    def _symbols(self, sections: set[int]) -> Iterator[int]:
        """Return the symbols in the sections that are taken, those that something names, and those that stand for all
        kernels.
        """
        named_symbols = self._named_symbols | self._externs() | {0}
        dropped_names: set[str] = set()
        kept_names: set[str] = set()
        for symbol in self.cubin.symbols:
            is_everywhere = symbol.section >= _SPECIAL_SECTIONS or (
                not symbol.section and symbol.name.startswith(_RESERVED)
            )
            is_taken = (
                symbol.number in named_symbols or (symbol.section and symbol.section in sections) or is_everywhere
            )
            if symbol.kind in _OBJECTS:
                (kept_names if is_taken else dropped_names).add(symbol.name)
            if is_taken:
                yield symbol.number
        if ambiguous_names := dropped_names & kept_names:
            raise KeptWholeError(f"several variables have the name {min(ambiguous_names)}")

    def _externs(self) -> set[int]:
        """Return the functions that the attributes of the taken functions name."""
        externs: set[int] = set()
        for section in self.cubin.sections:
            if section.name.startswith(INFO + ".") and self._is_taken(section):
                attributes = read_attributes(self.cubin.content(section))
                externs.update(*(attribute.words() for attribute in attributes if attribute.number == EXTERNS))
        return externs


def kernel_cubin(cubin: Cubin, name: str, fault: str) -> tuple[Cubin, str]:
    """Return the cubin of a kernel out of one that may have others, and a line for process.log; "" for none.

    ``fault`` is that of the self-test of pruned cubins: unless it is empty, the cubin stays whole.
    """
    if fault:
        return (
            cubin,
            "[prune] pruned.bin is the whole cubin, because the self-test of pruned cubins failed on this GPU:"
            f" {fault}",
        )
    try:
        pruned_cubin = prune_cubin(cubin, name, cut_table)
    except (KeptWholeError, ImageError) as error:
        return cubin, f"[prune] pruned.bin is the whole cubin: {error}"
    if pruned_cubin is cubin:
        return cubin, ""
    sizes = f"{len(pruned_cubin.image)} of {len(cubin.image)} bytes"
    return pruned_cubin, f"[prune] pruned.bin contains one of {len(cubin.kernels)} kernels: {sizes}"
