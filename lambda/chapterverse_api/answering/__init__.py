"""The pipeline of an answer. Start at `pipeline.answer_query`."""
