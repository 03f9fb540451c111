"""A Lambda runtime that streams: `python -m chapterverse_api.ext.aws`, started by `infra/bootstrap`.

    __main__.py           imports the handler, or reports why it can't
    runtime_api.py        client of Lambda's Runtime API
    loop.py               handles one invocation after another, and passes its response on as it is made
    events.py             translates Lambda events
    cold_start.py         speeds up the imports

AWS's own runtime for Python buffers every answer (aws/aws-lambda-roadmap#39), so readers would see nothing before the
end. Only its loop is replaced; Mangum still turns events into requests.
"""
