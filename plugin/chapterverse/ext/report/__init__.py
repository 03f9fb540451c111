"""The report for owners: what readers ask, and what the docs lack. State: trial.

    log_lines   reads turns from the service's log           masking    hides names, addresses and keys
    turns       a question with its answer                   gaps       finds what unanswered questions are about
    groups      turns by what they ask about                 document   the report as JSON
    markdown, page   the report for people                   command    `chapterverse report`

Figure: see `benchmarks/report_month.py`.
"""
