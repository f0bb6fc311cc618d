"""Secrets in a command line, which traces that people share hold: by pattern, so not all of them.

``***`` stands in the place of the value of an option or variable whose name says what it is (``--password=…``,
``--api-key …``, ``PGPASSWORD=…``), of tokens that are known by their beginning, and of a name and password in an
address. The hook does the same in what it writes (``hook/src/log/secrets.c``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK: Final = "***"
# Of bytes, as in the hook: a letter is one of ASCII, whatever case folding knows beyond that, and lengths are the same.
_NAME: Final = re.compile(
    rb"(?:password|passwd|passphrase|secret|apikey|(?<![a-z0-9])(?:token|key|credentials?))\Z", re.IGNORECASE
)
_TOKEN: Final = re.compile(
    rb"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[bp]-|AKIA|ASIA)"
    rb"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
)
_CREDENTIALS: Final = re.compile(rb"(?<=://)(?=[^/?# \t\n]*:[^/?# \t\n]*@|[^/?# \t\n]{16,}@)[^/?# \t\n]+(?=@)")
_BEARER: Final = re.compile(rb"(?<=bearer ).+", re.IGNORECASE | re.DOTALL)
_SECRETS: Final = (_TOKEN, _CREDENTIALS, _BEARER)


def masked(words: Iterable[str]) -> list[str]:
    """The words of a command line without what looks like a secret."""
    shown, is_secret = [], False
    for text in words:
        word = text.encode("utf-8", "surrogatepass")
        name, equals, value = word.partition(b"=")
        option, named = word.startswith(b"-"), _NAME.search(name) is not None
        if is_secret and word and not option:
            shown.append(MASK)
        else:
            shown.append(_masked_word(word, len(word) - len(value) if equals and named else None))
        is_secret = option and not equals and named
    return shown


def _masked_word(word: bytes, value: int | None) -> str:
    """A word with masks for its secrets; all from ``value`` on is one, unless that is None.

    Secrets are looked for in the word as it is, inside others, too: the name in an address may be a token, with a
    password behind it. Those that overlap or touch have one mask.
    """
    spans = [found.span() for pattern in _SECRETS for found in pattern.finditer(word)]
    spans += [] if value is None else [(value, len(word))]
    parts, hidden = [], -1
    for start, end in sorted(spans):
        if start > hidden:
            parts += [word[max(hidden, 0) : start], MASK.encode()]
        hidden = max(hidden, end)
    return b"".join([*parts, word[max(hidden, 0) :]]).decode("utf-8", "surrogatepass")


def masked_line(command: str) -> str:
    """The same of words with blanks between them, as logs have them."""
    return " ".join(masked(command.split(" ")))
