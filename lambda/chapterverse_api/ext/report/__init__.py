"""The service's side of the report: reads the kept conversations, and serves the gaps to agents. State: trial."""
