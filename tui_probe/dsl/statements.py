"""The statements of a probe function, compiled to a snippet."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.dsl.building import truth
from tui_probe.dsl.emission import Emitter
from tui_probe.dsl.expressions import Number
from tui_probe.dsl.ranges import MAX_ITERATIONS
from tui_probe.dsl.registers import ProbeRegisters, SnippetRegisters
from tui_probe.dsl.saving import Saver
from tui_probe.dsl.scope import Scope, sum_of
from tui_probe.dsl.source import Source, words

if TYPE_CHECKING:
    from tui_probe.dsl.program import ProbeFunction, Program

_INSTEAD: Final[dict[type[ast.stmt], str]] = {
    ast.While: "a loop needs a bound: write 'for i in range(4):'",
    ast.Return: "a probe function ends at its last line: put what follows under 'if' or 'else'",
    ast.Break: "a loop runs to its end: put what follows under 'if'",
    ast.Continue: "a loop runs to its end: put what follows under 'if'",
}
_ALLOWED: Final = "a function holds assignments, if, for, pass, X.save(…), X.add(…) and X.locate()"


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A function as PTX: ``lines`` with their declarations, the maps it saves in, the registers it mentions."""

    function: ProbeFunction
    lines: list[str]
    saved: frozenset[str]
    registers: frozenset[str]


def compile_function(
    function: ProbeFunction, program: Program, registers: ProbeRegisters, source: Source
) -> CompiledFunction:
    """Compile one function. Raises ProbeFileError."""
    return _FunctionCompiler(function, program, registers, source).run()


class _FunctionCompiler:
    def __init__(self, function: ProbeFunction, program: Program, registers: ProbeRegisters, source: Source) -> None:
        self._function = function
        self._program = program
        self._source = source
        self._registers = SnippetRegisters(registers)
        self._emitter = Emitter(self._registers)
        self._scope = Scope(function, program, source)
        self._saver = Saver(function, program, source, self._scope, self._emitter)
        self._labels = 0
        self._iterations = 1
        self._set_registers = False

    def run(self) -> CompiledFunction:
        body = self._function.node.body
        match body[0]:
            case ast.Expr(value=ast.Constant(value=str())):
                body = body[1:]
        self._block(body)
        if not self._saver.saved and not self._set_registers:
            raise self._source.error(
                self._function.node, f"{self._function.name} has no effect: it saves nothing and sets no register"
            )
        mentioned = {node.id for node in ast.walk(self._function.node) if isinstance(node, ast.Name)}
        lines = self._registers.declarations() + self._emitter.lines
        used = frozenset(mentioned & self._program.registers.keys())
        return CompiledFunction(self._function, lines, frozenset(self._saver.saved), used)

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._registers.next_statement()
            self._saver.allows(statement)
            self._statement(statement)
        self._saver.end_of_block()

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Pass():
                return
            case ast.Global(names=names):
                self._global(statement, names)
            case ast.AnnAssign(value=None):
                return
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.Assign(targets=[target], value=value):
                self._assign(statement, target, value)
            case ast.AugAssign(target=target):
                self._assign(statement, target, sum_of(statement))
            case ast.If():
                self._if(statement)
            case ast.For():
                self._for(statement)
            case ast.Expr(value=ast.Call() as call):
                self._emitter.lines.append(f"// {words(statement)}")
                self._saver.call(call)
            case _:
                instead = _INSTEAD.get(type(statement), _ALLOWED)
                raise self._source.error(statement, f"'{words(statement)}' cannot be compiled: {instead}")

    def _global(self, statement: ast.stmt, names: list[str]) -> None:
        for name in names:
            if name not in self._program.registers:
                raise self._source.error(statement, f"{name} is not a register: declare '{name}: u64 = 0' above")

    def _assign(self, statement: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        name = self._scope.target(target)
        self._emitter.lines.append(f"// {words(statement)}")
        expression = self._scope.builder.build(value)
        width = self._scope.width(name)
        self._emitter.value(expression, width, self._registers.variable(name, width))
        if self._scope.is_register(name):
            self._set_registers = True
        else:
            self._scope.assigned.add(name)
            self._saver.assigned(name)

    def _if(self, statement: ast.If) -> None:
        condition = truth(self._scope.builder.build(statement.test))
        if isinstance(condition, Number):
            self._block(statement.body if condition.value else statement.orelse)
            return
        label = self._label()
        lines = self._emitter.lines
        lines.append(f"// if {words(statement.test)}:")
        holds = self._emitter.predicate(condition)
        before = set(self._scope.assigned)
        lines.append(f"@!{holds} bra $else_{label};")
        self._block(statement.body)
        after_body, self._scope.assigned = self._scope.assigned, before
        if statement.orelse:
            lines += [f"bra $end_{label};", f"$else_{label}:"]
            self._block(statement.orelse)
            lines.append(f"$end_{label}:")
        else:
            lines.append(f"$else_{label}:")
        self._scope.assigned &= after_body

    def _for(self, statement: ast.For) -> None:
        loop, outer = self._scope.loop(statement), self._iterations
        self._iterations *= len(loop.values)
        if self._iterations > MAX_ITERATIONS:
            raise self._source.error(
                statement,
                f"loops inside each other run {self._iterations} times: at most {MAX_ITERATIONS} are allowed",
            )
        label, bits, lines = self._label(), loop.bits, self._emitter.lines
        counter = self._registers.variable(loop.name, bits)
        step, end = loop.values.step % (1 << bits), (loop.values[-1] + loop.values.step) % (1 << bits)
        lines += [f"// for {loop.name} in {words(statement.iter)}:", f"mov.b{bits} {counter}, {loop.values[0]};"]
        lines.append(f"$loop_{label}:")
        self._scope.loops[loop.name] = loop
        self._block(statement.body)
        del self._scope.loops[loop.name]
        self._iterations = outer
        again = self._registers.temporary("pred")
        lines += [f"add.u{bits} {counter}, {counter}, {step};", f"setp.ne.u{bits} {again}, {counter}, {end};"]
        lines.append(f"@{again} bra $loop_{label};")

    def _label(self) -> int:
        self._labels += 1
        return self._labels
