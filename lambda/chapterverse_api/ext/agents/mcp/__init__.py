"""The Model Context Protocol: tools and pages for programs, without a session. Nothing here knows HTTP's framework."""
