"""`chapterverse eval`: measures how well a site's questions are answered.

    questions ─ examining ─> Run(rows with ranks) ─ metrics ─> figures ─ bars ─> met or not
                              │  two runs ─ comparing, bootstrap ─> differences with intervals
                              └─ charts, report ─> one HTML file

A run keeps facts (at which rank each expected place was found, the evidence, what was found instead); every figure is
derived from them, so a run that was saved by an older release is measured by the same definitions as a new one.
"""
