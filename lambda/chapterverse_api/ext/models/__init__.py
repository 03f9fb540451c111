"""What an answer by a model needs beside its provider: further searches, the room of its prompt, replies."""
