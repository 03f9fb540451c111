"""Readers turn documentation pages into sections of blocks, with the anchors that the page really has.

Imports lead from `sections` to `html`. `folder`, `urls` and `page_rules` serve the readers of Markdown too.
"""
