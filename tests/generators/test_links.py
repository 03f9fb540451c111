"""`check` and the generators' own link checks on new projects with planted faults: each is found, and nothing else.

Docusaurus, VitePress and Starlight are compared beside the tests of their packages, because they share an installation.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from generators.project import compare_links
from infra.conftest import Tool
from infra.conftest import tool as tool

MKDOCS = {
    "mkdocs.yml": """\
site_name: Tea
site_url: https://tea.example/
theme: material
validation: {absolute_links: relative_to_docs, anchors: warn, unrecognized_links: warn}
nav: [index.md, guide/brew.md]
""",
    "docs/index.md": """\
# Tea

[a](gone-page.md) [b](gone-folder/) [c](gone-file.pdf) [d](#gone-here) [e](guide/brew.md#gone-there)
[f](/gone-rooted.md) ![g](gone-image.png) <img src="gone-tag.png"> <a href="gone-html.html">h</a>

[a](guide/brew.md) [b](guide/brew.md#green-tea) [c](tea.pdf) [d](#tea) [e](/guide/brew.md) ![f](tea.png)
<a href="/other-site/">g</a> <a href="https://tea.example/other-site/">h</a>
""",
    "docs/guide/brew.md": "# Brewing\n\nHot water first.\n\n## Green tea\n\nEighty degrees.\n",
}
SPHINX = {
    "docs/conf.py": 'project = "Tea"\nhtml_baseurl = "https://tea.example/"\nextensions = []\n',
    "docs/index.rst": """\
Tea
===

:doc:`gone-page` :ref:`gone-ref` :download:`gone-file.pdf` :term:`gone-term` `a <gone-html.html>`__
`b <brew.html#gone-there>`__ `c <#gone-here>`__

.. image:: gone-image.png

:doc:`brew` :ref:`green` :download:`tea.pdf` :term:`Leaf` `a <brew.html>`__ `b <brew.html#green>`__
`c </other-site/>`__ ``xref``

.. image:: tea.png

.. glossary::

   Leaf
     It is green.

.. toctree::

   brew
""",
    "docs/brew.rst": "Brewing\n=======\n\nHot water first.\n\n.. _green:\n\nGreen tea\n---------\n\nEighty degrees.\n",
}
HUGO = {
    "hugo.toml": """\
baseURL = 'https://tea.example/'
disableKinds = ['taxonomy', 'term']
refLinksErrorLevel = 'WARNING'
refLinksNotFoundURL = '/gone-ref/'
markup.goldmark.renderer.unsafe = true
""",
    "layouts/all.html": """\
<!doctype html>
<html lang="en"><head><title>T</title></head><body>
<nav>{{ range site.RegularPages }}<a href="{{ .RelPermalink }}">x</a>{{ end }}</nav>
<main><h1>{{ .Title }}</h1>{{ .Content }}</main></body></html>
""",
    "content/_index.md": """\
---
title: Tea
---

[a]({{< relref "gone-ref.md" >}}) [b](/gone-rooted/) [c](gone-page/) [d](#gone-here) [e](/brew/#gone-there)
[f](/gone-file.pdf) ![g](/gone-image.png) <img src="gone-tag.png">

[a]({{< relref "brew.md" >}}) [b](/brew/#green-tea) [c](/tea.pdf) ![d](/tea.png)
<a href="/other-site/" target="_self">e</a>
""",
    "content/brew.md": "---\ntitle: Brewing\n---\n\nHot water first.\n\n## Green tea\n\nEighty degrees.\n",
    **{f"content/{name}.md": f"---\ntitle: {name}\n---\n\nTea.\n" for name in ("pots", "cups", "leaves")},
}


def write(folder: Path, files: dict[str, str], assets: str) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for name in ("tea.pdf", "tea.png"):
        (folder / assets).mkdir(exist_ok=True)
        (folder / assets / name).write_bytes(b"tea")


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_mkdocs(tmp_path: Path) -> None:
    write(tmp_path, MKDOCS, "docs")
    said = run(tmp_path, "mkdocs", "build")
    # MkDocs looks at no HTML that an author wrote.
    assert compare_links(tmp_path / "site", MKDOCS, said) == {"gone-tag", "gone-html"}


def test_sphinx(tmp_path: Path) -> None:
    write(tmp_path, SPHINX, "docs")
    said = run(tmp_path, "sphinx", "-b", "html", "docs", "site")
    # Sphinx takes every address for one of another site.
    assert compare_links(tmp_path / "site", SPHINX, said) == {"gone-html", "gone-there", "gone-here"}


def test_hugo(tmp_path: Path, tool: Tool) -> None:
    write(tmp_path, HUGO, "static")
    said = tool("hugo", "hugo", "--source", str(tmp_path), "--destination", str(tmp_path / "site"))
    # Hugo looks at its own references alone.
    assert compare_links(tmp_path / "site", HUGO, said.stdout + said.stderr) == {
        "gone-rooted", "gone-page", "gone-here", "gone-there", "gone-file", "gone-image", "gone-tag",
    }  # fmt: skip
