"""Connections are taken while the engine gets ready, and after errors that pass."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tui_probe.engine.reception import HELLO, Reception, listen_at


class Failing:
    """A listener whose first calls of ``accept`` fail."""

    def __init__(self, listener: socket.socket, errors: list[int]) -> None:
        self._listener = listener
        self._errors = errors

    def accept(self) -> object:
        if self._errors:
            number = self._errors.pop(0)
            raise OSError(number, os.strerror(number))
        return self._listener.accept()

    def __getattr__(self, name: str) -> object:
        return getattr(self._listener, name)


@contextmanager
def reception(path: Path, *errors: int) -> Iterator[tuple[Reception, socket.socket]]:
    """One that takes connections, and a hook that is connected."""
    taking = Reception(Failing(listen_at(path), list(errors)))  # type: ignore[arg-type]
    taking.start()
    try:
        with socket.socket(socket.AF_UNIX) as hook:
            hook.settimeout(30)
            hook.connect(str(path))
            yield taking, hook
    finally:
        taking.stop()


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ECONNABORTED])
def test_reception_goes_on_after_passing_errors(tmp_path: Path, error: int) -> None:
    with reception(tmp_path / "engine", error, error) as (_, hook):
        hook.sendall(b"hello\t1\t1\n")
        assert hook.recv(100) == HELLO.encode()


def test_first_message_is_answered_before_requests_can_be(tmp_path: Path) -> None:
    with reception(tmp_path / "engine") as (taking, hook):
        hook.sendall(b"hello\t1\t1\nprepare\t7\n")
        assert hook.recv(100) == HELLO.encode()
        taking.open(lambda line: iter([f"got {line.decode()}"]))
        assert hook.recv(100) == b"got prepare\t7\n"
