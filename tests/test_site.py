"""Pages of the documentation site: all are in the navigation, and links between them lead somewhere.

``.ci/run`` builds the site; this needs no MkDocs.
"""

from __future__ import annotations

import posixpath
import re
import runpy
from functools import cache
from pathlib import Path

import pytest

from docs.generate.pages import pictures, site_markdown, site_pages
from tui_probe.cli.parser import COMMANDS

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^)\s]+)\)")


@cache
def files() -> dict[str, str]:
    """All files of the site that are text."""
    return {"index.md": (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), **site_pages()}


@cache
def anchors(path: str) -> set[str]:
    """Anchors of the headings of a page, as MkDocs makes them."""
    headings = re.findall(r"^#+ (.*)$", files()[path], re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


def test_navigation_lists_each_page_once() -> None:
    listed = re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(path for path in files() if path.endswith(".md"))


def test_links_lead_to_pages_and_headings() -> None:
    known = {*files(), *pictures()}
    for path, text in files().items():
        prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        for link in LINK.findall(prose):
            target, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            assert target in known, f"{path}: {link}"
            assert not anchor or anchor in anchors(target), f"{path}: {link}"


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("`tui-probe help json`", "[`tui-probe help json`](../topics/json.md)"),
        ("`tui-probe show lines T`", "[`tui-probe show lines T`](../reference/commands.md#tui-probe-show)"),
        ("[`tui-probe run`](x.md) `tui-probe nothing`", "[`tui-probe run`](x.md) `tui-probe nothing`"),
        ("```console gpu\n$ `tui-probe help json`\n```", "```console\n$ `tui-probe help json`\n```"),
    ],
)  # fmt: skip
def test_commands_become_links(text: str, linked: str) -> None:
    assert site_markdown(text) == linked


def test_titles_of_topics_have_no_command_word() -> None:
    titles = {path: text.partition("\n")[0] for path, text in files().items() if path.startswith("topics/")}
    assert titles["topics/ci.md"] == "# CI: limits for kernels in tests"
    assert titles["topics/python-api.md"] == "# Python API: traces in scripts and notebooks"
    assert titles["topics/event-log.md"] == "# event.log: log of the hook driver, one line per event"
    assert [title for path, title in titles.items() if title.startswith(f"# {path[7:-3]}:")] == []


def test_command_reference_has_commands_and_options() -> None:
    page = files()["reference/commands.md"]
    assert all(f"\n## tui-probe {name}\n" in page for name in COMMANDS)
    assert "\ntui-probe run [OPTIONS] COMMAND...\n" in page
    assert "\n| `--machine-code` `" in page


def test_api_reference_has_signatures() -> None:
    page = files()["reference/api.md"]
    assert "\nclass tui_probe.Kernel\n" in page
    assert "\ntui_probe.open(" in page


def test_checker_reports_links_anchors_and_foreign_addresses(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="here">A</h1><a href="#here"></a><a href="#gone"></a><a href="b.html"></a><a href="https://x.org"></a>'
        '<script src="https://x.org/x.js"></script><link rel="canonical" href="https://x.org"><img src="c.svg">'
    )
    (tmp_path / "c.svg").write_text("<style>src: url('https://x.org/f.woff')</style>")
    problems = runpy.run_path(str(ROOT / ".ci" / "check_site.py"))["problems"](tmp_path)
    assert problems == [
        "a.html: loads https://x.org/x.js",
        "a.html: #gone: no such anchor",
        "a.html: b.html: no such file",
        "c.svg: loads https://x.org/f.woff",
    ]
