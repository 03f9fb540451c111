"""Finds the pages to index: in a built site, in a folder of Markdown, and beyond the site."""
