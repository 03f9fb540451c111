"""Work on an index without its site: the commands `export`, `import`, `repair` and `unpublish`. State: stable.

export_file   an index as JSON lines, written and read       command   the commands
maintenance   fills an index from such a file, repairs one
"""
