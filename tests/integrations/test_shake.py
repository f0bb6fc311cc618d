"""Runs with random delays: the first that leaves something else is reduced to the delays that do it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.kernels import entry, probed
from tui_probe.errors import UsageError
from tui_probe.integrations.shake import Left, Shaker, Site
from tui_probe.probe_files.loading import load_probe
from tui_probe.probe_files.option_probes import delay_probe

SITES = [Site(kernel, line, "ld.shared.u32") for kernel in ("first", "second", "third") for line in (3, 5, 8, 9, 20)]


class Delays(Shaker):
    """Runs of a program in which a delay in front of one instruction, with seeds from 4 on, changes the output."""

    guilty = Site("second", 9, "ld.shared.u32")

    def _run_undelayed(self) -> None:
        self.runs += 1

    def _run_delayed(self, seed, kernels, lines):  # type: ignore[no-untyped-def]
        self.runs += 1
        sites = [site for site in SITES if not kernels or site.kernel in kernels]
        delayed = [site for site in sites if lines is None or lines[0] <= site.line <= lines[1]]
        return ("output" if seed >= 4 and self.guilty in delayed else ""), sites


def test_shaker_reduces_delays_to_one_instruction() -> None:
    shaker = Delays((), ("program",), ())
    race = shaker.find(range(1, 51), [].append)
    assert race is not None
    assert (race.seed, race.sites, race.shown, race.tried) == (4, (Delays.guilty,), 3, 3)
    assert shaker.runs < 40
    assert Delays((), (), ()).find(range(1, 4), [].append) is None


def test_shaker_refuses_output_that_varies_without_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = iter(b"12")
    monkeypatch.setattr(Shaker, "_run", lambda *_: Left({"output": bytes([next(outputs)])}))
    with pytest.raises(UsageError, match=r"line 1 is '2', without delays '1'"):
        Shaker((), ("program",), ()).find(range(1, 3), [].append)


def test_delay_probe_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    text = entry(
        ".reg .b32 %r<3>;\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\nbar.sync 0;\nld.global.u32 %r1, [%rd1];\n"
        "st.global.u32 [%rd1+4], %r1;\nret;",
        ".param .u64 out",
    )
    texts = []
    for seed in (1, 1, 2):
        (tmp_path / "delays.toml").write_text(delay_probe(seed))
        texts.append(probed(text, "kernel", load_probe(str(tmp_path / "delays.toml"))))
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].count("%clock") == 6  # at a barrier and two accesses, twice each


def test_shake_is_refused_with_probes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tui_probe", "run", "--shake", "3", "-p", "gmem_bytes", "--", "true"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert "--shake cannot be combined with -p" in result.stderr
