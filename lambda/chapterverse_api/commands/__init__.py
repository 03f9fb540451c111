"""What the command line asks of the service. The service itself loads nothing of it."""
