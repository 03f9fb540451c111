"""From sources to a published index: chunk, plan, embed, apply."""
