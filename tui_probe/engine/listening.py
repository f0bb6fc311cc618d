"""The engine's socket, which may be there before the engine is: hooks connect, and are answered once it is up."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from tui_probe.errors import LaunchError

if TYPE_CHECKING:
    from pathlib import Path


def listen_at(path: Path) -> socket.socket:
    """A socket that takes connections as soon as ``path`` exists. Raises LaunchError if it cannot be made there."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    unready = path.with_name(f".{path.name[:20]}.{os.getpid()}")
    try:
        listener.bind(str(unready))
        listener.listen(socket.SOMAXCONN)
        unready.rename(path)
    except OSError as error:
        listener.close()
        raise LaunchError(f"{path}: the engine's socket cannot be made: {error.strerror or error}") from error
    return listener
