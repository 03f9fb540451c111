"""Removes addresses from an answer, except those in its sources or on the site.

A page, a question or the training data can make a model write a foreign address, and attackers want a link or an image
under a trusted name most of all. So each sentence of an answer passes two filters before it is shown: `markup` removes
links, images and HTML, `hosts` removes addresses in any disguise. Both only remove text, and both remember how the
sentence before ended. Control characters are removed first, because they are invisible and can split an address.
"""
