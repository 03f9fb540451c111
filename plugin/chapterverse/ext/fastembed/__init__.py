"""Models that embed on the own processor."""
