"""Code as drawn lines: PTX, SASS and source files highlighted, and two aligned texts side by side or as a diff."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.spans import LazyLines, clip, fit_line
from tui_probe.input_limits import SHOWN_TEXT
from tui_probe.ptx.tree import INSERTED_MARK
from tui_probe.trace.kernel_files import Offset, long_position
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from pathlib import Path

    from tui_probe.draw.spans import Line, Span
    from tui_probe.pages.code.alignment import Alignment, LinePair
    from tui_probe.pages.code.measure_column import MeasureMargin

TAB_CELLS: Final = 4
_HEAD: Final = re.compile(
    r"(?P<before>\s*(?:/\*[^*]*\*/)?\s*(?:\{\s*)?)(?P<guard>@!?%?\w+\s+)?(?P<opcode>[A-Za-z][\w.]*(?:::\w+[\w.]*)*)(?!\S*:)"
)
"""The start of an instruction of PTX or SASS."""
_TOKENS: Final = re.compile(
    r"""(?P<comment>//.*|/\*.*?\*/)
      | (?P<directive>(?<![\w%$])\.(?:loc|file|reg|param|version|target|address_size|section|align|shared|global|pragma
                       |maxntid|reqntid|minnctapersm|visible|entry|func|b8|b16|b32|b64|u32|u64|f32|f64|pred)\b)
      | (?P<label>^\s*[.$A-Za-z_][\w$.]*:)
      | (?P<number>(?<![\w%.$])-?(?:0[xXfFdD][0-9a-fA-F]+|\d+)\b)""",
    re.VERBOSE,
)
_TOKEN_ROLES: Final = {"comment": "dim", "directive": "code_type", "label": "head", "number": "code_number"}
SIDE_BY_SIDE_WIDTH: Final = 100
"""Cells from which on the texts are next to each other."""
WITH_SOURCE_WIDTH: Final = 140
"""Cells from which on there is room for a line's place in the source."""
CONTEXT_LINES: Final = 3
"""Unchanged lines that are shown around a change."""
_SOURCE_CELLS: Final = 24
"""Cells of a line's place in the source."""
_SIGN_CELLS: Final = 3
"""Cells of the sign of a change, between blanks."""
_UNCHANGED: Final = ("same", "renamed")
_CHANGE_SIGNS: Final = {"same": " ", "renamed": "·", "added": "+", "removed": "-", "changed": "~"}
_DIFF_TOKEN: Final = re.compile(r"[\w$%.]+|\s+|.")
_LEXERS: Final = {
    ".py": "PythonLexer",
    **dict.fromkeys((".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"), "CudaLexer"),
}
_ROLES_BY_TOKEN: Final = (
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
_MAX_COLORED_LINES: Final = 20_000
"""Lines of a file up to which it has colours: about a second of reading."""


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file. OSError if it cannot be read; what is beyond the limit is left out."""
    text = read_start(path, SHOWN_TEXT).decode("utf-8", "replace")
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def printable_code(text: str) -> str:
    """Return a line with its tabs spread, and safe to draw."""
    text = text.expandtabs(TAB_CELLS) if "\t" in text else text
    return text if text.isprintable() else printable(text.encode("utf-8", "replace"))


def without_edit_mark(text: str) -> str:
    """Return a line without the comment that names its probe; one that is nothing but a comment stays as it is."""
    code, mark, _ = text.partition(INSERTED_MARK)
    return code.rstrip() if mark and code.strip() else text


@lru_cache(maxsize=16384)
def colored_code(text: str, role: str = "") -> tuple[Span, ...]:
    """Return the spans of a line of PTX or SASS that was ``printable_code``.

    With a ``role``, as of inserted lines, only comments and labels differ from it: colours of syntax would hide it.
    """
    if text.lstrip().startswith((".loc", ".file")):
        return ((text, "dim"),)
    spans: list[Span] = []
    position = 0
    if not role and (head := _HEAD.match(text)) is not None:
        spans = [(head["before"], "dim"), (head["guard"] or "", "code_type"), (head["opcode"], "code_keyword")]
        position = head.end()
    for match in _TOKENS.finditer(text, position):
        spans.append((text[position : match.start()], role))
        kind = match.lastgroup or "comment"
        spans.append((match[0], _TOKEN_ROLES[kind] if not role or kind in ("comment", "label") else role))
        position = match.end()
    spans.append((text[position:], role))
    return tuple(span for span in spans if span[0])


class _DiffRow(NamedTuple):
    """A drawn line: the pairs from ``start`` to before ``end``, which are several in a folded run."""

    start: int
    end: int
    side: Literal["both", "left", "right"] = "both"
    """One side of a changed pair, which takes two lines in a diff below one another."""

    @property
    def is_folded(self) -> bool:
        return self.end - self.start > 1


class _DiffRows(NamedTuple):
    """The drawn lines, and those of them at which a run of changes starts."""

    rows: list[_DiffRow]
    anchors: list[int]


class DiffLines:
    """``left`` and ``right`` as the alignment pairs them; unchanged runs are folded unless ``is_folded`` is unset.

    Lines of ``left`` in ``visible_lines`` are never folded. ``source_of`` gives the place in the source of a line of
    ``left``, "" where it has none.
    """

    def __init__(
        self,
        left: Sequence[str],
        right: Sequence[str],
        alignment: Alignment,
        source_of: Callable[[int], str] | None = None,
        visible_lines: Container[int] = (),
    ) -> None:
        self.left, self.right = left, right
        self.pairs = alignment.pairs
        self.is_folded = True
        self._source_of = source_of
        self._digits = max(5, len(str(max(len(left), len(right)))) + 1)
        self._rows: dict[tuple[bool, bool], _DiffRows] = {}
        """Drawn lines by whether texts are below one another, and whether unchanged runs are folded."""
        self._runs = _unchanged_runs(self.pairs, visible_lines)

    @property
    def can_fold(self) -> bool:
        """True if there is an unchanged run that is worth folding."""
        return bool(self._runs)

    def lines(self, cells: int, head: Sequence[Line] = (), margin: MeasureMargin | None = None) -> LazyLines:
        """Return the lines for a width, below ``head``. The ``margin`` is next to the lines of ``left``."""
        rows = self._rows_for(cells).rows
        make = self._unified if cells < SIDE_BY_SIDE_WIDTH else self._side_by_side
        return LazyLines(len(rows), lambda place: make(rows[place], cells, margin), head)

    def gutter(self, cells: int, margin: MeasureMargin | None = None) -> int:
        """Return the cells of numbers, signs and margin at the left."""
        numbers = self._digits * (2 if cells < SIDE_BY_SIDE_WIDTH else 1)
        values = margin.cells + 1 if margin is not None and margin.cells else 0
        return numbers + _SIGN_CELLS + values

    def pair_at(self, place: int, cells: int) -> LinePair:
        """Return the lines at a place below the head; of a folded run the first ones."""
        return self.pairs[self._rows_for(cells).rows[place].start]

    def place_of(self, left: int, cells: int) -> int | None:
        """Return the place below the head of a line of ``left``, of the folded run that it is in."""
        return self._place(next((number for number, pair in enumerate(self.pairs) if pair.left == left), None), cells)

    def place_of_right(self, right: int, cells: int) -> int | None:
        """Return the row of a line of ``right``; None if it is not shown."""
        return self._place(next((number for number, pair in enumerate(self.pairs) if pair.right == right), None), cells)

    def _place(self, number: int | None, cells: int) -> int | None:
        if number is None:
            return None
        rows = self._rows_for(cells).rows
        return next((place for place, row in enumerate(rows) if row.start <= number < row.end), None)

    def anchors(self, cells: int) -> list[int]:
        """Return the first line of each run of changes, counted below the head."""
        return self._rows_for(cells).anchors

    # -- which lines there are

    def _rows_for(self, cells: int) -> _DiffRows:
        """Return the drawn lines for a width, which are made once for each form."""
        unified = cells < SIDE_BY_SIDE_WIDTH
        key = (unified, self.is_folded)
        if key not in self._rows:
            self._rows[key] = self._make_rows(unified=unified)
        return self._rows[key]

    def _make_rows(self, *, unified: bool) -> _DiffRows:
        rows: list[_DiffRow] = []
        anchors: list[int] = []
        run_ends = dict(self._runs) if self.is_folded else {}
        number, after_unchanged = 0, True
        while number < len(self.pairs):
            if number in run_ends:
                rows.append(_DiffRow(number, run_ends[number]))
                number, after_unchanged = run_ends[number], True
                continue
            change = self.pairs[number].change
            is_unchanged = change in _UNCHANGED
            if after_unchanged and not is_unchanged:
                anchors.append(len(rows))
            after_unchanged = is_unchanged
            if unified and change == "changed":
                rows += [_DiffRow(number, number + 1, "left"), _DiffRow(number, number + 1, "right")]
            else:
                rows.append(_DiffRow(number, number + 1))
            number += 1
        return _DiffRows(rows, anchors)

    # -- how they are drawn

    def _side_by_side(self, row: _DiffRow, cells: int, margin: MeasureMargin | None) -> Line:
        if row.is_folded:
            return self._fold_line(row, cells)
        pair = self.pairs[row.start]
        has_source = cells >= WITH_SOURCE_WIDTH and self._source_of is not None
        half = (cells - 1 - (_SOURCE_CELLS if has_source else 0)) // 2
        left = self._side_spans(pair, pair.left, self.left, margin)
        if pair.left is None:
            left = self._absent_spans(row.start, half)
        right = self._side_spans(pair, pair.right, self.right) if pair.right is not None else ()
        line = (*fit_line(left, half), ("│", "rule"), *fit_line(right, half))
        return (*line, (self._source_text(pair), "dim")) if has_source else line

    def _unified(self, row: _DiffRow, cells: int, margin: MeasureMargin | None) -> Line:
        if row.is_folded:
            return self._fold_line(row, cells)
        pair, side = self.pairs[row.start], row.side
        sign = {"left": "-", "right": "+"}.get(side, _CHANGE_SIGNS[pair.change])
        left, right = None if side == "right" else pair.left, None if side == "left" else pair.right
        place, text = (left, self.left) if right is None else (right, self.right)
        margin_spans = self._margin_spans(
            margin, None if side == "right" else pair, starts_run=self._starts_run(row.start)
        )
        return (
            (f"{self._number_text(left)}{self._number_text(right)} {sign} ", _change_role(pair) or "dim"),
            *margin_spans,
            *self._code_spans(pair, place, text),
        )

    def _side_spans(
        self, pair: LinePair, place: int | None, text: Sequence[str], margin: MeasureMargin | None = None
    ) -> Line:
        sign = "-" if pair.change == "removed" else _CHANGE_SIGNS[pair.change]
        margin_spans = self._margin_spans(margin, pair, starts_run=False)
        return (
            (f"{self._number_text(place)} {sign} ", _change_role(pair) or "dim"),
            *margin_spans,
            *self._code_spans(pair, place, text),
        )

    @staticmethod
    def _margin_spans(margin: MeasureMargin | None, pair: LinePair | None, *, starts_run: bool) -> Line:
        if margin is None or not margin.cells:
            return ()
        if pair is not None and pair.change == "added":
            return (margin.of_run(pair.owner if starts_run else ""), (" ", ""))
        return (*margin.of_line(None if pair is None or pair.left is None else pair.left + 1), (" ", ""))

    def _number_text(self, place: int | None) -> str:
        return " " * self._digits if place is None else f"{place + 1:>{self._digits}}"

    def _starts_run(self, number: int) -> bool:
        """Return whether a pair is the first of a run of one kind and one owner."""
        pair = self.pairs[number]
        previous = self.pairs[number - 1] if number else None
        return previous is None or (previous.change, previous.owner) != (pair.change, pair.owner)

    def _code_spans(self, pair: LinePair, place: int | None, text: Sequence[str]) -> tuple[Span, ...]:
        line = _code_without_mark(text[place]) if place is not None else ""
        if pair.change == "changed" and pair.left is not None and pair.right is not None:
            paired_line = self.right[pair.right] if text is self.left else self.left[pair.left]
            return _changed_spans(line, _code_without_mark(paired_line))
        return colored_code(line, _change_role(pair))

    def _absent_spans(self, number: int, cells: int) -> Line:
        """Return the spans of the side without such a line; at the first line of a run they name its owner."""
        if not self._starts_run(number):
            return ()
        owner = self.pairs[number].owner
        return ((clip(f"{owner} ▸ " if owner else "", cells).rjust(cells), "note"),)

    def _fold_line(self, row: _DiffRow, cells: int) -> Line:
        first_line, last_line = ((self.pairs[number].left or 0) + 1 for number in (row.start, row.end - 1))
        text = f" … {units.counted(row.end - row.start, 'unchanged line')}, {first_line} to {last_line} "
        return ((clip(text, cells), "dim"), ("─" * max(0, cells - len(text)), "rule"))

    def _source_text(self, pair: LinePair) -> str:
        """Return the place in the source, where it is another than that of the line above."""
        if self._source_of is None or pair.left is None:
            return ""
        place = self._source_of(pair.left)
        if pair.left and self._source_of(pair.left - 1) == place:
            return ""
        return clip(" " + place, _SOURCE_CELLS)


def _unchanged_runs(pairs: Sequence[LinePair], visible_lines: Container[int]) -> list[tuple[int, int]]:
    """Return the folded runs, first pair and one past the last; context stays visible next to other lines."""
    runs = []
    start = 0
    for place in range(len(pairs) + 1):
        if place < len(pairs) and pairs[place].change in _UNCHANGED and pairs[place].left not in visible_lines:
            continue
        first = start + (CONTEXT_LINES if start else 0)
        last = place - (CONTEXT_LINES if place < len(pairs) else 0)
        if last - first > 1:
            runs.append((first, last))
        start = place + 1
    return runs


def _change_role(pair: LinePair) -> str:
    return {"added": "added", "removed": "bad", "changed": "warn"}.get(pair.change, "")


def _code_without_mark(text: str) -> str:
    return printable_code(without_edit_mark(text))


@lru_cache(maxsize=4096)
def _changed_spans(text: str, paired_text: str) -> tuple[Span, ...]:
    """Return ``text`` with the words that ``paired_text`` lacks in a role of their own."""
    words, paired_words = _DIFF_TOKEN.findall(text), _DIFF_TOKEN.findall(paired_text)
    spans: list[Span] = []
    for tag, start, end, _, _ in SequenceMatcher(None, words, paired_words, autojunk=False).get_opcodes():
        if start < end:
            spans.append(("".join(words[start:end]), "" if tag == "equal" else "changed"))
    return tuple(spans)


def colored_source(file: str, lines: Sequence[str]) -> list[Line] | None:
    """Return the spans of each line of a file; None of a language that is not known, or of a very long file."""
    lexer = _lexer_of(file)
    if lexer is None or len(lines) > _MAX_COLORED_LINES:
        return None
    colored: list[list[tuple[str, str]]] = [[]]
    for kind, text in lexer.get_tokens("\n".join(lines)):
        role = _token_role(str(kind).removeprefix("Token."))
        first_part, *other_parts = text.split("\n")
        colored[-1].append((first_part, role))
        colored += [[(text_part, role)] for text_part in other_parts]
    return [tuple(_join_spans(spans)) for spans in colored[: len(lines)]]


def _lexer_of(file: str) -> Any:
    name = _LEXERS.get(PurePath(file).suffix)
    if name is None:
        return None
    import pygments.lexers  # takes a tenth of a second

    return getattr(pygments.lexers, name)(stripnl=False, ensurenl=False)


def _token_role(kind: str) -> str:
    return next((role for prefix, role in _ROLES_BY_TOKEN if kind.startswith(prefix)), "")


def _join_spans(spans: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the spans with those of one role joined; blanks take the role of what is before them."""
    runs: list[tuple[str, str]] = []
    for text, role in spans:
        if runs and text and (runs[-1][1] == role or text.isspace()):
            runs[-1] = (runs[-1][0] + text, runs[-1][1])
        elif text:
            runs.append((text, role))
    return runs


def code_lines_text(lines: Sequence[int]) -> str:
    """Return the lines of PTX, or the instructions of machine code that was probed itself."""
    if isinstance(lines[0], Offset):
        first = long_position(lines[0])
        return first if len(lines) == 1 else f"{units.count(len(lines))} instructions, starting at {first}"
    return (
        f"PTX {lines[0]}" if len(lines) == 1 else f"{units.count(len(lines))} lines of PTX, starting at line {lines[0]}"
    )
