"""The functions that a kernel calls, and how what a probe needs in them gets there.

A probed module holds one kernel, so the functions in it are that kernel's own copies. Those in which something is
probed, or which use a variable of the original module, get more parameters: the addresses of the maps and variables
under the very names that the kernel has for them, and the address of a piece of the kernel's local memory. In that the
caller puts the registers that a probe holds before the call, and finds them again behind it::

    st.local.u32 [state], %tp_bytes;              the caller
    st.param.b64 [tp_argument1], …;               addresses of maps and variables
    call (result), function, (argument, tp_argument1, …);
    ld.local.u32 %tp_bytes, [state];

So a function's frame grows. Of functions that call themselves nobody knows how deep they go, and the stack that the
program asked for may not do any more: these are refused, as are those that are called through pointers, since who calls
a pointer does not know of the parameters.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tui_probe.engine.walk import instructions
from tui_probe.errors import UnsupportedKernelError
from tui_probe.ptx.references import alias_of
from tui_probe.ptx.tree import Directive, Symbol
from tui_probe.reasons import because

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.engine.kernel import Kernel
    from tui_probe.ptx.tree import Function, Instruction


class Callees:
    """Who calls whom in a kernel and its functions. A function without a body is none of them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.functions = {each.name: each for each in kernel.bodies if each is not kernel.entry}
        aliases = (alias_of(item) for item in kernel.module.items if isinstance(item, Directive))
        self._aliases = {name: target for name, target in aliases if name}

    def named(self, name: str) -> str:
        """The function that a name stands for: an alias is another's."""
        return self._aliases.get(name, name)

    def called(self, instruction: Instruction) -> str:
        """The function with a body that a ``call`` names, or ""."""
        if instruction.opcode != "call":
            return ""
        names = (self.named(operand.name) for operand in instruction.operands if isinstance(operand, Symbol))
        return next((name for name in names if name in self.functions), "")

    def with_callers(self, names: Iterable[str]) -> set[str]:
        """The functions named, and those that call them directly or through others."""
        found = set(names)
        waiting = list(found)
        while waiting:
            name = waiting.pop()
            fresh = {caller for caller, called in self.calls.items() if name in called and caller in self.functions}
            waiting += fresh - found
            found |= fresh
        return found

    @cached_property
    def calls(self) -> dict[str, set[str]]:
        """The functions that each calls by their names, the kernel included."""
        return {
            each.name: {name for one in instructions(each) if (name := self.called(one))}
            for each in self._kernel.bodies
        }

    def refuse(self, names: Iterable[str]) -> None:
        """Raise UnsupportedKernelError if one of these functions cannot be given more parameters."""
        chosen = set(names)
        for name in sorted(chosen):
            if name in self.reached(name):
                line = self.functions[name].span.line
                raise UnsupportedKernelError(because("function-recursive", line=line, function=name))
        for function in self._kernel.bodies:
            for one in instructions(function):
                if one.opcode != "call":
                    self._refuse_address(one, chosen)

    def _refuse_address(self, one: Instruction, chosen: set[str]) -> None:
        for operand in one.operands:
            if isinstance(operand, Symbol) and self.named(operand.name) in chosen:
                function = self.named(operand.name)
                raise UnsupportedKernelError(because("function-by-pointer", line=one.span.line, function=function))

    def reached(self, name: str) -> set[str]:
        """The functions that one calls, directly or through others."""
        found: set[str] = set()
        waiting = [name]
        while waiting:
            fresh = self.calls[waiting.pop()] - found
            found |= fresh
            waiting += fresh
        return found

    def declarations(self, name: str) -> list[Function]:
        """All declarations and the definition of a function, those of its aliases included."""
        return [each for each in self._kernel.functions if self.named(each.name) == name]
