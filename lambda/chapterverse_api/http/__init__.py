"""HTTP: routes, the guard before them, the event stream."""
