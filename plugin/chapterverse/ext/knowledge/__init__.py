"""What a site's owner writes for the chat alone, beside the pages: its persona, a FAQ, and facts to remember.

    folder             finds the files and hashes them     persona_lookup, persona_file   the file of the persona
    documents          reads FAQ and memory files          persona                        its text in the index
    metadata           the fields of each type             questions                      compares entries
    memory_file        writes a memory, or removes one     commands                       `remember`, `schema`

State: stable. A page of the index holds a file, each of its entries in a chunk of the type `persona`, `faq` or
`memory`. The room is on in a build that has such files, and in a service whose index has such chunks.
"""
