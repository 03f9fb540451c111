"""Chapter & Verse: a chat for a documentation site that answers with chapter-and-section citations.

The names of this package are what an extension builds with. Importing it loads nothing heavy: each name is loaded when
it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chapterverse.version import __version__

if TYPE_CHECKING:
    from chapterverse.embedding import Embedder
    from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexFault, InputError, ProviderError
    from chapterverse.indexing.additions import PageEnricher
    from chapterverse.ledger import Ledger
    from chapterverse.manifests import Command, Extension, Setting
    from chapterverse.model import Chunk, Head, Point
    from chapterverse.settings import Settings
    from chapterverse.store import Publication, Snapshot, Store

#: The public names by the module that defines them.
_PLACES = {
    "embedding": "Embedder",
    "errors": "ChapterVerseError ConfigurationError IndexFault InputError ProviderError",
    "indexing.additions": "PageEnricher",
    "ledger": "Ledger",
    "manifests": "Command Extension Setting",
    "model": "Chunk Head Point",
    "settings": "Settings",
    "store": "Publication Snapshot Store",
}

__all__ = [
    "ChapterVerseError",
    "Chunk",
    "Command",
    "ConfigurationError",
    "Embedder",
    "Extension",
    "Head",
    "IndexFault",
    "InputError",
    "Ledger",
    "PageEnricher",
    "Point",
    "ProviderError",
    "Publication",
    "Setting",
    "Settings",
    "Snapshot",
    "Store",
    "__version__",
]


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
