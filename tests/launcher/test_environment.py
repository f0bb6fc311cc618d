"""The environment that a target gets."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tui_probe.engine.cache import default_cache_directory
from tui_probe.errors import LaunchError
from tui_probe.launcher import options
from tui_probe.launcher.control import NO_LIMIT
from tui_probe.launcher.driver import Driver
from tui_probe.launcher.environment import (
    HookPaths,
    faulted_kernels,
    framework_settings,
    graft_faults_file,
    program_path,
    target_environment,
)
from tui_probe.launcher.options import RunOptions

PLACES = HookPaths(
    hook=Path("/tool/hook/libcuda.so.1"),
    trace_root=Path("/here/trace"),
    socket=Path("/tmp/x/engine"),
    probe=Path("/tool/probes/block_sched.toml"),
    probes=Path("/here/trace/.run-1/probes"),
    cupy_cache=Path("/home/me/.cache/tui-probe/cupy"),
    ending=Path("/here/trace/.run-1/ending"),
    adjacent=Path("/here/trace/.run-1/next to it"),
    notes=Path("/here/trace/.run-1/notes"),
)
REAL = Driver(Path("/lib/libcuda.so.1"), simulated=False)
SIMULATED = Driver(Path("/tool/sim/libcuda.so.1"), simulated=True)


def environment(base: dict[str, str], driver: Driver = REAL, **chosen: object) -> dict[str, str]:
    return target_environment(base, RunOptions(("x",), **chosen), driver, PLACES, "Nov21_025649")  # type: ignore[arg-type]


def test_defaults_of_budgets_are_those_of_the_hook() -> None:
    """A limit that has its default value is not passed on."""
    source = (Path(__file__).parents[2] / "hook/src/process/settings.c").read_text()
    shifted = re.findall(r"#define DEFAULT_(\w+) \((\d+)ull << (\d+)\)", source)
    defaults = {name: int(base) << int(shift) for name, base, shift in shifted}
    defaults |= {name: int(value) for name, value in re.findall(r"\bDEFAULT_(\w+) = (\d+)", source)}
    launched = {
        "TRACE_BYTES": options.MAX_TRACE_BYTES,
        "RESULT_FILES": options.MAX_RESULT_FILES,
        "LOG_BYTES": options.MAX_LOG_BYTES,
        "WRITE_RATE": options.MAX_WRITE_RATE,
    }
    assert launched == {name: defaults[name] for name in launched}


def test_loading_keeps_the_users_libraries_before_ours() -> None:
    given = {"LD_PRELOAD": "/lib/asan.so /lib/b.so", "LD_AUDIT": "/lib/a.so", "LD_LIBRARY_PATH": "/opt/cuda"}
    result = environment({**given, "HOME": "/root"})
    assert result["LD_PRELOAD"] == "/lib/asan.so /lib/b.so:/./tool/hook/libcuda.so.1"
    assert result["LD_AUDIT"] == "/lib/a.so:/tool/hook/libtui-probe-audit.so"
    assert result["LD_LIBRARY_PATH"] == "/tool/hook:/opt/cuda"
    assert result["HOME"] == "/root"
    assert environment({})["LD_PRELOAD"] == "/./tool/hook/libcuda.so.1"
    assert environment({"LD_LIBRARY_PATH": ""})["LD_LIBRARY_PATH"] == "/tool/hook"  # "" at the end would mean "."


def test_loading_of_a_run_inside_a_run_names_each_library_once() -> None:
    loaders = ("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH")
    given = {"LD_PRELOAD": "/lib/a.so", "LD_AUDIT": "/lib/b.so:/lib/c.so", "LD_LIBRARY_PATH": "/opt"}
    once = environment(given)
    twice = environment(once)
    assert [twice[name] for name in loaders] == [once[name] for name in loaders]


@pytest.mark.parametrize(("way", "missing"), [("audit", "LD_PRELOAD"), ("preload", "LD_AUDIT")])
def test_loading_is_restricted_to_the_way_that_the_user_chose(way: str, missing: str) -> None:
    result = environment({"TUI_PROBE_LOADING": way})
    assert missing not in result
    assert environment({"TUI_PROBE_LOADING": way, missing: "/lib/a.so"})[missing] == "/lib/a.so"


def test_loading_refuses_an_unknown_way() -> None:
    with pytest.raises(LaunchError, match="set the variable to audit or preload"):
        environment({"TUI_PROBE_LOADING": "both"})


@pytest.mark.parametrize(("launches", "passed"), [("auto", "auto"), ("all", None), ("0-9,20", "0-9,20")])
def test_launch_options_of_hook(launches: str, passed: str | None) -> None:
    assert environment({"TUI_PROBE_LAUNCHES": "3"}, launches=launches).get("TUI_PROBE_LAUNCHES") == passed


def test_variables_of_hook() -> None:
    assert {name: value for name, value in environment({}).items() if name.startswith("TUI_PROBE_")} == {
        "TUI_PROBE_DRIVER": "/lib/libcuda.so.1",
        "TUI_PROBE_HOOK": "/tool/hook/libcuda.so.1",
        "TUI_PROBE_TRACE_ROOT": "/here/trace",
        "TUI_PROBE_STAMP": "Nov21_025649",
        "TUI_PROBE_LAUNCHER": str(os.getpid()),
        "TUI_PROBE_LAUNCHES": "auto",
        "TUI_PROBE_WEIGHT": "light",
        "TUI_PROBE_ENGINE": "/tmp/x/engine",
        "TUI_PROBE_PROBE": "/tool/probes/block_sched.toml",
        "TUI_PROBE_ENDING": "/here/trace/.run-1/ending",
        "TUI_PROBE_BESIDE": "/here/trace/.run-1/next to it",
        "TUI_PROBE_NOTES": "/here/trace/.run-1/notes",
        "TUI_PROBE_GRAFT_FAULTS": str(graft_faults_file()),
        "TUI_PROBE_EMPTY_KERNELS": str(default_cache_directory("empty")),
    }


ROOT = Path(__file__).parents[2]
UNDOCUMENTED = {
    "TUI_PROBE_HASH_MEMORY": "set by the search for races in tui_probe/integrations/shake.py",
    "TUI_PROBE_LONG_LAUNCH": "milliseconds, so that a test need not wait for 10 s",
    "TUI_PROBE_UNDER_NCU": "set by a benchmark that runs ncu with the hook",
}
"""Variables that the hook reads, the launcher does not set and ``help settings`` does not have, with the reason."""


def variables_in(*paths: Path) -> set[str]:
    """Return the variables of tui-probe that a string of these files begins with."""
    return {name for path in paths for name in re.findall(r'"(TUI_PROBE_[A-Z_]+)', path.read_text())}


def variables_of_hook() -> set[str]:
    return variables_in(*(path for path in (ROOT / "hook").rglob("*.[ch]")))


def test_each_variable_of_the_launcher_is_read() -> None:
    launched = variables_in(ROOT / "tui_probe/launcher/environment.py")
    assert len(launched) > 40
    in_program = variables_in(*(ROOT / "tui_probe/tensortrace").rglob("*.py"))
    assert launched - variables_of_hook() - in_program == {"TUI_PROBE_LOADING"}  # the launcher's own


def test_each_variable_of_the_hook_is_set_or_documented() -> None:
    launched = variables_in(ROOT / "tui_probe/launcher/environment.py")
    documented = set(re.findall(r"TUI_PROBE_[A-Z_]+", (ROOT / "tui_probe/help/settings.md").read_text()))
    assert variables_of_hook() - launched - documented == set(UNDOCUMENTED)


def test_options_and_nothing_of_a_run_around_this_one() -> None:
    outer = {"TUI_PROBE_BENCHMARK": "1", "TUI_PROBE_FILTER": "copy"}
    result = environment(outer, kernels="attn:gemm", launches="0-9", max_trace_bytes=4 << 30, max_probe_memory=1 << 20)
    assert result["TUI_PROBE_KERNELS"] == "attn:gemm"
    assert result["TUI_PROBE_LAUNCHES"] == "0-9"
    assert result["TUI_PROBE_MAX_TRACE_BYTES"] == "4294967296"
    assert result["TUI_PROBE_MAX_PROBE_MEMORY"] == "1048576"
    assert not {*outer} & {*result}
    assert environment({}, max_trace_bytes=0)["TUI_PROBE_MAX_TRACE_BYTES"] == "0"
    assert environment({}, max_write_rate=50)["TUI_PROBE_MAX_WRITE_RATE"] == "50"
    assert environment({}, max_trace_bytes=NO_LIMIT)["TUI_PROBE_MAX_TRACE_BYTES"] == "none"
    assert environment({}, benchmark=True)["TUI_PROBE_BENCHMARK"] == "1"
    assert environment({"TUI_PROBE_SIM_SMS": "4"})["TUI_PROBE_SIM_SMS"] == "4"


def test_min_free_disk_comes_from_options_or_environment() -> None:
    own = {"TUI_PROBE_MIN_FREE_DISK": "3%"}
    assert environment(own)["TUI_PROBE_MIN_FREE_DISK"] == "3%"
    assert environment(own, min_free_disk="1000")["TUI_PROBE_MIN_FREE_DISK"] == "1000"


def test_simulated_gpu_gets_python_path() -> None:
    result = environment({}, SIMULATED)
    assert result["TUI_PROBE_SIM_PYTHON"] == sys.executable
    folders = [Path(folder) for folder in result["TUI_PROBE_SIM_PYTHONPATH"].split(":")]
    assert any((folder / "tui_probe" / "__init__.py").is_file() for folder in folders)  # an editable one has two


def test_simulated_gpu_gets_architecture() -> None:
    assert environment({}, SIMULATED, simulated_architecture="sm_90")["TUI_PROBE_SIM_ARCH"] == "sm_90"
    assert "TUI_PROBE_SIM_ARCH" not in environment({}, SIMULATED)
    own = {"TUI_PROBE_SIM_ARCH": "sm_90"}
    assert environment(own, SIMULATED)["TUI_PROBE_SIM_ARCH"] == "sm_90"
    assert environment(own, SIMULATED, simulated_architecture="sm_80")["TUI_PROBE_SIM_ARCH"] == "sm_80"


def test_framework_variables_keep_ptx() -> None:
    result = environment({"XLA_FLAGS": "--xla_dump_to=/tmp/dump"})
    assert result["XLA_FLAGS"] == "--xla_dump_to=/tmp/dump --xla_gpu_generate_line_info=true"
    assert result["CUPY_COMPILE_WITH_PTX"] == "1"
    assert result["CUPY_CACHE_DIR"] == "/home/me/.cache/tui-probe/cupy"
    assert [setting.name for setting in framework_settings({}, PLACES.hook, PLACES.cupy_cache)] == [
        "NVTX_INJECTION64_PATH",
        "XLA_FLAGS",
        "CUPY_COMPILE_WITH_PTX",
        "CUPY_CACHE_DIR",
        "PYCUDA_DEFAULT_NVCC_FLAGS",
        "CUTE_DSL_LINEINFO",
    ]


def test_framework_variables_of_user_stay() -> None:
    own = {
        "XLA_FLAGS": "--xla_gpu_generate_line_info=false",
        "CUPY_COMPILE_WITH_PTX": "0",
        "NVTX_INJECTION64_PATH": "/opt/other/tool.so",
        "PYCUDA_DEFAULT_NVCC_FLAGS": "-O0",
        "CUTE_DSL_LINEINFO": "0",
    }
    assert own.items() <= environment(own).items()
    assert framework_settings(own, PLACES.hook, PLACES.cupy_cache) == []
    with_cache = {"CUPY_CACHE_DIR": "/mine"}
    assert environment(with_cache)["CUPY_CACHE_DIR"] == "/mine"
    assert environment(with_cache)["CUPY_COMPILE_WITH_PTX"] == "1"


@pytest.mark.parametrize("folder", ["/with space", "/with:colon"])
def test_a_place_that_the_loader_cannot_read(folder: str) -> None:
    places = PLACES._replace(hook=Path(folder, "libcuda.so.1"))
    with pytest.raises(LaunchError, match="LD_PRELOAD"):
        target_environment({}, RunOptions(("x",)), REAL, places, "")


@pytest.mark.parametrize(("choice", "passed"), [("auto", None), ("all", "all"), ("off", "off")])
def test_sass_options_of_hook(choice: str, passed: str | None) -> None:
    variables = environment({"TUI_PROBE_MACHINE_CODE": "of a run around this one"}, machine_code=choice)
    assert variables.get("TUI_PROBE_MACHINE_CODE") == passed


def test_kernels_excluded_after_context_failure(tmp_path: Path) -> None:
    path = tmp_path / "graft-faults"
    assert faulted_kernels(path) == []
    path.write_text("715 1795358279 one\n700 3 with a blank\nbroken\nX 2 one\nX 3 two\n")
    assert faulted_kernels(path) == ["one", "with a blank", "two"]


def test_wait_lets_launches_wait_for_their_kernels() -> None:
    assert environment({}, wait=True)["TUI_PROBE_PATIENT"] == "1"
    assert "TUI_PROBE_PATIENT" not in environment({})


@pytest.mark.parametrize(
    ("directory", "expected"),
    [("archive-v0", "/venv/bin:/usr/bin:{own}"), ("environments-v2", "/venv/bin:/usr/bin:{own}"), ("builds-v0", None)],
)
def test_program_path_finds_users_python_under_uvx(directory: str, expected: str | None, tmp_path: Path) -> None:
    """``uvx`` puts the environment of tui-probe first; that of ``uv run --with`` in builds-v0 is theirs."""
    prefix = tmp_path / directory / "4gi-kolFGkzRXFs2"
    own = f"{prefix}/bin"
    (tmp_path / "CACHEDIR.TAG").touch()
    result = program_path(f"{own}:/venv/bin:/usr/bin", prefix)
    assert result == (expected and expected.format(own=own))


def test_program_path_keeps_environments_that_are_not_in_a_cache(tmp_path: Path) -> None:
    assert program_path("/opt/archive-v0/venv/bin:/usr/bin", tmp_path / "archive-v0" / "venv") is None
