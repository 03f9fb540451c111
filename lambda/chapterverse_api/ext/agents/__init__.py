"""For programs and models: the Model Context Protocol, chat completions, plans, tools, and data that fits a schema."""
