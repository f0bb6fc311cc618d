"""Launch schedule: the rule in C compared with the same rule in Python, for random programs."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.turns import examples

from .conftest import Build
from .object_files import compile_with_hook

HERE = Path(__file__).resolve().parent
WORD = (1 << 64) - 1
SHAPES = 16

Shape = tuple[int, ...]
"""Grid, block, dynamic shared memory, cluster: ten numbers."""
Row = tuple[int, int, Shape]
"""Number of launches in a row, with kernel and shape."""


@pytest.fixture(scope="module")
def program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(built, tmp_path_factory.mktemp("schedule"), "address,undefined")


@pytest.fixture(scope="module")
def threaded_program(built: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(built, tmp_path_factory.mktemp("schedule"), "thread")


def compiled(built: Build, folder: Path, sanitizer: str) -> Path:
    program = HERE / "schedule_program.c"
    compile_with_hook(built, program, folder / "schedule", "-g", "-O1", f"-fsanitize={sanitizer}")
    return folder / "schedule"


def ask(program: Path, rows: list[Row], *, heavy: bool = False, threads: int = 1) -> list[tuple[int, ...]]:
    """Return the decisions of the hook's own code for these launches."""
    return [tuple(map(int, line.split())) for line in answers(program, rows, heavy=heavy, threads=threads)]


def answers(program: Path, rows: list[Row], *, heavy: bool = False, threads: int = 1) -> list[str]:
    """The same as lines of text: 0 or 1 after the number of the key."""
    lines = [f"{int(heavy)} {threads}"] + [" ".join(map(str, (count, kernel, *shape))) for count, kernel, shape in rows]
    # the sanitizer looks for leaks with ptrace, which is not allowed everywhere, and keys are kept for good
    run = subprocess.run(
        [program], input="\n".join(lines), capture_output=True, text=True, env={"ASAN_OPTIONS": "detect_leaks=0"},
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def scatter(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & WORD
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) & WORD
    return value ^ value >> 31


def seed_of(name: str, place: int) -> int:
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & WORD
    return (seed + place) & WORD


@dataclass
class Key:
    id: int
    seed: int
    launches: int = 0
    next: int = 0
    extras: int = 0

    def again(self) -> None:
        """A launch had no room for its records: the next is due, for two such launches."""
        if self.extras < 2:
            self.next = 0
        self.extras += 1

    def launch(self, divisor: int) -> bool:
        """Count a launch; whether it is probed."""
        n, self.launches = self.launches, self.launches + 1
        if n < self.next:
            return False
        step = 1 + n // divisor
        self.next = n + step + scatter(self.seed ^ n) % step
        return True


@dataclass
class Schedule:
    """The rule in Python."""

    divisor: int
    shapes: dict[tuple[int, Shape], Key] = field(default_factory=dict)
    orders: dict[tuple[int, int], Key] = field(default_factory=dict)

    def key(self, kernel: int, shape: Shape) -> Key:
        if (kernel, shape) in self.shapes:
            return self.shapes[kernel, shape]
        known, number = sum(each == kernel for each, _ in self.shapes), len(self.shapes) + len(self.orders)
        if known < SHAPES:
            return self.shapes.setdefault((kernel, shape), Key(number, seed_of(f"kernel_{kernel}", known)))
        order = max(prod(shape[:3]).bit_length() - 1, 0)
        return self.orders.setdefault((kernel, order), Key(number, seed_of(f"kernel_{kernel}", SHAPES + order)))

    def launches(self, rows: list[Row]) -> list[tuple[int, bool]]:
        choices = []
        for count, kernel, shape in rows:
            key = self.key(kernel, shape)
            if not count:
                key.again()
            choices += [(key.id, key.launch(self.divisor)) for _ in range(count)]
        return choices


SIZES = st.sampled_from([1, 2, 3, 7, 64, 100, 5000])
SHAPE = st.tuples(
    *[SIZES] * 3,
    *[st.sampled_from([1, 32])] * 3,
    st.sampled_from([0, 1024]),
    st.sampled_from([0, 2]),
    *[st.just(1)] * 2,
).map(lambda shape: shape if shape[7] else (*shape[:7], 0, 0, 0))
ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3), SHAPE), max_size=60)
SOME = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SOME
@given(rows=ROWS, heavy=st.booleans())
def test_rule_is_the_same_in_both_languages(program: Path, rows: list[Row], heavy: bool) -> None:
    """It probes the first launch of each key."""
    choices = ask(program, rows, heavy=heavy)
    assert choices == Schedule(1 if heavy else 8).launches(rows)
    seen: set[int] = set()
    for key, probed in choices:
        assert probed or key in seen
        seen.add(key)


ONE = (64, 1, 1, 128, 1, 1, 0, 0, 0, 0)


def probed_launches(program: Path, kernel: int, count: int, *, heavy: bool) -> list[int]:
    lines = answers(program, [(count, kernel, ONE)], heavy=heavy)
    assert len(lines) == count
    return [n for n, line in enumerate(lines) if line.endswith(" 1")]


@pytest.mark.parametrize(("heavy", "most"), [(False, 130), (True, 21)])
def test_few_of_very_many_are_probed_at_growing_distances(program: Path, heavy: bool, most: int) -> None:
    """A step is 1 + n/d, and less than twice that with its jitter: there are log(n) / log(1 + 1/d) of them at most."""
    divisor = 1 if heavy else 8
    for kernel in range(4):
        turns = probed_launches(program, kernel, 1_000_000, heavy=heavy)
        assert turns[0] == 0
        assert 10 <= len(turns) <= most
        for n, following in pairwise(turns):
            assert 1 + n // divisor <= following - n < 2 * (1 + n // divisor)


def test_two_kernels_are_not_probed_at_the_same_launches(program: Path) -> None:
    one, two = (probed_launches(program, kernel, 10_000, heavy=False) for kernel in (0, 1))
    assert one[:8] == two[:8] == list(range(8))
    assert one != two


def test_shapes_beyond_the_most_share_keys_by_their_number_of_blocks(program: Path) -> None:
    rows = [(1, 0, (blocks, *ONE[1:])) for blocks in range(1, 17)]
    assert [key for key, _ in ask(program, rows)] == list(range(SHAPES))
    more = [(1, 0, (blocks, *ONE[1:])) for blocks in (100, 127, 128, 64, 16)]
    assert [key for key, _ in ask(program, rows + more)][SHAPES:] == [16, 16, 17, 16, 15]


@pytest.mark.parametrize("heavy", [False, True])
def test_threads_lose_no_launch_and_share_the_turns(threaded_program: Path, heavy: bool) -> None:
    rows = [(700, kernel, (blocks, *ONE[1:])) for blocks in range(1, 25) for kernel in (0, 1)]
    keys = ask(threaded_program, rows, heavy=heavy, threads=6)
    assert sum(launches for _, launches, _ in keys) == 6 * 700 * 48
    assert sorted(key for key, *_ in keys) == list(range(len(keys)))
    assert len(keys) == 2 * (SHAPES + 1)
    for _, launches, probed in keys:
        assert 0 < probed <= (20 if heavy else 90), launches
