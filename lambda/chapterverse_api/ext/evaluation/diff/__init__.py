"""`chapterverse eval --diff`: what a change of the docs does to answers. State: trial (benchmarks/docs_changes.py).

    BASE ─ base_index ─> its settings ─┐
    the index as it is now ────────────┴ sections ─> touched ─ questions ─> both answer ─ answers ─> changes ─ render

Both indexes answer with quotes, whatever the generator, so that equal texts give equal answers and nothing is charged.
"""
