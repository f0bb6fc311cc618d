"""Graphs in many threads at once, with the hook and the simulated driver under AddressSanitizer and ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.trace.follow import open_trace

from ..conftest import built_once, digest_of
from ..graphs.cuda_graph import KERNELS
from ..hook.conftest import ROOT, build_hook, compile_c
from .conftest import Tool

SOURCE = ROOT / "tests" / "graphs" / "busy_graphs.c"
SETTINGS = {
    "ASAN_OPTIONS": "detect_leaks=0:exitcode=99:verify_asan_link_order=0",
    "TSAN_OPTIONS": "halt_on_error=1:exitcode=97:history_size=7",
}


@pytest.fixture(scope="module", params=["address", "thread"])
def sanitized(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of the libraries, and the program."""
    with built_once(digest_of(ROOT / "hook", request.param, "sim")) as (place, is_new):
        if is_new:
            build_hook(place, request.param, targets=("sim",))
    program = tmp_path_factory.mktemp("busy") / "busy_graphs"
    compile_c(SOURCE, program, str(place / "hook" / "libcuda.so.1"), f"-fsanitize={request.param}")
    return place, program


@pytest.mark.parametrize(
    ("options", "before"),
    [
        (["--launches", "all"], []),
        ([], []),
        ([], ["env", "-u", "TUI_PROBE_PATIENT"]),
        ([], ["env", "-u", "TUI_PROBE_PATIENT", "TUI_PROBE_GRAPHS=timed"]),
    ],
    ids=["all", "auto", "auto, as on a GPU", "timed, as on a GPU"],
)
def test_graphs_in_many_threads(
    sanitized: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    before: list[str],
) -> None:
    """On a GPU replays do not wait for kernels and twins to be made, but in the simulated one's usual runs they do."""
    natives, program = sanitized
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    kernels = tmp_path / "kernels.ptx"
    kernels.write_bytes(KERNELS)
    command, tool = [str(program), str(kernels)], Tool(tmp_path, natives)
    alone = tool.alone(*command)
    assert (alone.returncode, len(alone.stdout.split())) == (0, 4), alone.stderr
    run, trace = tool.run([*before, *command], *options)
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (0, alone.stdout, 1), run.stderr
    assert sum(graph.replays_probed for graph in open_trace(trace).graphs) > 20
