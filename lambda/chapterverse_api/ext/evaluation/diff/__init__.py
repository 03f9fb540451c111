"""`chapterverse eval --diff`: what a change of the docs does to readers' answers. State: trial.

    BASE ─ base ─> settings of its index ─┐
    the index as it is now ───────────────┴ sections ─> touched ─ questions ─> both answer ─ answers ─> changes ─ render

Both indexes answer with quotes, whatever the generator, so that equal texts give equal answers and nothing is charged.
"""
