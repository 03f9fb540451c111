"""The service's side of the report: reads the kept conversations. State: trial."""
