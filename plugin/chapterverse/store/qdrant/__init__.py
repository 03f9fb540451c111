"""The server store: a Qdrant server, or a cluster of them, that many publishers and readers share.

    collection SITE                 points of every version of a site, each with `head`, `born` and perhaps `died`
    collection SITE-FINGERPRINT     the same with dense vectors, one collection for each vector space
    collection chapterverse_heads   one point a scope: its head, its lease, what is retired (see `record`)

Readers ask by REST (`server`, `snapshot`), publishers write through the official client (`writer`, `publication`).
"""
