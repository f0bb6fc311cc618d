"""An installation without C parts: the reason, and the wheel to install."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from tui_probe import __version__
from tui_probe.cli.main import main
from tui_probe.errors import LaunchError
from tui_probe.launcher.driver import MIN_GLIBC, glibc_version, native_library, require_hook

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def without_native(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TUI_PROBE_NATIVE", raising=False)
    monkeypatch.setattr("tui_probe.__path__", [str(tmp_path)])


@pytest.mark.parametrize(
    ("system", "machine", "libc", "expected"),
    [
        ("Darwin", "arm64", None, "programs can be profiled on Linux only, not on Darwin"),
        ("Windows", "AMD64", None, "programs can be profiled on Linux only, not on Windows"),
        ("Linux", "riscv64", "glibc 2.41", "on x86-64 and aarch64 only, not on riscv64"),
        ("Linux", "x86_64", None, "needs glibc 2.17 or later, and this system has another C library"),
        ("Linux", "x86_64", "glibc 2.12", "needs glibc 2.17 or later, and this system has 2.12"),
        ("Linux", "aarch64", "glibc 2.36", f"install tui_probe-{__version__}-py3-none-manylinux_2_17_aarch64"),
    ],
)
def test_require_hook_names_obstacle(
    system: str, machine: str, libc: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def confstr(_: str) -> str:
        if libc is None:
            raise ValueError("unrecognized configuration name")
        return libc

    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(os, "confstr", confstr)
    with pytest.raises(LaunchError, match=r"the viewer wheel.*open, show, report") as raised:
        require_hook()
    assert expected in str(raised.value)
    with pytest.raises(LaunchError, match="the viewer wheel"):
        native_library("hook")


def test_glibc_version_of_this_machine_is_that_of_its_loader() -> None:
    version = glibc_version()
    assert version == tuple(int(part) for part in platform.libc_ver()[1].split(".")[:2]) or version is None


@pytest.mark.parametrize("command", [["run", "--sim", "--", "true"], ["demo"], ["-p", "stalls", "--", "true"]])
def test_commands_that_profile_end_before_their_module_is_imported(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_module(name: str) -> None:
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr("tui_probe.cli.main.importlib.import_module", import_module)
    assert main(command) == 1
    assert "this is the viewer wheel" in capsys.readouterr().err


def test_min_glibc_is_that_of_wheels_that_ci_builds() -> None:
    tag = f"manylinux_{MIN_GLIBC[0]}_{MIN_GLIBC[1]}"
    assert f"wheel.tags=py3-none-{tag}_$1 " in (ROOT / ".ci/wheels").read_text()
    assert f"linux-gnu.{MIN_GLIBC[0]}.{MIN_GLIBC[1]})" in (ROOT / ".ci/zig.cmake").read_text()
