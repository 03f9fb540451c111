"""Checkers give a second vote on sentences that the check by words leaves undecided. A setting chooses one by name.

A vote can only take a citation away, so a page that persuades a checker gains nothing.
"""
