"""The text of a probe file: its syntax tree, and errors that name file and line."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import Final

from tui_probe.errors import ProbeFileError

_LONGEST: Final = 1 << 20
_TOO_DEEP: Final = "this is nested too deeply: use variables for its parts"


@dataclass(frozen=True, slots=True)
class Source:
    """A probe file. ``path`` is for messages; nothing is read from it."""

    path: str
    text: str

    def tree(self) -> ast.Module:
        """The file's syntax tree. Raises ProbeFileError."""
        if len(self.text) > _LONGEST:
            raise ProbeFileError(f"{self.path}: {len(self.text)} characters are too long for a probe")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text)
        except SyntaxError as error:
            raise ProbeFileError(f"{self.path}, line {error.lineno or 1}: this is not Python: {error.msg}") from error
        except ValueError as error:
            raise ProbeFileError(f"{self.path}: this is not Python: {error}") from error
        except (RecursionError, MemoryError) as error:
            raise ProbeFileError(f"{self.path}: {_TOO_DEEP}") from error

    def error(self, node: ast.AST, message: str) -> ProbeFileError:
        """The error for a node: file, line, what is wrong and what to write instead."""
        return ProbeFileError(f"{self.path}, line {getattr(node, 'lineno', 1)}: {message}")

    def too_deep(self) -> ProbeFileError:
        """The error for a file whose nesting exceeds what can be compiled."""
        return ProbeFileError(f"{self.path}: {_TOO_DEEP}")


def words(node: ast.AST) -> str:
    """A node as Python text on one line, shortened, for messages and comments."""
    text = " ".join(ast.unparse(node).split())
    text = text.encode("ascii", "backslashreplace").decode("ascii")
    return text if len(text) <= 80 else text[:79] + "~"
