"""What was said before a question, and how it is kept and signed."""
