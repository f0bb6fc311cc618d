"""Files of a release: version, changelog, formats and workflows agree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tui_probe.evals.inputs import COLLECTED_SCHEMA
from tui_probe.schemas import read_schema, schema_names
from tui_probe.trace.kernel_files import SITES_FORMAT
from tui_probe.ui.help_text import help_page
from tui_probe.version import installed_version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def release_notes(*tags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ".ci/release_notes.py", *tags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_release_notes_are_the_first_section_of_the_changelog() -> None:
    result = release_notes(f"v{PROJECT['version']}")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("### ")
    assert "\n## " not in result.stdout


@pytest.mark.parametrize("tag", [PROJECT["version"], "v0.9.9", f"v{PROJECT['version']}.1"])
def test_release_notes_refuse_other_tags(tag: str) -> None:
    result = release_notes(tag)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"tag the commit v{PROJECT['version']}" in result.stderr


def test_release_notes_without_a_tag_show_how_to_call_them() -> None:
    result = release_notes()
    assert (result.returncode, result.stderr) == (2, f"usage: python .ci/release_notes.py v{PROJECT['version']}\n")


def test_version_is_written_once() -> None:
    """Besides the changelog: modules read the name of the directory that the installer made of pyproject.toml."""
    listed = subprocess.run(["git", "ls-files", "tui_probe", "probes"], cwd=ROOT, capture_output=True, text=True)
    sources = [ROOT / name for name in listed.stdout.splitlines() if name.endswith(".py")]
    pattern = re.compile(rf"""["']{re.escape(PROJECT["version"])}["']""")
    assert [path.name for path in sources if pattern.search(path.read_text(encoding="utf-8"))] == []


def test_installed_version_is_that_of_the_nearest_installation(tmp_path: Path) -> None:
    (tmp_path / "site" / "tui_probe-3.2.1.dist-info").mkdir(parents=True)
    sources, installed = tmp_path / "checkout" / "tui_probe", tmp_path / "site" / "tui_probe"
    assert installed_version([sources, installed]) == "3.2.1"
    assert installed_version([sources]) == "unknown"


def test_stability_page_has_the_versions_of_formats() -> None:
    page = help_page("stability")
    assert f"`{COLLECTED_SCHEMA}` 1" in page
    assert f"`sites.json` | `version` {SITES_FORMAT}" in page
    for name in schema_names():
        properties = read_schema(name).get("properties", {})
        if "schema" in properties:
            assert f"`{properties['schema']['const']}` {properties['version']['const']}" in page, name


def test_workflows_name_scripts_that_exist() -> None:
    workflows = [path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")]
    assert len(workflows) == 2
    named = {name for text in workflows for name in re.findall(r"(?:bash|python) (\.ci/[\w.-]+)", text)}
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_workflows_name_actions_by_commit() -> None:
    """A tag of another repository can be moved, and one of these steps holds the token for publication."""
    workflows = [path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")]
    foreign = [name for text in workflows for name in re.findall(r"uses: ([^.\s].*)", text)]
    assert len(foreign) > 5
    assert [name for name in foreign if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", name)] == []


def test_python_versions_of_classifiers_are_tested_by_the_release() -> None:
    classified = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    workflow = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"python: (\[.*\])", workflow)
    assert classified == set(re.findall(r"3\.\d+", listed))
