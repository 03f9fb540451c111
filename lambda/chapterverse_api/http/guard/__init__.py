"""Checks on a request before it may cost anything, the cheapest first.

    origin      who asks, and by which name: an exact allow-list       guard/origin.py     403
    method, path                                                       the router          404, 405
    body        content type, size, UTF-8, strict JSON                 guard/body.py       415, 413, 400
    contract    the pydantic model of the route                        guard/contract.py   422
    work        where it is wanted, of who used half of a window       guard/work.py       429
    rate        how often this client asked: three windows, atomic     guard/rate.py       429
    budget      what the day has left for models                      spending.py         a free answer

`ResponseHeaders` and the origin stand around everything and `LastResort` inside them, so that a refusal and a crash
carry the same headers as an answer: without CORS a browser reports a network error instead of our sentence.
"""
