"""A kernel of a module with what it needs, and its text as edits change it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tui_probe.ptx.named_spaces import named_spaces
from tui_probe.ptx.prune import find_entry, prune
from tui_probe.ptx.references import items_by_name, references
from tui_probe.ptx.tree import Function, Variable
from tui_probe.ptx.value_types import ValueTypes

if TYPE_CHECKING:
    from tui_probe.engine.edits import Edits
    from tui_probe.ptx.tree import Instruction, Location, Module, Span


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
    """What the module came from, whose line tables tell the source of a text without ``.loc``."""

    @classmethod
    def of(cls, module: Module, name: str) -> Kernel:
        """The kernel of that name. Raises PtxError if there is none or a body is damaged."""
        entry = find_entry(module, name)
        items, names = items_by_name(module), references(module, entry)
        needed = {id(item) for reference in names for item in items[reference]}
        kept = [item for item in module.items if id(item) in needed and item is not entry]
        functions = tuple(item for item in kept if isinstance(item, Function))
        variables = tuple(item for item in kept if isinstance(item, Variable))
        return cls(module, entry, prune(module, name, names), functions, variables)

    def text(self, span: Span) -> str:
        """The source of a node."""
        return self.module.source[span.start : span.end]

    def line_of(self, node: Instruction | Location) -> int:
        """The line of the pruned text, counted from 1, on which a node of the kernel or its functions begins."""
        place = bisect_right(self._starts, node.span.start) - 1
        return node.span.line + self.shift_of(self.bodies[place])

    @cached_property
    def bodies(self) -> list[Function]:
        """The kernel and the functions with a body that it needs, in the order of the text."""
        found = [function for function in self.functions if function.body_span is not None]
        return sorted([self.entry, *found], key=lambda function: function.span.start)

    def value_types(self, function: Function) -> ValueTypes:
        """What the registers of the kernel or of one of its functions hold."""
        if function.name not in self._value_types:
            self._value_types[function.name] = ValueTypes(function)
        return self._value_types[function.name]

    def named_space(self, instruction: Instruction) -> str:
        """The state space of the variable that an access without a space names; "" for all other instructions."""
        return self._named_spaces.get(id(instruction), "")

    @cached_property
    def _named_spaces(self) -> dict[int, str]:
        return named_spaces(self.bodies, self.variables)

    def shift_of(self, function: Function) -> int:
        """Lines from the place of a function in its module to that in the pruned text."""
        return self._shifts[function.name]

    @cached_property
    def _starts(self) -> list[int]:
        return [function.span.start for function in self.bodies]

    @cached_property
    def _value_types(self) -> dict[str, ValueTypes]:
        return {}

    @cached_property
    def _shifts(self) -> dict[str, int]:
        return {function.name: self._first_line(function) - function.span.line for function in self.bodies}

    def _first_line(self, function: Function) -> int:
        return self.pruned.count("\n", 0, self.pruned.index(self.text(function.span))) + 1

    def edited(self, edits: Edits) -> str:
        """The pruned text with edits made to the kernel, its functions, and the declarations of its variables."""
        text = self.pruned
        functions = (self.entry, *self.functions)
        for span in (*(each.span for each in functions), *(each.span for each in self.variables)):
            original = self.text(span)
            changed = edits.apply(span)
            if changed != original:
                text = text.replace(original, changed, 1)
        return text
