"""A kernel of a module under change: its needs, edits of its text, unused names, and walks over its statements."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Final

from tui_probe.ptx.instruction_facts import named_spaces
from tui_probe.ptx.references import find_entry, items_by_name, prune_to_kernel, references
from tui_probe.ptx.tree import INSERTED_MARK, REPLACED_MARK, Function, Variable, instructions_in, statements_in
from tui_probe.ptx.value_types import ValueTypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.engine.map_layout import MapLayout
    from tui_probe.ptx.tree import Instruction, Location, Module, Span

_REST_OF_LINE: Final = re.compile(r"[ \t]*(?://[^\n]*)?(?=\n|\Z)")


class UnusedNames:
    """Makes the names of inserted registers, labels and parameters for one PTX text."""

    def __init__(self, source: str) -> None:
        self._prefix = next(prefix for prefix in _candidate_prefixes() if prefix not in source)
        self._labels = count()
        self._pending_declarations: dict[str, str] = {}
        self._functions: dict[str, UnusedNames] = {}

    def of_function(self, name: str) -> UnusedNames:
        """Return the same names for a function that the kernel calls, which declares its registers itself."""
        if name not in self._functions:
            names = copy(self)
            names._pending_declarations, names._functions = {}, {}
            self._functions[name] = names
        return self._functions[name]

    def register(self, name: str, kind: str) -> str:
        """Return the name in the kernel of a probe's own register of a PTX type: ``%begin`` is ``%tp_begin``."""
        return self._declare(f"%{self._prefix}{name.removeprefix('%')}", kind)

    def temporary(self, name: str, kind: str) -> str:
        """Return the name of a register of a PTX type that the engine needs itself."""
        return self._declare(f"%{self._prefix}_{name}", kind)

    def declarations(self) -> list[str]:
        """Return declarations of the registers named since the last call, one for each type."""
        names = defaultdict(list)
        for name, kind in self._pending_declarations.items():
            names[kind].append(name)
        self._pending_declarations.clear()
        return [f".reg .{kind} {', '.join(register_names)};" for kind, register_names in names.items()]

    def parameter(self, purpose: str, name: str) -> str:
        """Return the name of a parameter for a ``map``, its ``count``, or a module ``variable``."""
        return f"{self._prefix}{purpose}_{name.replace('%', '$')}"

    def new_label(self) -> str:
        """Return a label that is not in use."""
        return f"${self._prefix}{next(self._labels)}"

    def new_argument(self) -> str:
        """Return a name for an argument of a call that is not in use."""
        return f"{self._prefix}argument{next(self._labels)}"

    def declare(self, name: str, kind: str) -> None:
        """Declare a register of that very name, which another function has, too."""
        self._pending_declarations[name] = kind

    def _declare(self, name: str, kind: str) -> str:
        self._pending_declarations[name] = kind
        return name


def _candidate_prefixes() -> Iterator[str]:
    yield "tp_"
    yield from (f"tp{number}_" for number in count())


def mark_lines(lines: Iterable[str], name: str) -> list[str]:
    """Return lines of PTX, each with a comment that names its probe."""
    return [f"\t{line} {INSERTED_MARK}{name}" for line in lines]


def count_inserted_instructions(text: str) -> int:
    """Count the instructions in inserted lines of probed PTX, without declarations and labels."""
    lines = (
        line.partition(INSERTED_MARK)[0].strip()
        for line in text.splitlines()
        if INSERTED_MARK in line and REPLACED_MARK not in line
    )
    return sum(line.endswith(";") and not line.startswith(".") for line in lines)


class Edits:
    """Collects insertions and replacements, and applies those of a node all at the same time.

    Insertions at one place keep the order in which they were asked for.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._changes: list[tuple[int, int, str]] = []

    def insert_before(self, span: Span, lines: Iterable[str], *, goes_first: bool = False) -> None:
        """Insert lines in front of a node, on lines of their own; ``goes_first`` puts them before all others there."""
        position, text = span.start, "\n".join(lines)
        if not text:
            return
        line_start = self._source.rfind("\n", 0, position) + 1
        if self._source[line_start:position].strip():
            change = (position, position, f"\n{text}\n\t")
        else:
            change = (line_start, line_start, f"{text}\n")
        self._changes.insert(0 if goes_first else len(self._changes), change)

    def insert_after(self, span: Span, lines: Iterable[str], *, goes_first: bool = False) -> None:
        """Insert lines behind a node, and behind the comment that follows it on its line; ``goes_first`` puts them
        before all others there.
        """
        line_rest = _REST_OF_LINE.match(self._source, span.end)
        position = line_rest.end() if line_rest else span.end
        if text := "\n".join(lines):
            ends_line = self._source[position : position + 1] in ("\n", "")
            change = (position, position, f"\n{text}" if ends_line else f"\n{text}\n\t")
            self._changes.insert(0 if goes_first else len(self._changes), change)

    def insert_text(self, position: int, text: str) -> None:
        """Insert text as it is."""
        self._changes.append((position, position, text))

    def replace(self, span: Span, text: str) -> None:
        """Put text instead of a node. It ends with a comment, so what follows on the line goes to the next."""
        line_rest = self._source[span.end : self._source.find("\n", span.end)]
        self._changes.append((span.start, span.end, f"{text}\n\t" if line_rest.strip() else text))

    def has_edit_between(self, start: int, end: int) -> bool:
        """Return whether something was put between two places."""
        return any(start <= position <= end for position, _, _ in self._changes)

    def positions_of(self, pattern: re.Pattern[str]) -> list[int]:
        """Return the positions of insertions that a pattern occurs in, in ascending order."""
        return sorted(position for position, _, text in self._changes if pattern.search(text))

    def apply(self, span: Span) -> str:
        """Return the text of a node with the edits inside it. Replacements must not overlap."""
        pieces = []
        position = span.start
        for start, end, text in sorted(self._changes, key=lambda change: change[:2]):
            if span.start <= start and end <= span.end:
                pieces += [self._source[position:start], text]
                position = end
        return "".join([*pieces, self._source[position : span.end]])


def function_instructions(function: Function) -> Iterator[Instruction]:
    """Return all instructions of a function in order, those of inner scopes included."""
    return instructions_in(function.body or ())


def register_types(function: Function) -> dict[str, str]:
    """Return the types of a function's registers; ``%r`` stands for all that ``.reg .b32 %r<9>`` declares."""
    return {
        node.name: node.type
        for node in statements_in(function.body or ())
        if isinstance(node, Variable) and node.space == "reg"
    }


def register_type(register: str, types: dict[str, str]) -> str:
    """Return the type of a register by its name, or "" if it is not declared."""
    return types.get(register) or types.get(register.rstrip("0123456789"), "")


def is_exit(instruction: Instruction) -> bool:
    """Return whether an instruction of a kernel ends the threads that execute it."""
    return instruction.opcode in ("ret", "exit")


@dataclass(frozen=True)
class Kernel:
    """One kernel of ``module``: its pruned text, and the functions and variables that came with it.

    The spans of all nodes are places in ``module.source``; nothing is parsed a second time.
    """

    module: Module
    entry: Function
    pruned: str
    functions: tuple[Function, ...]
    variables: tuple[Variable, ...]
    image: bytes = b""
    """Image of the module, whose line tables tell the source of a text without ``.loc``."""
    map_layout: MapLayout | None = None
    """Layout of tensor maps on the device; None if it is not known."""

    @classmethod
    def of(cls, module: Module, name: str) -> Kernel:
        """Return the kernel of that name. Raises PtxError if there is none or a body is damaged."""
        entry = find_entry(module, name)
        items, names = items_by_name(module), references(module, entry)
        needed_ids = {id(item) for reference in names for item in items[reference]}
        needed_items = [item for item in module.items if id(item) in needed_ids and item is not entry]
        functions = tuple(item for item in needed_items if isinstance(item, Function))
        variables = tuple(item for item in needed_items if isinstance(item, Variable))
        return cls(module, entry, prune_to_kernel(module, name, names), functions, variables)

    def text(self, span: Span) -> str:
        """Return the source of a node."""
        return self.module.source[span.start : span.end]

    def line_of(self, node: Instruction | Location) -> int:
        """Return the line of the pruned text, counted from 1, on which a node of the kernel or its functions begins."""
        index = bisect_right(self._start_offsets, node.span.start) - 1
        return node.span.line + self.shift_of(self.bodies[index])

    @cached_property
    def bodies(self) -> list[Function]:
        """The kernel and the functions with a body that it needs, in the order of the text."""
        bodies = [function for function in self.functions if function.body_span is not None]
        return sorted([self.entry, *bodies], key=lambda function: function.span.start)

    def value_types(self, function: Function) -> ValueTypes:
        """Return the value types of the registers of the kernel or one of its functions, computed once."""
        if function.name not in self._value_types:
            self._value_types[function.name] = ValueTypes(function)
        return self._value_types[function.name]

    def named_space(self, instruction: Instruction) -> str:
        """Return the state space of the variable that an access without a space names; "" for other instructions."""
        return self._named_spaces.get(id(instruction), "")

    @cached_property
    def _named_spaces(self) -> dict[int, str]:
        return named_spaces(self.bodies, self.variables)

    def shift_of(self, function: Function) -> int:
        """Return the number of lines from the place of a function in its module to its place in the pruned text."""
        return self._shifts[function.name]

    @cached_property
    def _start_offsets(self) -> list[int]:
        return [function.span.start for function in self.bodies]

    @cached_property
    def _value_types(self) -> dict[str, ValueTypes]:
        return {}

    @cached_property
    def _shifts(self) -> dict[str, int]:
        return {function.name: self._first_line(function) - function.span.line for function in self.bodies}

    def _first_line(self, function: Function) -> int:
        return self.pruned.count("\n", 0, self.pruned.index(self.text(function.span))) + 1

    def apply_edits(self, edits: Edits) -> str:
        """Return the pruned text with edits of the kernel, its functions, and the declarations of its variables."""
        text = self.pruned
        functions = (self.entry, *self.functions)
        for span in (*(item.span for item in functions), *(item.span for item in self.variables)):
            original = self.text(span)
            edited_text = edits.apply(span)
            if edited_text != original:
                text = text.replace(original, edited_text, 1)
        return text
