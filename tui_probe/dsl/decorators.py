"""``@Map`` classes and ``@probe`` functions: their arguments and fields."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.dsl.program import DeclaredMap, ProbeFunction
from tui_probe.dsl.source import Source, words
from tui_probe.engine.model import FIELD_BYTES, GROUPS
from tui_probe.engine.positions import POSITIONS, parse_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

_Value: TypeAlias = str | int | bool

_LEVELS: Final = ("warp", "thread", "site")
_TYPES: Final = ("array", "dynamic")
_MAP: Final = '@Map(level="warp", type="array", size=16, cap=1)'
_PROBE: Final = '@probe(pos="kernel", level="warp", before=True)'


def read_map(node: ast.ClassDef, source: Source) -> DeclaredMap:
    """A class under ``@Map``. Raises ProbeFileError."""
    given = _arguments(node, "Map", _MAP, {"level": str, "type": str, "size": int, "cap": int, "reduce": str}, source)
    if node.bases or node.keywords or getattr(node, "type_params", None):
        raise source.error(node, f"a map has no base: write 'class {node.name}:'")
    level = _one_of(node, "level", given.get("level"), _LEVELS, source)
    kind = _one_of(node, "type", given.get("type", "array"), _TYPES, source)
    fields = _fields(node, source)
    size, cap = given.get("size"), given.get("cap", 1)
    needed = sum(8 if kind == "u64" else 4 for _, kind in fields)
    unit = 8 if any(kind == "u64" for _, kind in fields) else 4
    if isinstance(size, int) and (size < needed or size % unit):
        least = -(-needed // unit) * unit
        raise source.error(
            node, f"size is {size}: it must be a multiple of {unit} and at least {least} for these fields"
        )
    if int(cap) < 1:
        raise source.error(node, f"cap is {cap}: it must be at least 1")
    if level == "site":
        _check_sites(node, kind, int(cap), fields, source)
    size = None if size is None else int(size)
    reduce = _reduce(node, given.get("reduce"), level, kind, int(cap), source)
    return DeclaredMap(node.name, level, kind, size, int(cap), fields, node, reduce)


def _reduce(node: ast.ClassDef, group: _Value | None, level: str, kind: str, cap: int, source: Source) -> str:
    """Whose records results keep the sums of; "" for all records."""
    if group is None:
        return ""
    chosen = _one_of(node, "reduce", group, [each for each in GROUPS if each != level], source)
    if level == "site" or kind != "array" or cap != 1:
        raise source.error(node, f"{node.name} cannot be reduced: that needs one record per thread or warp")
    return chosen


def _check_sites(node: ast.ClassDef, kind: str, cap: int, fields: tuple[tuple[str, str], ...], source: Source) -> None:
    """A map of sites has one record of sums for each."""
    if kind != "array" or cap != 1:
        raise source.error(node, f"{node.name} is of sites, which have one record each: leave out type and cap")
    for name, width in fields:
        if width != "u64":
            raise source.error(node, f"{node.name} is of sites, which hold sums of a launch: write '{name}: u64'")


def _fields(node: ast.ClassDef, source: Source) -> tuple[tuple[str, str], ...]:
    fields: dict[str, str] = {}
    for index, statement in enumerate(node.body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) if index == 0:
                continue
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind), value=None) if (
                kind in FIELD_BYTES and name.isascii()
            ):
                if name in fields:
                    raise source.error(statement, f"field {name} is declared twice: choose another name")
                fields[name] = kind
            case _:
                raise source.error(statement, f"'{words(statement)}' is not a field: write 'name: u64' or 'name: u32'")
    if not fields:
        raise source.error(node, f"map {node.name} has no fields: add one, such as 'start: u64'")
    return tuple(fields.items())


def read_probe_function(node: ast.FunctionDef, source: Source) -> ProbeFunction:
    """A function under ``@probe``. Raises ProbeFileError."""
    given = _arguments(node, "probe", _PROBE, {"pos": str, "level": str, "before": bool}, source)
    arguments = node.args
    if arguments.posonlyargs or arguments.args or arguments.vararg or arguments.kwonlyargs or arguments.kwarg:
        raise source.error(node, f"a probe function takes no arguments: write 'def {node.name}():'")
    position = given.get("pos")
    if not isinstance(position, str):
        raise source.error(node, f"pos is missing: write {_PROBE}")
    try:
        positions = parse_positions(position)
    except ValueError as error:
        raise source.error(node, f"pos is wrong: {error}; write {POSITIONS}") from None
    level = _one_of(node, "level", given["level"], _LEVELS, source) if "level" in given else None
    before = bool(given.get("before", False))
    if not before and any(one.is_block for one in positions):
        raise source.error(node, f"at {position!r} a probe runs at the start of the block: write before=True")
    return ProbeFunction(node.name, position, positions, level, before, node)


def _arguments(
    node: ast.ClassDef | ast.FunctionDef, name: str, example: str, kinds: dict[str, type], source: Source
) -> dict[str, _Value]:
    """The keyword arguments of the one decorator, of the types that ``kinds`` lists."""
    match node.decorator_list:
        case [ast.Call(func=ast.Name(id=found), args=[], keywords=keywords)] if found == name:
            given: dict[str, _Value] = {}
        case _:
            raise source.error(node, f"{node.name} needs one decorator with arguments by name: {example}")
    for keyword in keywords:
        kind = kinds.get(keyword.arg or "")
        if kind is None:
            raise source.error(keyword, f"@{name} has no argument {keyword.arg or '**'}: write {example}")
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if not isinstance(value, str | int) or type(value) is not kind:
            raise source.error(keyword, f"{keyword.arg} must be {_named(kind)}, not {words(keyword.value)}")
        given[keyword.arg or ""] = value
    return given


def _named(kind: type) -> str:
    return {str: "a text in quotes", int: "a number", bool: "True or False"}[kind]


def _one_of(node: ast.AST, key: str, value: _Value | None, known: Sequence[str], source: Source) -> str:
    if value not in known:
        what = f"is {value!r}: it must be" if value is not None else "is missing: give"
        raise source.error(node, f"{key} {what} {' or '.join(repr(word) for word in known)}")
    return str(value)
