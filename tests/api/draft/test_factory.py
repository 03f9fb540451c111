"""Generators by name, and one sentence for an invalid name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.draft.draft import Writer


@pytest.mark.parametrize(
    ("name", "writes"),
    [("extractive", False), ("cohere", True), ("cohere:command-r7b-12-2024", True), ("openai:gpt-4.1-mini", True)],
)
def test_a_name_opens_its_generator(name: str, writes: bool) -> None:
    made = open_offer("generator", Settings(generator=name, cohere_api_key="key", openai_api_key="key"))
    assert made.name.startswith(name)
    assert isinstance(made, Writer) is writes


@pytest.mark.parametrize(
    "name", ["", "none", "gpt", "Cohere", "extractive:model", "openal:gpt", "openai:", "openai", "bedrock:", "bedrock"]
)
def test_any_other_name_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_offer("generator", Settings(generator=name, cohere_api_key="key", openai_api_key="key"))
    assert str(caught.value) == (
        f"CHAPTERVERSE_GENERATOR is {name!r}: use extractive, cohere[:MODEL], openai:MODEL or bedrock:MODEL."
    )


@pytest.mark.parametrize("name", ["cohere", "openai:gpt-4.1-mini"])
def test_what_is_missing_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^The generator \w+ needs a key: [^.]*\S+\.$"):
        open_offer("generator", Settings(generator=name))


@pytest.mark.parametrize("name", ["extractive", "cohere", "openai:gpt-4.1-mini"])
def test_no_sdk_is_loaded(name: str) -> None:
    program = f"""
import sys
from chapterverse.settings import Settings
from chapterverse.extensions import open_offer
open_offer("generator", Settings(generator={name!r}, cohere_api_key="key", openai_api_key="key"))
print(sys.modules.keys() & {{"cohere", "openai", "boto3", "botocore", "httpx", "tiktoken"}})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
