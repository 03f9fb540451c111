"""Works on the built site of any generator: injects the widget and checks the result."""
