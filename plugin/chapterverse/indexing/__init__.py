"""From sources to a published index: read, chunk, plan, embed, apply."""
