"""Functions with the code of snippets, which kernels with many sites call.

Written out at each of its 235 accesses, the counts of sectors by line took ptxas 7 s for a kernel of CUB; called they
take 1.6 s, with the same number of registers. Only snippets that add to the records of their instructions and keep
nothing in registers are called. What differs from site to site is passed: numbers of instructions, and operands that
are in registers. The rest is in the function; each combination has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.addressing import Addressing, BlockShape
from tui_probe.engine.expansion import Expander
from tui_probe.engine.helpers import TYPE_BITS, HelperValue
from tui_probe.probe_model.probe import Level, Locate, Save, SnippetCode
from tui_probe.ptx.references import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.engine.sums.site_records import SiteRecords
    from tui_probe.probe_model.probe import Probe, Snippet
    from tui_probe.ptx.tree import Function, Instruction

MIN_STATEMENTS: Final = 8
"""Minimum statements of a snippet that is called: passing its operands takes as many lines."""
MAX_WRITTEN_OUT: Final = 2000
"""Statements of such snippets that a kernel has before they are called: below, ptxas takes less than a second."""


class _Parameter(NamedTuple):
    """``value`` is what the caller passes: a register, or the name of a parameter of its own."""

    name: str
    bits: int
    value: str


class SnippetFunctions:
    """The functions of one kernel that is probed. ``held`` are registers of the probe that live on between snippets."""

    def __init__(
        self, probe: Probe, entry: Function, names: UnusedNames, held: Iterable[str], *, reduces: bool
    ) -> None:
        self._probe = probe
        self._entry = entry
        self._names = names
        self._held = frozenset(held)
        self._reduces = reduces
        self._functions: dict[tuple[object, ...], str] = {}
        self.lines: list[str] = []
        """Definitions of the functions."""

    def takes(self, snippet: Snippet) -> bool:
        """Return whether a snippet may be called."""
        saved = [statement for statement in snippet.statements if isinstance(statement, Save)]
        in_sites = all(save.adds and self._probe.map_named(save.map).level is Level.SITE for save in saved)
        located = any(isinstance(statement, Locate) for statement in snippet.statements)
        texts = [statement.text for statement in snippet.statements if isinstance(statement, SnippetCode)]
        texts += [value for save in saved for value in save.values]
        is_long = len(snippet.statements) >= MIN_STATEMENTS
        return is_long and bool(saved) and in_sites and not located and not names_in("\n".join(texts)) & self._held

    def call(
        self,
        names: UnusedNames,
        snippet: Snippet,
        values: Mapping[str, HelperValue],
        instruction: Instruction,
        sites: SiteRecords,
    ) -> list[str] | None:
        """Lines that call the code of a snippet at an instruction; None where an operand cannot be passed.

        ``names`` are those of the function that has the instruction, ``values`` its operands.
        """
        passed = {name: value for name, value in values.items() if value.operand.startswith("%")}
        if any(value.type not in TYPE_BITS for value in passed.values()):
            return None
        saved = sorted({statement.map for statement in snippet.statements if isinstance(statement, Save)})
        numbers = dict(zip(sites.lines, sites.numbers(instruction), strict=True))
        key = (
            id(snippet),
            *((name, value.type, value.operand * (name not in passed)) for name, value in values.items()),
        )
        if key not in self._functions:
            self._functions[key] = self._names.parameter("snippet", str(len(self._functions)))
            self.lines += self._definition(self._functions[key], snippet, values, saved, instruction, sites)
        maps = [_Parameter(names.new_argument(), 64, names.parameter("map", name)) for name in saved]
        own = [_Parameter(names.new_argument(), 32, str(numbers[name])) for name in saved]
        own += [_Parameter(names.new_argument(), TYPE_BITS[value.type], value.operand) for value in passed.values()]
        address = names.temporary("argument", "b64")
        lines = ["{", *(f".param .b{parameter.bits} {parameter.name};" for parameter in (*maps, *own))]
        for parameter in maps:
            lines += [f"ld.param.u64 {address}, [{parameter.value}];", f"st.param.b64 [{parameter.name}], {address};"]
        lines += [f"st.param.b{parameter.bits} [{parameter.name}], {parameter.value};" for parameter in own]
        arguments = ", ".join(parameter.name for parameter in (*maps, *own))
        return [*lines, f"call.uni {self._functions[key]}, ({arguments});", "}"]

    def _definition(
        self,
        function: str,
        snippet: Snippet,
        values: Mapping[str, HelperValue],
        saved: list[str],
        instruction: Instruction,
        sites: SiteRecords,
    ) -> list[str]:
        """The function, whose parameters are the addresses of maps, numbers of the instruction, and operands."""
        names = self._names.of_function(function)
        addressing = Addressing(names, BlockShape.of(self._entry), "")
        expander = Expander(self._probe, names, addressing, reduces=self._reduces, sites=sites)
        maps = [_Parameter(names.parameter("map", name), 64, "") for name in saved]
        own: list[_Parameter] = []
        for index, name in enumerate(saved):
            expander.sites.registers[name] = names.temporary(f"site{index}", "b32")
            own.append(_Parameter(names.new_argument(), 32, expander.sites.registers[name]))
        inside = dict(values)
        for name, value in values.items():
            if value.operand.startswith("%"):
                bits = TYPE_BITS[value.type]
                register = names.temporary(f"passed_{name.lower()}_b{bits}", f"b{bits}")
                inside[name] = HelperValue(register, value.type)
                own.append(_Parameter(names.new_argument(), bits, register))
        loads = [f"ld.param.b{bits} {value}, [{name}];" for name, bits, value in own]
        body = expander.lines(snippet, inside, instruction)
        declared = ", ".join(f".param .b{parameter.bits} {parameter.name}" for parameter in (*maps, *own))
        return [f".func {function}({declared})", "{", *names.declarations(), *loads, *body, "ret;", "}"]
