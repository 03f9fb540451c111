"""Work that a client does before it may ask more than half of its limit."""
