"""Each call of the hook that can fail is made to fail: which places there are, and what a run did that failed there.

Places are those where the hook calls the C library or the driver for itself. Calls that it makes for the program, whose
result is the program's, are not among them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tests.attack.scenarios import Scenario
from tests.conftest import build_natives
from tests.hook.conftest import ROOT, Build, Engine, Host, Run, compile_c, with_stub
from tui_probe.errors import ProbeError
from tui_probe.launcher.environment import preload_entry
from tui_probe.trace.follow import open_trace

HERE = Path(__file__).resolve().parent
FOR_THE_PROGRAM = {
    "allocations.c", "attributes.c", "contexts.c", "graph_calls.c", "graph_change_calls.c", "launch.c",
    "launch_calls.c", "memory.c", "memory_functions.def", "modules.c", "probed_launch.c", "proc_address.c",
    "profiler_calls.c", "real.c", "stream_calls.c", "tensor_map_calls.c",
}  # fmt: skip
"""Files whose calls of the driver are the program's."""
UNCALLED = ("legacy_launch", "simulated_fault.c")
"""Files without a call here: no program of the walks launches in steps, and the stub driver has no tables of checks."""
OF_GRAPHS = ("graph", "executable.c", "gate.c")
"""Functions that only programs with graphs call."""
FUNCTIONS = frozenset(
    {"malloc", "calloc", "realloc", "strdup", "strndup", "asprintf", "write", "pwrite", "ftruncate", "mkdir", "read"}
    | {"fstat", "socket", "connect", "send", "recv", "poll", "sem_init", "open", "openat", "fopen", "opendir", "mmap"}
    | {"pthread_create"}
)
_CALL = re.compile(r"^\s*([0-9a-f]+):.*\bcall\s+[0-9a-f]+ <(\w+)@plt>")
_NEXT = re.compile(r"^\s*([0-9a-f]+):")
_DRIVER_CALL = re.compile(r"\bREAL_OR_NOT_FOUND\(")


@dataclass(frozen=True)
class Tools:
    """Tools of a walk: the hook with line numbers, the program, and the library that makes calls fail."""

    built: Build
    program: Path
    faults: Path


def tools(folder: Path) -> Tools:
    """Of the hook that all tests share, which has line numbers."""
    built = with_stub(build_natives() / "build", folder / "stub")
    program, faults = folder / "walk", folder / "faults.so"
    compile_c(HERE / "walk.c", program, str(built.hook), "-rdynamic")
    compile_c(HERE / "faults.c", faults, "-shared", "-fvisibility=hidden")
    return Tools(built, program, faults)


def missing() -> str | None:
    """Return why there can be no walk here."""
    absent = [name for name in ("objdump", "addr2line") if not shutil.which(name)]
    return f"needs {' and '.join(absent)}" if absent else None


def listed_lines(hook: Path) -> dict[str, set[int]]:
    """Offsets in the library behind each call of the C library that can fail, by the line of the source."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", hook], check=True, capture_output=True, text=True)
    behind, called = [], False
    for line in text.stdout.splitlines():
        if called and (here := _NEXT.match(line)):
            behind.append(int(here[1], 16))
        match = _CALL.match(line)
        called = bool(match and match[2].removesuffix("64") in FUNCTIONS)
    return by_line(hook, behind)


def listed_driver_lines() -> set[str]:
    """The lines at which the hook calls the driver for itself."""
    lines = set()
    for path in sorted((ROOT / "hook" / "src").glob("*/*.c")):
        if path.name not in FOR_THE_PROGRAM:
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if _DRIVER_CALL.search(line):
                    lines.add(f"{path.name}:{number}")
    return lines


def by_line(hook: Path, offsets: list[int]) -> dict[str, set[int]]:
    """``drain.c:12`` and the offsets of calls there. What follows a call may be another line's."""
    addresses = [f"{offset - 1:#x}" for offset in offsets]
    text = subprocess.run(["addr2line", "-e", hook, *addresses], check=True, capture_output=True, text=True).stdout
    found: dict[str, set[int]] = {}
    for offset, line in zip(offsets, text.splitlines(), strict=True):
        found.setdefault(line.split(" ")[0].rpartition("/")[2], set()).add(offset)
    return found


def run(tools: Tools, engine: Engine, scenario: Scenario, folder: Path, **more: str) -> Run:
    """One run in a folder of its own, with ``more`` in the environment."""
    folder.mkdir(parents=True)
    host = Host(tools.built, folder, engine)
    environment = {
        "LD_PRELOAD": f"{tools.faults} {preload_entry(tools.built.hook)}",
        "LD_LIBRARY_PATH": str(tools.built.hook.parent),
        "FAULT_LIBRARY": str(tools.built.hook),
        "STUB_LOG": "",
        "NVTX_INJECTION64_PATH": str(tools.built.hook),
    }
    environment |= scenario.environment | more
    if scenario.script:
        environment["FAULT_FOLDER"] = str(folder)
        return host.python(scenario.script + "\nprint('done')", **environment)
    return host.command(*(scenario.command or (str(tools.program), *scenario.arguments)), **environment)


def sites(tools: Tools, engine: Engine, scenario: Scenario, folder: Path) -> Iterator[tuple[str, int]]:
    """The kind and offset of each place that a run meets in which nothing fails."""
    plain = run(tools, engine, scenario, folder, FAULT_SITES=str(sites_of(folder)))
    assert (plain.status, plain.stdout, plain.stderr) == scenario.expected, plain
    yield from read_sites(sites_of(folder))


def sites_of(folder: Path) -> Path:
    """Return the file for the places that the run in a folder meets."""
    return folder.parent / f"{folder.name}.sites"


def read_sites(path: Path) -> Iterator[tuple[str, int]]:
    for line in path.read_text().splitlines():
        kind, offset = line.split()
        yield kind, int(offset, 16)


@dataclass(frozen=True)
class Fault:
    """A place whose ``nth`` call fails; 0: all of them."""

    kind: str
    offset: int
    line: str
    nth: int

    @property
    def is_the_programs(self) -> bool:
        """Return whether the hook makes the call for the program."""
        return self.kind == "driver" and self.line.partition(":")[0] in FOR_THE_PROGRAM

    def at(self, numbers: Sequence[int]) -> list[Fault]:
        """The same at these calls."""
        return [replace(self, nth=nth) for nth in numbers]


def complaint(tools: Tools, engine: Engine, scenario: Scenario, fault: Fault, folder: Path) -> str | None:
    """Return the problem of a run with this fault; None if it has none."""
    where = f"{scenario.name}: {fault.kind} {fault.line}, call {fault.nth or 'each'}"
    try:
        faulty = {"FAULT_SITE": f"{fault.offset:x}", "FAULT_NTH": str(fault.nth)}
        made = run(tools, engine, scenario, folder, FAULT_SITES=str(sites_of(folder)), **faulty)
    except subprocess.TimeoutExpired:
        return f"{where}: it hangs"
    if (made.status, made.stdout, made.stderr) != scenario.expected:
        return f"{where}: status {made.status}, output {made.stdout!r}, {made.stderr!r}"
    try:
        for directory in made.directories:
            read(directory)
    except (OSError, ValueError, LookupError, ProbeError) as error:
        return f"{where}: {type(error).__name__}: {error}"
    return None


def read(directory: Path) -> None:
    """Everything that a trace has; a trace without a log was never begun."""
    if not (directory / "event.log").exists():
        return
    trace = open_trace(directory)
    for kernel in trace.kernels:
        for row in kernel.result_rows:
            path = trace.results.path(row)
            assert path is not None
            if path.exists():
                kernel.read_result_file(path)


@dataclass
class Walk:
    """Results so far: problems, the lines that were met, and the number of runs."""

    complaints: list[str] = field(default_factory=list)
    met: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    """Lines that runs met in which something failed, among them those that undo what was begun."""
    runs: int = 0
    files: tuple[str, ...] = ("",)
    """Prefix of the files in which calls are to fail."""
    kinds: tuple[str, ...] = ("allocation", "write", "file", "engine", "thread", "driver")
    is_due: Callable[[int], bool] = lambda _: True
    """Predicate of the numbers of places that fail in slow runs; the others are only met."""
    slow_places: int = 0

    def go(self, tools: Tools, scenario: Scenario, folder: Path, numbers: Sequence[int], workers: int = 2) -> None:
        """Fail each place that no scenario has met before, at these of its calls."""
        folder.mkdir(parents=True)
        engine = Engine(folder / "engine")
        try:
            scenario = replace(scenario, environment=scenario.environment | scenario.prepare(engine, folder))
            places = self._new(tools, engine, scenario, folder)
            faults = [fault for place in self._due(scenario, places) for fault in place.at(numbers)]
            with ThreadPoolExecutor(workers) as pool:
                folders = [folder / str(n) for n in range(len(faults))]
                made = pool.map(partial(complaint, tools, engine, scenario), faults, folders)
                self.complaints += [words for words in made if words]
            offsets = {offset for path in folders for _, offset in read_sites(sites_of(path))}
            self.behind |= by_line(tools.built.hook, sorted(offsets)).keys() if offsets else set()
            self.runs += len(faults)
        finally:
            engine.close()

    def _due(self, scenario: Scenario, places: list[Fault]) -> list[Fault]:
        """Return the places that fail: of slow runs those whose turn it is, by a number through all scenarios."""
        if not scenario.is_slow:
            return places
        first, self.slow_places = self.slow_places, self.slow_places + len(places)
        return [place for number, place in enumerate(places, first) if self.is_due(number)]

    def _new(self, tools: Tools, engine: Engine, scenario: Scenario, folder: Path) -> list[Fault]:
        kinds = {offset: kind for kind, offset in sites(tools, engine, scenario, folder / "plain")}
        places = by_line(tools.built.hook, list(kinds))
        faults = [Fault(kinds[offset], offset, line, 0) for line, offsets in places.items() for offset in offsets]
        wanted = [
            fault
            for fault in faults
            if fault.kind in self.kinds and fault.line.startswith(self.files) and not fault.is_the_programs
        ]
        new = [fault for fault in wanted if fault.line not in self.met]
        self.met |= {fault.line for fault in new}
        return new


def listed(hook: Path, *, with_graphs: bool) -> set[str]:
    """The lines of all places that programs of the walk can lead to."""
    left_out = UNCALLED if with_graphs else UNCALLED + OF_GRAPHS
    return {line for line in set(listed_lines(hook)) | listed_driver_lines() if not line.startswith(left_out)}
