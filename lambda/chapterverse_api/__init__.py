"""The service: answers questions over HTTP with citations."""
