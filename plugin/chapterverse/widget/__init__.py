"""The widget's files: ES modules, of which browsers get a few, each with all that it needs at once."""
