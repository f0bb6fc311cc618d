"""How the path at the end of a command line may go on. Reads the folder that it names."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

MOST: Final = 20_000
"""Entries of a folder that are looked at."""
_SPECIAL: Final = re.compile(r"([^\w@%+=:,./-])")


@dataclass(frozen=True, slots=True)
class Completion:
    """Of a ``text`` what certainly follows (``rest``, as a shell reads it), and the ``names`` that it may become."""

    text: str = ""
    rest: str = ""
    names: tuple[str, ...] = ()


def completion(text: str) -> Completion:
    """Of the last word, which ends the text; nothing where that names no path, or begins with a quote that is open."""
    try:
        words = shlex.split(text)
    except ValueError:
        return Completion(text)
    if not words or text[-1:].isspace() or not words[-1]:
        return Completion(text)
    folder, _, begun = os.path.expanduser(words[-1]).rpartition("/")  # noqa: PTH111 - never raises
    names = _names(Path(f"{folder}/" if "/" in words[-1] else "."), begun)
    common = os.path.commonprefix(names)  # noqa: RUF071 - of names, by letters
    return Completion(text, _SPECIAL.sub(r"\\\1", common[len(begun) :]), names)


def _names(folder: Path, begun: str) -> tuple[str, ...]:
    """The entries that begin so, folders with a slash; hidden ones only where a dot was typed."""
    try:
        with os.scandir(folder) as entries:
            found = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in islice(entries, MOST)
                if entry.name.startswith(begun) and (begun or not entry.name.startswith("."))
            ]
    except OSError:
        return ()
    return tuple(sorted(found))
