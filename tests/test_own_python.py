"""Settings for the program's Python change nothing of tui-probe, and reach the program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tests
from tests.patience import HANG
from tui_probe.own_python import MEANT_FOR_PROGRAMS, cache_home, cache_problem, own_environment

_COMPILED = shutil.ignore_patterns("__pycache__")
MODULE = "raise SystemExit('this module is the program\\'s')"


def tui_probe(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tui_probe", *options],
        cwd=folder, env=os.environ | variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip


@pytest.mark.parametrize(
    "variables",
    [
        {"PYTHONINSPECT": "1"},
        {"PYTHONWARNINGS": "error"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONPROFILEIMPORTTIME": "1"},
        {"PYTHONPATH": "{folder}/modules"},
        {"PYTHONPATH": "{folder}/modules", "PYTHONSAFEPATH": "1", "PYTHONSTARTUP": "/nowhere", "PYTHONDEVMODE": "1"},
    ],
    ids=lambda variables: "+".join(variables),
)
def test_run_ends_as_the_program_does(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "modules").mkdir()
    for name in ("queue", "argparse", "tomllib", "numpy", "textwrap"):
        (tmp_path / "modules" / f"{name}.py").write_text(MODULE)
    given = {name: value.format(folder=tmp_path) for name, value in variables.items()}
    options = ["run", "-p", "block_sched", "--sim", "--no-report", "--no-ui", "--"]
    options += ["sh", "-c", f"echo ${next(iter(given))}; exit 3"]
    done = tui_probe(tmp_path, *options, **given)
    shown = next(iter(given.values()))
    assert done.returncode == 3, done.stderr
    assert shown in done.stdout
    assert "Traceback" not in done.stderr


def test_own_environment_finds_the_same_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "queue.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONINSPECT", "1")
    program = "import queue, sys, tui_probe; sys.exit(3)"
    done = subprocess.run([sys.executable, "-P", "-c", program], env=own_environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 3


@pytest.mark.parametrize(("variable", "is_in_cache"), [("1", True), ("", False)])
def test_bytecode_is_kept_in_the_cache_if_python_writes_none(tmp_path: Path, variable: str, is_in_cache: bool) -> None:
    """An installation without compiled modules: those of uv, read by a container with PYTHONDONTWRITEBYTECODE."""
    package = tmp_path / "site" / "tui_probe"
    shutil.copytree(Path(tests.__file__).parents[1] / "tui_probe", package, ignore=_COMPILED)
    unset = {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment |= {"PYTHONDONTWRITEBYTECODE": variable, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    program = "from tui_probe.own_python import keep_bytecode; keep_bytecode(); import tui_probe.errors"
    command = [sys.executable, "-S", "-c", program]  # without the finder of an editable installation
    subprocess.run(command, cwd=package.parent, env=environment, check=True, timeout=HANG)
    assert any((tmp_path / "cache").rglob("tui-probe/bytecode/**/errors.*.pyc")) == is_in_cache
    assert any(package.rglob("*.pyc")) == (not is_in_cache)


def test_no_bytecode_is_written_where_files_are_cut_off(tmp_path: Path) -> None:
    """Python renames a file that it could write only in part, and cannot read it afterwards."""
    package = tmp_path / "site" / "tui_probe"
    shutil.copytree(Path(tests.__file__).parents[1] / "tui_probe", package, ignore=_COMPILED)
    unset = {"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    program = "from tui_probe.own_python import keep_bytecode; keep_bytecode(); import tui_probe.ptx.parser"
    command = [sys.executable, "-S", "-B", "-c", f"import sys; sys.dont_write_bytecode = False; {program}"]
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    limited = ["sh", "-c", 'ulimit -S -f 64; "$@"', "sh", *command]
    subprocess.run(limited, cwd=package.parent, env=environment, check=True, timeout=HANG)
    assert not any(package.rglob("ptx/**/*.pyc"))
    subprocess.run(command, cwd=package.parent, env=environment, check=True, timeout=HANG)
    assert any(package.rglob("ptx/**/*.pyc"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tui-probe"


def test_cache_home_is_made_for_its_user_only(cache: Path) -> None:
    before = os.umask(0)
    try:
        assert cache_home() == str(cache)
    finally:
        os.umask(before)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert not cache_problem()


def test_cache_that_all_may_write_to_is_not_used(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    assert cache_home() is None
    assert cache_problem() == f"{cache} is not used: all users may write to the directory"


@pytest.mark.parametrize("is_link", [False, True])
def test_cache_of_another_user_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    """Nor a link that another user made, also to a directory of this user."""
    cache.parent.mkdir()
    if is_link:
        cache.symlink_to(tmp_path)
    else:
        cache.mkdir()
    status, user = os.lstat, os.geteuid()
    monkeypatch.setattr(os, "lstat", lambda path: SimpleNamespace(st_uid=status(path).st_uid + user + 1))
    assert cache_home() is None
    assert "owns the directory and could replace files in it" in cache_problem()


def test_output_encoding_is_followed(tmp_path: Path) -> None:
    shown = tui_probe(tmp_path, "help", "limits", PYTHONIOENCODING="ascii:strict").stdout
    assert shown
    assert shown.isascii()


def test_end_searches_for_no_garbage() -> None:
    """The interpreter looks through all objects at its end, except through frozen ones."""
    script = """
import gc, sys
from tui_probe.entry import main
sys.argv = ["tui-probe", "--version"]
try:
    main()
except SystemExit:
    print(gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count())
"""
    # With a setting that is meant for programs, another Python would take the place of this one.
    environment = {name: value for name, value in os.environ.items() if name not in MEANT_FOR_PROGRAMS}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=HANG)
    assert done.stdout.splitlines()[-1] == "True True"
