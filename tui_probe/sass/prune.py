"""A kernel in a cubin of its own, out of one that may have hundreds.

Taken are the kernel's sections, those of the functions that it calls, and what the module has for all: variables,
constants and their addresses. Other kernels and functions are left out, and so is what debuggers read, but for the
kernel's own lines. Where a function may be reached by its address, or the file holds something that is not known, the
cubin stays whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImageError
from tui_probe.sass.cubin import CODE_PREFIX, Cubin
from tui_probe.sass.excerpt import CALL_GRAPH, CALLS, FIRST_MARK, INFO, Excerpt, KeptWholeError, pairs
from tui_probe.sass.nv_info import EXTERNS, read_attributes
from tui_probe.sass.variables import ADDRESSES, VARIABLES, address_offsets, overlaps
from tui_probe.sass.words import words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tui_probe.sass.cubin import Relocation, Section, Symbol
    from tui_probe.sass.words import Word

    CutLines = Callable[[bytes, Collection[int], Collection[int]], tuple[bytes, dict[int, int]]]

_LINES: Final = ".debug_line"
_FOR_ALL: Final = re.compile(
    r"(?:\.shstrtab|\.strtab|\.symtab|\.nv\.(?:info|compat|callgraph|prototype|rel\.action|global|global\.init)"
    r"|\.note\.nv\.\w+|\.nv\.constant\d+|\.nv\.shared\.reserved\.\d+)?"
)
"""Sections of a module."""
_OF_FUNCTION: Final = re.compile(r"\.(?:text|nv\.info|nv\.constant\d+|nv\.shared|nv\.local)\.(.+)", re.DOTALL)
_RELOCATIONS: Final = re.compile(r"\.rela?(\..+)", re.DOTALL)
_LEFT_OUT: Final = (
    *(".debug_", ".nv_debug_", ".nv.merc.", ".nv.capmerc."),
    *(".rel.debug_", ".rela.debug_", ".rel.nv_debug_", ".rela.nv_debug_"),
)
"""What debuggers read, and a second form of the code, which a graft leaves out as well."""
_RESERVED: Final = ".nv.reservedSmem."
_CALLERS_BY_ADDRESS: Final = 0xFFFFFFFD
_SPECIAL_SECTIONS: Final = 0xFF00
_OBJECTS: Final = frozenset({1, 13})


def prune(cubin: Cubin, name: str, cut_lines: CutLines) -> Cubin:
    """The cubin with one kernel alone, or itself if there is nothing but the kernel in it.

    ``cut_lines`` gets a line table, the places in it where addresses of code are stored, and those of them to keep; it
    gives the shorter table, and the new place of each that was kept, or raises ImageError.
    Raises KeptWholeError, with words, for one that must stay whole, and ImageError.
    """
    functions = sum(section.name.startswith(CODE_PREFIX) for section in cubin.sections)
    return cubin if functions == 1 else Cubin.read(_Pruning(cubin, name, cut_lines).excerpt().image())


@dataclass
class _Pruning:
    cubin: Cubin
    name: str
    cut_lines: CutLines
    _contents: dict[int, bytes] = field(default_factory=dict)
    _relocations: dict[int, list[Relocation]] = field(default_factory=dict)
    _named: set[int] = field(default_factory=set)
    """Symbols that something taken names."""

    def excerpt(self) -> Excerpt:
        sections = [section.number for section in self.cubin.sections if self._is_taken(section)]
        for table in self.cubin.relocation_sections():
            if table.number in sections:
                self._take_relocations(table, set(sections))
        sections = self._with_lines(sections)
        symbols = tuple(self._symbols(set(sections)))
        return Excerpt(self.cubin, tuple(sections), symbols, self._contents, self._relocations)

    @cached_property
    def _code(self) -> dict[str, Section]:
        """All code sections by the names of their functions."""
        prefix = len(CODE_PREFIX)
        return {one.name[prefix:]: one for one in self.cubin.sections if one.name.startswith(CODE_PREFIX)}

    @cached_property
    def _calls(self) -> tuple[dict[int, set[int]], set[int]]:
        """The symbols of the functions that each code section calls; and the sections that call by an address."""
        calls: dict[int, set[int]] = {}
        by_address: set[int] = set()
        graph = self.cubin.find(CALL_GRAPH)
        mark = 0
        for caller, callee in pairs(self.cubin.content(graph)) if graph else ():
            if callee >= FIRST_MARK:
                mark = callee
            elif mark == CALLS:
                calls.setdefault(self.cubin.symbol(caller).section, set()).add(callee)
            elif mark == _CALLERS_BY_ADDRESS:
                by_address.add(self.cubin.symbol(caller).section)
        return calls, by_address

    @cached_property
    def _reached(self) -> dict[str, Section]:
        """The code sections of the kernel and of all that it calls, by the names of their functions."""
        calls, by_address = self._calls
        reached: dict[str, Section] = {}
        pending = [self.cubin.kernel_symbol(self.name)]
        while pending:
            symbol = pending.pop()
            self._named.add(symbol.number)
            if not symbol.section or symbol.section in {one.number for one in reached.values()}:
                continue
            code = self._code.get(symbol.name)
            if code is None or code.number != symbol.section:
                raise KeptWholeError(f"{symbol.name} is a function without a section of its own")
            if code.number in by_address:
                raise KeptWholeError(f"{symbol.name} calls functions by their addresses")
            reached[symbol.name] = code
            pending += [self.cubin.symbol(number) for number in calls.get(code.number, ())]
        return reached

    @cached_property
    def _reached_numbers(self) -> frozenset[int]:
        return frozenset(section.number for section in self._reached.values())

    @cached_property
    def _words(self) -> list[Word]:
        return [word for section in self._reached.values() for word in words_of(self.cubin.content(section))]

    def _is_taken(self, section: Section) -> bool:
        """Raises KeptWholeError for a section that is not known."""
        name = section.name
        if _FOR_ALL.fullmatch(name):
            return True
        if (match := _OF_FUNCTION.fullmatch(name)) and match[1] in self._code:
            return match[1] in self._reached
        if match := _RELOCATIONS.fullmatch(name):
            of = self.cubin.sections[section.info] if section.info < len(self.cubin.sections) else None
            if of is not None and of.name == match[1] and of.number != section.number:
                return self._is_taken(of)
        if name.startswith(_LEFT_OUT):
            return False
        raise KeptWholeError(f"section {name} is not known")

    def _take_relocations(self, table: Section, taken: set[int]) -> None:
        section = self.cubin.sections[table.info]
        held = []
        for one in self.cubin.relocations(table):
            symbol = self.cubin.symbol(one.symbol)
            if symbol.section in taken or not 0 < symbol.section < _SPECIAL_SECTIONS or self._calls_it(section, symbol):
                self._named.add(symbol.number)
                held.append(one)
            elif self._may_use(section, one):
                raise KeptWholeError(f"{section.name} has the address of {symbol.name}")
        self._relocations[table.number] = held

    def _calls_it(self, section: Section, symbol: Symbol) -> bool:
        return section.number in self._reached_numbers and symbol.section in self._reached_numbers

    def _may_use(self, section: Section, relocation: Relocation) -> bool:
        """Whether the kernel may come to know what a relocation writes."""
        if section.name == ADDRESSES:
            read = address_offsets(self._words)
            return read is None or overlaps(relocation.offset, read)
        return section.name not in VARIABLES or section.number in self._read_variables

    @cached_property
    def _read_variables(self) -> frozenset[int]:
        """The sections of variables whose addresses the kernel may come to know."""
        found = set()
        for table in self.cubin.relocation_sections():
            section = self.cubin.sections[table.info] if table.info < len(self.cubin.sections) else table
            if not self._is_taken(section) or section.name in VARIABLES:
                continue
            for one in self.cubin.relocations(table):
                if section.name != ADDRESSES or self._may_use(section, one):
                    found.add(self.cubin.symbol(one.symbol).section)
        return frozenset(found)

    def _with_lines(self, sections: list[int]) -> list[int]:
        """The sections, and the line table with the lines of the taken code alone, if there are any."""
        lines = self.cubin.find(_LINES)
        tables = [one for one in self.cubin.relocation_sections() if lines and one.info == lines.number]
        if lines is None or len(tables) != 1:
            return sections
        told = self.cubin.relocations(tables[0])
        own = [one for one in told if self.cubin.symbol(one.symbol).section in self._reached_numbers]
        if not own:
            return sections
        try:
            content, places = self.cut_lines(
                self.cubin.content(lines), [one.offset for one in told], [one.offset for one in own]
            )
        except ImageError:  # a damaged line table takes nothing but the lines
            return sections
        self._contents[lines.number] = content
        self._relocations[tables[0].number] = [one._replace(offset=places[one.offset]) for one in own]
        self._named.update(one.symbol for one in own)
        return sorted([*sections, lines.number, tables[0].number])

    def _symbols(self, sections: set[int]) -> Iterator[int]:
        """Those in the sections that are taken, those that something names, and those that stand for all kernels."""
        named = self._named | self._externs() | {0}
        left: set[str] = set()
        variables: set[str] = set()
        for symbol in self.cubin.symbols:
            is_everywhere = symbol.section >= _SPECIAL_SECTIONS or (
                not symbol.section and symbol.name.startswith(_RESERVED)
            )
            is_taken = symbol.number in named or (symbol.section and symbol.section in sections) or is_everywhere
            if symbol.kind in _OBJECTS:
                (variables if is_taken else left).add(symbol.name)
            if is_taken:
                yield symbol.number
        if both := left & variables:
            raise KeptWholeError(f"several variables have the name {min(both)}")

    def _externs(self) -> set[int]:
        """The functions that the attributes of the taken functions name."""
        found: set[int] = set()
        for name in self._reached:
            section = self.cubin.find(f"{INFO}.{name}")
            for each in read_attributes(self.cubin.content(section)) if section else ():
                if each.number == EXTERNS:
                    found.update(each.words())
        return found
