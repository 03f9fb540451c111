"""Mistakes in a built site and its index: the command `check`. State: stable.

check        reads each page once, and notes what is wrong with it      inspection   the facts of one page
index_check  the site's index beside the site                           links        links within the site
findings     what was found, by kind and rank                           command      `chapterverse check`
"""
