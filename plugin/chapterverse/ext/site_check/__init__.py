"""Mistakes in a built site and its index: the command `check`. State: stable.

check        reads each page once                    index_check  the site's index beside the site
pages        the facts of a page, links within        secret_scan  secrets in files of any kind
             the site                                findings     what was found, by kind and rank
command      `chapterverse check`
"""
