"""The HTTP side: routes, the guard before them, the event stream."""
