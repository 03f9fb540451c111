"""Which command builds a project's site and its index, by the file of its generator's configuration."""

from __future__ import annotations

from pathlib import Path

#: Files of a configuration, as patterns, and the command. The first that is there counts.
_COMMANDS = (
    ("mkdocs.y*ml", "`mkdocs build` with the plugin"),
    ("zensical.toml", "`zensical build`, then `chapterverse index site`"),
    ("docusaurus.config.*", "`npm run build` with the plugin"),
    ("astro.config.*", "`npm run build` with the plugin"),
    (".vitepress", "`vitepress build` with the plugin"),
    ("docs/.vitepress", "`vitepress build docs` with the plugin"),
    ("conf.py", "`sphinx-build` with the extension"),
    ("docs/conf.py", "`sphinx-build` with the extension"),
    ("docs/source/conf.py", "`sphinx-build` with the extension"),
    ("source/conf.py", "`sphinx-build` with the extension"),
    ("hugo.*", "`hugo`, then `chapterverse index public`"),
    ("_config.yml", "`jekyll build`, then `chapterverse index _site`"),
)


def build_command(folder: Path) -> str:
    """Return the command of the generator that a folder is configured for, else that for a built site."""
    named = (command for pattern, command in _COMMANDS if any(folder.glob(pattern)))
    return next(named, "`chapterverse index SITE_DIR` on the built site")
