"""What the owner tells the chat besides the pages."""
