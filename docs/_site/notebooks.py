"""For the site: the notebooks of docs/gallery as pages, with what they show."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbconvert import MarkdownExporter

__all__ = ["on_files"]


class _Notebook(File):
    """A notebook, of which mkdocs makes a page at its place."""

    def is_documentation_page(self) -> bool:
        return True


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """The *files* of the site, notebooks among its pages (a hook of mkdocs)."""
    exporter = MarkdownExporter()
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            text, _resources = exporter.from_filename(file.abs_src_path)
            files.remove(file)
            files.append(_Notebook.generated(config, file.src_uri, content=text))
    return files
