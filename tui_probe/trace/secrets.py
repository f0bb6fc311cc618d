"""Secrets in a command line, which traces that people share hold: by pattern, so not all of them.

``***`` stands in the place of the value of an option or variable whose name says what it is (``--password=…``,
``--api-key …``, ``PGPASSWORD=…``), of tokens that are known by their beginning, and of a name and password in an
address. The hook does the same in what it writes (``hook/src/secrets.c``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK: Final = "***"
_NAME: Final = re.compile(
    r"(?:password|passwd|passphrase|secret|apikey|(?<![a-z0-9])(?:token|key|credentials?))\Z", re.IGNORECASE
)
_TOKEN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[bp]-|AKIA|ASIA)"
    r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
)
_CREDENTIALS: Final = re.compile(r"(?<=://)(?=[^/?#\s@]*:|[^/?#\s]{16,}@)[^/?#\s]+(?=@)")
_BEARER: Final = re.compile(r"(?<=bearer ).+", re.IGNORECASE | re.DOTALL)


def masked(words: Iterable[str]) -> list[str]:
    """The words of a command line without what looks like a secret."""
    shown, is_secret = [], False
    for word in words:
        name, equals, _ = word.partition("=")
        option = word.startswith("-")
        if is_secret and word and not option:
            shown.append(MASK)
        elif equals and _NAME.search(name):
            shown.append(f"{name}={MASK}")
        else:
            shown.append(_BEARER.sub(MASK, _CREDENTIALS.sub(MASK, _TOKEN.sub(MASK, word))))
        is_secret = option and not equals and _NAME.search(name) is not None
    return shown


def masked_line(command: str) -> str:
    """The same of words with blanks between them, as logs have them."""
    return " ".join(masked(command.split(" ")))
