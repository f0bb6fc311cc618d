"""The list of reasons, ``reasons.def``, which the hook includes and Python reads: one source for both."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KINDS: Final = {
    "NUMBER": r"\d+",
    "WORD": r"\S+",
    "CUDA": r"CUDA_ERROR_[A-Z0-9_]+|error -?\d+",
    "ERRNO": r"[^:()]+",
    "TEXT": r".+",
}
"""What a parameter of each kind may be; no kind has a line break."""

_LIST: Final = Path(__file__).with_name("reasons.def")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class ListedReason:
    """A reason of the list.

    ``parameters`` are their kinds by name, in the order of the sentence. ``older`` are the sentences by which it is
    known in a log without codes. ``advice`` is "" where nothing can be done, and then ``no_advice`` says why.
    """

    name: str
    code: str
    parameters: Mapping[str, str]
    sentence: str
    older: tuple[str, ...]
    advice: str
    no_advice: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What the sentence matches, with a group for each parameter."""
        return self._pattern(self.sentence)

    @cached_property
    def older_patterns(self) -> tuple[re.Pattern[str], ...]:
        """The same for the older sentences, whose parameters may be others."""
        return tuple(self._pattern(sentence) for sentence in self.older)

    def _pattern(self, sentence: str) -> re.Pattern[str]:
        parts = _PLACEHOLDER.split(sentence)
        kinds = (KINDS[self.parameters.get(name, "TEXT")] for name in parts[1::2])
        groups = (f"(?P<{name}>{kind})" for name, kind in zip(parts[1::2], kinds, strict=True))
        words = (re.escape(part) for part in parts[::2])
        return re.compile("".join(piece for pair in zip(words, [*groups, ""], strict=True) for piece in pair))


def fill(sentence: str, parameters: Mapping[str, str]) -> str:
    """A sentence with its parameters. Raises KeyError for one that is not given."""
    return _PLACEHOLDER.sub(lambda found: parameters[found[1]], sentence)


@lru_cache(maxsize=1)
def listed_reasons() -> Mapping[str, ListedReason]:
    """All reasons by their codes, in the order of the list."""
    return {reason.code: reason for reason in read_list(_LIST.read_text(encoding="utf-8"))}


def read_list(text: str) -> Iterator[ListedReason]:
    """The reasons of such a file. Raises ValueError, with the line, for what is none."""
    advice: dict[str, str] = {}
    for statement in ast.parse(_COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)).body:
        match statement:
            case ast.Expr(ast.Call(ast.Name("REASON"), [ast.Name(name), code, parameters, sentence, older, said])):
                reason = _reason(name, [code, parameters, sentence, older, said], advice)
                advice[name] = reason.advice
                yield reason
            case _:
                raise ValueError(f"reasons.def, line {statement.lineno}: this is no REASON of six parts")


def _reason(name: str, parts: list[ast.expr], others: Mapping[str, str]) -> ListedReason:
    code, parameters, sentence, older, said = parts
    text = _text(sentence)
    advice, no_advice = _advice(said, others)
    return ListedReason(name, _text(code), _parameters(parameters), text, _older(older, text), advice, no_advice)


def _parameters(node: ast.expr) -> dict[str, str]:
    found = {}
    for each in node.elts if isinstance(node, ast.Tuple) else [node]:
        match each:
            case ast.Call(ast.Name(kind), [ast.Name(name)]) if kind in KINDS:
                found[name] = kind
            case _:
                raise ValueError(f"reasons.def, line {each.lineno}: a parameter is written NUMBER(name), not so")
    return found


def _older(node: ast.expr, sentence: str) -> tuple[str, ...]:
    match node:
        case ast.Name("SAME"):
            return (sentence,)
        case ast.Call(ast.Name("OLDER"), sentences):
            return tuple(_text(each) for each in sentences)
    raise ValueError(f"reasons.def, line {node.lineno}: older sentences are SAME or OLDER(…)")


def _advice(node: ast.expr, others: Mapping[str, str]) -> tuple[str, str]:
    match node:
        case ast.Call(ast.Name("ADVICE"), [text]):
            return _text(text), ""
        case ast.Call(ast.Name("NO_ADVICE"), [text]):
            return "", _text(text)
        case ast.Call(ast.Name("ADVICE_OF"), [ast.Name(name)]) if name in others:
            return others[name], ""
    raise ValueError(f"reasons.def, line {node.lineno}: advice is ADVICE, NO_ADVICE or ADVICE_OF one above")


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(str(text)):
            return text
    raise ValueError(f"reasons.def, line {node.lineno}: a text in quotes was expected")
