"""Choice of the driver of a run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT
from tui_probe.errors import LaunchError, NoDriverError
from tui_probe.launcher import driver
from tui_probe.launcher.driver import Driver, find_driver, native_library, outdated_build, package_path

from .conftest import compile_library


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, fake_native: Path) -> None:
    """A machine without a driver in the usual places, and our own libraries."""
    monkeypatch.setattr(driver, "USUAL_FOLDERS", ())
    monkeypatch.setattr(driver, "loader_cache", list)
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(fake_native))


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """A driver that is not ours."""
    compile_library("int cuInit(unsigned flags) { return (int)flags; }", tmp_path / "real" / "libcuda.so.1")
    return tmp_path / "real" / "libcuda.so.1"


def test_the_simulated_driver_on_request(fake_native: Path) -> None:
    assert find_driver(None, True, {}) == Driver(fake_native / "sim" / "libcuda.so.1", simulated=True)


def test_no_driver_says_what_to_do() -> None:
    with pytest.raises(NoDriverError, match=r"install the driver.*--driver PATH.*--sim"):
        find_driver(None, False, {})


def test_the_loaders_path_comes_before_its_cache(real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "loader_cache", lambda: [Path("/elsewhere/libcuda.so.1"), real])
    assert find_driver(None, False, {}) == Driver(real, simulated=False)
    compile_library("int first;", tmp_path / "first" / "libcuda.so.1")
    first = find_driver(None, False, {"LD_LIBRARY_PATH": f"{tmp_path}/none::{tmp_path}/first"})
    assert first.path == tmp_path / "first" / "libcuda.so.1"


def test_our_own_libraries_are_not_taken_for_a_driver(fake_native: Path) -> None:
    folders = f"{fake_native}/hook:{fake_native}/sim"
    with pytest.raises(NoDriverError):
        find_driver(None, False, {"LD_LIBRARY_PATH": folders})


def test_a_library_for_another_machine_is_passed_over(real: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign" / "libcuda.so.1"
    foreign.parent.mkdir()
    data = bytearray(real.read_bytes())
    data[4] = 1  # 32 bits
    foreign.write_bytes(data)
    assert find_driver(None, False, {"LD_LIBRARY_PATH": f"{foreign.parent}:{real.parent}"}).path == real


def test_a_named_driver_is_taken_as_it_is(real: Path, fake_native: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(real.parent)
    assert find_driver(Path("libcuda.so.1"), False, {}) == Driver(real, simulated=False)
    assert find_driver(fake_native / "sim" / "libcuda.so.1", False, {}).simulated


def test_a_named_driver_that_cannot_be_one(fake_native: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no library")
    for path, words in ((text, "not a shared library"), (tmp_path / "none", "not a shared library"),
                        (fake_native / "hook" / "libcuda.so.1", "this is the hook of tui-probe")):  # fmt: skip
        with pytest.raises(LaunchError, match=words):
            find_driver(path, False, {})


def test_a_missing_native_library_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(tmp_path))
    with pytest.raises(LaunchError, match=r"the hook driver is missing; .*cmake"):
        native_library("hook")
    monkeypatch.delenv("TUI_PROBE_NATIVE")
    (tmp_path / "_native").mkdir()
    monkeypatch.setattr("tui_probe.__path__", [str(tmp_path)])
    with pytest.raises(LaunchError, match=r"the simulated driver is missing; .*pip install \."):
        native_library("sim")


def test_editable_install_reports_a_build_from_other_sources(
    natives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, native = tmp_path / "checkout", tmp_path / "site" / "tui_probe" / "_native"
    shutil.copytree(ROOT / "hook", checkout / "hook")
    (checkout / "tui_probe" / "reasons").mkdir(parents=True)
    shutil.copy(ROOT / "tui_probe" / "reasons" / "reasons.def", checkout / "tui_probe" / "reasons")
    native.mkdir(parents=True)
    record = Path(shutil.copy(natives / "sources.sha256", native))
    monkeypatch.delenv("TUI_PROBE_NATIVE", raising=False)
    monkeypatch.setattr("tui_probe.__path__", [str(native.parent), str(checkout / "tui_probe")])
    os.utime(record, (1, 1))
    assert outdated_build() is None, "newer files with the same content"
    with (checkout / "hook" / "src" / "log" / "reasons.h").open("a") as source:
        source.write("/* changed */")
    expected = (f"the hook driver was not built from the current sources in {checkout}/hook",
                f"rebuild it: pip install -e {checkout}")  # fmt: skip
    assert outdated_build() == expected
    os.utime(record)
    assert outdated_build() is None, "no source is newer than the build"
    record.unlink()
    assert outdated_build() == expected, "a build of a time without the record"
    monkeypatch.setattr("tui_probe.__path__", [str(native.parent)])
    assert outdated_build() is None, "an install that is not editable"


def test_package_path_lets_fresh_python_import_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both places of an editable install, and not the folder around the checkout, where anything may lie."""
    monkeypatch.setattr("tui_probe.__path__", ["/site/tui_probe", "/home/me/checkout", "/home/me/checkout/tui_probe"])
    assert package_path() == "/site:/home/me/checkout"
