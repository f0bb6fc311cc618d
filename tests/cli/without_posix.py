"""Runs commands of tui-probe in a Python that lacks what Windows lacks, each given as an argument; prints statuses.

The standard library and other packages are imported before: on Windows they have other code in these places.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.metadata
import mmap
import multiprocessing
import os
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, Final

import numpy as np
import textual.app

IMPORTED: Final = (asyncio, concurrent.futures, importlib.metadata, mmap, multiprocessing, shutil, sqlite3, tempfile)
IMPORTED_TOO: Final = (np, textual.app, subprocess)
MODULES: Final = ("curses", "fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
CALLS: Final = (
    "MFD_CLOEXEC", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "geteuid", "getpgid",
    "getuid", "killpg", "memfd_create", "mkfifo", "posix_fadvise", "pread", "preadv", "register_at_fork",
    "sched_getaffinity", "setsid", "statvfs", "sysconf", "uname",
)  # fmt: skip
SIGNALS: Final = (
    "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGUSR1",
    "SIGWINCH", "pthread_sigmask", "setitimer", "sigtimedwait", "sigwait",
)  # fmt: skip


class Missing(MetaPathFinder):
    """Finds none of ``MODULES``."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        if fullname in MODULES:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def hide() -> None:
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing())
    for module, names in ((os, CALLS), (signal, SIGNALS), (socket, ("AF_UNIX",))):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def main() -> None:
    commands = sys.argv[1:]
    hide()
    from tui_probe.cli.main import main as run

    for command in commands:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
            status = run(shlex.split(command))
        sys.stdout.write(f"{status} {command.split()[0]}\n")


if __name__ == "__main__":
    main()
