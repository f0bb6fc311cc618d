"""``X.save(…)``, ``X.add(…)`` and ``X.locate()``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tui_probe.dsl.expressions import Expression, Number, Operand, Special, Variable, fits_32_bits, reads_clock
from tui_probe.dsl.operands import HELPERS
from tui_probe.dsl.source import Source, words
from tui_probe.engine.verify import MOST_ADDED

if TYPE_CHECKING:
    from tui_probe.dsl.emission import Emitter
    from tui_probe.dsl.expressions import Bits
    from tui_probe.dsl.program import DeclaredMap, ProbeFunction, Program
    from tui_probe.dsl.scope import Scope


class Saver:
    """Compiles the saves of one function. ``saved`` are the maps that it saved in."""

    def __init__(
        self, function: ProbeFunction, program: Program, source: Source, scope: Scope, emitter: Emitter
    ) -> None:
        self._function = function
        self._program = program
        self._source = source
        self._scope = scope
        self._emitter = emitter
        self._located: ast.Call | None = None
        self._located_map = ""
        self._assigned: set[str] = set()
        self.saved: set[str] = set()

    def call(self, node: ast.Call) -> None:
        """Compile a call that is a statement. Raises ProbeFileError."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr="save"):
                self._save(node, self._map(node, name, "save"))
            case ast.Attribute(value=ast.Name(id=name), attr="add"):
                self._add(node, self._map(node, name, "add"))
            case ast.Attribute(value=ast.Name(id=name), attr="locate"):
                self._locate(node, self._map(node, name, "locate"))
            case _:
                raise self._source.error(node, f"'{words(node)}' has no effect: call X.save(…), X.add(…) or X.locate()")

    def allows(self, statement: ast.stmt) -> None:
        """Refuse what may not stand between ``locate`` and ``save``."""
        if self._located is None:
            return
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if (
                not self._scope.is_register(name)
            ):
                return
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="save"))) if (
                name == self._located_map
            ):
                return
        name = self._located_map
        raise self._source.error(
            statement,
            f"'{words(statement)}' stands between {name}.locate() and {name}.save(…): only the lanes that save run it; "
            "put it before or after, only assignments to locals may stand there",
        )

    def end_of_block(self) -> None:
        """Refuse a ``locate`` that no ``save`` follows."""
        if self._located is not None:
            name = self._located_map
            raise self._source.error(
                self._located, f"no {name}.save(…) follows {name}.locate(): write it in the same block"
            )

    def assigned(self, name: str) -> None:
        """Note a local that was assigned."""
        if self._located is not None:
            self._assigned.add(name)

    def _map(self, node: ast.Call, name: str, word: str) -> DeclaredMap:
        declared = self._program.maps.get(name)
        if declared is None:
            known = ", ".join(self._program.maps)
            raise self._source.error(node, f"there is no map {name}: the maps of this file are {known}")
        level = self._function.level
        if level not in (None, declared.level):
            raise self._source.error(
                node,
                f"{self._function.name} is a probe of level {level}, map {name} is of level {declared.level}: "
                "give both the same level",
            )
        self._refuse_site(node, declared, word)
        return declared

    def _locate(self, node: ast.Call, declared: DeclaredMap) -> None:
        if node.args or node.keywords:
            raise self._source.error(node, f"locate takes nothing: write '{declared.name}.locate()'")
        self._located, self._located_map = node, declared.name
        self._emitter.lines.append(f"LOCATE [ {declared.name} ];")

    def _add(self, node: ast.Call, declared: DeclaredMap) -> None:
        if declared.cap != 1 or declared.type == "dynamic":
            raise self._source.error(node, f"add needs a map of one record: give {declared.name} cap=1, or use save")
        widths = self._widths(node, declared, "add")
        values = [self._summand(argument, bits) for argument, bits in zip(node.args, widths, strict=True)]
        self._emitter.lines.append(f"ADD [ {declared.name} ] {{{', '.join(values)}}};")
        self.saved.add(declared.name)

    def _summand(self, node: ast.expr, bits: Bits) -> str:
        """A value as ADD takes it: a small number, or a register that is no wider than it must be."""
        expression = self._scope.builder.build(node)
        if isinstance(expression, Number) and expression.value <= MOST_ADDED:
            return str(expression.value)
        width: Bits = 32 if fits_32_bits(expression) else bits
        into = self._emitter.temporary(width) if isinstance(expression, Number) else ""
        return self._emitter.value(expression, width, into)

    def _widths(self, node: ast.Call, declared: DeclaredMap, word: str) -> list[Bits]:
        """The widths of the fields. Raises ProbeFileError if the call does not have a value for each."""
        fields = declared.fields
        names = ", ".join(name for name, _ in fields)
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._source.error(
                node, f"{word} takes values in the order of the class: {declared.name}.{word}({names})"
            )
        if len(node.args) != len(fields):
            raise self._source.error(
                node, f"{word} takes a value for each field of map {declared.name} ({names}): {len(node.args)} given"
            )
        return [64 if kind == "u64" else 32 for _, kind in fields]

    def _refuse_site(self, node: ast.Call, declared: DeclaredMap, word: str) -> None:
        """What has no meaning for a map to which all warps add, or at a place that is no site."""
        if declared.level != "site":
            return
        name = declared.name
        if word != "add":
            raise self._source.error(node, f"{name} is of sites, to which all warps add: write '{name}.add(…)'")
        if any(position.is_kernel for position in self._function.positions):
            raise self._source.error(
                node, f'{name} is of sites: add to it at instructions or blocks, such as pos="ld.global"'
            )

    def _save(self, node: ast.Call, declared: DeclaredMap) -> None:
        widths = self._widths(node, declared, "save")
        expressions = [self._value(argument) for argument in node.args]
        values = self._values(expressions, widths, declared)
        self._emitter.lines.append(f"SAVE [ {declared.name} ] {{{', '.join(values)}}};")
        self.saved.add(declared.name)
        if self._located is not None:
            # The other lanes did not run what stands after locate.
            self._scope.assigned -= self._assigned
            self._assigned.clear()
            self._located = None

    def _value(self, node: ast.expr) -> Expression:
        if isinstance(node, ast.Name) and node.id in HELPERS:
            return self._scope.operands.part(node, as_it_is=True)
        return self._scope.builder.build(node)

    def _values(self, expressions: list[Expression], widths: list[Bits], declared: DeclaredMap) -> list[str]:
        """What SAVE lists. Clocks are read where ``save`` stands; all else is computed behind the place of the record.

        Finding the place takes registers: the fewer values wait for it, the fewer the kernel needs.
        """
        values: dict[int, str] = {}
        for index, expression in enumerate(expressions):
            if reads_clock(expression):
                values[index] = self._emitter.value(expression, widths[index])
        rest = [index for index in range(len(expressions)) if index not in values]
        if self._located is None and not all(_is_plain(expressions[index]) for index in rest):
            self._emitter.lines.append(f"LOCATE [ {declared.name} ];")
        for index in rest:
            values[index] = self._listed(expressions[index], widths[index])
        return [values[index] for index in range(len(expressions))]

    def _listed(self, expression: Expression, bits: Bits) -> str:
        """A value as SAVE takes it: what it converts itself is left to it."""
        match expression:
            case Special(register=register):
                return register
            case Operand(helper=helper):
                return helper
            case Variable(bits=own):
                return self._emitter.value(expression, own)
        return self._emitter.value(expression, bits)


def _is_plain(expression: Expression) -> bool:
    return isinstance(expression, Number | Variable | Special | Operand)
