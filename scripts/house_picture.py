"""Draws the house: the layers of both packages, the ways of a page and of a question, and the rooms.

    python scripts/house_picture.py     # writes site_example/docs/images/house.svg

`LAYERS` is what `tests/test_architecture.py` holds the imports to; it also says when the picture is stale.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "site_example" / "docs" / "images" / "house.svg"
PACKAGES = {"chapterverse": ROOT / "plugin" / "chapterverse", "chapterverse_api": ROOT / "lambda" / "chapterverse_api"}

#: The layers of each package from the top down: a part imports only those of lower layers, in its own package.
LAYERS = {
    "chapterverse": (
        "ext", "cli mkdocs sphinx", "site", "indexing", "calibration local_server",
        "embedding", "store", "ledger", "readers widget settings",
        "extensions filters database text reading",
        "page_kinds progress build_cache",
        "project model errors version manifests",
    ),
    "chapterverse_api": (
        "handler", "ext", "commands", "app", "http", "service", "answer", "search",
        "conversation", "limits index draft",
        "rejections retrieval_contract", "contract phrases log deadline", "request_limits",
    ),
}  # fmt: skip

#: The parts that a page and a question pass, in order.
WAYS = {
    "chapterverse": "mkdocs readers indexing store",
    "chapterverse_api": "http answer search draft",
}
_WIDTH, _PAD, _ROW = 490, 14, 36
_LETTER = 7.6
_STYLE = (
    "text{fill:#24292f}.box{fill:#fff;stroke:#8b949e}.way{fill:#e8eaf9;stroke:#4553c4;stroke-width:2}.layer{fill:#f3f4f6}"
    ".number{fill:#4553c4;font-size:11px}.package{font-size:16px;font-weight:600}.faint{fill:#57606a}"
)


def draw() -> str:
    """Return the picture as SVG."""
    columns = [_column(package, at * (_WIDTH + _PAD)) for at, package in enumerate(LAYERS)]
    width, height = 2 * _WIDTH + _PAD, max(map(len, LAYERS.values())) * _ROW + 120
    size = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" role="img"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            "<title>The layers of both packages: a part imports only parts below it</title>",
            f"<style>{_STYLE}</style>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *(line for column in columns for line in column),
            "</svg>\n",
        )
    )


def _column(package: str, left: int) -> Iterator[str]:
    traveler = "page" if package == "chapterverse" else "question"
    yield _text("package", left + 8, 24, package)
    yield _text("faint", left + 8, 44, f"numbered: the way of a {traveler}")
    for row, layer in enumerate(LAYERS[package]):
        yield from _layer(layer.split(), WAYS[package].split(), left, 56 + row * _ROW)
    names = sorted(file.parent.name for file in (PACKAGES[package] / "ext").glob("*/__init__.py"))
    lines = wrap(f"rooms in ext: {', '.join(names)}", 72)
    below = 56 + len(LAYERS[package]) * _ROW + 18
    yield from (_text("faint", left + 8, below + 18 * at, line) for at, line in enumerate(lines))


def _layer(parts: list[str], way: list[str], left: int, top: int) -> Iterator[str]:
    yield f'<rect class="layer" x="{left}" y="{top}" width="{_WIDTH}" height="{_ROW - 4}" rx="6"/>'
    at = left + 6
    for part in parts:
        number = str(way.index(part) + 1) if part in way else ""
        width = int(len(part) * _LETTER) + (22 if number else 12)
        kind = "way" if number else "box"
        yield f'<rect class="{kind}" x="{at}" y="{top + 3}" width="{width}" height="26" rx="5"/>'
        yield _text("part", at + 6, top + 20, part)
        if number:
            yield _text("number", at + width - 11, top + 14, number)
        at += width + 5


def _text(kind: str, x: int, y: int, text: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{text}</text>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
