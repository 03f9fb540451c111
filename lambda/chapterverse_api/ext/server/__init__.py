"""The server of `chapterverse serve` and of previews: uvicorn with bounds on clients and log. State: stable."""
