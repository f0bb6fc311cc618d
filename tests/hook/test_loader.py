"""Under which names and paths a program that loads the driver itself finds the hook, and the outcome of the others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import HERE, Host, Run, compile_c


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("opening") / "opening_program"
    compile_c(HERE / "opening_program.c", path, "-fPIE", "-pie")
    return path


@pytest.fixture
def other_driver(host: Host) -> Path:
    """A driver that is not the one the hook calls."""
    (host.directory / "other").mkdir()
    return Path(shutil.copy(host.built.stub, host.directory / "other" / "libcuda.so.1"))


@pytest.fixture
def unseen(host: Host) -> Path:
    return host.directory / "adjacent"


def opened(host: Host, program: Path, way: str, name: str | Path, **more: str) -> Run:
    path = str(host.directory / "adjacent")
    return host.command(str(program), way, str(name), TUI_PROBE_BESIDE=path, **more)


PRELOADED = {"LD_AUDIT": ""}


@pytest.mark.parametrize(
    ("way", "loading"),
    [("plain", {}), ("direct", {}), ("new", {}), ("plain", PRELOADED), ("present", PRELOADED)],
    ids=["plain", "direct", "new", "preload-plain", "preload-present"],
)
@pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1", "libcuda.so.580.95.05", "{driver}", "{link}", "{hook}"])
def test_every_name_of_the_driver_leads_to_the_hook(
    host: Host, program: Path, unseen: Path, way: str, loading: dict[str, str], name: str
) -> None:
    if way == "new" and name.startswith("{"):
        pytest.skip("the loader asks no one about a path in a new list")
    link = host.directory / "libcuda.so"
    link.symlink_to(host.built.stub)
    run = opened(host, program, way, name.format(driver=host.built.stub, link=link, hook=host.built.hook), **loading)
    assert (run.status, os.path.normpath(run.stdout)) == (0, f"{host.built.hook}\n"), run.stderr
    assert len(run.results) == 1
    assert not unseen.exists()


def test_audited_driver_is_absent_until_it_is_opened(host: Host, program: Path) -> None:
    run = opened(host, program, "present", host.built.stub)
    assert (run.status, run.stdout, run.directories) == (3, "-\n", []), run.stderr


@pytest.mark.parametrize("name", ["libcuda.so.x", "libcuda.something", "libcudas.so", "/nowhere/libcuda.so.1"])
def test_other_names_are_left_to_the_loader(host: Host, program: Path, name: str) -> None:
    run = opened(host, program, "plain", name)
    assert (run.status, run.stdout, run.directories) == (3, "-\n", [])


def test_a_simulated_driver_stands_at_any_path(host: Host, program: Path) -> None:
    run = opened(host, program, "plain", "/usr/lib/nowhere/libcuda.so.1", TUI_PROBE_SIM_PYTHON=sys.executable)
    assert (run.status, run.stdout) == (0, f"{host.built.hook}\n"), run.stderr


@pytest.mark.parametrize("loading", [{}, PRELOADED], ids=["audit", "preload"])
def test_other_driver_is_opened_as_requested_and_reported(
    host: Host, program: Path, other_driver: Path, unseen: Path, loading: dict[str, str]
) -> None:
    run = opened(host, program, "plain", other_driver, **loading)
    assert (run.status, run.stdout, run.directories) == (0, f"{other_driver}\n", []), run.stderr
    pid, path = unseen.read_text().split()
    assert (pid.isdecimal(), path) == (True, str(other_driver))


@pytest.mark.parametrize(
    ("way", "loading"), [("new", {}), ("new", PRELOADED), ("direct", PRELOADED)], ids=["audit", "new", "direct"]
)
def test_driver_that_cannot_be_replaced_is_reported(
    host: Host, program: Path, unseen: Path, way: str, loading: dict[str, str]
) -> None:
    run = opened(host, program, way, host.built.stub, **loading)
    assert (run.status, run.stdout, run.directories) == (0, f"{host.built.stub}\n", []), run.stderr
    assert unseen.read_text().split()[1:] == [str(host.built.stub)]


@pytest.mark.parametrize("name", ["libcuda.so", "libcuda.so.1"])
def test_in_another_list_of_libraries_the_search_path_leads_to_a_hook(
    host: Host, program: Path, unseen: Path, name: str
) -> None:
    """As installed: libcuda.so is a library of its own, which needs the hook."""
    installed = host.directory / "installed"
    installed.mkdir()
    folder = host.built.hook.parent
    for library in (host.built.hook, folder / "libtui-probe-driver.so", folder.parent / "by_name" / "libcuda.so"):
        shutil.copy(library, installed)
    hook = installed / "libcuda.so.1"
    run = opened(host, program, "new", name, LD_PRELOAD=str(hook), LD_LIBRARY_PATH=str(installed), **PRELOADED)
    assert (run.status, run.stdout) == (0, f"{hook}\n"), run.stderr
    assert len(run.results) == 1
    assert not unseen.exists(), "it is called by a hook"


def test_loader_learns_the_caller(host: Host) -> None:
    """A library finds what is in its own RUNPATH, which the loader knows by the address that dlopen returns to."""
    inner = host.directory / "inner"
    inner.mkdir()
    shutil.copy(host.built.stub, inner / "libneighbour.so")
    outer = host.directory / "libouter.so"
    compile_c(HERE / "opening_program.c", outer, "-shared", "-Wl,-rpath,$ORIGIN/inner", "-Wl,--enable-new-dtags")
    script = f"import ctypes; print(bool(ctypes.CDLL({str(outer)!r}).open_here(b'libneighbour.so', 2)))"
    run = host.command(sys.executable, "-c", script)
    assert run.stdout == "True\n", run.stderr


def test_build_tools_find_the_driver_by_its_short_name(host: Host) -> None:
    if shutil.which("ld") is None or shutil.which("objdump") is None:
        pytest.skip("ctypes.util looks with ld and objdump")
    script = "import ctypes.util; print(ctypes.util.find_library('cuda'))"
    run = host.command(sys.executable, "-c", script, LD_LIBRARY_PATH=str(host.built.hook.parents[1] / "by_name"))
    assert run.stdout in ("libcuda.so\n", "libcuda.so.1\n"), run.stderr


def test_the_library_of_the_short_name_is_only_a_name(host: Host) -> None:
    by_name = host.built.hook.parents[1] / "by_name" / "libcuda.so"
    shown = subprocess.run(["readelf", "-d", by_name], capture_output=True, text=True, check=True).stdout
    assert "Shared library: [libcuda.so.1]" in shown
    assert "soname: [libcuda.so]" in shown
