"""The service's operations for the command line. The service itself doesn't load them."""
