"""A third of the programs of a library that is small to install, or ``--in-full`` all of two such libraries, as
``python -m tests.real_programs.run`` runs those of all.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.real_programs.run import Outcome, main, run_suite
from tests.real_programs.suites import SUITES, build_variables, environment_of
from tests.turns import due, is_due

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_programs.suites import Suite

PROBE = "gmem_sectors"


SMALL = ("drjit", "tinygrad")


@pytest.mark.parametrize("name", due(SMALL))
def test_programs_are_right_with_a_probe(tmp_path: Path, name: str) -> None:
    suite = next(suite for suite in SUITES if suite.name == name)
    try:
        python = environment_of(suite, tmp_path)
    except subprocess.CalledProcessError:
        pytest.skip(f"pip cannot install {', '.join(suite.requirements)} here")
    # a library has every second turn: to assemble the kernels of all its programs takes 11 s of CPU
    cases = [case for number, case in enumerate(suite.cases()) if is_due(len(SMALL) * number + SMALL.index(name))]
    outcome = run_suite(suite, python, "sm_80", PROBE, tmp_path, cases)
    assert (outcome.right, outcome.wrong) == (cases, [])
    # one kernel calls functions of a table, whose addresses are not the probed ones
    assert (outcome.probed or 0) >= outcome.kernels - 1


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_each_suite_has_cases_and_versions_for_pip(suite: Suite) -> None:
    assert suite.cases()
    assert all("==" in line for line in suite.requirements)


def test_pycuda_is_linked_with_a_library_that_has_the_drivers_functions(tmp_path: Path) -> None:
    (suite,) = (suite for suite in SUITES if suite.name == "pycuda")
    (tmp_path / "main.c").write_text("int cuInit(unsigned); int main(void) { return cuInit(0); }")
    flags = build_variables(suite, tmp_path)["LDFLAGS"]
    done = subprocess.run(["cc", "main.c", flags, "-lcuda", "-o", "main"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    needed = subprocess.run(["readelf", "-d", "main"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "[libcuda.so.1]" in needed


def outcome(right: list[str], wrong: list[str], probed: int | None) -> Outcome:
    return Outcome("drjit", {"drjit": "1.5.0"}, "sm_80", PROBE if probed is not None else None, right, wrong, 3, probed)


def test_rows_of_the_table() -> None:
    assert outcome(["a", "b"], [], None).row() == "| drjit 1.5.0 | sm_80 | – | 2 of 2 | – | – |"
    assert outcome(["a"], ["b"], 2).row() == "| drjit 1.5.0 | sm_80 | gmem_sectors | 1 of 2 | 2 of 3 | b |"


@pytest.mark.parametrize(
    ("given", "is_right"),
    [((["a"], [], None), True), ((["a"], ["b"], None), False), (([], [], None), False), ((["a"], [], 0), False)],
)
def test_correctness_criteria(given: tuple[list[str], list[str], int | None], is_right: bool) -> None:
    assert outcome(*given).is_right == is_right


def test_the_status_tells_of_a_wrong_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for wrong, status in (([], 0), (["b"], 1)):
        monkeypatch.setattr("tests.real_programs.run.outcomes", lambda *_, wrong=wrong: [outcome(["a"], wrong, None)])
        monkeypatch.setattr("sys.argv", ["run", "--folder", str(tmp_path), "--json"])
        assert main() == status
        assert '"right": [' in capsys.readouterr().out
