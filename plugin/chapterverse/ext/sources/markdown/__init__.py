"""Reads Markdown and its dialects by way of HTML: MyST, MDX, the syntax of MkDocs, VitePress, Hugo and Jekyll."""
