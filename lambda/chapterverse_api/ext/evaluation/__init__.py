"""`chapterverse eval`: measures how well a site's questions are answered.

    questions ─ measuring ─> Run(rows with ranks) ─ metrics ─> figures ─ bars ─> met or not
                                  │  two runs ─ comparison ─> differences with intervals
                                  └─ report ─> one HTML file

A run stores facts (the rank of each expected place, the evidence, the results). Figures are derived from them, so
today's definitions also apply to a run saved by an older release.
"""
