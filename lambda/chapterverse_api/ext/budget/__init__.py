"""What models cost, and the limits on it."""
