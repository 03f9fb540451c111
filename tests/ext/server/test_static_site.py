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


def test_an_address_without_a_suffix_is_that_of_its_page(client: Client, tmp_path: Path) -> None:
    for name in ("concepts/cache.html", "concepts.html", "guide.html"):
        (tmp_path / "site" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "site" / name).write_text(name)
    # A folder without a page of its own leaves its name to the page beside it.
    for path in ("concepts/cache", "concepts"):
        response = client.get(f"/{path}")
        assert (response.status_code, response.text) == (200, f"{path}.html")
        assert response.headers["content-type"].startswith("text/html")
    assert client.get("/guide").status_code == 307
    assert client.get("/concepts/nope").status_code == 404


@pytest.mark.parametrize("path", ["/nope", "/nope/", "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt"])
def test_a_missing_page_is_the_sites_own_404(client: Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.text) == (404, "<p>404.html</p>")


HIDDEN = [".env", ".git/config", ".git/index.html", "guide/.htpasswd", ".well-known/.env", "...", ".a.html", "..b/c"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("slashes", ["/", "/guide/..//", "/./", "/guide/../"])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_begins_with_a_dot_is_not_served(
    client: Client, tmp_path: Path, name: str, slashes: str, method: str
) -> None:
    file = tmp_path / "site" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("secret")
    encoded = "".join(f"%{ord(c):02x}" for c in name)
    for spelt in (
        name,
        encoded,
        encoded.replace("%2f", "/"),
        name.replace(".", "%2E"),
        f"{name}/",
        f"{name}?a=.",
        f"x/../{name}",
    ):
        response = client.request(method, f"{slashes}{spelt}")
        assert (response.status_code, "secret" in response.text) == (404, False), spelt


@pytest.mark.parametrize("folder", ["/.git", "/.git/", "/guide/.svn", "/%2egit"])
def test_a_hidden_folder_leads_nowhere(client: Client, tmp_path: Path, folder: str) -> None:
    for name in (".git", "guide/.svn"):
        (tmp_path / "site" / name).mkdir()
        (tmp_path / "site" / name / "index.html").write_text("secret")
    response = client.get(folder)
    assert (response.status_code, response.text) == (404, "<p>404.html</p>")


def test_what_is_meant_to_be_well_known_is_served(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "site" / ".well-known"
    folder.mkdir()
    (folder / "security.txt").write_text("Contact: mailto:a@example.com")
    assert client.get("/.well-known/security.txt").text.startswith("Contact")


def test_a_link_opens_nothing_that_is_hidden_or_elsewhere(client: Client, tmp_path: Path) -> None:
    site, outside = tmp_path / "site", tmp_path / "outside"
    outside.mkdir()
    (site / ".git").mkdir()
    for secret in (site / ".git/config", site / ".env", outside / "a.html", outside / "index.html"):
        secret.write_text("secret")
    for link, leads in {
        "config": ".git/config",
        "env.txt": ".env",
        "history": ".git",
        "elsewhere": "../outside",
        "a.html": "../outside/a.html",
        "b.html": str(outside / "a.html"),
        "sitemap.xml": "../outside/a.html",
        "again": "elsewhere",
    }.items():
        (site / link).symlink_to(leads)
        for path in (link, f"{link}/", f"{link}/config", f"{link}/a.html", f"{link}/index.html"):
            response = client.get(f"/{path}")
            assert (response.status_code, "secret" in response.text) == (404, False), path
    (site / "404.html").unlink()
    (site / "404.html").symlink_to(site / ".env")
    assert "secret" not in client.get("/nope").text


def test_a_site_may_lie_below_a_hidden_folder_and_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / ".cache/site").mkdir(parents=True)
    (tmp_path / ".cache/site/index.html").write_text("<p>hello</p>")
    (tmp_path / "current").symlink_to(".cache/site")
    for folder in (".cache/site", "current"):
        assert Client(create_app(Scripted(), site_dir=tmp_path / folder)).get("/").text == "<p>hello</p>"


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


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/steps"), ("POST", "/mcp"), ("GET", "/mcp")])
def test_routes_that_are_off_or_come_later_are_404_in_our_shape(client: Client, method: str, path: str) -> None:
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
        assert httpx.get(address, timeout=60).text == "<p>hello</p>"
        answer = httpx.post(f"{address}/v1/chat", json={"query": "a"}, headers={"origin": address}, timeout=60)
        assert answer.status_code == 200


def test_the_sitemap_names_the_pages_where_they_are_served(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_text(
        "<urlset><url><loc>https://docs.example/v1/</loc></url><url><loc>https://docs.example/v1/a/</loc></url></urlset>"
    )
    app = create_app(Scripted(), site_dir=tmp_path)
    response = Client(app).get("/sitemap.xml")
    assert response.status_code == 200
    assert re.findall("<loc>(.*?)</loc>", response.text) == ["http://localhost/", "http://localhost/a/"]


def test_text_is_compressed_unless_a_part_of_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("const a = 1;\n" * 500)
    (tmp_path / "a.png").write_bytes(b"\x89PNG" * 500)
    client = Client(create_app(Scripted(), site_dir=tmp_path))
    script = client.get("/a.js", headers={"accept-encoding": "gzip"})
    assert (script.headers["content-encoding"], script.text) == ("gzip", "const a = 1;\n" * 500)
    assert "accept-encoding" in script.headers["vary"].lower()
    for path, headers in (
        ("/a.js", {"range": "bytes=0-5"}),
        ("/a.png", {}),
        ("/a.js", {"accept-encoding": "identity"}),
    ):
        response = client.get(path, headers={"accept-encoding": "gzip", **headers})
        assert "content-encoding" not in response.headers


def test_only_files_in_a_folder_that_names_their_content_are_cached_for_good(tmp_path: Path) -> None:
    stamped, plain = "assets/chapterverse/1.0.0-0123abcd/lang/en.js", "assets/chapterverse/1.0.0/panel.js"
    built = "assets/chapterverse/1.0.0/0123abcd/launcher.js"
    for name in (stamped, built, plain):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("export {};")
    client = Client(create_app(Scripted(), site_dir=tmp_path))
    for name in (stamped, built):
        assert client.get(f"/{name}").headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "immutable" not in client.get(f"/{plain}").headers.get("cache-control", "")
    assert "immutable" not in client.get(f"/{stamped}x").headers.get("cache-control", "")
