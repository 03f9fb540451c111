"""`chapterverse eval`: measures how well a site's questions are answered.

    questions ─ measuring ─> Run(rows with ranks) ─ metrics ─> figures ─ comparison ─> bars met or not, and
                                  └─ report ─> text, one HTML file      differences from an earlier run

A run stores facts (the rank of each expected place, the evidence, the results). Figures are derived from them, so
today's definitions also apply to a run saved by an older release.
"""
