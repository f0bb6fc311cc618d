"""Sources of the hook that can be compiled as one, since no name is declared in two of them.

To start the compiler and to read headers takes half of the time of builds that are not optimised: 11 s of CPU of the
two with sanitizers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

MOST_FILES = 16
"""Of a group: there are enough groups for all cores."""
_COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_ENUMERATORS = re.compile(r"\benum\b[^{};]*\{([^}]*)\}")
_BRACES, _PARENTHESES = re.compile(r"\{[^{}]*\}"), re.compile(r"\([^()]*\)")
_ATTRIBUTE = re.compile(r"__attribute__\s*<>|_Static_assert\s*<>")
_INITIALIZER = re.compile(r"=[^,;]*")
_DECLARED = re.compile(r"\b(\w+)\s*(?=[<\[=;,>])")
"""A name in front of what is left of a body (``<>``), of parameters (``<>``, too), of a size, or of a value."""
NO_NAMES = {"_GNU_SOURCE", "enum", "struct", "union"}
"""The macro is defined for all files of a group, since headers read it once."""


def declared_names(text: str) -> set[str]:
    """Return the names that a C file declares outside of functions, macros, tags and enumerators among them."""
    text = _COMMENT_OR_STRING.sub("", text)
    names = set(_MACRO.findall(text))
    text = _DIRECTIVE.sub("", text)
    names.update(name for body in _ENUMERATORS.findall(text) for name in re.findall(r"(?:^|,)\s*(\w+)", body))
    for nested in (_BRACES, _PARENTHESES):
        while (outside := nested.sub("<>", text)) != text:
            text = outside
    return names.union(_DECLARED.findall(_INITIALIZER.sub("=", _ATTRIBUTE.sub("", text)))) - NO_NAMES


def groups(files: Iterable[Path]) -> list[list[Path]]:
    """Return the files in groups without a common name, each file in the first group that it fits into."""
    taken: list[tuple[list[Path], set[str]]] = []
    for file in files:
        names = declared_names(file.read_text())
        fitting = ((own, others) for own, others in taken if len(own) < MOST_FILES and not others & names)
        own, others = next(fitting, ([], set()))
        if not own:
            taken.append((own, others))
        own.append(file)
        others |= names
    return [own for own, _ in taken]


def write_groups(hook: Path, path: Path) -> None:
    """Write the file for TUI_PROBE_GROUPS of ``hook/CMakeLists.txt``: the groups of the sources of both drivers."""
    lines = [
        f"set_source_files_properties({' '.join(map(str, own))}\n"
        f"  TARGET_DIRECTORY {target} PROPERTIES UNITY_GROUP {number})\n"
        for target, pattern in (("hook", "src/*/*.c"), ("sim", "simgpu/*/*.c"))
        for number, own in enumerate(groups(sorted(hook.glob(pattern))))
        if len(own) > 1
    ]
    path.write_text("".join(lines))
