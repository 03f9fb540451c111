"""The tools of every site: search the documentation, read it, ask it, and verify a claim against it."""

from __future__ import annotations

from chapterverse_api.ext.agents.tools.ask_docs import AskArguments, DocsAnswer, ask_docs
from chapterverse_api.ext.agents.tools.read_section import ReadArguments, ReadResult, read_section
from chapterverse_api.ext.agents.tools.registry import ToolRegistry, make_tool
from chapterverse_api.ext.agents.tools.search_docs import SearchArguments, SearchResults, search_docs
from chapterverse_api.ext.agents.tools.verify_claim import ClaimArguments, ClaimVerdict, verify_claim


def registry() -> ToolRegistry:
    """Return the tools that every site has."""
    return ToolRegistry(
        (
            make_tool("search_docs", "Search the documentation", search_docs, SearchArguments, SearchResults),
            make_tool("read_section", "Read the documentation", read_section, ReadArguments, ReadResult),
            make_tool("ask_docs", "Ask the documentation", ask_docs, AskArguments, DocsAnswer),
            make_tool("verify_claim", "Verify a claim", verify_claim, ClaimArguments, ClaimVerdict),
        )
    )
