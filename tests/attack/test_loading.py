"""The hook is where the driver would be: for programs that other ways of loading break or miss."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attack.conftest import HERE
from tests.hook.conftest import Build, Host, Run, compile_c

LOADING = HERE / "loading"


def compiled(host: Host, name: str, *flags: str, output: str = "program") -> str:
    path = host.directory / output
    compile_c(LOADING / f"{name}.c", path, *flags)
    return str(path)


def sanitizer_flags(host: Host, flags: str) -> list[str]:
    probe = subprocess.run(
        ["cc", "-x", "c", "-", *flags.split(), "-o", host.directory / "empty"], input="int main(void) { return 0; }",
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    if probe.returncode or subprocess.run([host.directory / "empty"], check=False).returncode:
        pytest.skip(f"no working {flags}")
    return flags.split()


def check_launch(run: Run) -> None:
    assert (run.status, run.stdout, run.stderr) == (0, "launched\n", "")
    assert len(run.results) == 1


def test_variables_named_like_driver_functions_are_the_librarys_own(host: Host) -> None:
    compiled(host, "own_variables", "-shared", "-Wl,-Bno-symbolic", output="libown.so")
    path = [f"-L{host.directory}", "-lown", f"-Wl,-rpath,{host.directory}"]
    run = host.command(compiled(host, "counts", *path))
    assert (run.status, run.stdout, run.stderr) == (0, "1 devices\n", "")


def test_functions_named_like_the_drivers_are_called_and_reach_the_hook(host: Host) -> None:
    compiled(host, "own_functions", "-shared", output="libown.so")
    path = [f"-L{host.directory}", "-lown", f"-Wl,-rpath,{host.directory}"]
    run = host.command(compiled(host, "linked", *path))
    assert (run.status, run.stdout, run.stderr) == (0, "launched\n6 calls passed on\n", "")
    assert len(run.results) == 1


@pytest.mark.parametrize("tags", ["--disable-new-dtags", "--enable-new-dtags"])
def test_run_paths_to_the_driver_lead_to_the_hook(host: Host, built: Build, tags: str) -> None:
    check_launch(host.command(compiled(host, "linked", str(built.stub), f"-Wl,-rpath,{built.stub.parent},{tags}")))


NO_LEAK_CHECK = {"ASAN_OPTIONS": "detect_leaks=0", "LSAN_OPTIONS": "detect_leaks=0"}
"""The stub driver leaks, and a leak check fails on thread-local memory of libraries that are loaded late."""

SANITIZERS = [
    "-fsanitize=address",
    "-fsanitize=address -static-libasan",
    "-fsanitize=address,undefined",
    "-fsanitize=undefined",
    "-fsanitize=leak",
    "-fsanitize=thread",
    "-fsanitize=thread -static-libtsan",
]


@pytest.mark.parametrize("flags", SANITIZERS)
def test_sanitized_program_runs_and_is_seen(host: Host, built: Build, flags: str) -> None:
    program = compiled(host, "linked", str(built.stub), *sanitizer_flags(host, flags))
    check_launch(host.command("/bin/sh", "-c", f"{program}; exit $?", **NO_LEAK_CHECK))


def test_preloaded_sanitizer_comes_first(host: Host) -> None:
    sanitizer_flags(host, "-fsanitize=address")
    compiler = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    library = Path(compiler.stdout.strip()).resolve()
    run = host.command(sys.executable, "-c", "print('up')", LD_PRELOAD=f"{library}:{host.built.hook}", **NO_LEAK_CHECK)
    assert (run.status, run.stdout, run.stderr) == (0, "up\n", "")


def test_large_static_tls_falls_back_to_preloading(host: Host, built: Build) -> None:
    compiled(host, "large_tls", "-shared", output="liblarge.so")
    path = ["-Wl,--no-as-needed", f"-L{host.directory}", "-llarge", f"-Wl,-rpath,{host.directory}"]
    check_launch(host.command(compiled(host, "linked", str(built.stub), *path)))


@pytest.mark.parametrize("flags", ["-DLINKED", ""])
def test_driver_names_newer_than_the_list_are_found(host: Host, flags: str) -> None:
    driver = host.directory / "newer" / "libcuda.so.1"
    driver.parent.mkdir()
    compile_c(LOADING / "newer_driver.c", driver, "-shared", "-Wl,-soname,libcuda.so.1")
    linked = [flags, str(driver)] if flags else []
    run = host.command(compiled(host, "newer", *linked), TUI_PROBE_DRIVER=str(driver))
    assert (run.status, run.stdout, run.stderr) == (0, "0 0 42 43\n", "")


def test_program_that_asks_for_no_driver_has_no_hook(host: Host) -> None:
    run = host.command(sys.executable, "-c", "print('libcuda' in open('/proc/self/maps').read())")
    assert (run.status, run.stdout, run.directories) == (0, "False\n", [])


def test_first_thread_that_left_does_not_keep_a_hook_that_another_opened(host: Host) -> None:
    check_launch(host.command(compiled(host, "opened_later"), "thread"))


def test_program_that_clears_its_environment_is_seen(host: Host) -> None:
    check_launch(host.command(compiled(host, "opened_later"), "cleared"))
