"""One word for one thing: phrases that no text of this repository may have, and what to write instead.

Looked at are strings and comments of Python and C, Markdown pages, and TOML files. The glossary
(``tui_probe/help/glossary.md``) says which words to use.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
REASONS = ROOT / "tui_probe" / "reasons" / "reasons.def"

COUNTED = (
    "records|bytes|bits|sectors|cycles|threads|warps|lanes|blocks|registers|slots|instructions|operations|iterations"
    "|elements|accesses|multiply-adds|passes|sums|words|columns|characters|ns|µs|ms|KiB|MiB|GiB|GB|TB"
)
ONE_OF = (
    "record|row|line|file|bit|byte|list|column|store|sum|entry|element|event|table|bar|slot|letter|member|address"
    "|module|number|process|thread"
)
OWNER = (
    "SM|slot|site|warp|launch|thread|block|second|millisecond|kernel|lane|access|request|iteration|instruction|cycle|byte"
    "|process|line|row|element|cell|frame|map|column|barrier|branch|device|GPU|page|trace|figure|metric|function"
    "|finding|question|subcommand|test|round|field|group"
)
ACTS = "shows|opens|goes|runs|deletes|selects|searches|returns|resumes|switches|sorts|merges|marks|lists|leaves|jumps"
FORBIDDEN = {
    rf"\b(?:{COUNTED}) (?-i:an?) (?:{OWNER})\b": "N per X",
    rf"… (?-i:an?) (?:{OWNER})\b": "N per X",
    rf"\A(?-i:an?) (?:{OWNER}|load|store)\Z": "per X, as a column's title",
    rf"\b(?:an?|one) (?:[\w-]+ )?(?:{ONE_OF}) an? (?:{OWNER})\b": "one N per X",
    rf"\b(?:one|once|\d+) an? (?:{OWNER.replace('second|', '')})\b": "one per X, once per X",
    r"\bgoes on running|\brun (?:that )?goes on|\bone that goes on": "active run; keeps running",
    r"\basks? or draws?\b": "interactive programs",
    r"\bhow near\b": "how close",
    r"\bthe dearest\b": "the overhead is highest in",
    r"\bin the place of\b": "instead of",
    r"\btells? of\b": "reports",
    r"\bin vain\b": "without success",
    r"\bways? out\b": "exit",
    r"\bwhat (?:becomes|became) of\b": "the outcome of, the status of",
    r"\bby turns\b": "alternately",
    r"\bas far as\b": "if known, to the extent that",
    r"\bat once\b": "immediately; at the same time",
    r"\bsome \d+\b": "about N",
    r"\bwould do\b": "ideal, minimum",
    r"\ball that can be done now\b": "command palette",
    r"\bis for the (?:table|list)\b": "works in the table",
    r"\bnothing (?:here|on this page) (?:has|leads)\b": "no line of this page",
    r"\bleads? nowhere\b": "is invalid; opens nothing",
    r"\bthe run before\b": "the previous run",
    r"\bnames none of\b": "matches no",
    r"\bnothing more is known\b|\bthat could be cut\b": "has no details; is shortened",
    r"\bnothing to see before\b": "no kernel launched yet",
    r"\bready from before\b": "reused from the cache",
    r"\blook with care\b|\bnot all could be written\b": "the trace is incomplete",
    r"\bthreads? (?:that )?never left\b|\bwhose threads never left\b": "did not exit",
    r"\(no\. \d": "launch 3 (1st of 8 of this kernel)",
    r"\blaunch \S+ of \S+ \(#|\(#\S+ of the process": "launch 3 (1st of 8 of this kernel)",
    r"\bhow blocks follow each other\b": "needs every block",
    r"\ba part of its time\b": "costs proportionally less",
    r"\b(?:is|are) of (?:these|those) alone\b": "of these only",
    r"\bin sight\b": "visible; the current page",
    r"\bon (?:their|its) way (?:at any time|in all blocks)\b|\bbytes (?:are )?on their way\b": "in flight",
    r"\blegacy\b(?! stream)": "older traces, older systems",
    r"(?<![`\w])cards?(?![`\w])": "GPU",
    r"\bthread blocks?\b|(?-i:\bCTAs?\b)": "block",
    r"\binstrument(?:ed|ation)\b": "probed; probe",
    r"\bstreaming multiprocessors\b": "SMs",
    r"\b(?:hooked|wrapped) driver\b": "hook driver",
    r"\bkernel functions?\b": "kernel",
    r"\bspeed-?up of the probe\b|\boverhead factor\b": "slowdown",
    rf"(?<!that )\b(?-i:Enter|Esc|Tab|Space|Backspace) (?:{ACTS})\b": "press Enter to ...",
    rf"(?-i:[.:;] [a-zA-Z!/>?]) (?:{ACTS})\b": "press q to ...",
    r"(?-i:[.;] [!–+~✘]) (?:and a|marks?|means?)\b": "“!” marks",
    r"\bmaps? of level\b|\bhas level (?:site|warp|thread)\b": "with level = 'site'",
    r"\blanes? per warp\b|\bin this lane\b": "row, for a line of a timeline",
    r"\b(?:lanes?|threads?|warps?) saves?(?=[.;,:]|\Z)": "saves the record",
    r"\bat most as many as\b|\bas many as (?:were|was)\b": "N, but at most M; the largest number that",
    r"(?<!a )(?<!too )\bfew (?:launches|warps|blocks|kernels|threads) are\b": "a few",
    r"\blean forms?\b": "variant",
    r"\blaunch … of it\b": "its launch 2",
    r"\bover the original's\b": "at the unprobed time of",
}
"""Each phrase with what is said in its place."""

IN_MESSAGES = {
    r"(?<=[.!?] )(?:It|They) \w+": "name the subject again",
    r"\b(?:is|are|was|were|equals?|than|with|from|as) th(?:at|ose) of\b": "name the noun again",
    r"\b(?:has|have) none\b": "name what is missing",
    r"\bthe ones? (?:that|which|of|with)\b": "name the noun again",
    r"\bthe latter\b": "name the noun again",
    r"\b(?:it|they|this|them) (?:says?|tells?)\b": "shows, reports; name the subject",
    r"\b(?:make|create|writes?|record|choose) one(?: (?:with|such|and|here)|(?=[.,;:]|\Z))": "name the thing again",
    r"\bthere too\b|\bWhere the two\b": "name the place or the things again",
    r"\b(?:the|an?) (?!same |other )[a-z]+ ones?(?=[,.;:)]|\Z| (?:with|and|or|at|in)\b)": "name the noun again",
    r"\b[a-z]+ ones\b": "name the noun again",
    r"(?:\A|(?<=[.:;] ))Of (?:the |these )?(?:two|three|four)\b": "name the subject first",
    r"(?:\A|(?<=[.;] ))So (?:is|are|do|does)\b": "repeat the verb",
    r"\b[Tt]his key \w+": "name the key, or its page",
    r"\b[Tt]his is so\b": "this applies to",
    r"\badditions? to memory\b": "atomic additions",
    r"\bas many (?!as)\w+ (?:had|have)\b": "the number of … is the same",
    r"\band one of an?\b": "name the noun again",
    r"\bthe rest is for\b": "the rest of the wait is for",
}
"""Phrases for which a message is read twice. Docstrings and comments may have them: the code is next to them."""

AT_WORDS = [phrase for phrase in FORBIDDEN if phrase.startswith((r"\b", r"\A", "(?<!"))]
"""Phrases that begin with a word: all others places of a text are passed by the first ``\\b``, not by that of each."""
ANY_IN_MESSAGES = re.compile("|".join(IN_MESSAGES))
ANY = re.compile("|".join([rf"\b(?:{'|'.join(AT_WORDS)})", *sorted(FORBIDDEN.keys() - AT_WORDS)]), re.IGNORECASE)
OLDER = re.compile(r"OLDER\((?:\"[^\"]*\"|[^\")])*\)")
"""Sentences of older logs in the list of reasons, which stay as they were written."""
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
C_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"")
C_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
COMMENT = re.compile(r"(?:^|\s)#[^\n]*")
LINE_BREAK = re.compile(r"[ \t]*\n[ \t]*(?:(?:#|\*(?!/)|//) ?)?")


class Text(NamedTuple):
    """A text of a file, and the line on which it begins."""

    path: Path
    line: int
    words: str


class Strings(NamedTuple):
    """Strings of a Python file."""

    docstrings: list[Text]
    others: list[Text]


def python_texts(path: Path, source: str) -> Iterator[Text]:
    """Strings, docstrings among them, then comments."""
    yield from sorted(itertools.chain(*python_strings(path, source)), key=lambda text: text.line)
    yield from blanked(path, source, COMMENT)


@functools.cache
def python_strings(path: Path, source: str) -> Strings:
    """Strings as they are joined; an expression in one is shown as ``…``. A file is parsed once for two tests."""
    strings, tree = Strings([], []), ast.parse(source)
    inside: set[int] = set()
    docstrings: set[int] = set()
    for node in ast.walk(tree):  # parents first
        if isinstance(node, ast.Expr):
            docstrings.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            strings.others.append(Text(path, node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            place = strings.docstrings if id(node) in docstrings else strings.others
            place.append(Text(path, node.lineno, node.value))
    return strings


def blanked(path: Path, source: str, kept: re.Pattern[str]) -> Iterator[Text]:
    """Return the texts that ``kept`` finds; pieces on neighbouring lines are one text."""
    begin, end = 0, -1
    for found in kept.finditer(source):
        if end >= 0 and source[end : found.start()].strip() == "" and source.count("\n", end, found.end()) <= 2:
            end = found.end()
            continue
        if end >= 0:
            yield Text(path, source.count("\n", 0, begin) + 1, source[begin:end])
        begin, end = found.span()
    if end >= 0:
        yield Text(path, source.count("\n", 0, begin) + 1, source[begin:end])


def texts() -> Iterator[Text]:
    """All that a user reads of the tool and of its sources."""
    for path in sorted(ROOT.glob("tui_probe/**/*.py")) + sorted(ROOT.glob("probes/**/*.py")):
        yield from python_texts(path, path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("hook/**/*.[ch]")):
        yield from blanked(path, path.read_text(encoding="utf-8"), C_TEXT)
    for pattern in ("*.md", "tui_probe/**/*.md", "*.toml", "probes/**/*.toml"):
        for path in sorted(ROOT.glob(pattern)):
            yield Text(path, 1, path.read_text(encoding="utf-8"))
    yield Text(REASONS, 1, OLDER.sub(line_breaks, REASONS.read_text(encoding="utf-8")))


def messages() -> Iterator[Text]:
    """The texts that a user reads without the code: strings other than docstrings, pages, values of TOML files."""
    for path in sorted(ROOT.glob("tui_probe/**/*.py")) + sorted(ROOT.glob("probes/**/*.py")):
        yield from python_strings(path, path.read_text(encoding="utf-8")).others
    for path in sorted(ROOT.glob("hook/**/*.[ch]")):
        yield from blanked(path, uncommented(path, C_COMMENT), C_STRING)
    for pattern in ("*.md", "tui_probe/**/*.md", "docs/*.md"):
        for path in sorted(ROOT.glob(pattern)):
            yield Text(path, 1, path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("probes/**/*.toml")):
        yield Text(path, 1, uncommented(path, COMMENT))
    yield from blanked(REASONS, OLDER.sub(line_breaks, uncommented(REASONS, C_COMMENT)), C_STRING)


def uncommented(path: Path, comment: re.Pattern[str]) -> str:
    return comment.sub(line_breaks, path.read_text(encoding="utf-8"))


def line_breaks(found: re.Match[str]) -> str:
    """As many line breaks as the match has, so that later lines keep their numbers."""
    return "\n" * found[0].count("\n")


def faults(text: Text, any_phrase: re.Pattern[str] = ANY, phrases: Mapping[str, str] = FORBIDDEN) -> Iterator[str]:
    """``FILE:LINE: PHRASE: what to write`` for each forbidden phrase. Line breaks count as blanks."""
    breaks = [(found.start(), found.end()) for found in LINE_BREAK.finditer(text.words)]
    joined = LINE_BREAK.sub(" ", text.words)
    for found in any_phrase.finditer(joined):
        at_phrase = ((re.compile(phrase, any_phrase.flags), words) for phrase, words in phrases.items())
        better = next(words for phrase, words in at_phrase if phrase.match(joined, found.start()))
        yield f"{place(text, breaks, found.start())}: “{found[0]}”: {better}"


def place(text: Text, breaks: list[tuple[int, int]], at: int) -> str:
    """File and line of a place in the joined text, in which every line break is one blank."""
    line = text.line
    for start, end in breaks:
        if start >= at:
            break
        at += end - start - 1
        line += 1
    return f"{text.path.relative_to(ROOT)}:{line}"


TEST_NAMES = {
    r"test_\w+_(told|said|alone|beside)(_\w+)?": "reported, shown; only; next to",
    r"test_(what|that|as|of|by|so|nor|it|where|which|those)_\w+": "test_<unit>_<behavior>",
}
"""Names of tests that do not denote, and what to write instead."""


def test_names_of_tests_denote() -> None:
    named = {
        f"{path.relative_to(ROOT)}::{name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"\bdef (test_\w+)\(", path.read_text(encoding="utf-8"))
    }
    assert named
    assert {test for test in named for form in TEST_NAMES if re.fullmatch(form, test.partition("::")[2])} == set()


def test_no_text_has_a_phrase_that_is_written_otherwise() -> None:
    all_faults = [fault for text in texts() for fault in faults(text)]
    assert not all_faults, "write these as the glossary does:\n" + "\n".join(all_faults)


def test_messages_name_their_subjects() -> None:
    all_faults = [fault for text in messages() for fault in faults(text, ANY_IN_MESSAGES, IN_MESSAGES)]
    assert not all_faults, "a message is read once if it names things again:\n" + "\n".join(all_faults)


CODE = re.compile(r"`[^`]*`|\([^()]*\)")
LONGEST_SENTENCE = 25
"""Words of a sentence, where code and each parenthesis count as one."""


def help_paragraphs() -> Iterator[Text]:
    """Paragraphs and list items of pages, without code blocks, tables and headings."""
    for path in (*sorted(ROOT.glob("tui_probe/help/*.md")), ROOT / "README.md"):
        text = re.sub(r"^```.*?^```", line_breaks, path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for found in re.finditer(r"^(?![|#]).+(?:\n(?![|#]|\s*[-*] |\s*\d+\. |\n).+)*", text, re.MULTILINE):
            yield Text(path, text.count("\n", 0, found.start()) + 1, " ".join(found[0].split()))


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a paragraph, with their numbers of words."""
    for sentence in re.split(r"(?<=[.;:!?]) ", CODE.sub("X", text)):
        yield len(re.findall(r"[A-Za-z][\w'-]*", sentence)), sentence


def test_sentences_of_help_are_short() -> None:
    long = [
        f"{text.path.relative_to(ROOT)}:{text.line}: {count} words: {sentence}"
        for text in help_paragraphs()
        for count, sentence in sentences(text.words)
        if count > LONGEST_SENTENCE
    ]
    assert not long, "a sentence is read once if it is short:\n" + "\n".join(long)


def test_long_sentence_is_counted_without_code() -> None:
    long = " ".join(["word"] * 30)
    assert max(count for count, _ in sentences(f"One two. `{long}` three ({long}) four; {long}.")) == 30
    assert [count for count, _ in sentences(f"One two. `{long}` three ({long}) four.")] == [2, 4]


@pytest.mark.parametrize(
    "words",
    [
        "A kernel ran. It is fine.",
        "no export; make one with nsys",
        "name this kernel there too",
        "the sums equal those of A",
        "the image has none",
        "choose the one that fits",
        "replaces an earlier one.",
        "show failed ones",
        "in order. Of the two waits, the first is long",
        "not by variable. So is the heap",
        "this key acts in the table",
        "two additions to memory",
        "as many kernels had no result",
    ],
)
def test_words_of_messages_are_found(words: str) -> None:
    assert len(list(faults(Text(ROOT / "file", 1, words), ANY_IN_MESSAGES, IN_MESSAGES))) == 1


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("16 blocks an SM", 1),
        ("8.19 kB and … a launch", 1),
        ("a store", 1),
        ("one\nrecord\na warp", 1),
        ("fine\n * and 4 bytes a\n * lane", 2),
        ("fine\nfine\nfollows the newest run that goes on", 3),
        ("A Legacy trace", 1),
        ("launch 3 (no. 1 of 8)", 1),
        ("a line; q returns", 1),
        ("no line: Esc shows all", 1),
        ("sorted. ! marks losses", 1),
        ("lane 0 of the warp saves.", 1),
        ("few launches are slow", 1),
    ],
)
def test_phrases_are_found_across_lines_and_named_with_theirs(words: str, line: int) -> None:
    (fault,) = faults(Text(ROOT / "file", 1, words))
    assert fault.startswith(f"file:{line}: ")


@pytest.mark.parametrize(
    "words", ["blocks per SM", "… is a page", "a store of it", "once a second", "`card`", "too few blocks are probed"]
)
def test_other_words_are_free(words: str) -> None:
    assert not list(faults(Text(ROOT / "file", 1, words)))


def test_strings_are_read_as_they_are_joined() -> None:
    source = 'def f(n: int) -> str:\n    """Doc."""\n    return f"{n} bytes a"\\\n        " lane"  # a comment\n'
    strings = [(text.line, text.words.strip()) for text in python_texts(ROOT / "file", source)]
    assert strings == [(2, "Doc."), (3, "… bytes a lane"), (4, "# a comment")]
