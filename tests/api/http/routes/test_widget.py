from __future__ import annotations

import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse.widget import bundle
from chapterverse_api.app import create_app

SCRIPTS = bundle.names()


def test_the_widget_is_shipped() -> None:
    assert {"launcher.js", "lang/en.js", "lang/more/en.js"} <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_served_as_the_plugin_writes_it(name: str) -> None:
    response = Client(create_app(Scripted())).get(f"/widget/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/javascript; charset=utf-8"
    assert response.headers["cache-control"] == "public, max-age=300"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.content == bundle.files()[name]


def test_a_known_copy_is_not_sent_again() -> None:
    client = Client(create_app(Scripted()))
    tag = client.get("/widget/launcher.js").headers["etag"]
    response = client.get("/widget/launcher.js", headers={"if-none-match": tag})
    assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", tag)
    assert client.get("/widget/launcher.js", headers={"if-none-match": '"other"'}).status_code == 200


def test_a_page_of_an_allowed_origin_may_import_it() -> None:
    origin = "https://docs.example.com"
    client = Client(create_app(Scripted(settings=Settings(allowed_origins=origin))))
    response = client.get("/widget/launcher.js", headers={"origin": origin})
    assert (response.headers["access-control-allow-origin"], response.headers["vary"]) == (origin, "Origin")


@pytest.mark.parametrize(
    "path",
    [
        *("/widget/", "/widget/nope.js", "/widget/../errors.py", "/widget/%2e%2e/errors.py", "/widget/..%2ferrors.py"),
        *("/widget/lang", "/widget/lang/", "/widget/lang/xx.js", "/widget/en.js", "/widget/options.py"),
        *("/widget/launcher.js/", "/widget//launcher.js", "/widget/launcher.js%00", "/widget/LAUNCHER.JS"),
    ],
)
def test_nothing_else_is_there(path: str) -> None:
    response = Client(create_app(Scripted())).get(path)
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


def test_a_wrong_method_is_405() -> None:
    response = Client(create_app(Scripted())).post("/widget/launcher.js", {})
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")
