"""The Model Context Protocol: tools and pages for programs, without a session."""
