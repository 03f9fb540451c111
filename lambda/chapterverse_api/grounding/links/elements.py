"""The elements of HTML."""

from __future__ import annotations

#: Elements of HTML: any other name, as in `<name>`, is a placeholder and stays.
ELEMENTS = frozenset(
    """
    a abbr address animate applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br
    button canvas center cite code col colgroup content data datalist dd del details dfn dialog dir div dl dt em embed
    fieldset figcaption figure font footer foreignobject form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr
    html i iframe image img input ins isindex kbd keygen label legend li link listing main map mark marquee math menu
    meta meter nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext portal pre
    progress q rp rt ruby s samp script search section select set shadow slot small source span strike strong style sub
    summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul use var video wbr xmp
    """.split()
)
