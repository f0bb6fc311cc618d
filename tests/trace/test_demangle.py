from __future__ import annotations

from collections.abc import Iterator

import pytest

from tui_probe.trace import kernel_status as module
from tui_probe.trace.kernel_status import demangle

MATMUL = "_Z6matmulILi16EEvPKfS1_Pfi"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    demangle.cache_clear()
    yield
    demangle.cache_clear()


def test_cpp_names_are_read() -> None:
    assert demangle(MATMUL) == "void matmul<16>(float const*, float const*, float*, int)"


@pytest.mark.parametrize("name", ["saxpy", "", "_Z", "_Znonsense", "_Z1f\\xe9", "_Z" + "P" * 100_000])
def test_other_names_stay_as_they_are(name: str) -> None:
    assert demangle(name) == name


def test_without_a_cpp_runtime_names_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_runtime", lambda: None)
    assert demangle(MATMUL) == MATMUL
