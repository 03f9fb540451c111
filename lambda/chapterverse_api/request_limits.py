"""The limits of a request's bytes and of what `contract` reads. `rejections` and `http.admission` say which it is over.

The widget repeats some, which `test_transcript.py` compares. Filters have theirs in the library's `filters`, and the
routes of a room in the room.
"""

from __future__ import annotations

#: Bytes of a request's line and headers together, of its body, and of a conversation in the form of OpenAI's API, whose
#: clients send all of it each time.
MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 128 * 1024
MAX_CONVERSATION_BYTES = 1024 * 1024
#: Nested arrays and objects of a body, and characters of a number: no double needs as many digits.
MAX_BODY_LEVELS = 32
MAX_NUMBER_CHARS = 64

#: Characters of a question and of each message, and a question's cl100k tokens.
MAX_MESSAGE_CHARS = 4000
MAX_QUERY_TOKENS = 1000
#: Messages of a history, and their characters in all.
MAX_HISTORY_MESSAGES, MAX_HISTORY_CHARS = 10, 16_000
MAX_SELECTION_CHARS = 5000
MAX_CONTEXT_CHARS = 10_000
MAX_COMMENT_CHARS = 2000
#: Characters of a page's address, a language tag, the name of a docs version, and any other name or id.
MAX_URL_CHARS, MAX_LANGUAGE_CHARS, MAX_VERSION_CHARS, MAX_NAME_CHARS = 2048, 35, 64, 64

#: Results of a search, and numbers of a vector.
MAX_TOP_K = 20
MAX_VECTOR_NUMBERS = 4096
