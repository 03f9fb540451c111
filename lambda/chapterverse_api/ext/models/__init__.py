"""What an answer by a model needs beside its provider: its text is read, it searches again, its prompt is filled."""
