"""Folders of translations."""

from __future__ import annotations

import pytest

from chapterverse.readers.sources.markdown_folder import locale_folders


@pytest.mark.parametrize(
    ("files", "locales"),
    [
        (["index.md", "fr/index.md", "pt_BR/index.md"], {"fr": "fr", "pt_BR": "pt-BR"}),
        (["en/index.md", "en/guide/a.md", "de/index.md", "de/guide/a.mdx"], {"en": "en", "de": "de"}),
        (["guide/a.md", "zh-CN/guide/a.md", "zh-CN/guide/b.md"], {"zh-CN": "zh-CN"}),
        (["index.md", "id/tokens.md", "is/true.md"], {}),
        (["index.md", "api/index.md", "guide/index.md"], {}),
        (["index.md", "fr/index.md", "fr/a.md", "fr/b.md"], {}),
    ],
)
def test_a_name_alone_proves_nothing(files: list[str], locales: dict[str, str]) -> None:
    assert locale_folders(files) == locales
