"""The commands `publish` and `preview`, which the plugins on npm call. State: stable."""
