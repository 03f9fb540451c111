from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.manifests import EXTENSIONS, SETTINGS, Setting
from chapterverse.settings import DEFAULT_STORE, Settings, document_options, explain_unknown_variables


def test_without_variables_everything_is_embedded() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings()
    assert settings.store == DEFAULT_STORE
    assert (settings.embedder, settings.reranker, settings.generator) == ("none", "none", "extractive")
    assert settings.docs_version is None
    assert settings.may_publish


def test_every_setting_has_a_variable_of_its_own() -> None:
    names = [setting.variable for setting in SETTINGS.values()]
    assert len(set(names)) == len(names)
    assert all(n.startswith("CHAPTERVERSE_") or n.endswith("_API_KEY") or n == "QDRANT_URL" for n in names)


def test_an_unknown_variable_is_named_with_the_nearest() -> None:
    known = {setting.variable: "x" for setting in SETTINGS.values()}
    ours = {"CHAPTERVERSE_TOOL_SHOP": "x", "CHAPTERVERSE_CHROMIUM": "x", "PATH": "x"}
    assert explain_unknown_variables({**known, **ours}) == []
    assert explain_unknown_variables({**known, "CHAPTERVERSE_STROE": "x", "CHAPTERVERSE_BASEURL": ""}) == [
        "There is no variable 'CHAPTERVERSE_BASEURL': the nearest is CHAPTERVERSE_BASE_URL.",
        "There is no variable 'CHAPTERVERSE_STROE': the nearest is CHAPTERVERSE_STORE.",
    ]


def test_every_setting_is_described() -> None:
    described = (Settings.__doc__ or "").partition("Attributes:")[2].partition("Raises:")[0]
    lists = re.findall(r"^ {8}(\w[\w, ]*):", described, re.MULTILINE)
    assert sorted([*lists, *SETTINGS]) == sorted(f.name for f in fields(Settings))
    assert [name for name, setting in SETTINGS.items() if not setting.help.endswith(".")] == []


def test_a_default_has_the_type_that_its_manifest_declares() -> None:
    types = {"text": str, "secret": str, "switch": bool, "count": int}
    assert {
        name for name, s in SETTINGS.items() if s.default is not None and type(s.default) is not types[s.kind]
    } == set()
    assert sum(len(extension.settings) for extension in EXTENSIONS) == len(SETTINGS)


def test_a_setting_is_read_by_what_declares_it() -> None:
    settings = Settings(store="edge:here", foreign=(("teapot_heat", 90),))
    assert (settings[SETTINGS["store"]], settings[SETTINGS["publish"]]) == ("edge:here", None)
    assert settings[Setting("teapot_heat", 80, "Heat.", "count", 100)] == 90
    assert settings[Setting("teapot_lid", True, "Lid.", "switch")] is True


@pytest.mark.parametrize(
    "setting", [s for s in SETTINGS.values() if s.kind in ("text", "secret")], ids=lambda setting: setting.name
)
def test_a_variable_sets_its_setting(setting: Setting[str]) -> None:
    name, variable = setting.name, setting.variable
    settings = Settings.from_environment({variable: "value"})
    assert getattr(settings, name) == "value"
    others = SETTINGS.keys() - {name}
    assert all(getattr(settings, other) == getattr(Settings(), other) for other in others)


ON, OFF = ("1", "true", " ON ", "yes"), ("0", "off", "No", "FALSE")


@pytest.mark.parametrize(("word", "meant"), [*((w, True) for w in ON), *((w, False) for w in OFF)])
def test_switches(word: str, meant: bool) -> None:
    assert Settings.from_environment({"CHAPTERVERSE_PUBLISH": word}).publish is meant
    assert Settings.from_environment({"CHAPTERVERSE_LOG_QUESTIONS": word}).log_questions is meant


@pytest.mark.parametrize("word", ["maybe", "2", "-", "tru"])
def test_a_switch_that_is_neither_on_nor_off(word: str) -> None:
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_PUBLISH is neither on nor off: set it to 1 or 0"):
        Settings.from_environment({"CHAPTERVERSE_PUBLISH": word})


COUNTS = {"TURN_TOP_K": (4, 20), "FAQ_TOP_K": (2, 10), "MEMORY_TOP_K": (3, 20), "SUMMARY_TOP_K": (2, 10)}


@pytest.mark.parametrize("kind", ["PERSONA", "FAQ", "MEMORY", "TURN", "SUMMARY"])
def test_each_kind_of_document_has_a_switch_that_is_on(kind: str) -> None:
    name = f"enable_{kind.lower()}"
    assert getattr(Settings(), name) is True
    off = Settings.from_environment({f"CHAPTERVERSE_ENABLE_{kind}": "off"})
    assert getattr(off, name) is False
    assert off.disabled_types == ({kind.lower()} & {"persona", "faq", "memory"})
    with pytest.raises(ConfigurationError, match=f"CHAPTERVERSE_ENABLE_{kind} is neither on nor off"):
        Settings.from_environment({f"CHAPTERVERSE_ENABLE_{kind}": "perhaps"})


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_has_its_range(name: str) -> None:
    default, most = COUNTS[name]
    field, variable = name.lower(), f"CHAPTERVERSE_{name}"
    assert getattr(Settings(), field) == default
    for value in (1, most):
        assert getattr(Settings.from_environment({variable: f" {value}"}), field) == value
    for bad in ("0", str(most + 1), "-1", "2.5", "two", "١", "1e1", "9" * 5000):
        with pytest.raises(ConfigurationError, match=f"^{variable} must be a whole number from 1 to {most}\\.$"):
            Settings.from_environment({variable: bad})
    for worse in (0, most + 1, True, 2.0, "2"):
        with pytest.raises(ConfigurationError, match=variable):
            Settings().override(**{field: worse})


def test_a_site_s_configuration_sets_the_same() -> None:
    given = {"enable_faq": False, "memory_top_k": 20}
    assert document_options(given) == given
    for bad, sentence in (
        ({"faq_top_k": 11}, "documents.faq_top_k must be a whole number from 1 to 10."),
        ({"faq_top_k": True}, "documents.faq_top_k must be a whole number from 1 to 10."),
        ({"enable_faq": 0}, "documents.enable_faq must be true or false."),
        ({"enable_pages": True}, "There is no option 'enable_pages' of documents: use enable_persona, enable_faq,"),
        ({7: 1}, "There is no option '7' of documents: use "),
        (["faq"], "The option 'documents' must be a mapping, such as `faq_top_k: 3`."),
    ):
        with pytest.raises(ConfigurationError) as caught:
            document_options(bad)
        assert str(caught.value).startswith(sentence)


def test_an_empty_variable_is_not_set() -> None:
    empty = {setting.variable: "" for setting in SETTINGS.values()}
    assert Settings.from_environment(empty) == Settings()


def test_a_flag_overrides_its_variable_unless_it_is_none() -> None:
    environ = {"CHAPTERVERSE_STORE": "edge:there", "CHAPTERVERSE_SITE": "docs", "CHAPTERVERSE_PUBLISH": "1"}
    settings = Settings.from_environment(environ, store="edge:here", site=None, publish=False)
    assert (settings.store, settings.site, settings.publish) == ("edge:here", "docs", False)
    assert settings.override(site="", docs_version="").site == ""


def test_an_unknown_setting_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError):
        Settings().override(stoer="edge:x")


def test_secrets_are_not_printed() -> None:
    settings = Settings.from_environment({"COHERE_API_KEY": "top-secret"})
    assert settings.cohere_api_key == "top-secret"
    assert "top-secret" not in repr(settings)
    assert "top-secret" not in str(settings)


def test_a_key_switches_nothing_on() -> None:
    assert Settings.from_environment({"COHERE_API_KEY": "top-secret"}).embedder == "none"


@pytest.mark.parametrize(
    ("store", "publish", "allowed"),
    [
        ("edge:x", None, True),
        ("qdrant:http://x", None, False),
        ("edge:x", False, False),
        ("qdrant:http://x", True, True),
    ],
)
def test_only_the_embedded_store_is_published_without_being_asked(
    store: str, publish: bool | None, allowed: bool
) -> None:
    assert Settings(store=store, publish=publish).may_publish is allowed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_EVENT_NAME", "pull_request_target"),
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CIRCLE_PULL_REQUEST", "https://example.com/pull/7"),
        ("BUILD_REASON", "PullRequest"),
        ("PULL_REQUEST", "true"),
        ("VERCEL_GIT_PULL_REQUEST_ID", "7"),
        ("READTHEDOCS_VERSION_TYPE", "external"),
    ],
)
def test_a_pull_request_never_writes_a_remote_index(name: str, value: str) -> None:
    settings = Settings.from_environment({name: value, "CHAPTERVERSE_PUBLISH": "1"}, store="qdrant:http://x")
    assert settings.pull_request
    assert not settings.may_publish
    assert settings.override(store="edge:x").may_publish


@pytest.mark.parametrize(
    "env", [{"GITHUB_EVENT_NAME": "push"}, {"PULL_REQUEST": "false"}, {"CI_MERGE_REQUEST_IID": ""}]
)
def test_what_is_no_pull_request(env: dict[str, str]) -> None:
    assert not Settings.from_environment(env).pull_request


@pytest.mark.parametrize(
    ("listed", "origins"),
    [
        ("", ()),
        (" , ", ()),
        ("https://a.example/, http://b.example:8000 ,", ("https://a.example", "http://b.example:8000")),
    ],
)
def test_origins_are_a_list(listed: str, origins: tuple[str, ...]) -> None:
    assert Settings(allowed_origins=listed).origins == origins


def test_a_persona_is_resolved_from_where_it_was_named() -> None:
    root = Path("/srv/docs")
    assert Settings().resolve_paths(root).persona == ""
    assert Settings(persona="voice.md").resolve_paths(root).persona == "/srv/docs/voice.md"
    assert Settings(persona="/etc/voice.md").resolve_paths(root).persona == "/etc/voice.md"
    assert Settings.from_environment({"CHAPTERVERSE_PERSONA": "a.md"}).persona == "a.md"


def test_a_relative_store_is_resolved_from_where_it_was_written() -> None:
    root = Path("/site")
    assert Settings().resolve_paths(root).store == f"edge:{root / '.cache/plugin/chapterverse'}"
    for fixed in ("edge:/var/index", "qdrant:http://localhost:6333", "edge:"):
        assert Settings(store=fixed).resolve_paths(root).store == fixed


def test_secrets_of_tools_have_names_of_their_own_and_are_not_printed() -> None:
    own = {"CHAPTERVERSE_TOOL_SHOP": "top-secret", "CHAPTERVERSE_TOOLS": "tools.yml", "SHOP": "x"}
    settings = Settings.from_environment(own)
    assert settings.tool_secrets == (("CHAPTERVERSE_TOOL_SHOP", "top-secret"),)
    assert settings.tools == "tools.yml"
    assert settings.secrets["CHAPTERVERSE_TOOL_SHOP"] == "top-secret"
    assert "top-secret" not in repr(settings)
    # As any other secret: the environment goes before what is fetched.
    fetched = settings.with_secrets({"CHAPTERVERSE_TOOL_SHOP": "other", "CHAPTERVERSE_TOOL_STOCK": "s", "HOME": "/"})
    assert dict(fetched.tool_secrets) == {"CHAPTERVERSE_TOOL_SHOP": "top-secret", "CHAPTERVERSE_TOOL_STOCK": "s"}
