"""All generated pages of the site: path below ``docs/`` -> Markdown."""

from __future__ import annotations

import json
import re
from typing import Final

from tui_probe.cli.parser import COMMANDS
from tui_probe.help import topics
from tui_probe.schemas import read_schema, schema_names
from tui_probe.ui.help_text import help_page

from . import ROOT, reference
from .api import api_page

PROJECT: Final = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages in the repository's top directory."""
_PICTURES: Final = {
    "tutorial": ("tour.svg", "Recording of these steps: from the demo to a line of source"),
    "ci": ("compare.svg", "Recording: a run, a fix, a second run, and their comparison"),
    "tour": ("live.svg", "Live screen while a program runs"),
    "probe-language": ("diff.svg", "PTX of a kernel, pruned and probed"),
}
"""Pictures of topics; a terminal shows these pages without them."""
_ACRONYMS: Final = {"api", "ci", "gpu", "json"}
_FENCE: Final = re.compile(r"^(```\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND: Final = re.compile(r"(?<![`\[])`tui-probe\s+([a-z-]+)(?:\s+([a-z-]+))?[^`]*`(?![`\]])")


def site_pages() -> dict[str, str]:
    """Return the text of each generated file."""
    pages = {f"topics/{topic.name}.md": topic_page(topic.name) for topic in topics()}
    pages |= {f"project/{name}": (ROOT / name).read_text(encoding="utf-8") for name in PROJECT}
    pages |= {
        "reference/commands.md": reference.commands_page(),
        "reference/probes.md": reference.probes_page(),
        "reference/metrics.md": reference.metrics_page(),
        "reference/schemas.md": reference.schemas_page(),
        "reference/api.md": api_page(),
    }
    schemas = {f"reference/{name}.json": json.dumps(read_schema(name), indent=1) for name in schema_names()}
    return {path: site_markdown(text) for path, text in pages.items()} | schemas


def topic_page(name: str) -> str:
    """Return a page of help under a title for readers who did not type its name, with its picture."""
    title, _, text = help_page(name).partition("\n")
    parts = [word.upper() if word in _ACRONYMS else word for word in name.split("-")]
    shown = title.replace(f"# {name}: ", f"# {parts[0][0].upper()}{' '.join(parts)[1:]}: ", 1)
    picture, caption = _PICTURES.get(name, ("", ""))
    return "\n".join([shown, *(["", f"![{caption}](../pictures/{picture})"] if picture else []), text])


def pictures() -> dict[str, str]:
    """Return where each picture is on the site, and in the repository."""
    return {f"pictures/{path.name}": str(path.relative_to(ROOT)) for path in (ROOT / "tests/pictures").glob("*.svg")}


def site_markdown(text: str) -> str:
    """Link commands and topics to their pages, and cut what follows the language of a block of code."""
    parts: list[str] = []
    end = 0
    for block in _FENCE.finditer(text):
        parts += [_COMMAND.sub(_link, text[end : block.start()]), f"{block[1]}\n{block[2]}```"]
        end = block.end()
    return "".join([*parts, _COMMAND.sub(_link, text[end:])])


def _link(match: re.Match[str]) -> str:
    """Return a command as a link to its topic or to its options; unchanged if it is neither."""
    command, topic = match.groups()
    if command == "help" and topic in {known.name for known in topics()}:
        return f"[{match[0]}](../topics/{topic}.md)"
    return f"[{match[0]}](../reference/commands.md#tui-probe-{command})" if command in COMMANDS else match[0]
