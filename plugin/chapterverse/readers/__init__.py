"""Readers turn documentation pages into sections of blocks, with the anchors that the page really has.

Its folders import downwards: `sources`, `addresses`, `markdown`, `sections`, `html`.
"""
