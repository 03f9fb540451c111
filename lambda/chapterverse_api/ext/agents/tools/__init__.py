"""Tools: named functions with schemas that a program or a model may call. All protocols share them."""
