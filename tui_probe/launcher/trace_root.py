"""Which folders traces may be made in: none in which somebody else could put links in the place of our files."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from pathlib import Path

_ELSEWHERE = "name a folder of your own with --tracedir"


def look_at_root(root: Path) -> None:
    """LaunchError if another user than root owns the folder, or all may take our files out of it.

    One that does not exist will be ours. In a folder such as ``/tmp``, open to all but with the sticky bit, nobody
    takes away what others have made.
    """
    try:
        found = root.stat()
    except OSError:
        return
    if problem := problem_of(found, os.geteuid()):
        raise LaunchError(f"{root}: {problem}: {_ELSEWHERE}")


def problem_of(found: os.stat_result, user: int) -> str | None:
    """Why ``user`` should make no traces in a folder; None if nothing speaks against it."""
    if found.st_uid not in (user, 0):
        return f"user {found.st_uid} owns the folder, and could put links in the place of your files"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return "all users may write to the folder, and could put links in the place of your files"
    return None
