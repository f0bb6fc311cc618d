"""The front of the command line: help, errors, and what it costs to ask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden import golden
from tests.patience import HANG
from tui_probe import __version__, errors
from tui_probe.cli import main as front
from tui_probe.cli.output import ExitStatus
from tui_probe.cli.parser import COMMANDS

from .conftest import ROOT, Command


@pytest.mark.parametrize("name", ["", "run", "run --help-all", "open", "report", "probes", "check", "doctor", "demo"])
def test_help(command: Command, name: str) -> None:
    if sys.version_info >= (3, 13):
        pytest.skip("argparse of Python 3.13 writes options in another way")
    result = command(*(name.split() if "--help-all" in name else [*name.split(), "--help"]))
    assert (result.returncode, result.stderr) == (0, "")
    golden("help.txt", result.stdout, name or "all")


def test_help_names_all_commands_and_describes_eight() -> None:
    lines = front.build_parsers(None)[0].format_help().splitlines()
    described = [line.split()[0] for line in lines[lines.index("Commands:") + 1 : lines.index("More commands:") - 1]]
    assert described == ["run", "open", "report", "compare", "import", "check", "doctor", "help"]
    named = " ".join(lines[lines.index("More commands:") :]).replace(",", "").split()
    assert set(COMMANDS) <= {*described, *named}


def test_no_arguments_print_the_help(command: Command) -> None:
    result = command()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == command("--help").stdout


def test_version(command: Command) -> None:
    assert command("--version").stdout == f"tui-probe {__version__}\n"


@pytest.mark.parametrize(
    "words", ["--help", "--version", "report --help", "run --help", "open --help", "demo --help", "probes"]
)
def test_asking_for_help_imports_nothing_heavy(words: str) -> None:
    program = "import sys; from tui_probe.cli.main import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    program += "print('HEAVY', *({'textual', 'numpy', 'rich', 'plotext', 'pynvml'} & {*sys.modules}))"
    result = subprocess.run(
        [sys.executable, "-c", program, *words.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    )
    assert result.stdout.splitlines()[-1] == "HEAVY"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nonsense"], "unknown command 'nonsense'; commands: run, open, report"),
        (["frob"], "unknown command 'frob'; commands: run, open, report"),
        (["show", "--json", "lines"], "unknown option '--json': did you mean --format json?"),
        (["rnu"], "unknown command 'rnu': did you mean run?"),
        (["sh", "-c", "true"], "unknown command 'sh': did you mean show? To profile it: tui-probe run -- sh ..."),
        (["run", "--lauches", "0-9", "true"], "unknown option '--lauches': did you mean --launches?"),
        (["run", "-name", "a", "true"], "unknown option '-name': did you mean --name?"),
        (["open", "-p", "stalls"], "unknown option '-p': did you mean --palette or --probe?"),
        (["open", "-x"], "unknown option '-x'\n"),
        (["run", "--name", "a/b", "true"], "'a/b' is not a valid run name"),
        (["run"], "pass a command: "),
        (["run", "--"], "pass a command: "),
        (["run", "--nonsense", "true"], "--nonsense"),
        (["run", "-p", "nonsense", "true"], "block_sched"),
        (["run", "--sim", "--driver", "/x", "true"], "not allowed with"),
        (["run", "--max-trace-bytes", "much", "true"], "not a size"),
        (["run", "--min-free-disk", "1G,2G", "true"], "10G, 3% or 2G,5%; 0 means no minimum"),
        (["run", "--min-free-disk", "100%", "true"], "not a size"),
        (["run", "--launches", "9-0", "true"], "does not name launches"),
        (["run", "-k", "a::b", "true"], "empty part"),
        (["run", "--sim-arch", "sm_90", "--driver", "x", "true"], "--sim-arch and --driver cannot be combined"),
        (["run", "--memusage", "--benchmark", "true"], "--memusage and --benchmark cannot be combined"),
        (["run", "--save-results", "true"], "--save-results needs --benchmark"),
        (["run", "--callback", "x.py", "true"], "--callback x.py: no such file"),
        (["report", ".", "--page", "kernls"], "did you mean kernels?"),
        (["compare", "a:0@x", ":1"], "expected the number of a launch after @"),
        (["show", "process", ":0", "-k", "1"], "--kernel 1 contradicts 0"),
        (["report", ".", "--page", "counts"], "there is no page 'counts'"),
    ],
)
def test_usage_errors(command: Command, words: list[str], complaint: str, tmp_path: Path) -> None:
    result = command(*words)
    assert (result.returncode, result.stdout) == (ExitStatus.USAGE, "")
    assert complaint in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.LaunchError("why"), 1),
        (errors.NoDriverError("why"), 3),
        (errors.TraceError("why"), 4),
        (errors.TargetError("why", 127), 127),
        (KeyboardInterrupt(), 130),
    ],
)
def test_errors_end_with_their_status(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(front, "dispatch", fail)
    assert front.main([]) == status
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ("tui-probe: interrupted\n" if status == 130 else "tui-probe: error: why\n")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("show lines -k matmul T", {"page": "lines", "trace": "T", "kernel": "matmul"}),
        ("show -k matmul lines T", {"page": "lines", "trace": "T", "kernel": "matmul"}),
        ("show --width=80 lines --ascii T -kmatmul", {"page": "lines", "trace": "T", "kernel": "matmul"}),
        ("show lines -k matmul -- -T", {"page": "lines", "trace": "-T", "kernel": "matmul"}),
        ("report --page lines T --width 80", {"trace": "T", "page": "lines", "width": 80}),
        ("open --ascii a.csv --warmup 2 b.csv", {"trace": "a.csv", "more": [Path("b.csv")], "warmup": 2}),
        ("compare --figures x A --width 80 B", {"baseline": "A", "candidate": "B", "metrics": "x"}),
        ("import ncu a.csv --page kernels b.csv", {"files": [Path("a.csv"), Path("b.csv")], "page": "kernels"}),
        ("run -p dmat python x.py -p y", {"command": ["python", "x.py", "-p", "y"], "probe": ["dmat"]}),
    ],
)
def test_options_stand_anywhere(words: str, named: dict[str, object]) -> None:
    parser, _ = front.build_parsers(words.split()[0])
    parsed = vars(parser.parse_args(words.split()))
    assert {name: parsed[name] for name in named} == named


def test_an_option_without_its_value_takes_no_other_word(command: Command) -> None:
    assert "argument -k/--kernel: expected one argument" in command("show", "lines", "-k").stderr


@pytest.mark.parametrize("words", ["--help", "--version", "help limits"])
def test_a_reader_that_leaves_early_is_no_error(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is buffered as users have it: argparse exits before it is written."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    result = subprocess.run(
        ["sh", "-c", f'"$0" -m tui_probe {words}; echo $? >&2', sys.executable],
        stdout=open_pipe_without_reader(), stderr=subprocess.PIPE, cwd=ROOT, text=True, timeout=HANG,
    )  # fmt: skip
    assert result.stderr == "0\n"


def test_full_disk_is_reported_in_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "tui_probe", "probes"],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT, text=True, timeout=HANG,
        )  # fmt: skip
    assert (result.returncode, result.stderr) == (1, "tui-probe: error: stdout: No space left on device\n")


def open_pipe_without_reader() -> int:
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def test_a_variable_that_cannot_be_read_is_named(command: Command) -> None:
    result = command("run", "true", environment={"TUI_PROBE_MIN_FREE_DISK": "some"})
    assert result.returncode == ExitStatus.USAGE
    assert "TUI_PROBE_MIN_FREE_DISK: 'some' is not a size" in result.stderr
