"""The reading model: one small encoder that reads a question and a passage together. It is optional.

`wordpiece` splits text into tokens, `encoding` makes the model's input, `model` loads it and scores.
"""
