"""The report for owners: what readers ask, and what the docs lack. State: trial.

    turns      a question with its answer, from the log or   groups         turns by what they ask about
               the kept conversations                        document       the report as JSON
    masking    hides names, addresses and keys               second_asking  asks again after a change
    rendering  the report for people
    command    `chapterverse report`

Figure: see `benchmarks/report_month.py`.
"""
