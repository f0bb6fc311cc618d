"""MkDocs hook: adds the pages that ``generate`` makes, the pictures and the schemas to the files of the site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generate import ROOT
from generate.pages import pictures, site_pages
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not in ``docs/``."""
    for path, text in site_pages().items():
        files.append(File.generated(config, path, content=text))
    for path, source in pictures().items():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / source)))
    return files
