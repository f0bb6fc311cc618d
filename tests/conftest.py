"""Fixtures that several areas share."""

from __future__ import annotations

import gc
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import WorkStealingScheduling

from tests.assemblies import assemble_once, disassemble_once
from tests.forked_workers import use_forks
from tests.hook_builds import ROOT, SHELF, built_once, digest_of_hook
from tests.warm_start import WarmStarts
from tui_probe.engine.cache import EMPTY_KERNEL_DIRECTORY

# The machine may be busy: how long an example takes says nothing about the code under test.
settings.register_profile("full", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Every run draws other examples, so a few runs together have as many as Hypothesis draws by default: 20 s of CPU.
settings.register_profile("short", settings.get_profile("full"), max_examples=40)

# A product of small matrices needs no threads, and each of some thousand processes would start them.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# Nor does it say anything if little of its disk is free; fixtures of every scope find this.
os.environ["TUI_PROBE_MIN_FREE_DISK"] = "0"

# Nor are accesses checked, except where a test asks for it: findings would be in every report, and checks take time.
os.environ["TUI_PROBE_SIM_CHECK"] = "0"

pytest_plugins = ["tests.golden", "tests.turns"]
LIBRARIES = ("hook/libcuda.so.1", "sim/libcuda.so.1")
OPTIONS = ("-DTUI_PROBE_WERROR=ON", "-DCMAKE_C_FLAGS=-g -fno-optimize-sibling-calls")
"""With line numbers, and each call returning to the line that made it: tests find out who makes a call."""
CACHED = ("\nTUI_PROBE_WERROR:BOOL=ON\n", "\nCMAKE_C_FLAGS:STRING=-g -fno-optimize-sibling-calls\n")
"""The same in a CMakeCache.txt."""
RARE_COLLECTIONS = (50_000, 10, 10)
"""In place of a collection for every 700 new objects: they took 10 to 20 % of a test process's time."""
gc.set_threshold(*RARE_COLLECTIONS)  # before modules of tests are imported, which have the most objects
ASSEMBLIES = "TEST_ASSEMBLIES"
"""Names the directory of what ptxas and nvdisasm made in this run of the tests."""

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    # Nothing is to be left next to the sources, but hundreds of programs are started, each of which would compile all.
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(SHELF / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def cores() -> int:
    """Return the CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def pytest_configure(config: pytest.Config) -> None:
    """Commands of tui-probe are forked from a process that has imported it; the same code is assembled once."""
    settings.load_profile("full" if config.getoption("--in-full") else "short")
    if ASSEMBLIES not in os.environ:  # in the first process, of which others inherit it
        folder = tempfile.TemporaryDirectory(prefix="assemblies-")
        os.environ[ASSEMBLIES] = folder.name
        config.add_cleanup(lambda: (os.environ.pop(ASSEMBLIES), folder.cleanup()))
    assemble_once(Path(os.environ[ASSEMBLIES]))
    disassemble_once(Path(os.environ[ASSEMBLIES]))
    warm_starts = WarmStarts(dict(os.environ), os.environ[ASSEMBLIES])
    config.add_cleanup(warm_starts.close)
    use_forks(config, warm_starts.close)


def pytest_xdist_auto_num_workers() -> int:
    """Twice the cores, for most tests wait: for a program and its engine in turn, for a terminal to be quiet; and two.

    With three processes on two cores, a seventh of the cores' time was left, with four a tenth.
    """
    return 2 * cores() + 2


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WorkStealingScheduling | None:
    """As in ``forked_workers``: each process has neighbouring tests, so that fixtures of a module are made once."""
    return WorkStealingScheduling(config, log) if config.getoption("dist") == "load" else None


LONG = {"test_faults.py", "test_pty.py", "test_run.py", "test_sanitizers.py"}
"""Files with tests that take ten seconds, or wait for as long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first: at the end one process would be left with them, and cores idle.

    Two files that run the same kernels are neighbours, so that one process compiles them once: 10 s of CPU.
    """
    items.sort(key=lambda item: item.path.name not in LONG)
    alike = [item for item in items if item.path.name == "test_same_results.py"]
    others = [item for item in items if item.path.name != "test_same_results.py"]
    place = next((number for number, item in enumerate(others) if item.path.name == "test_fusion.py"), 0)
    items[:] = [*others[:place], *alike, *others[place:]]


def pytest_collection_finish() -> None:
    """Freeze the objects that exist before the first test, so that no collection of garbage has to look at it.

    Collections are rare besides: tests make millions of objects and few cycles.
    """
    gc.collect()
    gc.freeze()


_NUMBERS = itertools.count()
TMP_NAME = 25
"""Characters of a test's name in that of its directory, with the number as many as in pytest's."""


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's, which takes 5 ms to find a number among the directories of thousands of other tests."""
    name = re.sub(r"\W", "_", request.node.name)[:TMP_NAME]
    path = tmp_path_factory.getbasetemp() / f"{name}-{next(_NUMBERS)}"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="session")
def _own_caches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Return the directory for the next test: a new one, or that of the test before if nothing was written there."""
    folder, last = tmp_path_factory.mktemp("own"), Path("/")
    empty = folder / EMPTY_KERNEL_DIRECTORY
    empty.mkdir()

    def names(directory: Path) -> list[str]:
        return [path.name for path in directory.iterdir()]

    def is_as_new() -> bool:
        cache = last / "cache" / "tui-probe"
        return cache.is_dir() and names(last) == ["cache"] and names(cache) == [EMPTY_KERNEL_DIRECTORY]

    def next_directory() -> Path:
        nonlocal last
        if not is_as_new():
            last = folder / str(next(_NUMBERS))
            cache = last / "cache" / "tui-probe"
            cache.mkdir(parents=True)
            (cache / EMPTY_KERNEL_DIRECTORY).symlink_to(empty)
        return last

    return next_directory


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, _own_caches: Callable[[], Path]) -> None:
    """No test finds kernels that another one prepared, or the user's settings, nor leaves anything with the user.

    They share the empty kernel, which is the same for all programs: each run would assemble it five times.
    """
    directory = _own_caches()
    for kind in ("CACHE", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(directory / kind.lower()))


@pytest.fixture(autouse=True, scope="session")
def signals_as_at_a_terminal() -> Iterator[None]:
    """Restore the signals that ``nohup`` or a shell's background ignores, so that programs end as they do for users.

    Fixtures of every scope need it: the process that forks commands starts with the first command, and if a module's
    fixture starts that, every later program would ignore Ctrl-C.
    """
    defaults = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    ignored = [number for number in defaults if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, defaults[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def natives() -> Path:
    """The directory that holds ``hook/libcuda.so.1`` and ``sim/libcuda.so.1``, built from this checkout.

    ``TUI_PROBE_NATIVE`` names a directory to use as it is. Without CMake the installed package's libraries serve.
    """
    if chosen := os.environ.get("TUI_PROBE_NATIVE"):
        return Path(chosen)
    if shutil.which("cmake"):
        return build_natives()
    installed = installed_natives()
    if installed is None:
        pytest.skip("no cmake to build the hook with, and no installed package to take it from")
    return installed


def build_natives() -> Path:
    """Build once for each content of ``hook/``, with line numbers; all test processes share it, and ``build`` in it.

    ``TUI_PROBE_HOOK_BUILD`` names a directory that CMake has already built in with these options.
    """
    with built_once(digest_of_hook(*OPTIONS)) as (place, is_new):
        if is_new:
            build = place / "build"
            if given := os.environ.get("TUI_PROBE_HOOK_BUILD"):
                cache = (Path(given) / "CMakeCache.txt").read_text()
                assert all(value in cache for value in CACHED), f"{given} is built with other options than {OPTIONS}"
                shutil.copytree(given, build)
            else:
                run("cmake", "-S", str(ROOT / "hook"), "-B", str(build), *OPTIONS)
                run("cmake", "--build", str(build), "--parallel", str(cores()))
            run("cmake", "--install", str(build), "--prefix", str(place))
    return place


def run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        pytest.fail(f"{' '.join(command)}\n{result.stdout}\n{result.stderr}", pytrace=False)


def installed_natives() -> Path | None:
    import tui_probe

    for folder in tui_probe.__path__:
        native = Path(folder) / "_native"
        if all((native / library).is_file() for library in LIBRARIES):
            return native
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """After the tests of the corpus: what it holds."""
    if any("test_corpus.py" in report.nodeid for report in terminalreporter.stats.get("passed", ())):
        from tests.bench.corpus import contents, summary

        terminalreporter.write_line(summary(contents()))
