from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from api.scripted import Client, Scripted, error_of, serving
from chapterverse.errors import ConfigurationError
from chapterverse_api.app import create_app


@pytest.fixture
def client(tmp_path: Path) -> Client:
    site = tmp_path / "site"
    for name in ("index.html", "guide/index.html", "404.html", "assets/a.js", "v1/chat", "v1/old/index.html"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(f"<p>{name}</p>")
    (site / "widget").mkdir()
    (site / "widget/index.html").write_text("<p>the page about the widget</p>")
    (tmp_path / "secret.txt").write_text("secret")
    (site / "link.txt").symlink_to(tmp_path / "secret.txt")
    return Client(create_app(Scripted(), site_dir=site))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/", "<p>index.html</p>"),
        ("/guide/", "<p>guide/index.html</p>"),
        ("/assets/a.js", "<p>assets/a.js</p>"),
        ("/v1/old/", "<p>v1/old/index.html</p>"),
        ("/widget/", "<p>the page about the widget</p>"),
    ],
)
def test_a_page_is_served(client: Client, path: str, text: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.text) == (200, text)
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_rebuilt_page_is_seen_at_once(client: Client) -> None:
    assert client.get("/guide/").headers["cache-control"] == "no-cache"


def test_a_folder_without_its_slash_leads_to_the_page(client: Client) -> None:
    response = client.get("/guide")
    assert (response.status_code, httpx.URL(response.headers["location"]).path) == (307, "/guide/")


@pytest.mark.parametrize("path", ["/nope", "/nope/", "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt"])
def test_a_missing_page_is_the_sites_own_404(client: Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.text) == (404, "<p>404.html</p>")


@pytest.mark.parametrize("path", ["/link.txt", "/%00", "/" + "a" * 5000, "/%ff", "/assets", "/..%5c..%5csecret.txt"])
def test_a_strange_path_leads_nowhere(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code in (307, 404)
    assert "secret" not in response.text


def test_routes_of_the_api_win(client: Client) -> None:
    assert client.get("/v1/health").json() == {"status": "ok"}
    assert client.post("/v1/chat", {"query": "a"}).status_code == 200
    response = client.get("/v1/chat")
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/schema"), ("POST", "/mcp"), ("GET", "/mcp")])
def test_routes_that_come_later_are_404_in_our_shape(client: Client, method: str, path: str) -> None:
    response = client.request(method, path)
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


def test_nothing_can_be_written_to_a_page(client: Client) -> None:
    response = client.request("POST", "/guide/")
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")


def test_a_site_without_a_404_page_answers_in_our_shape(tmp_path: Path) -> None:
    response = Client(create_app(Scripted(), site_dir=tmp_path)).get("/nope")
    assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


def test_a_site_that_was_not_built_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="build the site first"):
        create_app(Scripted(), site_dir=tmp_path / "nope")


def test_site_and_api_share_an_origin_over_a_real_socket(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>hello</p>")
    with serving(create_app(Scripted(), site_dir=tmp_path)) as address:
        assert httpx.get(address).text == "<p>hello</p>"
        answer = httpx.post(f"{address}/v1/chat", json={"query": "a"}, headers={"origin": address})
        assert answer.status_code == 200


def test_the_sitemap_names_the_pages_where_they_are_served(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_text(
        "<urlset><url><loc>https://docs.example/v1/</loc></url><url><loc>https://docs.example/v1/a/</loc></url></urlset>"
    )
    app = create_app(Scripted(), site_dir=tmp_path)
    response = Client(app).get("/sitemap.xml")
    assert response.status_code == 200
    assert re.findall("<loc>(.*?)</loc>", response.text) == ["https://api.example.com/", "https://api.example.com/a/"]
