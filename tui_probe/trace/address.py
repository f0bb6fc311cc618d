"""What a person writes for a trace, a kernel of it, or a launch: ``TRACE``, ``TRACE:KERNEL@LAUNCH`` and parts of that.

``:KERNEL`` and ``@LAUNCH`` alone are of the newest trace. A path that exists is a path, whatever colons are in it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tui_probe.errors import ChoiceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


class Named(Protocol):
    """A kernel, as far as an address tells it from others."""

    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def demangled(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Address:
    """``path`` None: the newest trace. ``kernel`` is an index or a regular expression, None for the whole trace.

    ``launch`` is the number of a launch, as the process counts them from 0.
    """

    path: Path | None = None
    kernel: str | None = None
    launch: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it names a trace, and no kernel or launch in it."""
        return self.kernel is None and self.launch is None

    def __str__(self) -> str:
        kernel = f":{self.kernel or ''}" if self.kernel is not None or self.path is None else ""
        launch = "" if self.launch is None else f"@{self.launch}"
        return f"{self.path or ''}{kernel}{launch}"

    def agreed(self, kernel: str | None, launch: int | None) -> Address:
        """The same with what options say. Raises UsageError where both name a kernel or a launch, and not the same."""
        for option, mine, other in (("--kernel", self.kernel, kernel), ("--launch", self.launch, launch)):
            if None not in (mine, other) and mine != other:
                raise UsageError(f"{option} {other} does not agree with {mine} in {self}: leave out one of them")
        return Address(
            self.path,
            self.kernel if kernel is None else kernel,
            self.launch if launch is None else launch,
        )


def parse_address(word: str, exists: Callable[[str], bool] = os.path.exists) -> Address:
    """The address that a word is. Raises UsageError for what follows an ``@`` and is no number.

    Of several colons the one counts that the longest existing path ends at; without any such path the first.
    """
    if word and exists(word):
        return Address(Path(word))
    colons = [place for place, character in enumerate(word) if character == ":"]
    here = next((place for place in reversed(colons) if place and exists(word[:place])), None)
    if colons[:1] == [0] and here is None:
        here = 0
    if here is None:
        path, launch = _without_launch(word)
        if launch is not None and (not colons or exists(path)):
            return Address(Path(path) if path else None, None, launch)
        here = colons[0] if colons else None
    if here is None:
        return Address(Path(word) if word else None)
    kernel, launch = _without_launch(word[here + 1 :])
    if launch is None and "@" in kernel:
        raise UsageError(f"{word}: the number of a launch is expected after the @")
    return Address(Path(word[:here]) if here else None, kernel or None, launch)


_LAUNCH: Final = re.compile(r"(.*)@([0-9]{1,18})", re.DOTALL)


def _without_launch(word: str) -> tuple[str, int | None]:
    """What stands before ``@NUMBER`` at the end, and the number."""
    found = _LAUNCH.fullmatch(word)
    return (found[1], int(found[2])) if found else (word, None)


def means(kernel: str | None) -> Callable[[Named], bool]:
    """Whether a word means a kernel: its index, or a regular expression found in either form of its name; None any.

    Raises ChoiceError for what is no regular expression.
    """
    if kernel is None:
        return lambda _: True
    if kernel.isdecimal():
        return lambda each: each.index == int(kernel)
    try:
        pattern = re.compile(kernel)
    except re.error as error:
        raise ChoiceError(f"{kernel}: {error}; a kernel is named by a regular expression or an index") from error
    return lambda each: bool(pattern.search(each.name) or pattern.search(each.demangled))
