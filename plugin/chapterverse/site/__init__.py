"""Works on the built site of any generator: injects the widget, writes its files and those for agents."""
