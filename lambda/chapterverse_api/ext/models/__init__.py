"""What an answer by a model needs beside its provider.

A follow-up is rewritten, the prompt is filled, the text is read, the model looks again, and a checker votes.
"""
