"""Items and advice of ``doctor``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tui_probe.cli import doctor, machine_checks
from tui_probe.cli.machine_checks import Item, ask_library
from tui_probe.engine.cache import default_cache_directory
from tui_probe.launcher.driver import Driver
from tui_probe.launcher.environment import graft_faults_file
from tui_probe.toolchain import Tool
from tui_probe.version import __version__

from ..launcher.conftest import compile_library
from .conftest import Command

WORKING = "int cuInit(unsigned f) { return 0; } int cuDriverGetVersion(int *v) { *v = 13020; return 0; }"
DEVICES = "int cuDeviceGetCount(int *n) { *n = %d; return 0; }"
REFUSING = """
int cuInit(unsigned f) { return 999; }
int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "unknown reason"; return 0; }
"""
CRASHING = "#include <stdlib.h>\n__attribute__((constructor)) static void f(void) { abort(); }"


@pytest.mark.parametrize(
    ("source", "state", "words"),
    [
        (WORKING + DEVICES % 2, "ok", "CUDA 13.2, "),
        (WORKING + DEVICES % 0, "missing", "no device"),
        (REFUSING, "missing", "cuInit returns 999: unknown reason"),
        (CRASHING, "missing", "crashed (SIGABRT)"),
        ("int nothing;", "missing", "does not work"),
    ],
)
def test_a_driver_is_asked_in_a_process_of_its_own(source: str, state: str, words: str, tmp_path: Path) -> None:
    library = tmp_path / "driver" / "libcuda.so.1"
    compile_library(source, library)
    item = machine_checks.driver_item(Driver(library, simulated=False))
    assert item.state == state
    assert words in item.found
    assert str(library) in item.found
    assert bool(item.advice) == (state != "ok")


def test_a_question_without_an_answer() -> None:
    assert ask_library("import sys; sys.exit('no luck')") == {"error": "no luck"}
    assert ask_library("pass") == {"error": "no answer"}
    assert ask_library("print([])") == {"error": "no answer"}
    assert ask_library("import sys; print('{\"x\": ' + sys.argv[1] + '}')", "7") == {"x": 7}


def test_the_hook_and_the_simulated_gpu_of_this_checkout(natives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    assert [item.state for item in machine_checks.hook_items()] == ["ok"]
    assert [item.state for item in machine_checks.simulator_items()] == ["ok"]


def test_a_library_that_does_not_stand_in_for_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_library("int nothing;", tmp_path / "hook" / "libcuda.so.1")
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(tmp_path))
    (hook,) = machine_checks.hook_items()
    (simulator,) = machine_checks.simulator_items()
    assert (hook.state, simulator.state) == ("missing", "missing")
    assert "does not replace" in hook.found


def test_tool_items_list_versions_and_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = [Tool(Path("/new/ptxas"), (13, 0), "13.0.88"), Tool(Path("/old/ptxas"), (12, 4), "12.4.131")]
    monkeypatch.setattr(machine_checks, "find_tools", lambda name: tools if name == "ptxas" else [])
    monkeypatch.setenv("PATH", "")
    items = {item.name: item for item in machine_checks.tool_items()}
    assert items["ptxas"].found == "13.0.88, /new/ptxas; also 12.4.131"
    assert items["nvdisasm"].state == items["ncu"].state == "optional"
    assert "tui-probe[cuda]" in items["nvdisasm"].advice
    assert "nsys" in items
    monkeypatch.setattr(machine_checks, "find_tools", lambda _: [])
    assert {item.name: item.state for item in machine_checks.tool_items()}["ptxas"] == "missing"


def test_optional_items_name_their_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_checks, "find_tools", lambda _: [])
    monkeypatch.setenv("PATH", "")
    items = [*machine_checks.tool_items(), *machine_checks.gpu_items(), *machine_checks.package_items()]
    optional = [item for item in items if item.state == "optional"]
    assert {item.name for item in optional} >= {"nvdisasm", "cuobjdump", "ncu", "nsys"}
    assert all(item.advice.startswith(("to ", "for ", "optional")) for item in optional)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("RmProfilingAdminOnly: 1\n", "optional"),
        ("Other: 1\nRmProfilingAdminOnly: 0\n", "ok"),
        ("Other: 1\n", None),
        (None, None),
    ],
)
def test_who_may_read_counters(
    content: str | None, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "params"
    if content is not None:
        setting.write_text(content)
    monkeypatch.setattr(machine_checks, "COUNTER_SETTING", setting)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert [item.state for item in machine_checks.counter_items()] == ([expected] if expected else [])
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert [item.state for item in machine_checks.counter_items()] == (["ok"] if expected else [])


def test_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "on_terminal", lambda: True)
    for name, value in {"TERM": "xterm", "COLORTERM": "truecolor", "SSH_CONNECTION": "a b", "TMUX": "x"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setenv("LINES", "30")
    monkeypatch.delenv("NO_COLOR", raising=False)
    size, _, link, tmux = doctor.terminal_items()
    assert (size.state, size.found) == ("warn", "xterm, 70×30, 16 million colours")
    assert "80×24" in size.advice
    assert "--low-bandwidth" in link.advice
    assert tmux.name == "tmux"
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert doctor.screen_item() == Item("terminal", "ok", "xterm, 80×30, no colours (NO_COLOR is set)")


def test_no_terminal() -> None:
    (item,) = doctor.terminal_items()
    assert item.state == "warn"
    assert "text reports" in item.advice


@pytest.mark.parametrize(
    ("working", "expected"),
    [
        ({"hook", "driver"}, True),
        ({"hook", "simulated GPU"}, True),
        ({"driver", "simulated GPU"}, False),
        ({"hook"}, False),
    ],
)
def test_can_profile_needs_driver_and_assembler(working: set[str], expected: bool) -> None:
    items = [Item(name, "ok" if name in working else "missing", "") for name in ("hook", "driver", "simulated GPU")]
    assert doctor.can_profile(items) is expected


def test_the_table() -> None:
    place = "/opt/environment/lib/python3.11/site-packages/libcuda.so.1"
    items = [Item("driver", "missing", "none", "install one or two of these"), Item("hook", "ok", f"{place} is there")]
    assert doctor.as_table(items, works=False, columns=40) == (
        f"tui-probe {__version__}\n"
        "\n"
        "driver  missing   none\n"
        "                  → install one or two\n"
        "                    of these\n"
        "hook    ok\n"
        f"                  {place}\n"
        "                  is there\n"
        "\n"
        "tui-probe cannot profile here: a driver\n"
        "or the simulated GPU is missing. These\n"
        "commands work: open, report, compare,\n"
        "import.\n"
    )


@pytest.mark.parametrize(
    ("working", "end"),
    [
        ({"hook", "simulated GPU"}, "here on the simulated GPU only: tui-probe demo, tui-probe run --sim."),
        ({"hook", "driver"}, "here on the GPU: tui-probe run -- COMMAND."),
        ({"hook", "driver", "simulated GPU"}, "The simulated GPU works, too: tui-probe run --sim."),
        ({"driver"}, "cannot profile here: the hook is missing. These commands work: open, report, compare, import."),
    ],
)
def test_doctor_ends_with_what_works(working: set[str], end: str) -> None:
    items = [Item(name, "ok" if name in working else "missing", "") for name in ("hook", "driver", "simulated GPU")]
    assert doctor.as_table(items, doctor.can_profile(items), 120).endswith(f"{end}\n")


def test_outdated_hook_is_a_warning_and_profiles(monkeypatch: pytest.MonkeyPatch, natives: Path) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setattr(machine_checks, "outdated_build", lambda: ("built from other sources", "rebuild it: pip"))
    items = [*machine_checks.hook_items(), Item("simulated GPU", "ok", "")]
    assert items[0] == Item("hook", "warn", "built from other sources", "rebuild it: pip")
    assert doctor.can_profile(items)


def test_doctor_shows_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tui_probe.cli.output.os.isatty", lambda descriptor: descriptor == 2)
    monkeypatch.setattr("tui_probe.cli.output.PROGRESS_INTERVAL", 0.0)
    monkeypatch.setattr(doctor, "CHECKS", [lambda: [Item("hook", "ok", "there")]] * 2)
    assert doctor.check_machine() == [Item("hook", "ok", "there")] * 2
    assert "[info] checking:  50%" in capsys.readouterr().err


def test_json_and_status(command: Command, natives: Path, tmp_path: Path) -> None:
    result = command("doctor", "--format", "json", environment={"TUI_PROBE_NATIVE": str(natives)})
    record = json.loads(result.stdout)
    assert (result.returncode, record["version"], record["can_profile"]) == (0, 1, True)
    assert {"driver", "ptxas", "hook", "simulated GPU", "terminal", "Python"} <= {
        item["name"] for item in record["items"]
    }
    assert all(set(item) == {"name", "state", "found", "advice"} for item in record["items"])
    nothing = command("doctor", environment={"TUI_PROBE_NATIVE": str(tmp_path)})
    assert nothing.returncode == 3
    assert "tui-probe cannot profile here" in nothing.stdout


def test_a_locale_without_our_characters(command: Command, tmp_path: Path) -> None:
    environment = {"TUI_PROBE_NATIVE": str(tmp_path), "PYTHONIOENCODING": "ascii"}
    result = command("doctor", environment=environment)
    assert result.returncode == 3
    assert result.stderr == ""


def test_doctor_lists_kernels_excluded_after_context_failure() -> None:
    path = graft_faults_file()
    assert path is not None
    path.write_text("".join(f"700 179535827{n} kernel_{n}\n" for n in (1, 2, 2, 3, 4)))
    _, item = doctor.machine_code_items()
    assert item.state == "warn"
    assert (
        item.found
        == "4 kernels will not be probed in SASS, because a GPU context failed while they had a probe: kernel_1,"
        " kernel_2, kernel_3, ..."
    )
    assert str(path) in item.advice


def test_how_the_trial_of_probes_in_machine_code_went() -> None:
    (item,) = doctor.machine_code_items()
    assert (item.state, "not run yet" in item.found) == ("ok", True)
    folder = default_cache_directory("grafts")
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = [
        ("580.159-sm_90-0123.json", '{"outcome": "failed", "words": "an older one"}'),
        (
            "580.159-sm_90-4567.json",
            '{"outcome": "passed", "words": "", "instructions": "passed", "records": "passed", "blocks": "passed"}',
        ),
        ("580.159-sm_89-4567.json", '{"outcome": "passed", "words": "", "instructions": "passed", "records": "none"}'),
        ("580.159-sm_86-4567.json", '{"outcome": "passed", "words": "", "instructions": "other counts"}'),
        ("580.159-sm_80-4567.json", '{"outcome": "failed", "words": "other sums"}'),
        (
            "590.1-sm_90-4567.json",
            '{"outcome": "passed", "instructions": "passed", "records": "passed", "blocks": "passed",'
            ' "short_records": "other starts"}',
        ),
        ("590.1-sm_89-4567.json", '{"outcome": "passed", "instructions": "passed", "records": "passed"}'),
        ("590.1-sm_86-4567.json", '{"outcome": "passed"}'),
        (
            "590.2-sm_90-4567.json",
            '{"outcome": "passed", "instructions": "passed", "records": "passed", "blocks": "passed",'
            ' "short_records": "passed", "copies": "other copies"}',
        ),
        ("570.1-sm_80-4567.json", "no JSON"),
        ("something else.json", "{}"),
    ]
    for number, (name, text) in enumerate(outcomes):
        (folder / name).write_text(text)
        os.utime(folder / name, (number, number))
    assert [(item.state, item.found) for item in doctor.machine_code_items()] == [
        (
            "warn",
            "kernels without PTX are not probed on sm_80, driver 570.1: the saved self-test result cannot be read",
        ),
        ("warn", "kernels without PTX are not probed on sm_80, driver 580.159: other sums"),
        ("warn", "only entry/exit probes work on sm_86, driver 580.159: other counts"),
        ("warn", "probes cannot record each access on sm_89, driver 580.159: none"),
        ("ok", "kernels without PTX can be probed on sm_90, driver 580.159"),
        (
            "warn",
            "unknown whether probes can be inserted at instructions on sm_86, driver 590.1: the self-test did not try"
            " this",
        ),
        (
            "warn",
            "unknown whether probes can count basic blocks on sm_89, driver 590.1: the self-test did not try this",
        ),
        (
            "warn",
            "phases of kernels with few free registers are not recorded on sm_90, driver 590.1: other starts",
        ),
        (
            "warn",
            "bulk copies of kernels with few free registers are not recorded on sm_90, driver 590.2: other copies",
        ),
    ]


def test_settings_that_name_what_there_is_not(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "tui-probe"
    folder.mkdir(parents=True)
    lines = ["probe = 'blok_sched'", f"bandwidth = '{tmp_path}/bw.json'", "trace_dir = '/dev/null'", "palette = 'pink'"]
    (folder / "settings.toml").write_text("\n".join(lines))
    result = command("doctor", environment={"XDG_CONFIG_HOME": str(folder.parent)})
    items = [" ".join(line.split()) for line in result.stdout.splitlines() if "settings.toml:" in line]
    assert [item.partition("settings.toml: ")[2].partition(":")[0] for item in items] == [
        "palette", "probe", "bandwidth", "trace_dir",
    ]  # fmt: skip
    assert "did you mean block_sched?" in items[1]
