"""What rooms with leases need: whether a publisher that ran on this machine still does."""
