"""Reasons: the list that hook and engine share, and the sentence, code and advice of each."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from errno import EACCES, EDQUOT, EFBIG, ENOMEM, ENOSPC, EPERM, EROFS
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARAMETER_KINDS: Final = {
    "NUMBER": r"\d+",
    "WORD": r"\S+",
    "CUDA": r"CUDA_ERROR_[A-Z0-9_]+|error -?\d+",
    "ERRNO": r"[^:()]+",
    "TEXT": r".+",
}
"""Pattern of the values of each kind of parameter; none matches a line break."""

_LIST_FILE: Final = Path(__file__).with_name("reasons.def")
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_REASON_TEXT: Final = re.compile(r"(.*) code ([a-z0-9-]+)", re.DOTALL)
_LINE: Final = re.compile(r"line (\d+): ")
_BREAKS: Final = re.compile(r"[\r\n\t]+")
_CODES_BY_ERRNO: Final = {
    ENOSPC: "disk-full",
    EDQUOT: "disk-full",
    EACCES: "not-permitted",
    EPERM: "not-permitted",
    EROFS: "not-permitted",
    EFBIG: "file-limit",
    ENOMEM: "host-memory",
}


@dataclass(frozen=True)
class ListedReason:
    """A reason of the list.

    ``parameters`` are their kinds by name, in the order of the sentence. ``older`` are its sentences in stored traces
    without codes. ``advice`` is "" where nothing can be done, and then ``no_advice`` says why.
    """

    name: str
    code: str
    parameters: Mapping[str, str]
    sentence: str
    advice: str
    no_advice: str
    older: tuple[str, ...] = ()

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A pattern of the sentence, with a group for each parameter."""
        return self._pattern(self.sentence)

    @cached_property
    def older_patterns(self) -> tuple[re.Pattern[str], ...]:
        """Patterns of the older sentences."""
        return tuple(self._pattern(sentence) for sentence in self.older)

    def _pattern(self, sentence: str) -> re.Pattern[str]:
        parts = _PLACEHOLDER.split(sentence)
        kinds = (PARAMETER_KINDS[self.parameters.get(name, "TEXT")] for name in parts[1::2])
        groups = (f"(?P<{name}>{kind})" for name, kind in zip(parts[1::2], kinds, strict=True))
        literals = (re.escape(part) for part in parts[::2])
        return re.compile("".join(piece for pair in zip(literals, [*groups, ""], strict=True) for piece in pair))


def fill(sentence: str, parameters: Mapping[str, str]) -> str:
    """A sentence with its parameters. Raises KeyError for one that is not given."""
    return _PLACEHOLDER.sub(lambda match: parameters[match[1]], sentence)


@lru_cache(maxsize=1)
def listed_reasons() -> Mapping[str, ListedReason]:
    """All reasons by their codes, in the order of the list."""
    return {reason.code: reason for reason in read_list(_LIST_FILE.read_text(encoding="utf-8"))}


def read_list(text: str) -> Iterator[ListedReason]:
    """The reasons of such a file. Raises ValueError, with the line, for what is none."""
    reasons: dict[str, ListedReason] = {}
    for statement in ast.parse(_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)).body:
        match statement:
            case ast.Expr(ast.Call(ast.Name("REASON"), [ast.Name(name), code, parameters, sentence, advice])):
                text, no_advice = _read_advice(advice, reasons)
                reasons[name] = ListedReason(
                    name,
                    _read_text(code),
                    _read_parameters(parameters),
                    _read_text(sentence),
                    advice=text,
                    no_advice=no_advice,
                )
            case ast.Expr(ast.Call(ast.Name("OLDER"), [ast.Name(name), sentence])) if name in reasons:
                reason = reasons[name]
                reasons[name] = replace(reason, older=(*reason.older, _read_text(sentence)))
            case _:
                raise ValueError(
                    f"reasons.def, line {statement.lineno}: expected REASON with five arguments or OLDER with two"
                )
    yield from reasons.values()


def _read_parameters(node: ast.expr) -> dict[str, str]:
    parameters = {}
    for item in node.elts if isinstance(node, ast.Tuple) else [node]:
        match item:
            case ast.Call(ast.Name(kind), [ast.Name(name)]) if kind in PARAMETER_KINDS:
                parameters[name] = kind
            case _:
                raise ValueError(f"reasons.def, line {item.lineno}: expected a parameter such as NUMBER(name)")
    return parameters


def _read_advice(node: ast.expr, reasons: Mapping[str, ListedReason]) -> tuple[str, str]:
    """Return the advice, and why there is none; one of them is ""."""
    match node:
        case ast.Call(ast.Name("ADVICE"), [text]):
            return _read_text(text), ""
        case ast.Call(ast.Name("NO_ADVICE"), [text]):
            return "", _read_text(text)
        case ast.Call(ast.Name("ADVICE_OF"), [ast.Name(name)]) if name in reasons:
            return reasons[name].advice, ""
    raise ValueError(f"reasons.def, line {node.lineno}: advice must be ADVICE, NO_ADVICE, or ADVICE_OF a reason above")


def _read_text(node: ast.expr) -> str:
    match node:
        case ast.Constant(str(text)):
            return text
    raise ValueError(f"reasons.def, line {node.lineno}: expected a text in quotes")


class Reason(NamedTuple):
    """The reason why an action was not done. ``code`` is None for text that no version known here writes.

    A reason about a line of PTX begins with ``line N: ``.
    """

    text: str
    code: str | None

    @property
    def written(self) -> str:
        """Text at the end of a line of a log, an answer or ``kernel.info``: ``TEXT code CODE``."""
        return f"{self.text} code {self.code}" if self.code else self.text

    @property
    def line(self) -> int:
        """The line of PTX that it is about, counted from 1; 0 for none."""
        match = _LINE.match(self.text)
        return int(match[1]) if match else 0

    @property
    def sentence(self) -> str:
        """The text without the line that it is about."""
        return _LINE.sub("", self.text, count=1)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The parameters of its sentence by name; none where the text was cut off or reworded."""
        listed_reason = listed_reasons().get(self.code or "")
        match = listed_reason and listed_reason.pattern.fullmatch(self.sentence)
        return match.groupdict() if match else {}

    def shortened(self, max_bytes: int) -> Reason:
        """Return the reason with up to ``max_bytes`` bytes of text in UTF-8."""
        data = self.text.encode("utf-8", "replace")
        return self if len(data) <= max_bytes else self._replace(text=data[:max_bytes].decode("utf-8", "ignore"))


def because(code: str, /, *, line: int = 0, **parameters: str | int) -> Reason:
    """The reason of that code. Raises KeyError for a code that is not listed, ValueError for other parameters.

    ``line`` is that of the PTX which it is about, 0 for none. Line breaks and tabs become blanks.
    """
    listed_reason = listed_reasons()[code]
    if parameters.keys() != listed_reason.parameters.keys():
        raise ValueError(
            f"{code} takes {', '.join(listed_reason.parameters) or 'no parameters'}, not {', '.join(parameters)}"
        )
    text = fill(listed_reason.sentence, {name: _BREAKS.sub(" ", str(value)) for name, value in parameters.items()})
    return Reason(f"line {line}: {text}" if line else text, code)


def because_of_file(path: object, error: OSError) -> Reason:
    """The reason why a file could not be written or read: no room, no permission, or another error."""
    code = _CODES_BY_ERRNO.get(error.errno or 0, "file-error")
    if code == "host-memory":
        return because("host-memory")
    message = error.strerror or str(error) or type(error).__name__
    return because(code, path=str(path), error=re.sub(r"[:()]", " ", message))


@lru_cache(maxsize=4096)
def read_reason(text: str) -> Reason:
    """A reason as ``text``; of a stored trace without codes the sentence gives the code."""
    match = _REASON_TEXT.fullmatch(text)
    if match and match[2] in listed_reasons():
        return Reason(match[1], match[2])
    return Reason(text, _older_code(_LINE.sub("", text, count=1)))


def _older_code(sentence: str) -> str | None:
    """The code of a sentence of a stored trace; None for any other text."""
    for reason in listed_reasons().values():
        if any(pattern.fullmatch(sentence) for pattern in reason.older_patterns):
            return reason.code
    return None


def advice_on(code: str | None, parameters: Mapping[str, str]) -> str:
    """Advice for the user; "" where there is none, or where it needs a parameter that is not known."""
    listed_reason = listed_reasons().get(code or "")
    try:
        return fill(listed_reason.advice, parameters) if listed_reason else ""
    except KeyError:
        return ""
