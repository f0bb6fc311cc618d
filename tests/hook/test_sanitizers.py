"""The hook under AddressSanitizer and ThreadSanitizer, with a program that does much at the same time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.hook.test_late_probes import LateEngine
from tests.hook.test_several_probes import NAMES
from tests.hook_builds import SANITIZERS
from tests.turns import due_pairs

from .conftest import Build, Engine, Host, compile_c, sanitized_natives, with_stub

HERE = Path(__file__).resolve().parent

LAYOUTS = "records of every layout"
FEWER = {"BUSY_LAUNCHES": "6"}
"""Tests in which launches wait for each other or have many records: ten times as long under a sanitizer."""
# LeakSanitizer needs ptrace, which containers often forbid.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=98",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=97:history_size=7",
}
MODES: dict[str, dict[str, str]] = {
    "traced": {},
    "benchmark": {"TUI_PROBE_BENCHMARK": "1", "TUI_PROBE_SAVE_RESULTS": "1"} | FEWER,
    "memusage": {"TUI_PROBE_MEMUSAGE": "1"},
    "little memory": {"TUI_PROBE_MAX_PROBE_MEMORY": "65536"},
    "watched disk": {"TUI_PROBE_MIN_FREE_DISK": "1"},
    "dear launches": {
        "TUI_PROBE_MAX_TRACE_BYTES": "2000000",
        "TUI_PROBE_LAUNCHES": "auto",
        "BUSY_BLOCKS": "4000",
    },
}
BUSY = due_pairs(SANITIZERS, [*MODES, LAYOUTS])
"""Each mode under one sanitizer, under the other one in the next turn."""


@pytest.fixture(scope="module", params=SANITIZERS)
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Build:
    sanitizer: str = request.param
    return with_stub(sanitized_natives(sanitizer), tmp_path_factory.mktemp("stub"), sanitizer)


@pytest.fixture(scope="module")
def program(sanitized: Build, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("busy") / "busy"
    compile_c(HERE / "busy_program.c", path, str(sanitized.hook), f"-fsanitize={sanitized.sanitizer}")
    return path


def in_place(sanitized: Build) -> dict[str, str]:
    """The program links to the hook. An audited one would not start: ThreadSanitizer needs much static TLS."""
    return {"LD_PRELOAD": "", "LD_AUDIT": "", "LD_LIBRARY_PATH": str(sanitized.hook.parent)}


@pytest.mark.parametrize(("sanitized", "mode"), [pair for pair in BUSY if pair[1] != LAYOUTS], indirect=["sanitized"])
def test_busy_program(sanitized: Build, program: Path, tmp_path: Path, engine: Engine, mode: str) -> None:
    host = Host(sanitized, tmp_path, engine)
    options = OPTIONS | in_place(sanitized) | MODES[mode]
    run = host.command(str(program), **options)
    assert (run.status, run.stderr) == (0, "")
    assert not [line for line in run.calls if line.startswith(("DIRTY", "EVENT"))]
    assert run.lines(r"\[exit\] launches ")
    assert bool(engine.asked_for_samples) == (mode == "dear launches")


@pytest.mark.parametrize("sanitized", [sanitizer for sanitizer, mode in BUSY if mode == LAYOUTS], indirect=True)
def test_records_of_every_layout(sanitized: Build, program: Path, tmp_path: Path, engine: Engine) -> None:
    """The stub fills some of the memory with numbers that stand for anything: nothing is read or written outside."""
    engine.maps = "0,-1 0,4 1,-1 1,4 1,24 0,12 0,48 0,4 1,0"
    engine.storage = [
        "storage 0 rows record 8 cap 0",
        "storage 1 counts",
        "storage 2 queue record 16 cap 0",
        "storage 3 counts",
        "storage 4 marked record 24 cap 1",
        "storage 5 plain record 12 cap 1",
        "storage 6 rows record 12 cap 4",
        "storage 7 counts",
        "storage 8 sites record 24 cap 50 copies 8 max 16",
    ]
    engine.filled = "0,16 1,200 1,32 0,8 0,24 1,8"
    host = Host(sanitized, tmp_path, engine)
    options = OPTIONS | FEWER | in_place(sanitized)
    run = host.command(str(program), **options)
    assert (run.status, run.stderr) == (0, "")
    assert {status for status, _, _ in run.outcomes()} >= {"probed"}
    sizes = {tuple(size for size, _, _ in result.maps) for result in run.results}
    assert sizes
    assert all(numbers[1::2] == (4, 4, 12, 4) and numbers[4::2] == (24, 48, 0) for numbers in sizes)


@pytest.mark.parametrize("mode", ["traced", "benchmark"])
def test_program_that_knows_nothing_of_sanitizers(sanitized: Build, tmp_path: Path, engine: Engine, mode: str) -> None:
    name = {"address,undefined": "libasan.so", "thread": "libtsan.so"}[sanitized.sanitizer]
    process = subprocess.run(["cc", f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    host = Host(sanitized, tmp_path, engine)
    options = OPTIONS | {
        "LD_PRELOAD": f"{Path(process.stdout.strip()).resolve()} {sanitized.hook}",
        "PYTHONMALLOC": "malloc",
    }
    if mode == "benchmark":
        options |= {"TUI_PROBE_BENCHMARK": "1", "TUI_PROBE_SAVE_RESULTS": "1"}
    run = host.python(
        """
context()
f = function(module(), "add__8_200")
w, big = word(), (ctypes.c_char * 200)()
for _ in range(50): launch(f, w, big)
if os.fork() == 0:
    launch(f, w, big)
    os._exit(0)
os.wait()
launch(function(module(b"\\x7fELF" + b"\\0" * 60), "other"))
os._exit(read(w))
""",
        **options,
    )
    assert (run.status, run.stderr) == (50, "")
    assert len(run.results) == (50 if mode == "traced" else 1)


def test_launches_while_late_probes_come(sanitized: Build, program: Path, tmp_path: Path, engine: Engine) -> None:
    """Threads launch kernels while the counting probes are put into them."""
    LateEngine(engine, tmp_path / "released").released.touch()
    host = Host(sanitized, tmp_path, engine)
    options = OPTIONS | FEWER | in_place(sanitized) | {"TUI_PROBE_PROBES": NAMES, "TUI_PROBE_FUSED": "0:2"}
    run = host.command(str(program), **options, TUI_PROBE_LAUNCHES="auto")
    assert (run.status, run.stderr) == (0, "")
    assert not [line for line in run.calls if line.startswith(("DIRTY", "EVENT"))]
    probed = {line.split(" probe ")[1].split()[0] for line in run.lines(r"\[probing\] \d+ probed")}
    assert probed == set(NAMES.split(":"))
