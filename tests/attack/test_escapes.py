"""For any name, no command in any format writes what a terminal, a spreadsheet or a reader would obey.

Each page has one of the formats in turn, all with ``--in-full``.
"""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack.planted import EVIL, obeyed, planted_csv, planted_sqlite, planted_trace
from tests.turns import due, due_pairs
from tui_probe.cli import output
from tui_probe.cli.main import main
from tui_probe.cli.parser import COMMANDS
from tui_probe.draw.csv_table import csv_lines
from tui_probe.draw.printable import dump_json, printable
from tui_probe.evals.evaluation import evaluations
from tui_probe.pages.page_registry import all_pages

FORMATS = ("table", "json", "csv", "md")
_NUMBER = re.compile(r"[-+]?[\d.,]+(e[-+]?\d+)?( ?%)?")
Say = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("planted")
    return [planted_trace(folder, "demo", "zero_fill"), planted_trace(folder, "attention_sectors", "_attn_fwd")]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs a command line; its status, and what it said on stdout, after looking at both streams."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("TUI_PROBE_TRACE_DIR", str(tmp_path / EVIL))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str]:
        try:
            status = main(list(words))
        except SystemExit as error:
            status = int(error.code or 0)
        captured = capfd.readouterr()
        for stream in captured:
            assert obeyed(stream) == set(), f"{words}: {stream!r}"
        return status, captured.out

    return run


def well_formed(form: str, text: str) -> None:
    """Data can be read by what reads it, and spreadsheets calculate nothing."""
    if form == "json" and text:
        json.loads(text)
    for row in csv.reader(io.StringIO(text)) if form == "csv" else ():
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "-")) or _NUMBER.fullmatch(cell), cell


@pytest.mark.parametrize(("page", "form"), due_pairs([page.name for page in all_pages()], FORMATS))
def test_pages(say: Say, traces: list[Path], page: str, form: str) -> None:
    shown = 0
    for trace in traces:
        for words in (["report", "--page", page, str(trace)], ["show", page, f"{trace}:1"]):
            if words[0] == "show" and form == "md":
                continue
            status, text = say(*words, "--format", "text" if words[0] == "show" and form == "table" else form)
            well_formed(form, text)
            shown += status == 0
    assert shown or page in ("dmat", "progress", "waits", "memory", "blocks", "sass", "stalls", "stuck", "phases")


@pytest.mark.parametrize("page", ["summary", "launches", "source", "timeline"])
def test_pictures(say: Say, traces: list[Path], tmp_path: Path, page: str) -> None:
    picture = tmp_path / f"{EVIL}.svg".replace("/", "")
    events = tmp_path / "events.json"
    trace = traces[page == "source"]
    assert say("show", page, f"{trace}:0" if page != "source" else str(trace), "--svg", str(picture))[0] == 0
    assert obeyed("".join(ET.parse(picture).getroot().itertext()).replace("\N{NO-BREAK SPACE}", " ")) == set()
    if page in ("launches", "timeline"):
        assert say("show", page, f"{trace}:0", "--perfetto", str(events))[0] == 0
        assert obeyed(events.read_text()) == set()
        json.loads(events.read_text())


def test_json_loses_nothing(say: Say, traces: list[Path]) -> None:
    _, text = say("report", str(traces[0]), "--format", "json")
    names = [kernel["name"] for kernel in json.loads(text)["kernels"]]
    assert EVIL.split(" ", maxsplit=1)[0] in names


@pytest.mark.parametrize("form", due(FORMATS))
def test_files_of_other_profilers(say: Say, tmp_path: Path, form: str) -> None:
    files = {"nsys": planted_sqlite(tmp_path), "ncu": planted_csv(tmp_path)}
    for tool, names in {
        "nsys": ("kernels", "ranges", "gaps", "timeline"),
        "ncu": ("kernels", "metrics", "traffic", "sectors", "critical", "averages"),
    }.items():
        for page in names:
            _, text = say("import", tool, str(files[tool]), "--page", page, "--format", form)
            well_formed(form, text)
    say("open", str(files["ncu"]))


@pytest.mark.parametrize("form", ["--json", "--csv", "--ascii"])
def test_evaluations(say: Say, traces: list[Path], form: str) -> None:
    for evaluation in evaluations():
        _, text = say("eval", evaluation.name, *map(str, traces), form)
        well_formed(form.strip("-"), text)


def test_other_commands(say: Say, traces: list[Path], tmp_path: Path) -> None:
    trace, other = map(str, traces)
    for form in FORMATS:
        for words in (["compare", trace, other], ["compare", trace, trace], ["roofline", trace, other]):
            well_formed(form, say(*words, "--format", form)[1])
    folder = str(traces[0].parent)
    for words in (["explain", trace], ["watch", trace], ["open", trace], ["show", trace], ["list", folder]):
        assert say(*words)[0] == 0
    well_formed("json", say("list", folder, "--format", "json")[1])
    probe = tmp_path / EVIL.replace("/", "")
    probe.mkdir()
    (probe / "probe.toml").write_text(f'[probe]\ntitle = "{json.dumps(EVIL)[1:-1]}"\n')
    source = tmp_path / "kernel.ptx"
    source.write_text(f".version 8.0\n.target sm_90\n.address_size 64\n{EVIL}\n")
    for words in (["probes", str(probe)], ["check", str(probe)], ["check", "block_sched", str(source)]):
        say(*words)
        say(*words[:1], "--format", "json", *words[1:])
    for name in ("help", "doctor"):
        say(name, *([EVIL] if name == "help" else []))


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_complaints(say: Say, tmp_path: Path, name: str) -> None:
    """Every command complains of a file that is not there, and of a word that it does not know."""
    path = str(tmp_path / EVIL.replace("/", ""))
    own = {
        "run": ["--trace-dir", str(tmp_path / "traces"), "--sim", path],
        "import": ["nsys", path],
        "eval": ["warps", path],
        "show": ["summary", path],
        "compare": [path, path],
        "bandwidth": ["--driver", path],
        "doctor": [EVIL],
        "demo": [EVIL],
        "home": [EVIL],
        "ctl": [EVIL, path],
    }
    assert say(name, *own.get(name, [path]))[0] != 0
    assert say(name, f"--{EVIL}")[0] != 0


def test_every_category_that_steers_is_replaced() -> None:
    everything = "".join(map(chr, range(0x110000)))
    assert obeyed(printable(everything.replace("\n", ""))) == set()
    assert obeyed(dump_json(everything)) == set()
    assert json.loads(dump_json(everything.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))


def test_only_one_module_of_the_commands_writes_to_stdout() -> None:
    writers = {
        path.name for path in Path(output.__file__).parent.glob("*.py") if "sys.stdout.write" in path.read_text()
    }
    assert writers == {"output.py"}


def test_numbers_stay_numbers_in_csv() -> None:
    assert list(csv_lines([[-1.5, "-1.5", "+3 %", "=A1", "+x", "-x", "@x", "\tx"]])) == [
        "-1.5,-1.5,+3 %,'=A1,'+x,'-x,'@x,'        x"
    ]
