"""Cohere's embedding models on Amazon Bedrock, by boto3's `bedrock-runtime` client and `InvokeModel`.

Region, credentials and addresses are those of `AWS_*` as boto3 reads them, `AWS_ENDPOINT_URL` included. Bodies and
limits are those of the Bedrock user guide ("Cohere Embed v3", "Cohere Embed v4"), November 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from chapterverse.embedding import Vector
from chapterverse.embedding.models import Choice, Model
from chapterverse.embedding.patience import BusyError, Patience
from chapterverse.embedding.reply import checked
from chapterverse.embedding.slices import RefusedError, embed_in_slices
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.model import EmbedderCard
from chapterverse.rest import asked_pause

#: Seconds to reach the service, and for one reply.
_BUILD_SECONDS = (3.0, 60.0)
#: Two tries of a question, with a short wait between them, are within a reader's ten seconds.
_QUESTION_SECONDS = (1.5, 3.0)
_QUESTION = Patience(tries=2, seconds=1.0, longest=0.25)

#: Prices as Amazon listed them in 2025 for its first regions: good for an estimate and no more.
MODELS = {
    "cohere.embed-english-v3": Model(1024, 512, 0.10, characters=2048),
    "cohere.embed-multilingual-v3": Model(1024, 512, 0.10, characters=2048),
    "cohere.embed-v4:0": Model(1536, 128_000, 0.12, sizes=(256, 512, 1024, 1536)),
}

#: A cross-region inference profile is the model's id behind a geography: "us.cohere.embed-v4:0".
_PROFILE = re.compile(r"(?P<geography>[a-z][a-z-]*\.)?(?P<model>cohere\..*)")

#: What a refusal means for whoever runs a build, by the name that the service gives it.
_REASONS = {
    "AccessDeniedException": "gave no access: allow bedrock:InvokeModel and the model for these credentials",
    "ResourceNotFoundException": "has no such model in this region, or no longer: check its name and the region",
    "ValidationException": "refused the request as malformed",
    "ServiceQuotaExceededException": "has a quota that is used up: ask AWS for more, or try again later",
    "ThrottlingException": "has a rate limit that was reached: try again later",
    "ModelNotReadyException": "is still loading the model: try again later",
    "ModelTimeoutException": "took too long: try again later",
    "ExpiredTokenException": "refused the credentials as expired: renew them",
    "UnrecognizedClientException": "refused the credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "InvalidSignatureException": "refused the credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}

_NO_CREDENTIALS = (
    "The embedder bedrock finds no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "or give the machine a role."
)
_NO_REGION = "The embedder bedrock needs a region: set AWS_DEFAULT_REGION in the environment."
_UNUSABLE = "The AWS settings can't be used: check AWS_PROFILE, AWS_ENDPOINT_URL and the files of ~/.aws."

_PASSING = {"ThrottlingException", "ModelNotReadyException", "ModelTimeoutException"}


@dataclass(frozen=True)
class BedrockEmbedder:
    """One of Cohere's models on Bedrock. Safe to share between threads, as boto3's clients are.

    Attributes:
        choice: `MODEL[/SIZE][@int8]`; documents and questions are embedded alike.
        geography: "us." or the like for a cross-region inference profile, else empty. The space is the model's.
    """

    choice: Choice
    geography: str
    session: Any = field(repr=False)
    asking: Any = field(repr=False)
    patience: Patience = field(default_factory=Patience, repr=False)

    @classmethod
    def open(cls, model: str) -> BedrockEmbedder:
        """Return the embedder for a model or an inference profile; nothing is sent yet.

        Raises:
            ConfigurationError: boto3 is not installed, the model is unknown, or there is no usable AWS configuration.
        """
        if not model:
            raise ConfigurationError(f"The embedder bedrock needs a model: use bedrock:MODEL with {', '.join(MODELS)}.")
        named = _PROFILE.fullmatch(model)
        geography, name = (named["geography"] or "", named["model"]) if named else ("", model)
        choice = Choice.of(name, MODELS, "Bedrock")
        session = _session()
        return cls(choice, geography, session, _client(session, *_QUESTION_SECONDS))

    @cached_property
    def _building(self) -> Any:
        return _client(self.session, *_BUILD_SECONDS)

    @property
    def card(self) -> EmbedderCard:
        choice = self.choice
        name = f"bedrock:{self.geography}{choice}"
        return EmbedderCard(name, choice.size, choice.model.limit, f"bedrock:{choice.space}")

    @property
    def price(self) -> float:
        return self.choice.model.price

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text, in slices of 96; see `Embedder`.

        Raises:
            TextTooLong: one text is over the model's characters, found before anything is sent, or over its tokens.
            ProviderError: there are no credentials; Bedrock could not be reached, refused, or answered with something
                that is no vector.
        """
        self._check_characters(texts)
        send = partial(self._ask, "NONE")
        # What is taken when it may be cut was refused for its length alone.
        return embed_in_slices(texts, send, partial(self._ask, self._cut), self.choice.name)

    def embed_query(self, text: str) -> Vector:
        """Return a question's vector within ten seconds; see `Embedder`."""
        self._check_characters([text])
        return _QUESTION.ask(lambda: self._send(self.asking, self._body([text], "search_query", "NONE")))[0]

    def _check_characters(self, texts: Sequence[str]) -> None:
        most = self.choice.model.characters
        for position, text in enumerate(texts):
            if most and len(text) > most:
                message = f"Text {position} is over the {most} characters of {self.choice.name}."
                raise TextTooLong(message, position=position)

    @property
    def _cut(self) -> str:
        # The two generations have different words for the end of a text.
        return "RIGHT" if self.choice.model.sizes else "END"

    def _body(self, texts: Sequence[str], input_type: str, truncate: str) -> dict[str, Any]:
        body = {
            "texts": list(texts),
            "input_type": input_type,
            "embedding_types": [self.choice.numbers],
            "truncate": truncate,
        }
        return {**body, "output_dimension": self.choice.size} if self.choice.model.sizes else body

    def _ask(self, truncate: str, texts: Sequence[str]) -> list[Vector]:
        return self.patience.ask(lambda: self._send(self._building, self._body(texts, "search_document", truncate)))

    def _send(self, client: Any, body: dict[str, Any]) -> list[Vector]:
        from botocore import exceptions as aws
        from botocore.parsers import ResponseParserError

        model = f"{self.geography}{self.choice.name}"
        try:
            reply = client.invoke_model(
                modelId=model, body=json.dumps(body), contentType="application/json", accept="application/json"
            )
            found = json.loads(reply["body"].read())
        # boto3's own errors may quote what was sent or an account's id, so none is left as a cause.
        except aws.ClientError as error:
            raise _failure(error.response) from None
        except (aws.HTTPClientError, aws.ConnectionError, aws.IncompleteReadError, OSError):
            raise ProviderError("Bedrock could not be reached or broke off.", retryable=True) from None
        except aws.BotoCoreError:
            raise ProviderError(_NO_CREDENTIALS) from None
        except (ResponseParserError, ValueError, RecursionError):
            raise ProviderError("Bedrock answered with something that is no reply.", retryable=True) from None
        vectors = found.get("embeddings") if isinstance(found, dict) else None
        numbers = vectors.get(self.choice.numbers) if isinstance(vectors, dict) else None
        return checked(numbers, len(body["texts"]), self.choice.size, "Bedrock", int8=self.choice.int8)


def _session() -> Any:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError as error:
        raise ConfigurationError('The embedder bedrock needs a package: pip install "chapterverse[aws]".') from error
    try:
        session = boto3.session.Session()
        region = session.region_name
    except BotoCoreError:
        raise ConfigurationError(_UNUSABLE) from None
    if not region:
        raise ConfigurationError(_NO_REGION)
    return session


def _client(session: Any, connect_seconds: float, read_seconds: float) -> Any:
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, CredentialRetrievalError, PartialCredentialsError

    # boto3's own retries would multiply with ours.
    config = Config(connect_timeout=connect_seconds, read_timeout=read_seconds, retries={"total_max_attempts": 1})
    try:
        return session.client("bedrock-runtime", config=config)
    except (CredentialRetrievalError, PartialCredentialsError):
        raise ConfigurationError(_NO_CREDENTIALS) from None
    except (BotoCoreError, ValueError):
        raise ConfigurationError(_UNUSABLE) from None


def _failure(response: Any) -> ProviderError:
    # The service's own message is left out: it may quote what was sent, and ours are printed and logged.
    code = str(response.get("Error", {}).get("Code", ""))
    meta = response.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    message = f"Bedrock {_REASONS.get(code, f'failed with status {status}')}."
    if code in _PASSING or status == 429 or status >= 500:
        return BusyError(message, pause=asked_pause(meta.get("HTTPHeaders", {})))
    return RefusedError(message) if code == "ValidationException" else ProviderError(message)
