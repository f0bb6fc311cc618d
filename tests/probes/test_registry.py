"""Probes of others keep their names apart from those that there are, and a folder without a probe is an error."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.loading import built_in_files, find_probe
from tui_probe.probekit import registry
from tui_probe.probekit.page_kinds import RESERVED_PAGES
from tui_probe.probekit.registry import add_folder, probe_named

FOLDER = Path(__file__).parents[1] / "e2e" / "probes" / "store_count"


@pytest.fixture(autouse=True)
def none_added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_user_probes", {})
    yield
    for name in [name for name in registry._modules if name.startswith("tui_probe_folder_")]:
        del registry._modules[name]


def named(folder: Path, probe: str, view: str = "stores") -> Path:
    """The example under other names."""
    copy = folder / probe
    shutil.copytree(FOLDER, copy)
    code = (copy / "__init__.py").read_text()
    assert '"store_count"' in code
    code = code.replace('name="store_count"', f'name="{probe}"').replace('count_kind("stores"', f'count_kind("{view}"')
    (copy / "__init__.py").write_text(code)
    return copy


@pytest.mark.parametrize("view", ["summary", "lines", "kernels", "schedule", "blocks"])
def test_a_page_is_not_called_as_another_one(tmp_path: Path, view: str) -> None:
    assert view in RESERVED_PAGES or view in {
        probe_view.name for probe in registry.all_probes() for probe_view in probe.views
    } | {"schedule"}
    if view == "schedule":  # a name that is free
        add_folder(named(tmp_path, "mine", view))
        return
    with pytest.raises(ProbeFileError, match=f"page {view} exists; choose another name"):
        add_folder(named(tmp_path, "mine", view))
    assert probe_named("mine") is None


def test_a_probe_is_not_called_as_a_built_in_one(tmp_path: Path) -> None:
    with pytest.raises(ProbeFileError, match="probe block_sched exists; choose another name"):
        add_folder(named(tmp_path, "block_sched"))


def test_a_folder_may_be_named_twice_and_a_built_in_one_too() -> None:
    add_folder(FOLDER)
    add_folder(FOLDER)
    assert probe_named("store_count") is not None
    add_folder(built_in_files()["block_sched"].parent)


def test_the_name_of_a_probe_is_its_folders(tmp_path: Path) -> None:
    folder = named(tmp_path, "mine").rename(tmp_path / "other")
    with pytest.raises(ProbeFileError, match=r"PROBES names mine, .* Probe.name must be other"):
        add_folder(folder)


def test_a_folder_without_a_probe_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProbeFileError, match=r"neither probe\.toml nor probe\.py"):
        add_folder(tmp_path)
    with pytest.raises(ProbeFileError, match="is not a directory"):
        add_folder(tmp_path / "missing")


def test_a_name_with_a_slip_has_a_proposal() -> None:
    with pytest.raises(ProbeFileError, match=r"did you mean block_sched\?$"):
        find_probe("block_shed")
    with pytest.raises(ProbeFileError, match="there are: "):
        find_probe("nothing_of_the_kind")
