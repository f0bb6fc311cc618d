"""Names of a probe file: maps, probe functions, registers and constants of the module, and the locals of a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.dsl.building import REGISTER_FUNCTIONS, ExpressionBuilder, Loop, constant_value, read_loop
from tui_probe.dsl.expressions import MAX_U32, MAX_U64, Expression, Number, Variable, fits_32_bits
from tui_probe.dsl.program import (
    HELPER_NAMES,
    DeclaredMap,
    DeclaredRegister,
    ProbedOperands,
    ProbeFunction,
    ProbeSource,
    Program,
    source_text,
)
from tui_probe.probe_model.positions import POSITION_FORMS, parse_positions
from tui_probe.probe_model.probe import FIELD_BYTES, REDUCTION_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tui_probe.dsl.expressions import Bits

_Value: TypeAlias = str | int | bool

_LEVELS: Final = ("warp", "thread", "site")
_TYPES: Final = ("array", "dynamic")
_MAP_EXAMPLE: Final = '@Map(level="warp", type="array", size=16, cap=1)'
_PROBE_EXAMPLE: Final = '@probe(pos="kernel", level="warp", before=True)'
TYPE_BITS: Final[dict[str, Bits]] = {"u64": 64, "u32": 32}
RESERVED_NAMES: Final = frozenset({*HELPER_NAMES, *REGISTER_FUNCTIONS, *TYPE_BITS, "Map", "probe", "range", "CALLBACK"})
_IMPORTABLE_MODULES: Final = ("tui_probe.dsl", "__future__")
_ABOUT_KEYS: Final = ("measures", "unit", "cost", "checked")
_ALLOWED_STATEMENTS: Final = (
    "a probe file holds imports from tui_probe.dsl, constants (N = 4), registers (start: u64 = 0), "
    "@Map classes and @probe functions"
)
_LARGEST_VALUES: Final[dict[Bits, int]] = {32: MAX_U32, 64: MAX_U64}


def read_map(node: ast.ClassDef, source: ProbeSource) -> DeclaredMap:
    """Read a class under ``@Map``. Raises ProbeFileError."""
    options = _decorator_arguments(
        node, "Map", _MAP_EXAMPLE, {"level": str, "type": str, "size": int, "cap": int, "reduce": str}, source
    )
    if node.bases or node.keywords or getattr(node, "type_params", None):
        raise source.error(node, f"a map class has no base class; write 'class {node.name}:'")
    level = _choice(node, "level", options.get("level"), _LEVELS, source)
    kind = _choice(node, "type", options.get("type", "array"), _TYPES, source)
    fields = _map_fields(node, source)
    size, cap = options.get("size"), options.get("cap", 1)
    field_bytes = sum(8 if kind == "u64" else 4 for _, kind in fields)
    unit = 8 if any(kind == "u64" for _, kind in fields) else 4
    if isinstance(size, int) and (size < field_bytes or size % unit):
        min_size = -(-field_bytes // unit) * unit
        raise source.error(
            node, f"'size' is {size}; it must be a multiple of {unit} and at least {min_size} for these fields"
        )
    if int(cap) < 1:
        raise source.error(node, f"'cap' is {cap}; it must be at least 1")
    if level == "site":
        _check_sites(node, kind, int(cap), fields, source)
    size = None if size is None else int(size)
    reduce = _reduction(node, options.get("reduce"), level, kind, int(cap), source)
    return DeclaredMap(node.name, level, kind, size, int(cap), fields, node, reduce)


def _reduction(node: ast.ClassDef, group: _Value | None, level: str, kind: str, cap: int, source: ProbeSource) -> str:
    """Return the group over which results keep sums of records; "" if they keep all records."""
    if group is None:
        return ""
    reduction = _choice(
        node,
        "reduce",
        group,
        [reduction_group for reduction_group in REDUCTION_GROUPS if reduction_group != level],
        source,
    )
    if level == "site" or kind != "array" or cap != 1:
        raise source.error(node, f"{node.name} cannot be reduced; 'reduce' needs one record per thread or warp")
    return reduction


def _check_sites(
    node: ast.ClassDef, kind: str, cap: int, fields: tuple[tuple[str, str], ...], source: ProbeSource
) -> None:
    """Refuse a map of sites that has more than one record of sums for each site."""
    if kind != "array" or cap != 1:
        raise source.error(node, f"{node.name} has level='site', with one record per site; omit 'type' and 'cap'")
    for name, width in fields:
        if width != "u64":
            raise source.error(node, f"{node.name} has level='site', so its fields must be u64; write '{name}: u64'")


def _map_fields(node: ast.ClassDef, source: ProbeSource) -> tuple[tuple[str, str], ...]:
    fields: dict[str, str] = {}
    for index, statement in enumerate(node.body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) if index == 0:
                continue
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind), value=None) if (
                kind in FIELD_BYTES and name.isascii()
            ):
                if name in fields:
                    raise source.error(statement, f"field {name} is declared twice; choose another name")
                fields[name] = kind
            case _:
                raise source.error(
                    statement, f"'{source_text(statement)}' is not a field; write 'name: u64' or 'name: u32'"
                )
    if not fields:
        raise source.error(node, f"map {node.name} has no fields; add a field, such as 'start: u64'")
    return tuple(fields.items())


def read_probe_function(node: ast.FunctionDef, source: ProbeSource) -> ProbeFunction:
    """Read a function under ``@probe``. Raises ProbeFileError."""
    options = _decorator_arguments(node, "probe", _PROBE_EXAMPLE, {"pos": str, "level": str, "before": bool}, source)
    arguments = node.args
    if arguments.posonlyargs or arguments.args or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        raise source.error(node, f"a probe function takes no arguments; write 'def {node.name}():'")
    position = options.get("pos")
    if not isinstance(position, str):
        raise source.error(node, f"'pos' is missing; write {_PROBE_EXAMPLE}")
    try:
        positions = parse_positions(position)
    except ValueError as error:
        raise source.error(node, f"'pos' is wrong: {error}; write {POSITION_FORMS}") from None
    level = _choice(node, "level", options["level"], _LEVELS, source) if "level" in options else None
    runs_before = bool(options.get("before", False))
    if not runs_before and any(position.is_block for position in positions):
        raise source.error(node, f"at {position!r} a probe runs at the start of the block; write before=True")
    return ProbeFunction(node.name, position, positions, level, runs_before, node)


def _decorator_arguments(
    node: ast.ClassDef | ast.FunctionDef, name: str, example: str, kinds: dict[str, type], source: ProbeSource
) -> dict[str, _Value]:
    """Return the keyword arguments of the one decorator, of the types that ``kinds`` lists."""
    match node.decorator_list:
        case [ast.Call(func=ast.Name(id=decorator), args=[], keywords=keywords)] if decorator == name:
            options: dict[str, _Value] = {}
        case _:
            raise source.error(node, f"{node.name} needs one decorator with keyword arguments: {example}")
    for keyword in keywords:
        kind = kinds.get(keyword.arg or "")
        if kind is None:
            raise source.error(keyword, f"@{name} has no argument {keyword.arg or '**'}; write {example}")
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if not isinstance(value, str | int) or type(value) is not kind:
            raise source.error(keyword, f"'{keyword.arg}' must be {_type_name(kind)}, not {source_text(keyword.value)}")
        options[keyword.arg or ""] = value
    return options


def _type_name(kind: type) -> str:
    return {str: "a text in quotes", int: "a number", bool: "True or False"}[kind]


def _choice(node: ast.AST, key: str, value: _Value | None, choices: Sequence[str], source: ProbeSource) -> str:
    if value not in choices:
        problem = f"is {value!r}; it must be" if value is not None else "is missing; give"
        raise source.error(node, f"'{key}' {problem} {' or '.join(repr(choice) for choice in choices)}")
    return str(value)


def read_program(source: ProbeSource) -> Program:
    """Read all declarations; bodies of functions are not looked into. Raises ProbeFileError."""
    tree = source.tree()
    program = Program()
    for index, statement in enumerate(tree.body):
        if index == 0 and (text := _docstring(statement)) is not None:
            program.about_table = _read_about(text)
        else:
            _read_statement(statement, program, source)
    if not program.functions:
        raise source.error(tree, "the file has no probe; write a function under @probe(pos=…)")
    if not program.maps:
        raise source.error(tree, "the file has no map; add a class under @Map(level=…), and save records in it")
    return program


def _read_statement(statement: ast.stmt, program: Program, source: ProbeSource) -> None:
    match statement:
        case ast.ImportFrom(module=module, level=0) if module in _IMPORTABLE_MODULES:
            _refuse_renaming(statement, source)
        case ast.Import() | ast.ImportFrom():
            raise source.error(statement, "a probe may import names only with 'from tui_probe.dsl import …'")
        case ast.ClassDef():
            declared = read_map(statement, source)
            program.maps[_checked_name(declared.name, statement, program, source)] = declared
        case ast.FunctionDef():
            function = read_probe_function(statement, source)
            program.functions[_checked_name(function.name, statement, program, source)] = function
        case ast.Assign(targets=[ast.Name(id="CALLBACK")], value=value):
            program.callback = _read_callback(value, source)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            number = constant_value(value, program.constants, source)
            program.constants[_checked_name(name, statement, program, source)] = number
        case ast.AnnAssign(target=ast.Name(id=name)):
            _read_register(statement, name, program, source)
        case _:
            raise source.error(statement, f"'{source_text(statement)}' is not allowed here: {_ALLOWED_STATEMENTS}")


def _refuse_renaming(statement: ast.ImportFrom, source: ProbeSource) -> None:
    for alias in statement.names:
        if alias.asname not in (None, alias.name):
            raise source.error(statement, f"{alias.name} cannot be renamed in a probe; omit 'as {alias.asname}'")


def _checked_name(name: str, node: ast.AST, program: Program, source: ProbeSource) -> str:
    """Return the name, if it may be declared."""
    if not name.isascii():
        raise source.error(node, f"{name!a} has letters that PTX does not allow; use A-Z, a-z, 0-9 and _")
    if name in RESERVED_NAMES:
        raise source.error(node, f"{name} is reserved by the probe language; choose another name")
    if any(name in kind for kind in (program.maps, program.registers, program.constants, program.functions)):
        raise source.error(node, f"{name} is declared twice; choose another name")
    return name


def _read_register(statement: ast.AnnAssign, name: str, program: Program, source: ProbeSource) -> None:
    kind = statement.annotation
    if not isinstance(kind, ast.Name) or kind.id not in TYPE_BITS:
        raise source.error(statement, f"{name} must be u64 or u32, not {source_text(kind)}")
    if statement.value is None:
        raise source.error(statement, f"{name} needs an initial value; write '{name}: {kind.id} = 0'")
    bits = TYPE_BITS[kind.id]
    initial = constant_value(statement.value, program.constants, source) % (1 << bits)
    program.registers[_checked_name(name, statement, program, source)] = DeclaredRegister(name, bits, initial)


def _read_callback(value: ast.expr, source: ProbeSource) -> str:
    match value:
        case ast.Constant(value=str(text)) if text and text.isprintable():
            return text
    raise source.error(value, 'CALLBACK must be a string, the name of the analysis: write CALLBACK = "NAME"')


def _docstring(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
    return None


def _read_about(text: str) -> dict[str, str]:
    """Return the title and the lines ``Measures: …``, ``Unit: …``, ``Cost: …``, ``Checked: …`` of the module's
    docstring.
    """
    lines = [line.strip() for line in text.encode("utf-8", "replace").decode().strip().splitlines()]
    fields = {"title": lines[0].rstrip(".")} if lines else {}
    for line in lines[1:]:
        key, colon, value = line.partition(":")
        if colon and key.lower() in _ABOUT_KEYS:
            fields[key.lower()] = value.strip()
    return fields


class FunctionScope:
    """The names of one function.

    ``assigned_names`` are the locals that have a value on every path to the current statement, ``loops`` the loops
    around it. ``bits`` are the widths of locals: as declared, or else 32 if all that is assigned fits into them.
    """

    def __init__(self, function: ProbeFunction, program: Program, source: ProbeSource) -> None:
        self._program = program
        self._source = source
        self.operands = ProbedOperands(source, function.positions, runs_before=function.runs_before)
        self.builder = ExpressionBuilder(source, self._resolve)
        self.assigned_names: set[str] = set()
        self.loops: dict[str, Loop] = {}
        self.bits = self._declared_widths(function.node)
        self._infer_widths(function.node)

    def target_name(self, node: ast.expr) -> str:
        """Return the variable that an assignment sets. Raises ProbeFileError."""
        if not isinstance(node, ast.Name):
            raise self._source.error(node, f"'{source_text(node)}' cannot be assigned; assign one variable at a time")
        name = node.id
        if not name.isascii():
            raise self._source.error(node, f"{name!a} has letters that PTX does not allow; use A-Z, a-z, 0-9 and _")
        if name in self.loops:
            raise self._source.error(node, f"{name} is the variable of the loop; assign another variable")
        program = self._program
        if name in RESERVED_NAMES or name in program.constants or name in program.maps or name in program.functions:
            raise self._source.error(
                node,
                f"{name} is a name of the probe language, a constant, a map or a function; assign another variable",
            )
        return name

    def width(self, name: str) -> Bits:
        """Return the width of a register or local that is assigned."""
        register = self._program.registers.get(name)
        return register.bits if register else self.bits[name]

    def is_register(self, name: str) -> bool:
        """Return whether a variable keeps its value from one position to the next."""
        return name in self._program.registers

    def loop(self, node: ast.For) -> Loop:
        """Return the loop that a statement begins. Raises ProbeFileError."""
        loop = read_loop(node, self._program.constants, self._source)
        self.target_name(node.target)
        if self.is_register(loop.name) or loop.name in self.bits:
            raise self._source.error(node, f"{loop.name} is already a variable; use another name in the loop")
        return loop

    def _resolve(self, node: ast.Name) -> Expression:
        name = node.id
        if name in HELPER_NAMES:
            return self.operands.operand(node, is_saved=False)
        if name in self._program.constants:
            return Number(self._program.constants[name])
        if (register := self._program.registers.get(name)) is not None:
            return Variable(name, register.bits, _LARGEST_VALUES[register.bits])
        if (loop := self.loops.get(name)) is not None:
            return Variable(name, loop.bits, loop.bound)
        if name in self.bits:
            return self._resolve_local(node)
        if name in REGISTER_FUNCTIONS:
            raise self._source.error(node, f"{name} is a function; write '{name}()'")
        raise self._source.error(
            node, f"{name} has no value here; assign it before, or declare '{name}: u64 = 0' above"
        )

    def _resolve_local(self, node: ast.Name) -> Variable:
        if node.id not in self.assigned_names:
            raise self._source.error(
                node, f"{node.id} may be unset at this line; give it a value before, such as {node.id} = 0"
            )
        return Variable(node.id, self.bits[node.id], _LARGEST_VALUES[self.bits[node.id]])

    def _declared_widths(self, function: ast.FunctionDef) -> dict[str, Bits]:
        widths: dict[str, Bits] = {}
        for node in ast.walk(function):
            if not isinstance(node, ast.AnnAssign):
                continue
            name = self.target_name(node.target)
            if not isinstance(node.annotation, ast.Name) or node.annotation.id not in TYPE_BITS:
                raise self._source.error(node, f"{name} must be u64 or u32, not {source_text(node.annotation)}")
            if name in self._program.registers:
                raise self._source.error(node, f"{name} is a register of the probe; write '{name} = …' without a type")
            if widths.setdefault(name, TYPE_BITS[node.annotation.id]) != TYPE_BITS[node.annotation.id]:
                raise self._source.error(node, f"{name} is declared u64 and u32; give it one type")
        return widths

    def _infer_widths(self, function: ast.FunctionDef) -> None:
        """Set the widths of locals without a declared type: 32 bits unless a wider value is assigned to them."""
        values = list(self._untyped_assignments(function))
        for name, _ in values:
            self.bits[name] = 32
        self.assigned_names = set(self.bits)
        for node in ast.walk(function):
            if isinstance(node, ast.For):
                loop = read_loop(node, self._program.constants, self._source)
                self.loops[loop.name] = max(
                    loop, self.loops.get(loop.name, loop), key=lambda candidate: candidate.bound
                )
        is_changing = True
        while is_changing:
            is_changing = False
            for name, value in values:
                if self.bits[name] == 32 and not fits_32_bits(self.builder.build(value)):
                    self.bits[name] = 64
                    is_changing = True
        self.assigned_names, self.loops = set(), {}

    def _untyped_assignments(self, function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[target], value=value):
                    pass
                case ast.AugAssign(target=target):
                    value = expand_augmented(node)
                case _:
                    continue
            name = self.target_name(target)
            if name not in self._program.registers and name not in self.bits:
                yield name, value


def expand_augmented(node: ast.AugAssign) -> ast.expr:
    """Return ``x + value`` for ``x += value``."""
    if not isinstance(node.target, ast.Name):
        return node.value
    operand = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
    return ast.copy_location(ast.BinOp(operand, node.op, node.value), node)
