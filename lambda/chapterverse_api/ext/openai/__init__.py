"""Models behind any server that speaks the protocol of OpenAI."""
