"""A quick form of the attack on all parsers; the long one is ``python -m tests.attack.parsers``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.mutations import mutated
from tests.attack.parsers import Reader, attack, main, shares
from tests.attack.readers import READERS
from tui_probe.errors import TraceError

COUNT = shares(2500, READERS)


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_only_errors_of_ours_come_out(reader: Reader, tmp_path: Path) -> None:
    tally = attack(reader, tmp_path, range(COUNT[reader.name]))
    assert tally.failures == {}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_file_that_is_whole_is_read(reader: Reader, tmp_path: Path) -> None:
    """Else mutations would never get behind the first check."""
    seeds = reader.seeds()
    assert seeds
    for seed in seeds[:2]:
        reader.read(seed, tmp_path)


def test_foreign_exception_is_reported(tmp_path: Path) -> None:
    def read(data: bytes, _: Path) -> None:
        if not data:
            raise TraceError("nothing in it")
        if data[0] == ord("b"):
            raise IndexError("list index out of range")

    tally = attack(Reader("own", lambda: [b"a", b"b"], read), tmp_path, range(60), keep=tmp_path)
    assert tally.inputs == 60
    (failure,) = tally.failures.values()
    number = failure.split()[1].rstrip(":")
    assert (tmp_path / f"own-{number}").read_bytes().startswith(b"b")


def test_an_input_can_be_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--inputs", "3", "--only", "addresses", "--first", "7"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["addresses", "3"]


def test_mutations_change_most_inputs() -> None:
    import random

    made = [mutated(random.Random(number), [b'{"a": 12, "b": [1, 2, 3]}\n']) for number in range(200)]
    assert len(set(made)) > 120
