"""Work on an index without its site: the commands `export`, `import`, `repair` and `unpublish`. State: stable."""
