"""The owner's persona for the chat."""
