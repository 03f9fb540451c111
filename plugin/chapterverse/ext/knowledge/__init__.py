"""What a site's owner writes for the chat alone, beside the pages: its persona, a FAQ, and facts to remember.

    folder      finds the files and hashes them     documents   reads them into pages of the index
    metadata    the fields of each type             entries     what a service reads of their chunks
    commands    `remember`, `schema`

State: stable. A page of the index holds a file, each of its entries in a chunk of the type `persona`, `faq` or
`memory`. The room is on in a build that has such files, and in a service whose index has such chunks.
"""
