"""The settings file: what it says is used, and a wrong value gives a warning and stops nothing."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.cli import run_options
from tui_probe.probe_files import DEFAULT_PROBE
from tui_probe.settings import SETTINGS, Settings, read_settings, readme_section, settings_path
from tui_probe.ui import keys


@pytest.fixture(autouse=True)
def _own_keys() -> object:
    yield
    keys.remap({})


def write(folder: Path, text: str) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


def test_all_settings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    text = "\n".join(setting.example for setting in SETTINGS)
    settings = read_settings(write(tmp_path, text))
    assert settings.problems == ()
    assert (settings.palette, settings.ascii, settings.low_bandwidth, settings.mouse) == ("light", True, True, False)
    assert (settings.trace_dir, settings.probe) == (Path("/home/ada/traces"), DEFAULT_PROBE)
    assert settings.keys == {"sort": ("ctrl+s",)}


def test_the_place_of_the_file() -> None:
    assert settings_path({"XDG_CONFIG_HOME": "/cfg"}) == Path("/cfg/tui-probe/settings.toml")


def test_without_a_file_all_is_unset(tmp_path: Path) -> None:
    settings = read_settings(tmp_path / "none.toml")
    assert (settings.exists, settings.problems, settings.palette) == (False, (), None)


def test_pipe_in_place_of_the_file_counts_as_unset(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "settings.toml")
    settings = read_settings(tmp_path / "settings.toml")
    (problem,) = settings.problems
    assert problem.startswith(f"{tmp_path}/settings.toml: cannot be read: not a regular file")


@pytest.mark.parametrize(
    ("text", "problem_text"),
    [
        ("colour = 1", "colour: unknown setting; use one of palette, ascii"),
        ('palette = "pink"', "palette: 'pink' is not one of dark, light"),
        ("ascii = 1", "ascii: 1 is not true or false"),
        ("trace_dir = 3", "trace_dir: 3 is not a text"),
        ('max_trace_bytes = "much"', "max_trace_bytes: 'much' is not a limit; write e.g. max_trace_bytes = \"4G\""),
        ("max_result_files = 3", "max_result_files: 3 is not a text"),
        ('launches = "some"', "launches: 'some' is neither auto nor all nor a list such as 0-9,20"),
        ('machine_code = "some"', "machine_code: 'some' is not one of auto, all, off"),
        ("keys = 3", "keys: 3 is not a table"),
        ("[keys]\nsort = 3", "keys.sort: 3 is neither a key nor a list of keys"),
        ("palette", "not valid TOML, so the file is ignored"),
    ],
)
def test_mistakes_are_reported_with_file_and_key(tmp_path: Path, text: str, problem_text: str) -> None:
    path = write(tmp_path, text + "\n")
    (problem,) = read_settings(path).problems
    assert problem.startswith(f"{path}: {problem_text}")


def test_one_wrong_setting_leaves_the_others(tmp_path: Path) -> None:
    settings = read_settings(write(tmp_path, 'palette = "light"\nmouse = "yes"\n'))
    assert (settings.palette, settings.mouse, len(settings.problems)) == ("light", None, 1)


@given(st.binary(max_size=200))
def test_no_content_raises(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    read_settings(path)


def test_directory_in_place_of_the_file_is_reported(tmp_path: Path) -> None:
    assert "cannot be read" in read_settings(tmp_path).problems[0]


def test_rows_get_other_keys() -> None:
    assert keys.remap({"sort": ("Ctrl-S", "F5"), "search": ("=",)}) == []
    by_id = {key.id: key.keys for key in keys.rows()}
    assert by_id["sort"] == ("ctrl+s", "f5")
    assert by_id["search"] == ("equals_sign",)
    assert keys.keymap() == {"sort": "ctrl+s,f5", "search": "equals_sign"}


def test_keys_can_be_exchanged() -> None:
    assert keys.remap({"sort": ("r",), "reverse": ("s",)}) == []


@pytest.mark.parametrize(
    ("changes", "problem_text"),
    [
        ({"sortt": ("x",)}, "keys.sortt: unknown id; ids: interrupt,"),
        ({"sort": ("hyper+x",)}, "keys.sort: 'hyper+x' is not a key"),
        ({"sort": ("enterr",)}, "keys.sort: 'enterr' is not a key"),
        ({"sort": ("slash",)}, "keys.sort: / is already the key of search"),
        ({"sort": ("Ctrl-Q",)}, "keys.sort: Ctrl-Q is already the key of quit"),
    ],
)
def test_impossible_keys_are_reported_and_ignored(changes: dict[str, tuple[str, ...]], problem_text: str) -> None:
    (problem,) = keys.remap(changes)
    assert problem.startswith(problem_text)
    assert keys.keymap() == {}
    assert next(key for key in keys.rows() if key.id == "sort").keys == ("s",)


def test_colliding_new_keys_are_reported() -> None:
    problems = keys.remap({"sort": ("f5",), "reverse": ("f5",)})
    assert len(problems) == 1
    assert "F5 is already the key of" in problems[0]


def test_the_readme_section_names_every_setting() -> None:
    section = readme_section()
    for setting in SETTINGS:
        assert f"`{setting.key}`" in section
        assert setting.text in section


def test_limits_of_a_run_come_from_the_command_line_before_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(max_trace_bytes="2G", max_result_files="none", max_log_bytes="0", max_write_rate="30M")
    monkeypatch.setattr(run_options, "user_settings", lambda: settings)
    names = (
        "max_trace_bytes", "max_result_files", "max_log_bytes", "max_write_rate", "max_probe_memory", "max_host_memory",
        "max_kept_bytes",
    )  # fmt: skip
    arguments = argparse.Namespace(**dict.fromkeys(names) | {"max_result_files": 7})
    assert run_options.limits_of(arguments) == {
        "max_trace_bytes": 2 << 30, "max_result_files": 7, "max_log_bytes": 0, "max_write_rate": 30 << 20,
        "shares": False,
    }  # fmt: skip
    monkeypatch.setattr(run_options, "user_settings", Settings)
    assert run_options.limits_of(argparse.Namespace(**dict.fromkeys(names))) == {"shares": True}
