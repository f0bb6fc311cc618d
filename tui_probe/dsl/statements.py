"""Compile the statements of a probe function, ``X.save(..)``, ``X.add(..)`` and ``X.locate()`` included."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.dsl.building import MAX_ITERATIONS, as_truth
from tui_probe.dsl.emission import Emitter, ProbeRegisters, SnippetRegisters
from tui_probe.dsl.expressions import Expression, Number, Operand, SpecialRegister, Variable, fits_32_bits, reads_clock
from tui_probe.dsl.program import HELPER_NAMES, ProbeSource, source_text
from tui_probe.dsl.reading import FunctionScope, expand_augmented
from tui_probe.engine.verify import MAX_ADDEND

if TYPE_CHECKING:
    from tui_probe.dsl.expressions import Bits
    from tui_probe.dsl.program import DeclaredMap, ProbeFunction, Program

_ALTERNATIVES: Final[dict[type[ast.stmt], str]] = {
    ast.While: "a loop needs a bound; write 'for i in range(4):'",
    ast.Return: "put the remaining statements of the function under 'if' or 'else'",
    ast.Break: "put the remaining statements of the loop under 'if'",
    ast.Continue: "put the remaining statements of the loop under 'if'",
}
_ALLOWED_STATEMENTS: Final = "a function may contain assignments, if, for, pass, X.save(…), X.add(…) and X.locate()"


class Saver:
    """Compiles the saves of one function. ``saved_maps`` are the maps that it saved in."""

    def __init__(
        self, function: ProbeFunction, program: Program, source: ProbeSource, scope: FunctionScope, emitter: Emitter
    ) -> None:
        self._function = function
        self._program = program
        self._source = source
        self._scope = scope
        self._emitter = emitter
        self._located: ast.Call | None = None
        self._located_map = ""
        self._names_after_locate: set[str] = set()
        self.saved_maps: set[str] = set()

    def compile_call(self, node: ast.Call) -> None:
        """Compile a call that is a statement. Raises ProbeFileError."""
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr="save"):
                self._compile_save(node, self._find_map(node, name, "save"))
            case ast.Attribute(value=ast.Name(id=name), attr="add"):
                self._compile_add(node, self._find_map(node, name, "add"))
            case ast.Attribute(value=ast.Name(id=name), attr="locate"):
                self._compile_locate(node, self._find_map(node, name, "locate"))
            case _:
                raise self._source.error(
                    node, f"'{source_text(node)}' has no effect; call X.save(…), X.add(…) or X.locate()"
                )

    def check_statement(self, statement: ast.stmt) -> None:
        """Refuse what may not be between ``locate`` and ``save``."""
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
            f"'{source_text(statement)}' is between {name}.locate() and {name}.save(…); move it out. Between the two"
            " calls, only assignments to local variables are allowed: only lanes that save a record execute this code",
        )

    def check_block_end(self) -> None:
        """Refuse a ``locate`` that no ``save`` follows."""
        if self._located is not None:
            name = self._located_map
            raise self._source.error(
                self._located, f"no {name}.save(…) follows {name}.locate(); write it in the same block"
            )

    def note_assignment(self, name: str) -> None:
        """Note a local that was assigned."""
        if self._located is not None:
            self._names_after_locate.add(name)

    def _find_map(self, node: ast.Call, name: str, word: str) -> DeclaredMap:
        declared = self._program.maps.get(name)
        if declared is None:
            map_names = ", ".join(self._program.maps)
            raise self._source.error(node, f"there is no map {name}: the maps of this file are {map_names}")
        level = self._function.level
        if level not in (None, declared.level):
            raise self._source.error(
                node,
                f"{self._function.name} is a probe of level {level}, map {name} is of level {declared.level}: "
                "give both the same level",
            )
        self._refuse_site(node, declared, word)
        return declared

    def _compile_locate(self, node: ast.Call, declared: DeclaredMap) -> None:
        if node.args or node.keywords:
            raise self._source.error(node, f"'locate' takes no arguments; write '{declared.name}.locate()'")
        self._located, self._located_map = node, declared.name
        self._emitter.lines.append(f"LOCATE [ {declared.name} ];")

    def _compile_add(self, node: ast.Call, declared: DeclaredMap) -> None:
        if declared.cap != 1 or declared.type == "dynamic":
            raise self._source.error(
                node,
                f"'add' needs a map with one record per {declared.level}; give {declared.name} cap=1, or use 'save'",
            )
        widths = self._widths(node, declared, "add")
        values = [self._summand(argument, bits) for argument, bits in zip(node.args, widths, strict=True)]
        self._emitter.lines.append(f"ADD [ {declared.name} ] {{{', '.join(values)}}};")
        self.saved_maps.add(declared.name)

    def _summand(self, node: ast.expr, bits: Bits) -> str:
        """Return a value as ADD takes it: a small number, or a register that is not wider than it must be."""
        expression = self._scope.builder.build(node)
        if isinstance(expression, Number) and expression.value <= MAX_ADDEND:
            return str(expression.value)
        width: Bits = 32 if fits_32_bits(expression) else bits
        destination = self._emitter.temporary(width) if isinstance(expression, Number) else ""
        return self._emitter.value(expression, width, destination)

    def _widths(self, node: ast.Call, declared: DeclaredMap, word: str) -> list[Bits]:
        """Return the widths of the fields. Raises ProbeFileError if the call does not have a value for each."""
        fields = declared.fields
        names = ", ".join(name for name, _ in fields)
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self._source.error(
                node, f"'{word}' takes values in the order of the fields: {declared.name}.{word}({names})"
            )
        if len(node.args) != len(fields):
            raise self._source.error(
                node,
                f"'{word}' takes a value for each field of map {declared.name} ({names}); values given:"
                f" {len(node.args)}",
            )
        return [64 if kind == "u64" else 32 for _, kind in fields]

    def _refuse_site(self, node: ast.Call, declared: DeclaredMap, word: str) -> None:
        """Refuse what has no meaning for a map to which all warps add, or at a place that is not a site."""
        if declared.level != "site":
            return
        name = declared.name
        if word != "add":
            raise self._source.error(
                node, f"{name} has level='site', and all warps add to its records; write '{name}.add(…)'"
            )
        if any(position.is_kernel for position in self._function.positions):
            raise self._source.error(
                node, f"{name} has level='site'; add to it at instructions or blocks, such as pos='ld.global'"
            )

    def _compile_save(self, node: ast.Call, declared: DeclaredMap) -> None:
        widths = self._widths(node, declared, "save")
        expressions = [self._build_value(argument) for argument in node.args]
        values = self._emit_values(expressions, widths, declared)
        self._emitter.lines.append(f"SAVE [ {declared.name} ] {{{', '.join(values)}}};")
        self.saved_maps.add(declared.name)
        if self._located is not None:
            # The other lanes did not run what is after locate.
            self._scope.assigned_names -= self._names_after_locate
            self._names_after_locate.clear()
            self._located = None

    def _build_value(self, node: ast.expr) -> Expression:
        if isinstance(node, ast.Name) and node.id in HELPER_NAMES:
            return self._scope.operands.operand(node, is_saved=True)
        return self._scope.builder.build(node)

    def _emit_values(self, expressions: list[Expression], widths: list[Bits], declared: DeclaredMap) -> list[str]:
        """Emit the values that SAVE lists. Clocks are read where ``save`` stands; all else is computed behind the place
        of the record.

        Finding the place takes registers: the fewer values wait for it, the fewer the kernel needs.
        """
        values: dict[int, str] = {}
        for index, expression in enumerate(expressions):
            if reads_clock(expression):
                values[index] = self._emitter.value(expression, widths[index])
        if self._located is None and not all(
            _is_operand(expression) or reads_clock(expression) for expression in expressions
        ):
            self._emitter.lines.append(f"LOCATE [ {declared.name} ];")
        for index, expression in enumerate(expressions):
            if index not in values:
                values[index] = self._save_operand(expression, widths[index])
        return [values[index] for index in sorted(values)]

    def _save_operand(self, expression: Expression, bits: Bits) -> str:
        """Return a value as SAVE takes it: what it converts itself is left to it."""
        match expression:
            case SpecialRegister(register=register):
                return register
            case Operand(helper=helper):
                return helper
            case Variable(bits=source_bits):
                return self._emitter.value(expression, source_bits)
        return self._emitter.value(expression, bits)


def _is_operand(expression: Expression) -> bool:
    return isinstance(expression, Number | Variable | SpecialRegister | Operand)


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A function as PTX: ``lines`` with their declarations, the maps it saves in, the registers it mentions."""

    function: ProbeFunction
    lines: list[str]
    saved_maps: frozenset[str]
    registers: frozenset[str]


def compile_function(
    function: ProbeFunction, program: Program, registers: ProbeRegisters, source: ProbeSource
) -> CompiledFunction:
    """Compile one function. Raises ProbeFileError."""
    return _FunctionCompiler(function, program, registers, source).compile_body()


class _FunctionCompiler:
    def __init__(
        self, function: ProbeFunction, program: Program, registers: ProbeRegisters, source: ProbeSource
    ) -> None:
        self._function = function
        self._program = program
        self._source = source
        self._registers = SnippetRegisters(registers)
        self._emitter = Emitter(self._registers)
        self._scope = FunctionScope(function, program, source)
        self._saver = Saver(function, program, source, self._scope, self._emitter)
        self._labels = 0
        self._iterations = 1
        self._set_registers = False

    def compile_body(self) -> CompiledFunction:
        body = self._function.node.body
        match body[0]:
            case ast.Expr(value=ast.Constant(value=str())):
                body = body[1:]
        self._compile_block(body)
        if not self._saver.saved_maps and not self._set_registers:
            raise self._source.error(
                self._function.node, f"{self._function.name} has no effect: it saves nothing and sets no register"
            )
        names = {node.id for node in ast.walk(self._function.node) if isinstance(node, ast.Name)}
        lines = self._registers.declarations() + self._emitter.lines
        used_registers = frozenset(names & self._program.registers.keys())
        return CompiledFunction(self._function, lines, frozenset(self._saver.saved_maps), used_registers)

    def _compile_block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._registers.next_statement()
            self._saver.check_statement(statement)
            self._compile_statement(statement)
        self._saver.check_block_end()

    def _compile_statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass():
                return
            case ast.Global(names=names):
                self._check_global(statement, names)
            case ast.AnnAssign(value=None):
                return
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.Assign(targets=[target], value=value):
                self._compile_assignment(statement, target, value)
            case ast.AugAssign(target=target):
                self._compile_assignment(statement, target, expand_augmented(statement))
            case ast.If():
                self._compile_if(statement)
            case ast.For():
                self._compile_for(statement)
            case ast.Expr(value=ast.Call() as call):
                self._emitter.lines.append(f"// {source_text(statement)}")
                self._saver.compile_call(call)
            case _:
                advice = _ALTERNATIVES.get(type(statement), _ALLOWED_STATEMENTS)
                raise self._source.error(statement, f"'{source_text(statement)}' cannot be compiled: {advice}")

    def _check_global(self, statement: ast.stmt, names: list[str]) -> None:
        for name in names:
            if name not in self._program.registers:
                raise self._source.error(statement, f"{name} is not a register; declare '{name}: u64 = 0' above")

    def _compile_assignment(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        name = self._scope.target_name(target)
        self._emitter.lines.append(f"// {source_text(statement)}")
        expression = self._scope.builder.build(value)
        width = self._scope.width(name)
        self._emitter.value(expression, width, self._registers.variable(name, width))
        if self._scope.is_register(name):
            self._set_registers = True
        else:
            self._scope.assigned_names.add(name)
            self._saver.note_assignment(name)

    def _compile_if(self, statement: ast.If) -> None:
        condition = as_truth(self._scope.builder.build(statement.test))
        if isinstance(condition, Number):
            self._compile_block(statement.body if condition.value else statement.orelse)
            return
        label = self._new_label()
        lines = self._emitter.lines
        lines.append(f"// if {source_text(statement.test)}:")
        test = self._emitter.predicate(condition)
        names_before = set(self._scope.assigned_names)
        lines.append(f"@!{test} bra $else_{label};")
        self._compile_block(statement.body)
        names_after_body, self._scope.assigned_names = self._scope.assigned_names, names_before
        if statement.orelse:
            lines += [f"bra $end_{label};", f"$else_{label}:"]
            self._compile_block(statement.orelse)
            lines.append(f"$end_{label}:")
        else:
            lines.append(f"$else_{label}:")
        self._scope.assigned_names &= names_after_body

    def _compile_for(self, statement: ast.For) -> None:
        loop, outer = self._scope.loop(statement), self._iterations
        self._iterations *= len(loop.values)
        if self._iterations > MAX_ITERATIONS:
            raise self._source.error(
                statement,
                f"nested loops have {self._iterations} iterations in total; at most {MAX_ITERATIONS} are allowed",
            )
        label, bits, lines = self._new_label(), loop.bits, self._emitter.lines
        counter = self._registers.variable(loop.name, bits)
        step, end = loop.values.step % (1 << bits), (loop.values[-1] + loop.values.step) % (1 << bits)
        lines += [f"// for {loop.name} in {source_text(statement.iter)}:", f"mov.b{bits} {counter}, {loop.values[0]};"]
        lines.append(f"$loop_{label}:")
        self._scope.loops[loop.name] = loop
        self._compile_block(statement.body)
        del self._scope.loops[loop.name]
        self._iterations = outer
        has_next = self._registers.temporary("pred")
        lines += [f"add.u{bits} {counter}, {counter}, {step};", f"setp.ne.u{bits} {has_next}, {counter}, {end};"]
        lines.append(f"@{has_next} bra $loop_{label};")

    def _new_label(self) -> int:
        self._labels += 1
        return self._labels
