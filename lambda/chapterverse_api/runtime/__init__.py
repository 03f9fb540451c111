"""A Lambda runtime that streams: `python -m chapterverse_api.runtime`, started by `infra/bootstrap`.

    __main__.py    imports the handler, or reports why it can't be
    api.py         what AWS has a runtime say and ask
    loop.py        one invocation after another
    response.py    what the application sends, passed on at once
    snapstart.py   the wait between a snapshot and the process that comes back from it

The runtime that AWS ships for Python buffers every answer (aws/aws-lambda-roadmap#39), so a reader would see nothing
until the last word. Only its loop is replaced: how an event becomes a request stays Mangum's.
"""
