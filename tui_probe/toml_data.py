"""TOML out of files that anybody may have written."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

from tui_probe.input_limits import TOML_KEY

_KEY_PART: Final = r"""(?:[\w-]++|"(?:[^"\\\n]|\\.){0,64}+"|'[^'\n]{0,64}+')[ \t]{0,64}+"""
"""Of quoted parts the short ones: there are few of the others in a file, and a search for their ends costs time."""
_LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:{_KEY_PART}\.[ \t]{{0,64}}+){{{TOML_KEY.most}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """As ``tomllib.loads``. Raises ValueError for all that is not TOML, nests too deep, or has a key of too many parts.

    The time that ``tomllib`` takes for a key grows with the square of its parts.
    """
    if long_key := _LONG_KEY.search(text):
        line = text.count("\n", 0, long_key.start()) + 1
        raise ValueError(f"line {line}: a key with more than {TOML_KEY.most} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
