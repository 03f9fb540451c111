"""Works on a built site of any generator: injects the widget, and checks the result."""
