"""A machine that has too little of something for us, and enough for the program."""

from __future__ import annotations

import os
import resource
import signal
from typing import TYPE_CHECKING, Final, NoReturn

from tui_probe.errors import TargetError

from .driver import find_driver
from .environment import driver_choices
from .target import NOT_EXECUTABLE, NOT_FOUND

if TYPE_CHECKING:
    from .options import RunOptions

OWN_DESCRIPTORS: Final = 4096
"""Descriptors for streams, logs and traces of many processes: the usual limit of 1024 may be too low."""


def take_room() -> tuple[int, int]:
    """Raise our own limit of descriptors as high as we may. Returns what it was, which the target is to
    have.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OWN_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, OWN_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return soft, hard


def give_back(limits: tuple[int, int]) -> None:
    """Set the limit of descriptors again; in a new process, or before this one becomes the program."""
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def become_program(options: RunOptions, limits: tuple[int, int]) -> NoReturn:
    """Run the command instead of this process, without the hook. Raises TargetError if it cannot be executed."""
    command = options.command
    if options.simulated:
        find_simulated_driver(options)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    give_back(limits)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        raise TargetError(f"{command[0]}: {error.strerror}", status) from error


def find_simulated_driver(options: RunOptions) -> None:
    """Set the environment so that the loader finds the simulated driver, which the hook would load otherwise."""
    driver = find_driver(None, True, os.environ)
    folders = [str(driver.path.parent), os.environ.get("LD_LIBRARY_PATH")]
    os.environ["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
    os.environ.update(driver_choices(driver, options))
