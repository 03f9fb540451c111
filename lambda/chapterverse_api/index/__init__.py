"""The live index: which generation answers, and its addresses."""
