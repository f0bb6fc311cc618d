"""Programs that do much in many threads at the same time, through the launcher: the hook and the simulated driver under
ThreadSanitizer, and under AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer.

On a GPU launches do not wait for kernels and probed copies of graphs to be made; on the simulated one they do, unless
TUI_PROBE_PATIENT is taken away: then threads of the hook make them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tui_probe.trace.follow import open_trace

from ..graphs.cuda_graph import KERNELS
from ..hook.conftest import ROOT, compile_c, sanitized_natives
from ..turns import due
from .conftest import Tool

SOURCES = {
    "graphs": ROOT / "tests" / "graphs" / "busy_graphs.c",
    "contexts": ROOT / "tests" / "attack" / "busy_contexts.c",
}
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99:verify_asan_link_order=0",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=98:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=97:history_size=7",
}
PROBED_REPLAYS = 21
AS_ON_A_GPU = ["env", "-u", "TUI_PROBE_PATIENT", f"GRAPHS_UNTIL={PROBED_REPLAYS}"]
WAYS = {
    "all": (["--launches", "all"], []),
    "auto": ([], []),
    "auto, as on a GPU": ([], AS_ON_A_GPU),
    "timed, as on a GPU": ([], [*AS_ON_A_GPU, "TUI_PROBE_GRAPHS=timed"]),
}


@dataclass(frozen=True)
class Sanitized:
    """Folders of libraries and programs built with a sanitizer."""

    sanitizer: str
    natives: Path
    programs: dict[str, Path]

    def tool(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
        for name, value in SETTINGS.items():
            monkeypatch.setenv(name, value)
        if self.sanitizer == "thread":  # next to an audit library glibc has no room for the TLS of libtsan
            monkeypatch.setenv("TUI_PROBE_LOADING", "preload")
        return Tool(folder, self.natives)


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sanitized:
    natives = sanitized_natives(request.param)
    folder = tmp_path_factory.mktemp("busy")
    programs = {name: folder / name for name in SOURCES}
    for name, program in programs.items():
        compile_c(SOURCES[name], program, str(natives / "hook" / "libcuda.so.1"), f"-fsanitize={request.param}")
    return Sanitized(request.param, natives, programs)


@pytest.mark.parametrize("way", due(WAYS))
def test_graphs_in_many_threads(
    sanitized: Sanitized, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    options, before = WAYS[way]
    tool = sanitized.tool(tmp_path, monkeypatch)
    kernels = tmp_path / "kernels.ptx"
    kernels.write_bytes(KERNELS)
    command = [str(sanitized.programs["graphs"]), str(kernels)]
    unprofiled = tool.unprofiled(*command)
    assert (unprofiled.returncode, len(unprofiled.stdout.split())) == (0, 4), unprofiled.stderr
    run, trace = tool.run([*before, *command], *options)
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (0, unprofiled.stdout, 1), run.stderr
    assert sum(graph.replays_probed for graph in open_trace(trace).graphs) >= PROBED_REPLAYS


@pytest.mark.parametrize("way", due(WAYS))
def test_contexts_in_many_threads(
    sanitized: Sanitized, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    options, before = WAYS[way]
    tool = sanitized.tool(tmp_path, monkeypatch)
    run, trace = tool.run([*before, str(sanitized.programs["contexts"])], *options)
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (0, "180 of 180\n", 1), run.stderr
    assert " dropped 0 " in (trace / "event.log").read_text()
