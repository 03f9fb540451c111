"""The S3 store. No server runs, because each reader opens the embedded engine on files that it has downloaded.

    PREFIX/SITE/VERSION/head.json               names the live artefact; replaced by a conditional write
    PREFIX/SITE/VERSION/publish.lease           the lease of the publisher (see `lease`)
    PREFIX/SITE/VERSION/GENERATION-TOKEN.pack   a packed shard folder (see `chapterverse.ext.s3.pack`)

An artefact is written once, under a new name, and the head holds its SHA-256. Readers unpack it into a cache in
temporary space. A crash at any instruction leaves the old head, and every object that it names, intact.
"""
