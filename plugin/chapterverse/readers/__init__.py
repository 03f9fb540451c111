"""Readers turn documentation pages into sections of blocks, with the anchors that the page really has.

Its folders import downwards: `sources`, `markdown`, `sections`, `html`. `urls`, `page_rules` and `page_bounds` serve
several of them.
"""
