"""Source text to tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ptx.strategies import mutated, soup
from tui_probe.errors import PtxError
from tui_probe.ptx.lexer import LineCounter, TokenKind, line_of, tokenize
from tui_probe.ptx.operands import tokens

ONE_TOKEN = {
    TokenKind.NAME: ["add", "%r1", "$L__BB0_1", "_$_str", "_", "%SP", "_ZN2at6native", "__local_depot0"],
    TokenKind.DOTTED: [".reg", ".shared::cluster", ".m16n8k16", ".L2::128B", ".1d", ".16x64b"],
    TokenKind.NUMBER: [
        "0",
        "16",
        "0x1F",
        "0X1fU",
        "017",
        "0b101",
        "0f3F800000",
        "0d3FF0000000000000",
        "1.5",
        "2.5e-3",
        "3U",
    ],
    TokenKind.STRING: ['"a // b"', '""', '"C:\\"', '"a\nb"'],
    TokenKind.PUNCTUATION: ["{", "@", "|"],
}


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for kind, texts in ONE_TOKEN.items() for text in texts])
def test_one_token(text: str, kind: TokenKind) -> None:
    assert [(token.kind, token.text) for token in tokenize(text)] == [(kind, text)]


def test_comments_and_space_are_no_tokens() -> None:
    assert tokens("ld.global /* a ; */ .u32\t%r1, // ] \n [%rd1+-4]; /**//***/") == [
        *("ld", ".global", ".u32", "%r1", ",", "[", "%rd1", "+", "-", "4", "]", ";"),
    ]


def test_signs_and_selectors_are_tokens_of_their_own() -> None:
    assert tokens("-1 %tid.x a+4 !%p") == ["-", "1", "%tid", ".x", "a", "+", "4", "!", "%p"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('a\n"b', 2, "string"),
        ('"a\n', 1, "string"),
        ("a\n\n/* b\n", 3, "comment"),
        ("/*/", 1, "comment"),
    ],
)
def test_errors_name_the_line(text: str, line: int, message: str) -> None:
    with pytest.raises(PtxError, match=message) as caught:
        tokens(text)
    assert caught.value.line == line


@given(soup() | mutated() | st.text())
def test_tokens_cover_the_text(text: str) -> None:
    try:
        lexed = list(tokenize(text))
    except PtxError:
        return
    assert all(text[token.start : token.end] == token.text for token in lexed)
    assert tokens(" ".join(token.text for token in lexed)) == [token.text for token in lexed]


@given(st.text(alphabet="a\n"), st.data())
def test_lines_count_on(text: str, data: st.DataObject) -> None:
    lines = LineCounter(text)
    for position in sorted(data.draw(st.lists(st.integers(0, len(text))))):
        assert lines.line_at(position) == line_of(text, position)
