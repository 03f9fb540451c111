"""The pipeline of an answer, which starts at `pipeline.answer_turn`."""
