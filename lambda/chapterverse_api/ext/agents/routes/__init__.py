"""Routes for programs: the Model Context Protocol, chat completions, plans."""
