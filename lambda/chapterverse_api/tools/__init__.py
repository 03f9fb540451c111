"""Tools: named functions with schemas that a program or a model may call. Each protocol hands on the same registry."""
