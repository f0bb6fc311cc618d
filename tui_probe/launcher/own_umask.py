"""The umask of this process and that of the program: files of ours are usable by us whatever the user's umask is."""

from __future__ import annotations

import os
from typing import Final

_OWNER: Final = 0o700
_given: list[int] = []


def keep_owner_access() -> None:
    """Take the owner's bits out of the umask of this process, once."""
    if not _given:
        before = os.umask(0o077)
        os.umask(before & ~_OWNER)
        _given.append(before)


def umask_of_program() -> int | None:
    """The umask that programs get: the user's. None where ours was not changed."""
    return _given[0] if _given else None
