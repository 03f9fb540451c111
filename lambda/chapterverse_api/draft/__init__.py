"""Generators draft answers from passages. A setting chooses one by name.

What quotes cites by construction. What a model writes is not trusted to cite: the room `check` decides.
"""
