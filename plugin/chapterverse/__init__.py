"""Chapter & Verse: a chat for a documentation site that answers with chapter-and-section citations.

Importing this package loads nothing heavy; each module imports what it needs.
"""

__version__ = "0.1.0"
