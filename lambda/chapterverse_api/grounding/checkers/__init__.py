"""Checkers give a second vote on sentences that the check by words leaves undecided. A setting chooses one by name.

A vote can only take a citation away: a page that talks a checker round gains nothing.
"""
