"""The support matrix: its page is made from its results, and records are read from traces."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING, Any

from tests.recorded import SIMULATED
from tests.support import page
from tests.support.catalogue import PROGRAMS, PROGRAMS_FOLDER
from tests.support.matrix import SIMULATED as SIMULATED_GPU
from tests.support.matrix import add_records
from tests.support.running import Machine, Record, count_kernels, run_program, tensor_names

if TYPE_CHECKING:
    from pathlib import Path


def test_page_is_made_from_results() -> None:
    """If this fails: ``python -m tests.support.page``."""
    assert page.PAGE.read_text(encoding="utf-8") == page.markdown(page.read_results())


def test_catalogue_has_each_program() -> None:
    files = {path.name.removesuffix("_case.py") for path in PROGRAMS_FOLDER.glob("*_case.py")}
    assert files == {program.name for program in PROGRAMS}
    for path in PROGRAMS_FOLDER.glob("*.py"):
        compile(path.read_text(encoding="utf-8"), path.name, "exec")


def test_program_without_its_modules_is_not_run(tmp_path: Path) -> None:
    machine = Machine(("/bin/false",), None, tmp_path, 1)
    by_name = {program.name: program for program in PROGRAMS}
    assert run_program(by_name["pytorch"], machine) == Record("pytorch", "not run", "needs a GPU")
    assert run_program(by_name["triton"], machine) == Record("triton", "not run", "/bin/false does not start")


def record_of(outcome: str, hardware: str | None) -> dict[str, Any]:
    return dataclasses.asdict(Record("triton", outcome, hardware=hardware))


def test_simulated_result_replaces_none_of_a_gpu() -> None:
    results: dict[str, Any] = {"programs": {}}
    for outcome, hardware, kept in (
        ("not run", None, None),
        ("unharmed", SIMULATED_GPU, SIMULATED_GPU),
        ("harmed", "H200", "H200"),
        ("unharmed", SIMULATED_GPU, "H200"),
        ("not run", None, "H200"),
        ("unharmed", "B200", "B200"),
    ):
        add_records(results, [record_of(outcome, hardware)])
        assert results["programs"].get("triton", {}).get("hardware") == kept


def test_row_without_a_run_names_what_was_missing() -> None:
    by_name = {program.name: program for program in PROGRAMS}
    cells = {name: page.program_row(by_name[name], None)[2] for name in ("flashinfer", "thunderkittens")}
    assert cells == {
        "flashinfer": "not run: `flashinfer-python` was not installed",
        "thunderkittens": "not run: `THUNDERKITTENS_ROOT` was not set",
    }


def test_unprobed_kernels_have_reasons_and_the_way_of_the_run() -> None:
    records = {
        "pytorch": dataclasses.asdict(Record("pytorch", "unharmed", unprobed={"b": 2, "a": 1})),
        "triton": dataclasses.asdict(Record("triton", "unharmed", unprobed={})),
        "cupy": dataclasses.asdict(Record("cupy", "unharmed", unprobed={"a": 1}, waits=True)),
    }
    assert page.unprobed_rows(records) == [
        ("PyTorch", "1: a; 2: b", "without `--wait`"), ("CuPy", "1: a", "with `--wait`")
    ]  # fmt: skip


def test_page_says_that_all_kernels_have_a_probe_and_which_runs_did_not_wait() -> None:
    records = {
        "triton": dataclasses.asdict(Record("triton", "unharmed", kernels=1, unprobed={})),
        "cupy": dataclasses.asdict(Record("cupy", "unharmed", kernels=4, unprobed={}, waits=True)),
        "cutile": dataclasses.asdict(Record("cutile", "failed")),
    }
    assert page.unprobed_texts(records) == (page.ALL_PROBED, "\nPrograms that ran without `--wait`: Triton.\n")
    records["cupy"]["unprobed"] = {"a": 1}
    assert page.unprobed_texts(records)[0] == page.table(page.UNPROBED_HEAD, page.unprobed_rows(records))


def test_kernels_of_traces_are_counted_by_mode(tmp_path: Path) -> None:
    shutil.copytree(SIMULATED / "gmem_sectors", tmp_path / "first")
    (tmp_path / "first" / "tensor.trace").write_text("[info] x\n[call]  1  (4,)  16  256  name  f  a.py:1\n")
    record = Record("triton", "unharmed")
    count_kernels(record, tmp_path)
    assert (record.kernels, record.ptx, record.sass, record.tensors) == (1, 1, 0, 1)
    assert record.unprobed == {}
    assert tensor_names(tmp_path / "none") == []
