"""Checks a request before it can cause costs, the cheapest check first.

    origin      origin and host name against an exact allow-list        guard/origin.py          403
    method, path                                                        the router               404, 405
    body        content type, size, UTF-8, strict JSON                  guard/body.py            415, 413, 400
    contract    the pydantic model of the route                         validation.py            422
    work        optional proof of work after half of a window           ext/work                 429
    rate        requests of this client: three windows, atomic          guard/rate.py            429
    budget      the rest of the day's budget for models                 ext/budget               a free answer

`Guard` in guard/middleware.py wraps everything, so rejections and crashes have the same headers as answers. Without
CORS headers a browser reports a network error instead of our message.
"""
