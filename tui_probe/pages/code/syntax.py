"""Syntax colours of source files: each file is read by Pygments once, when its page is opened in the background."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.draw.spans import Line

_LEXERS: Final = {
    ".py": "PythonLexer",
    **dict.fromkeys((".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"), "CudaLexer"),
}
_ROLES: Final = (
    ("Comment", "code_comment"),
    ("Literal.String.Doc", "code_comment"),
    ("Literal.String", "code_string"),
    ("Literal.Number", "code_number"),
    ("Keyword.Type", "code_type"),
    ("Keyword", "code_keyword"),
    ("Operator.Word", "code_keyword"),
    ("Name.Builtin", "code_type"),
    ("Name.Class", "code_name"),
    ("Name.Function", "code_name"),
    ("Name.Decorator", "code_name"),
)
"""Roles of kinds of tokens, the first that fits; all others are plain."""
_LARGEST: Final = 20_000
"""Lines of a file up to which it has colours: about a second of reading."""


def colored_source(file: str, lines: Sequence[str]) -> list[Line] | None:
    """Return the spans of each line of a file; None of a language that is not known, or of a very long file."""
    lexer = _lexer_of(file)
    if lexer is None or len(lines) > _LARGEST:
        return None
    colored: list[list[tuple[str, str]]] = [[]]
    for kind, text in lexer.get_tokens("\n".join(lines)):
        role = _role_of(str(kind).removeprefix("Token."))
        first, *others = text.split("\n")
        colored[-1].append((first, role))
        colored += [[(part, role)] for part in others]
    return [tuple(_joined(spans)) for spans in colored[: len(lines)]]


def _lexer_of(file: str) -> Any:
    name = _LEXERS.get(PurePath(file).suffix)
    if name is None:
        return None
    import pygments.lexers  # takes a tenth of a second

    return getattr(pygments.lexers, name)(stripnl=False, ensurenl=False)


def _role_of(kind: str) -> str:
    return next((role for known, role in _ROLES if kind.startswith(known)), "")


def _joined(spans: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the spans with those of one role joined; blanks take the role of what is before them."""
    joined: list[tuple[str, str]] = []
    for text, role in spans:
        if joined and text and (joined[-1][1] == role or text.isspace()):
            joined[-1] = (joined[-1][0] + text, joined[-1][1])
        elif text:
            joined.append((text, role))
    return joined
