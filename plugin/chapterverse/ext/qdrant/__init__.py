"""The server store: a Qdrant server, or a cluster of them, that many publishers and readers share.

    collection SITE                 points of every version of a site, each with `head`, `born` and perhaps `died`
    collection SITE-FINGERPRINT     the same with dense vectors, one collection for each vector space
    collection chapterverse_heads   the record of each scope, as one point (see `record`)

Readers (`server`, `snapshot`) and publishers (`writer`, `publication`) use REST by our own client.
"""
