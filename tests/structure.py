"""What the sources look like in numbers, and the limits that hold.

    python -m tests.structure

Prints modules, their sizes, files per directory, lines of goldens and names that do not denote, each with its limit and
its goal, and ends with status 1 if one is over its limit. A limit is only ever lowered: to the value that was reached,
until it is the goal. The limit of modules is above its goal, since new features add modules, but it is not raised for
them either: where it is reached, merge two modules that hold one idea before you add one.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("tui_probe/", "probes/")
SOURCES: Final = (*PACKAGES, "hook/")
SHORT: Final = {
    "tui_probe/__main__.py": "entry point",
    "tui_probe/entry.py": "entry point",
    "tui_probe/simgpu/__main__.py": "entry point",
    "tui_probe/evals/programs/gpu.py": "loads what programs may not import",
    "tui_probe/evals/programs/products.py": "a program of its own",
    "tui_probe/tensortrace/shim/neutrino/utils/tensortrace.py": "a name that programs import",
    "tui_probe/version.py": "below all others",
}
"""Modules that may have fewer than 40 lines, with the reason."""
TEXTS: Final = (".py", ".md", ".c", ".h", ".def")

NAMES: Final = {
    "docstrings that begin with a question word": (
        r'"""(What|That|Whether|Which|Why|Where|How|Who|Those|When)\b', 0, 0
    ),
    "C comments that begin with a question word": (
        r"/\* (What|That|Whether|Which|Why|Where|How|Who|When)\b", 20, 20
    ),
    "constants named TOLD": (r"\b_?(UN)?TOLD(_BY)?\b|\bTold\b", 0, 0),
    "variables named told": (r"\btold\b(?= = |: |, | in\b|\.)", 0, 0),
    "loops over each or one": (r"for (each|one) in\b", 0, 0),
    "loops over own": (r"for own in\b", 71, 0),
    "placeholder variables": (r"\b(found|told|said|words|kept|each|one|whole|rest) = ", 0, 0),
    "classes with a placeholder name": (
        r"^class (Place|Row|Choice|Part|Group|Target|Page|Lines|Source|Found|Shown|Told|Named|Asked)\b", 0, 0
    ),
    "functions named like a query": (r"def (lacks|nowhere|leads_to|stops|leading|left|asked|here)\(", 0, 0),
    "tests named after a state": (r"def test_\w+_(told|said|alone|beside)(_\w+)?\(", 0, 0),
    "tests named with a filler word": (
        r"def test_(what|that|as|of|by|so|nor|it|where|which|those)_", 50, 50
    ),
    "functions with a placeholder prefix": (r"\b(beside|booking|patience|turns|holding|stepwise)_\w+\(", 0, 0),
}  # fmt: skip
"""Patterns of names that do not denote, each with its limit and its goal in matches. One that begins with a letter
takes a tenth of the time of one that begins with ``\\b``."""
DOCSTRING_HEADS: Final = re.compile(
    r'"""(?:To|Of|By|In|Into|On|At|As|With|Within|Without|From|For|After|Before|Behind|Below|Between|Over|Per|Through'
    r"|Under|Until|Up to|Is|Are|Was|Were|Has|Have|Did|Does|Can|May|Must|Shall|Should|Will|Would|It|Its|There|The same"
    r"|Such|So)\b"
)
"""Heads of docstrings that name neither what is done nor what it is: prepositions, auxiliaries, pronouns."""


PLACEHOLDERS: Final = frozenset({"found", "told", "said", "each"})
"""Names that denote no element; in lambdas and comprehensions, which are short, they may stand for one."""
PARTICLES: Final = frozenset(
    re.findall(
        r"\w+",
        """
    about above after again almost alone along also among apart around at away before behind below beside
    besides between beyond by down during early elsewhere enough even ever few from fresh here how in inside
    instead into just late less like many more most much near neither never no none of off on once only onto
    outside over past per quite rather since so some soon still such than that then there these this those
    through till to together too toward twice under unlike until up upon very what when where which while who
    whole whose why with within without yet
        """,
    )
)
"""Words that stand for no thing when they are a whole name. Textual has 0.4 of them in 1 000 lines, pytest 0.6."""
PARTICLES_LEFT: Final = 47
"""Fields of documents and of the public interface, and a few whose word is the field's own."""


@dataclass(frozen=True)
class Measurement:
    """A number with its limit and its goal."""

    name: str
    value: int
    limit: int
    goal: int
    where: str = ""

    @property
    def line(self) -> str:
        mark = "over the limit" if self.value > self.limit else "" if self.value <= self.goal else "over the goal"
        return f"{self.name:<44}{self.value:>8}{self.limit:>8}{self.goal:>8}  {mark:<15}{self.where}".rstrip()


def tracked() -> list[str]:
    """Return the paths of the files that are in the repository, and those that are new."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


def lines_of(path: str) -> int:
    return (ROOT / path).read_bytes().count(b"\n")


def sizes(paths: list[str]) -> list[Measurement]:
    """Measure the files at these paths, relative to the repository."""
    modules = {
        path: lines_of(path)
        for path in paths
        if path.startswith(PACKAGES) and path.endswith(".py") and not path.endswith("__init__.py")
    }
    sources = (PurePosixPath(path) for path in paths if path.startswith(SOURCES))
    directories = Counter(str(path.parent) for path in sources if path.suffix in (".py", ".c", ".h"))
    goldens = sum(lines_of(path) for path in paths if path.startswith("tests/") and "/goldens/" in path)
    largest, widest = max(modules, key=modules.__getitem__), max(directories, key=directories.__getitem__)
    small = [path for path, lines in modules.items() if lines < 40 and path not in SHORT]
    return [
        Measurement("modules of tui_probe and probes", len(modules), 560, 480),
        Measurement("modules of fewer than 40 lines", len(small), 0, 0, min(small, default="")),
        Measurement("lines of the largest module", modules[largest], 500, 500, largest),
        Measurement("files in the widest directory", directories[widest], 40, 40, widest),
        Measurement("lines of goldens", goldens, 16_000, 16_000),
        Measurement(
            "lines of the median module, below 130", max(130 - int(statistics.median(modules.values())), 0), 0, 0
        ),
    ]


def names(paths: list[str]) -> list[Measurement]:
    """Count the matches of each pattern of ``NAMES`` in sources and texts."""
    texts = [
        (ROOT / path).read_text(encoding="utf-8", errors="replace")
        for path in paths
        if path.endswith(TEXTS) and not path.startswith("tests/data/") and path != "tests/structure.py"
    ]
    return [
        Measurement(name, sum(len(re.findall(pattern, text, re.MULTILINE)) for text in texts), limit, goal)
        for name, (pattern, limit, goal) in NAMES.items()
    ]


def docstring_heads(paths: list[str]) -> Measurement:
    """Count the docstrings of the package and of probes with a head of ``DOCSTRING_HEADS``."""
    counts = {
        path: len(DOCSTRING_HEADS.findall((ROOT / path).read_text(encoding="utf-8")))
        for path in paths
        if path.startswith(PACKAGES) and path.endswith(".py")
    }
    most = max(counts, key=counts.__getitem__)
    total = sum(counts.values())
    return Measurement("docstrings that begin with a preposition", total, 0, 0, most if total else "")


def placeholders(paths: list[str]) -> list[Measurement]:
    """Count parameters, fields, loop variables and assigned names of the package and of probes that denote nothing."""
    bound = {
        path: [name.strip("_") for node in ast.walk(ast.parse((ROOT / path).read_bytes())) for name in bound_by(node)]
        for path in paths
        if path.startswith(PACKAGES) and path.endswith(".py")
    }
    measured = []
    for title, words, limit in (
        ("placeholder parameters and targets", PLACEHOLDERS, 2),  # two are keys of JSON documents
        ("names that are a preposition or an adverb", PARTICLES, PARTICLES_LEFT),
    ):
        counts = {path: sum(name in words for name in names) for path, names in bound.items()}
        most = max(counts, key=counts.__getitem__)
        measured.append(Measurement(title, sum(counts.values()), limit, limit, most))
    return measured


def bound_by(node: ast.AST) -> list[str]:
    """Return the names that a function takes, or that an assignment or a loop binds."""
    match node:
        case ast.FunctionDef(args=parameters) | ast.AsyncFunctionDef(args=parameters):
            return [parameter.arg for parameter in ast.walk(parameters) if isinstance(parameter, ast.arg)]
        case ast.Assign(targets=targets):
            return [name for target in targets for name in _names_in(target)]
        case ast.AnnAssign(target=target) | ast.For(target=target):
            return _names_in(target)
    return []


def _names_in(target: ast.expr) -> list[str]:
    return [part.id for part in ast.walk(target) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]


def main() -> int:
    paths = tracked()
    measured = [*sizes(paths), docstring_heads(paths), *placeholders(paths), *names(paths)]
    print(f"{'':<44}{'now':>8}{'limit':>8}{'goal':>8}")
    print("\n".join(row.line for row in measured))
    return int(any(row.value > row.limit for row in measured))


if __name__ == "__main__":
    sys.exit(main())
