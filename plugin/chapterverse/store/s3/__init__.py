"""The S3 store: no server runs, and each reader opens the embedded engine over the files that it has downloaded.

    PREFIX/SITE/VERSION/head.json               names the live artefact; moved by a conditional write: the only truth
    PREFIX/SITE/VERSION/publish.lease           who publishes right now (see `lease`)
    PREFIX/SITE/VERSION/GENERATION-TOKEN.pack   a packed shard folder (see `chapterverse.store.pack`)

An artefact is written once, under a new name, and the head holds its SHA-256. Readers unpack it into a cache in
temporary space. A crash at any instruction leaves the old head, and every object that it names, whole.
"""
