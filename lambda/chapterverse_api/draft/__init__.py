"""Generators draft answers from passages. A setting chooses one by name.

A generator proposes and `check` decides: no generator is trusted to cite.
"""
