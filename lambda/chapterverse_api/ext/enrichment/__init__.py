"""A language model and the check of citations, for builds that enrich pages."""
