"""A kernel of a module with what it needs, and its text as edits change it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tui_probe.ptx.prune import find_entry, prune
from tui_probe.ptx.references import items_by_name, references
from tui_probe.ptx.tree import Function, Variable
from tui_probe.ptx.value_types import ValueTypes

if TYPE_CHECKING:
    from tui_probe.engine.edits import Edits
    from tui_probe.ptx.tree import Instruction, Module, Span


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

    def line_of(self, node: Instruction) -> int:
        """The line of the pruned text, counted from 1, on which an instruction of the kernel begins."""
        return node.span.line - self.entry.span.line + self.first_line

    @cached_property
    def value_types(self) -> ValueTypes:
        """What the registers of the kernel hold."""
        return ValueTypes(self.entry)

    @cached_property
    def first_line(self) -> int:
        """The line of the pruned text on which the kernel begins."""
        return self.pruned.count("\n", 0, self.pruned.index(self.text(self.entry.span))) + 1

    def edited(self, edits: Edits) -> str:
        """The pruned text with edits made to the kernel and to the declarations of its variables."""
        text = self.pruned
        for span in (self.entry.span, *(variable.span for variable in self.variables)):
            original = self.text(span)
            changed = edits.apply(span)
            if changed != original:
                text = text.replace(original, changed, 1)
        return text
