"""Finds the address of each page: as a site states it, or by the rule of its generator."""
