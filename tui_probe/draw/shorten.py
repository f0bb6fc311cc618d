"""Kernel names cut to fit so that they stay apart, and the headings of drawings that name one."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache, partial
from itertools import takewhile
from typing import TYPE_CHECKING

from tui_probe.draw.spans import clip, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tui_probe.draw.canvas import Canvas

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::")
_ABI_TAG = re.compile(r"\[abi:[^\]]*\]")
_CLONE = re.compile(r"\s*\[clone [^\]]*\]$")
_OPERATOR = re.compile(r"\boperator(\(\)|<<=?|>>=?|<=>|[<>]=?|->)")
_NAMESPACES = re.compile(r"(?:\w+::)+")
_ARGUMENT_CELLS = 14
"""Cells of the template arguments in a short name."""
_JOINER = "\u200d"
_CLOSING_BRACKETS = {"<": ">", "(": ")", "[": "]", "{": "}"}
_GAP = 2
_SEPARATOR = " · "
_MIN_KERNEL_CELLS = 24
"""Cells of a name that are enough to distinguish it from others."""


@lru_cache(maxsize=8192)
def shorten(name: str, cells: int, *, ellipsis: str = "…") -> str:
    """Return ``name`` in at most ``cells`` cells: whole, else its short name, else the function of that.

    What is still too long loses its middle, since names differ at both ends.
    """
    if width(name) <= cells:
        return name
    short = short_name(name, ellipsis)
    return short if width(short) <= cells else cut_middle(_function_name(name), cells, ellipsis=ellipsis)


@lru_cache(maxsize=4096)
def short_name(name: str, ellipsis: str = "…") -> str:
    """Return the name of a kernel where its whole name has no room, the same on every page and at every width.

    It is the function, without namespaces, parameters and return type, and its template arguments, without namespaces
    and without their middle: ``elementwise_kernel<4,FillFun…1ul>>``.
    """
    function, bare = _function_name(name), _qualified_name(name)
    start = bare.find(f"{function}<")
    if start < 0:
        return function
    opening = start + len(function)
    end = _closing_position(bare, _depths(bare), opening)
    arguments = _NAMESPACES.sub("", bare[opening + 1 : end if end >= 0 else len(bare)]).strip()
    arguments = arguments.replace(" >", ">").replace(", ", ",")
    return f"{function}<{cut_middle(arguments, _ARGUMENT_CELLS, ellipsis=ellipsis)}>"


def without_abi_tags(name: str) -> str:
    """``scale(int)`` of ``scale[abi:v1][abi:cw51…](int)``: Numba encodes its options in these tags."""
    return _ABI_TAG.sub("", name)


def fitted_command(command: str, cells: int) -> str:
    """``python lib/demo.py`` for ``/usr/bin/python lib/demo.py``; where it does not fit, ``python demo.py``."""
    parts = [word.rpartition("/")[2] or word if word.startswith("/") else word for word in command.split(" ")]
    if len(" ".join(parts)) > cells:
        parts = [word if word.startswith("-") else word.rpartition("/")[2] or word for word in parts]
    return " ".join(parts)


def cut_middle(text: str, cells: int, *, ellipsis: str = "…") -> str:
    """``text`` without its middle, in at most ``cells`` cells; a little more of the start is kept than of the end."""
    if width(text) <= cells:
        return text
    kept_cells = cells - width(ellipsis)
    if kept_cells <= 0:
        return ellipsis[:cells]
    tail = kept_cells * 2 // 5
    return _first_cells(text, kept_cells - tail) + ellipsis + _last_cells(text, tail)


def _first_cells(text: str, cells: int) -> str:
    """Return as much of the start as ``cells`` cells hold, in whole signs; no combining character is left behind."""
    length = min(len(text), cells)
    if text.isascii():
        return text[:length]
    while length < min(len(text), 8 * cells) and width(text[:length]) <= cells:
        length += 1
    while length and width(text[:length]) > cells:
        length -= 1
    return text[: _sign_start(text, length)]


def _last_cells(text: str, cells: int) -> str:
    """Return as much of the end as ``cells`` cells hold, from the start of a sign."""
    start = max(0, len(text) - cells)
    if text.isascii():
        return text[start:]
    while start < len(text) and (_sign_start(text, start) != start or width(text[start:]) > cells):
        start += 1
    return text[start:]


def _sign_start(text: str, position: int) -> int:
    """Return the start of the sign at ``position``: characters that join the one before belong to the same sign."""
    while 0 < position < len(text) and (text[position - 1] == _JOINER or _joins(text[position])):
        position -= 1
    return position


def _joins(character: str) -> bool:
    """True for characters without a cell of their own: combining characters, variation selectors, skin tones."""
    is_colour = "\U0001f3fb" <= character <= "\U0001f3ff"
    return is_colour or character == _JOINER or unicodedata.category(character) in ("Mn", "Me", "Mc")


def cut_apart(texts: Iterable[str]) -> Callable[[str, int], str]:
    """Cuts these texts as ``cut_middle`` does, but no two of them to the same one.

    Those that would look alike keep the place where they differ first; where that is not enough they are numbered.
    """
    distinct_texts = tuple(dict.fromkeys(texts))

    @cache
    def shortened(cells: int) -> dict[str, str]:
        groups: dict[str, list[str]] = {}
        for text in distinct_texts:
            groups.setdefault(cut_middle(text, cells), []).append(text)
        labels = {text: short for short, group in groups.items() for text in group}
        for group in groups.values():
            if len(group) > 1:
                position = _first_difference(group)
                labels |= {text: _cut_around(text, position, cells) for text in group}
        return _number_duplicates(labels, cells)

    def shorten_one(text: str, cells: int) -> str:
        return shortened(cells).get(text) or cut_middle(text, cells)

    return shorten_one


def shorten_apart(names: Iterable[str]) -> Callable[[str, int], str]:
    """Shortens these names of kernels as ``shorten`` does, but no two of them to the same one.

    Instances of one template keep the function's name, and behind it the first argument in which they differ.
    """
    distinct_names = tuple(dict.fromkeys(names))

    @cache
    def shortened(cells: int) -> dict[str, str]:
        return _number_duplicates(dict(_distinct_labels(distinct_names, cells, shorten)), cells)

    def shorten_one(name: str, cells: int) -> str:
        return shortened(cells).get(name) or shorten(name, cells)

    return shorten_one


def _distinct_labels(
    names: Sequence[str], cells: int, shorten_name: Callable[[str, int], str]
) -> Iterator[tuple[str, str]]:
    """The names as ``shorten_name`` makes them; those that look alike then as ``_instance_label`` does, where that
    helps.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(shorten_name(name, cells), []).append(name)
    for short, group in groups.items():
        if len(group) == 1 or (len(group) == len(names) and shorten_name is not shorten):
            yield from ((name, short) for name in group)
        else:
            yield from _distinct_labels(group, cells, partial(_instance_label, _first_difference(group)))


def _first_difference(texts: Sequence[str]) -> int:
    """Return the number of signs that all texts have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda signs: len(set(signs)) == 1, zip(*texts, strict=False)))


def _instance_label(position: int, name: str, cells: int) -> str:
    """``add_ker…float2, 4``: the start of the function, and without namespaces what follows from ``position`` on."""
    start = position
    while start > 0 and (name[start - 1].isalnum() or name[start - 1] == "_"):
        start -= 1
    ending = _ANONYMOUS.sub("", name[start if position - start < cells // 4 else position - 2 :])
    tail = clip(_NAMESPACES.sub("", ending), cells // 2)
    head_cells = cells - width(tail) - 1
    return f"{_first_cells(_function_name(name), head_cells)}…{tail}"


def _qualified_name(name: str) -> str:
    """Return a name without parameters, return type and what compilers add."""
    return _without_return_type(_without_parameters(_CLONE.sub("", without_abi_tags(_ANONYMOUS.sub("", name)))))


def _function_name(name: str) -> str:
    """The name of a function without what is around it: ``void at::f<int>(int)`` -> ``f``; of operators their class,
    too.
    """
    parts = _collapse_templates(_qualified_name(name), 1, "…").replace("<…>", "").split("::")
    return "::".join(parts[-2:] if parts[-1].startswith("operator") else parts[-1:])


def _cut_around(text: str, position: int, cells: int) -> str:
    """``text`` in at most ``cells`` cells: its beginning, and what follows from shortly before ``position`` on."""
    head = cells // 3
    if position <= head:
        return clip(text, cells)
    return clip(f"{text[:head]}…{text[max(head, position - 2) :]}", cells)


def _number_duplicates(short_texts: dict[str, str], cells: int) -> dict[str, str]:
    """Texts that are cut to the same have a number at their end from the second on."""
    counts: dict[str, int] = {}
    labels = {}
    for text, short in short_texts.items():
        number = counts[short] = counts.get(short, 0) + 1
        labels[text] = short if number == 1 else clip(short, max(1, cells - len(f" {number}"))) + f" {number}"
    return labels


def _mask_operators(text: str) -> str:
    """Return ``text`` with the signs of operators' names as underscores: ``operator()`` holds no brackets."""
    return _OPERATOR.sub(lambda match: "operator".ljust(len(match[0]), "_"), text)


def _depths(text: str) -> list[int]:
    """Bracket depth at each character; an opening bracket counts as inside. ``->`` and operators are not brackets."""
    depth, depths = 0, []
    stack: list[str] = []
    for position, character in enumerate(_mask_operators(text)):
        if character in _CLOSING_BRACKETS:
            stack.append(_CLOSING_BRACKETS[character])
        depth = len(stack)
        depths.append(depth)
        if stack and character == stack[-1] and not text.startswith("->", position - 1):
            stack.pop()
    return depths


def _without_parameters(text: str) -> str:
    """``f<int>(float*, int) const`` -> ``f<int>``"""
    end = text.rfind(")")
    if end < 0 or text[end + 1 :].strip() not in ("", "const"):
        return text
    depths, masked = _depths(text), _mask_operators(text)
    start = end
    while start >= 0 and not (masked[start] == "(" and depths[start] == 1):
        start -= 1
    return text[:start] if start > 0 and depths[end] == 1 else text


def _without_return_type(text: str) -> str:
    """``void f<int>`` -> ``f<int>``"""
    depths = _depths(text)
    spaces = [i for i, character in enumerate(text) if character == " " and depths[i] == 0]
    if not spaces or text.endswith("operator", 0, spaces[-1]):
        return text
    return text[spaces[-1] + 1 :]


def _collapse_templates(text: str, level: int, ellipsis: str) -> str:
    """Template arguments from nesting ``level`` on as ``<…>``: ``f<a<b>, 4>`` is ``f<a<…>, 4>`` at level 2."""
    depths = _depths(text)
    pieces: list[str] = []
    closing = -1
    for position, character in enumerate(_mask_operators(text)):
        if position <= closing:
            continue
        pieces.append(text[position])
        if depths[position] == level and character in _CLOSING_BRACKETS:
            end = _closing_position(text, depths, position)
            closing = end if end >= 0 else len(text)
            pieces.append(ellipsis + _CLOSING_BRACKETS[character])
    return "".join(pieces)


def _closing_position(text: str, depths: list[int], start: int) -> int:
    """Return the position of the bracket that closes the one at ``start``; -1 if there is none."""
    bracket = _CLOSING_BRACKETS[text[start]]
    position = start + 1
    while position < len(text) and not (depths[position] == depths[start] and text[position] == bracket):
        position += 1
    return position if position < len(text) else -1


def draw_head(canvas: Canvas, title: str, launch: str, kernel: str, totals: str, role: str = "dim") -> None:
    """Draw the title of a drawing, its launch and kernel, and ``totals``.

    Totals are cut only where not even the launch has room next to them. Of ``title`` only the part before the colon is
    drawn, or nothing, where a kernel of usual length has no room next to it.
    """
    totals_cells = canvas.width - width(launch) - _GAP
    totals = clip(totals, max(totals_cells, 0))
    name_cells = totals_cells - width(totals) - 1
    for text in (title, title.partition(":")[0]):
        if name_cells - width(text) - len(_SEPARATOR) >= min(width(kernel), _MIN_KERNEL_CELLS):
            launch, name_cells = f"{text}{_SEPARATOR}{launch}", name_cells - width(text) - len(_SEPARATOR)
            break
    canvas.text(0, 0, f"{launch} {shorten(kernel, max(name_cells, 0))}", "title")
    canvas.text(canvas.width - width(totals), 0, totals, role)


def view_heading(title: str, description: str) -> str:
    """``Timeline: blocks and warps on SMs over time``: the title of a view and the first clause of what it is about."""
    clause_ends = [place for sign in (",", ":", ";") if (place := description.find(sign)) > 0]
    return f"{title}: {description[: min(clause_ends, default=len(description))]}"
