"""Readers turn documentation pages into sections of blocks, with the anchors that the page really has."""
