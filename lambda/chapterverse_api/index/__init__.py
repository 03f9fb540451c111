"""The live index: which generation answers, at which addresses."""
