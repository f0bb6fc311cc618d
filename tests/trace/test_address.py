"""Words that name a trace, a kernel of it, or a launch."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.errors import ChoiceError, UsageError
from tui_probe.trace.locate import Address, name_test, parse_address

THERE = {"trace", "at:noon", "at:noon/run@3", "run@3"}
_LETTERS = string.ascii_letters + string.digits
PATHS = st.text(_LETTERS + ":@/.", min_size=1).map(lambda text: Path(f"p{text}"))
KERNELS = st.text(_LETTERS + ":.*<>()[]", min_size=1)
LAUNCHES = st.integers(0, 1 << 40)


@pytest.mark.parametrize(
    ("word", "address"),
    [
        ("trace", Address(Path("trace"))),
        ("trace:matmul", Address(Path("trace"), "matmul")),
        ("trace:3@5", Address(Path("trace"), "3", 5)),
        ("trace@5", Address(Path("trace"), None, 5)),
        ("trace:at::native::copy@7", Address(Path("trace"), "at::native::copy", 7)),
        (":matmul", Address(None, "matmul")),
        (":at::native@2", Address(None, "at::native", 2)),
        ("@2", Address(None, None, 2)),
        ("", Address()),
        (":", Address()),
        ("at:noon", Address(Path("at:noon"))),
        ("at:noon:matmul", Address(Path("at:noon"), "matmul")),
        ("at:noon/run@3", Address(Path("at:noon/run@3"))),
        ("run@3@4", Address(Path("run@3"), None, 4)),
        ("gone", Address(Path("gone"))),
        ("gone:at::native", Address(Path("gone"), "at::native")),
        ("gone@5", Address(Path("gone"), None, 5)),
    ],
)
def test_meaning_of_a_word(word: str, address: Address) -> None:
    assert parse_address(word, THERE.__contains__) == address


@given(st.one_of(st.none(), PATHS), st.one_of(st.none(), KERNELS), st.one_of(st.none(), LAUNCHES))
def test_written_address_is_read_back(path: Path | None, kernel: str | None, launch: int | None) -> None:
    address = Address(path, kernel, launch)
    assert parse_address(str(address), {str(path)}.__contains__) == address


@given(st.text(min_size=1))
def test_a_path_that_exists_is_a_path(word: str) -> None:
    assert parse_address(word, lambda _: True) == Address(Path(word))


def test_a_launch_is_a_number() -> None:
    with pytest.raises(UsageError, match="expected the number of a launch after @"):
        parse_address("trace:matmul@last", THERE.__contains__)


def test_options_and_address_agree() -> None:
    address = parse_address("trace:matmul", THERE.__contains__)
    assert address.with_options(None, 3) == Address(Path("trace"), "matmul", 3)
    assert address.with_options("matmul", None) == address
    with pytest.raises(UsageError, match="--kernel saxpy contradicts matmul in trace:matmul"):
        address.with_options("saxpy", None)
    with pytest.raises(UsageError, match="--launch 4 contradicts 0"):
        parse_address("trace@0", THERE.__contains__).with_options(None, 4)


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("tile", ["tiled_gemm", "at::native::tile(int)"]),
        ("gemm:copy", ["tiled_gemm", "copy"]),
        ("native::tile(", ["at::native::tile(int)"]),
        ("regex:^t.*m$", ["tiled_gemm"]),
        ("regex:gemm|copy", ["tiled_gemm", "copy"]),
        ("t.*mm", ["tiled_gemm"]),
        ("[", []),
    ],
)
def test_names_are_selected_by_their_parts_or_by_an_expression(word: str, named: list[str]) -> None:
    assert [name for name in ("tiled_gemm", "copy", "at::native::tile(int)") if name_test(word)(name)] == named


def test_expression_that_is_none_is_refused() -> None:
    with pytest.raises(ChoiceError, match=r"regex:\[: not a regular expression"):
        name_test("regex:[")
