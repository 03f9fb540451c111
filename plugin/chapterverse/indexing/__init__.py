"""From sources to a published index: read, chunk, compare, embed, apply."""
