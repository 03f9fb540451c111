"""The report for owners: what readers ask, and what the docs lack. State: trial.

    turns      a question with its answer, from the log or   gaps           finds what unanswered questions are about
               the kept conversations                        groups         turns by what they ask about
    masking    hides names, addresses and keys               document       the report as JSON
    rendering  the report for people                         second_asking  asks again after a change
    command    `chapterverse report`

Figure: see `benchmarks/report_month.py`.
"""
