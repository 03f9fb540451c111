"""What the owner wrote for the chat alone, as an answer uses it. State: stable.

faq        the entry that means the same as a question answers it: of 247 other wordings of 140 entries on eight
           sites, one in seven found its entry and five a wrong one (`benchmarks/faq.py`)
memories   facts that inform a model, by evidence, importance and recency
"""
