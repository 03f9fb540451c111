"""The service: the question's way from HTTP to a cited answer."""
