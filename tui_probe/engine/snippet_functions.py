"""Functions with the code of snippets, which kernels with many sites call.

Written out at each of its 235 accesses, the counts of sectors by line took ptxas 7 s for a kernel of CUB; called they
take 1.6 s, with the same number of registers. Only snippets that add to the records of their instructions and keep
nothing in registers are called. What differs from site to site is passed: numbers of instructions, and operands that
are in registers. The rest is in the function; each combination has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.engine.addressing import Addressing, BlockShape
from tui_probe.engine.expansion import Expander, ExpansionOptions
from tui_probe.engine.helper_values.helpers import HelperValue
from tui_probe.probe_model.probe import Level, Locate, Save, SnippetCode
from tui_probe.ptx.instruction_facts import TYPE_BITS
from tui_probe.ptx.references import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tui_probe.engine.kernel import UnusedNames
    from tui_probe.engine.site_records import SiteRecords
    from tui_probe.probe_model.probe import Probe, Snippet
    from tui_probe.ptx.tree import Function, Instruction

MIN_STATEMENTS: Final = 8
"""Minimum statements of a snippet that is called: passing its operands takes as many lines."""
MAX_WRITTEN_OUT: Final = 2000
"""Statements of such snippets that a kernel has before they are called: below, ptxas takes less than a second."""


class _Parameter(NamedTuple):
    """A parameter of a function, and what the caller passes: a register, or the name of a parameter of its own."""

    name: str
    bits: int
    value: str


class SnippetFunctions:
    """Functions with snippets of one kernel. ``live_registers`` are those of the probe that live between snippets."""

    def __init__(
        self, probe: Probe, entry: Function, names: UnusedNames, live_registers: Iterable[str], *, reduces: bool
    ) -> None:
        self._probe = probe
        self._entry = entry
        self._names = names
        self._live_registers = frozenset(live_registers)
        self._reduces = reduces
        self._functions: dict[tuple[object, ...], str] = {}
        """Names of the functions, by snippet and its operands: their types, and those that are written out."""
        self.lines: list[str] = []
        """Definitions of the functions."""

    def can_call(self, snippet: Snippet) -> bool:
        """Return whether a snippet may be called."""
        saves = [statement for statement in snippet.statements if isinstance(statement, Save)]
        in_sites = all(save.adds and self._probe.map_named(save.map).level is Level.SITE for save in saves)
        has_locate = any(isinstance(statement, Locate) for statement in snippet.statements)
        texts = [statement.text for statement in snippet.statements if isinstance(statement, SnippetCode)]
        texts += [value for save in saves for value in save.values]
        is_long = len(snippet.statements) >= MIN_STATEMENTS
        return (
            is_long
            and bool(saves)
            and in_sites
            and not has_locate
            and not names_in("\n".join(texts)) & self._live_registers
        )

    def call(
        self,
        names: UnusedNames,
        snippet: Snippet,
        values: Mapping[str, HelperValue],
        instruction: Instruction,
        sites: SiteRecords,
    ) -> list[str] | None:
        """Return the lines that call a snippet's function at an instruction; None where an operand cannot be passed.

        ``names`` are those of the function that has the instruction, ``values`` its operands.
        """
        register_values = {name: value for name, value in values.items() if value.operand.startswith("%")}
        if any(value.type not in TYPE_BITS for value in register_values.values()):
            return None
        map_names = sorted({statement.map for statement in snippet.statements if isinstance(statement, Save)})
        numbers = dict(zip(sites.lines, sites.numbers(instruction), strict=True))
        literals = {name: "" if name in register_values else value.operand for name, value in values.items()}
        key = id(snippet), *((name, value.type, literals[name]) for name, value in values.items())
        if key not in self._functions:
            self._functions[key] = self._names.parameter("snippet", str(len(self._functions)))
            self.lines += self._definition(self._functions[key], snippet, values, map_names, instruction, sites)
        maps = [_Parameter(names.new_argument(), 64, names.parameter("map", name)) for name in map_names]
        parameters = [_Parameter(names.new_argument(), 32, str(numbers[name])) for name in map_names]
        parameters += [
            _Parameter(names.new_argument(), TYPE_BITS[value.type], value.operand) for value in register_values.values()
        ]
        address = names.temporary("argument", "b64")
        lines = ["{", *(f".param .b{parameter.bits} {parameter.name};" for parameter in (*maps, *parameters))]
        for parameter in maps:
            lines += [f"ld.param.u64 {address}, [{parameter.value}];", f"st.param.b64 [{parameter.name}], {address};"]
        lines += [f"st.param.b{parameter.bits} [{parameter.name}], {parameter.value};" for parameter in parameters]
        arguments = ", ".join(parameter.name for parameter in (*maps, *parameters))
        return [*lines, f"call.uni {self._functions[key]}, ({arguments});", "}"]

    def _definition(
        self,
        function: str,
        snippet: Snippet,
        values: Mapping[str, HelperValue],
        map_names: list[str],
        instruction: Instruction,
        sites: SiteRecords,
    ) -> list[str]:
        """Return the function: its parameters are the addresses of maps, numbers of the instruction, and operands."""
        names = self._names.of_function(function)
        addressing = Addressing(names, BlockShape.from_entry(self._entry), "")
        expander = Expander(self._probe, names, addressing, ExpansionOptions(reduces=self._reduces), sites)
        maps = [_Parameter(names.parameter("map", name), 64, "") for name in map_names]
        parameters: list[_Parameter] = []
        for index, name in enumerate(map_names):
            expander.sites.registers[name] = names.temporary(f"site{index}", "b32")
            parameters.append(_Parameter(names.new_argument(), 32, expander.sites.registers[name]))
        inner_values = dict(values)
        for name, value in values.items():
            if value.operand.startswith("%"):
                bits = TYPE_BITS[value.type]
                register = names.temporary(f"passed_{name.lower()}_b{bits}", f"b{bits}")
                inner_values[name] = HelperValue(register, value.type)
                parameters.append(_Parameter(names.new_argument(), bits, register))
        loads = [f"ld.param.b{bits} {value}, [{name}];" for name, bits, value in parameters]
        body = expander.expand(snippet, inner_values, instruction)
        declarations = ", ".join(f".param .b{parameter.bits} {parameter.name}" for parameter in (*maps, *parameters))
        return [f".func {function}({declarations})", "{", *names.declarations(), *loads, *body, "ret;", "}"]
