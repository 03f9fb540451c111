"""A question that several sections fit is asked back, once, and each choice is answered by its section."""

from __future__ import annotations

from pathlib import Path

import pytest

from api import quill
from chapterverse.cli import main
from chapterverse_api.contract import ChatResponse, Message
from chapterverse_api.ext.agents.completions import Completion, CompletionRequest
from chapterverse_api.service import Service

QUESTION = "supported clusters"


def cloud(name: str, says: str) -> str:
    return f"# {name}\n\nDeployments to {name} need an account.\n\n## Supported clusters\n\n{says}\n"


CLOUDS = {
    "azure.md": cloud("Azure", "AKS from 1.29 works, on amd64 nodes and with a managed identity."),
    "google.md": cloud("Google Cloud", "GKE works in standard mode, never in autopilot, with a service account."),
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    return serve(tmp_path_factory.mktemp("index"), CLOUDS)


def serve(folder: Path, pages: dict[str, str]) -> Service:
    return quill.service(quill.publish(folder, {**quill.PAGES, **pages}))


def is_choice(answer: ChatResponse) -> bool:
    return answer.partial_reason == "choice"


def test_the_sections_stand_to_choose_from(service: Service) -> None:
    answer = quill.ask(service, QUESTION)
    assert (answer.status, answer.partial_reason, answer.sources_cited) == ("partial", "choice", [])
    assert [segment.kind for segment in answer.segments] == ["framing"]
    assert sorted(answer.follow_ups) == ["Azure › Supported clusters", "Google Cloud › Supported clusters"]


def test_a_client_without_buttons_reads_the_choices(service: Service) -> None:
    answer = quill.ask(service, QUESTION)
    request = CompletionRequest.parse({"messages": [{"role": "user", "content": QUESTION}]})
    content = Completion(request).document(answer)["choices"][0]["message"]["content"]
    assert content.endswith("".join(f"\n- {text}" for text in answer.follow_ups))
    assert f"\\n- {answer.follow_ups[0]}" in Completion(request).frame(answer).replace("\\u203a", "›")


def test_the_command_prints_the_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = quill.publish(tmp_path, {**quill.PAGES, **CLOUDS})
    with pytest.raises(SystemExit):
        main(["ask", QUESTION, "--store", settings.store])
    assert "\n- Azure › Supported clusters\n" in capsys.readouterr().out


def test_each_choice_is_answered_from_its_section(service: Service) -> None:
    first = quill.ask(service, QUESTION)
    told = [
        Message(role="user", content=QUESTION),
        Message(role="assistant", content=first.response, signature=first.signature),
    ]
    for text in first.follow_ups:
        answer = quill.ask(service, text, conversation_history=told)
        assert answer.status == "answered"
        assert ("AKS" in answer.response, "GKE" in answer.response) == ("Azure" in text, "Google" in text)


@pytest.mark.parametrize("is_signed", [True, False])
def test_nobody_is_asked_back_twice(service: Service, is_signed: bool) -> None:
    first = quill.ask(service, QUESTION)
    signature = first.signature if is_signed else None
    told = [
        Message(role="user", content=QUESTION),
        Message(role="assistant", content=first.response, signature=signature),
    ]
    assert quill.ask(service, QUESTION, conversation_history=told).status == "answered"


def test_the_text_of_a_choice_is_its_section_also_above_another(tmp_path: Path) -> None:
    autopilot = "## Autopilot mode\n\nOff.\n\n### Limits\n\nThree pods at once.\n"
    page = f"# Clouds\n\nAll.\n\n## Limits\n\nTen nodes.\n\n{autopilot}"
    answer = quill.ask(serve(tmp_path, {"clouds.md": page}), "Clouds › Limits")
    assert "Ten nodes" in answer.response


@pytest.mark.parametrize(
    "question",
    ["supported clusters on google cloud", "which azure clusters are supported", "supported clusters vs autopilot"],
)
def test_who_says_which_is_answered(service: Service, question: str) -> None:
    assert not is_choice(quill.ask(service, question))


@pytest.mark.parametrize(
    "pages",
    [
        {"azure.md": CLOUDS["azure.md"]},
        # The page of that title is the subject itself.
        {**CLOUDS, "clusters.md": "# Supported clusters\n\nAll clusters of Kubernetes 1.29 are supported.\n"},
        # Both say the same.
        {
            name: cloud(name, "Clusters from 1.29 work, on amd64 nodes, with an account.")
            for name in ("azure", "google")
        },
        # So many are a form that the pages share.
        {f"{name}.md": cloud(name, f"{name * 2} works on {name * 3}, {name * 4} and {name * 5}.") for name in "abcd"},
    ],
)
def test_one_answer_is_given(pages: dict[str, str], tmp_path: Path) -> None:
    named = {name if name.endswith(".md") else f"{name}.md": text for name, text in pages.items()}
    answer = quill.ask(serve(tmp_path, named), QUESTION)
    assert not is_choice(answer)
    assert "works" in answer.response or "work" in answer.response or "supported" in answer.response


def test_the_readers_language_asks(service: Service) -> None:
    assert quill.ask(service, QUESTION, language="de").response.startswith("Die Dokumentation beschreibt das")
