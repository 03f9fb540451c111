"""The S3 store under kills, races, damage and rejected requests, against moto's server."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import (
    ChapterVerseError,
    ConfigurationError,
    IndexCorrupt,
    IndexFault,
    IndexLocked,
    IndexMismatch,
    IndexMissing,
)
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.store import S3Store
from chapterverse.model import FORMAT, Head
from fakes.docs import SCOPE, point, prose
from fakes.s3_server import S3Server, refused, shared, torn, unanswered, well
from faults.nursery import Nursery
from store.publishing import NONE, names_in, publish

PLACE = "docs/@"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with shared().entered(tmp_path) as entered:
        yield entered


@pytest.fixture
def bucket(server: S3Server) -> Bucket:
    return Bucket.open(f"s3://{server.bucket()}/index")


@pytest.fixture
def store(bucket: Bucket) -> S3Store:
    return S3Store(bucket)


def objects(bucket: Bucket) -> list[str]:
    return sorted(o.key.removeprefix(f"{PLACE}/") for o in bucket.list())


def packs(bucket: Bucket) -> list[int]:
    return [int(name[:6]) for name in objects(bucket) if name.endswith(".pack")]


def head_document(bucket: Bucket) -> dict[str, Any]:
    found = bucket.read(f"{PLACE}/head.json")
    assert found
    document: dict[str, Any] = json.loads(found.body)
    return document


def put(server: S3Server, bucket: Bucket, name: str, body: bytes, **fields: Any) -> None:
    key = f"{bucket.prefix}{PLACE}/{name}"
    server.client().put_object(Bucket=bucket.name, Key=key, Body=body, **fields)


def get(server: S3Server, bucket: Bucket, name: str) -> bytes:
    key = f"{bucket.prefix}{PLACE}/{name}"
    body: bytes = server.client().get_object(Bucket=bucket.name, Key=key)["Body"].read()
    return body


def live_pack(bucket: Bucket) -> str:
    return str(head_document(bucket)["artefact"]["name"])


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    known = isinstance(error, ChapterVerseError) and "testing-secret" not in text
    return known and "\n" not in text and text.endswith(".") and 20 < len(text) < 400


# Objects


def test_what_lies_in_the_bucket(store: S3Store, bucket: Bucket) -> None:
    publish(store, "a")
    (pack, head, lease) = objects(bucket)
    assert (pack[:7], pack[-5:], head, lease) == ("000001-", ".pack", "head.json", "publish.lease")
    assert bucket.stat(f"{PLACE}/{pack}") is not None
    assert head_document(bucket)["artefact"]["name"] == pack


def test_an_abandoned_publication_uploads_nothing(store: S3Store, bucket: Bucket, tmp_path: Path) -> None:
    publish(store, "a")
    before = objects(bucket)
    with store.publish(SCOPE, NONE) as publication:
        publication.write([point("b", "text")])
        publication.preview()
    assert objects(bucket) == before
    assert not list(tmp_path.glob("chapterverse-*/*.new"))


def test_artefacts_stay_for_the_grace_and_the_previous_one_longer(bucket: Bucket) -> None:
    for i in range(3):
        publish(S3Store(bucket), f"p{i}")
    assert packs(bucket) == [1, 2, 3]
    # Without any grace the one before the live one stays all the same.
    publish(S3Store(bucket, grace=0), "p3")
    assert packs(bucket) == [3, 4]
    assert next(iter(head_document(bucket)["retired"]))[:6] == "000003"


def test_what_a_killed_publisher_uploaded_goes_after_the_grace_or_by_a_sweep(server: S3Server, bucket: Bucket) -> None:
    store = S3Store(bucket)
    publish(store, "a")
    put(server, bucket, "000002-0123456789ab.pack", b"orphan")
    put(server, bucket, "notes.txt", b"not ours")
    publish(store, "b")
    assert packs(bucket) == [1, 2, 2]
    assert store.sweep(SCOPE) == 2
    assert (packs(bucket), names_in(store)) == ([2], ["a", "b"])
    put(server, bucket, "000003-0123456789ab.pack", b"orphan")
    publish(S3Store(bucket, grace=0), "c")
    assert packs(bucket) == [2, 3]
    assert live_pack(bucket) != "000003-0123456789ab.pack"
    assert "notes.txt" in objects(bucket)


def test_a_store_below_another_ones_prefix_is_not_seen(server: S3Server, bucket: Bucket) -> None:
    outer, inner = S3Store(bucket), S3Store(Bucket.open(f"{bucket}/docs/@"))
    publish(inner, "inner")
    assert outer.heads() == []
    publish(outer, "outer")
    assert (names_in(inner), names_in(outer)) == (["inner"], ["outer"])
    assert outer.sweep(SCOPE) == 0
    assert inner.is_complete(SCOPE)


def test_an_unchanged_head_is_not_fetched_again(store: S3Store, server: S3Server) -> None:
    publish(store, "a")
    store.snapshot(SCOPE)
    server.requests.clear()
    store.heads()
    store.heads()
    assert [r.partition(" ")[0] for r in server.requests] == ["GET", "GET"]
    assert all("list-type" in r for r in server.requests)
    server.requests.clear()
    store.snapshot(SCOPE)
    assert len(server.requests) == 1


def test_a_look_at_what_is_live_downloads_nothing(store: S3Store, server: S3Server, bucket: Bucket) -> None:
    publish(store, "a")
    server.requests.clear()
    assert S3Store(bucket).is_complete(SCOPE)
    assert not [r for r in server.requests if r.startswith("GET") and ".pack" in r]


# The cache


def cached(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("chapterverse-*/*/*"))


def test_readers_share_one_unpacked_copy(bucket: Bucket, server: S3Server, tmp_path: Path) -> None:
    publish(S3Store(bucket), "a")
    shutil.rmtree(cached(tmp_path)[0])
    server.requests.clear()
    snapshots = [S3Store(bucket).snapshot(SCOPE) for _ in range(3)]
    assert len([r for r in server.requests if ".pack" in r]) == 1
    assert len(cached(tmp_path)) == 1
    publish(S3Store(bucket), "b")
    assert len(cached(tmp_path)) == 1
    assert [[p.chunk.source_file_path for p in s.points()] for s in snapshots] == [["a.md"]] * 3


@pytest.mark.parametrize("how", ["truncated", "removed", "emptied"])
def test_a_damaged_copy_is_fetched_again(store: S3Store, bucket: Bucket, tmp_path: Path, how: str) -> None:
    publish(store, "a")
    (copy,) = cached(tmp_path)
    largest = max((p for p in copy.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    if how == "truncated":
        os.truncate(largest, 5)
    elif how == "removed":
        largest.unlink()
    else:
        shutil.rmtree(copy)
        copy.mkdir()
    assert names_in(S3Store(bucket)) == ["a"]
    assert names_in(S3Store(bucket)) == ["a"]


def test_nothing_is_published_from_a_copy_that_may_have_changed(store: S3Store, bucket: Bucket, tmp_path: Path) -> None:
    publish(store, "a")
    (copy,) = cached(tmp_path)
    (copy / "terms.bin").write_bytes((copy / "terms.bin").read_bytes()[:-8] + bytes(8))
    publish(store, "b")
    (term, *_) = point("a", prose("a")).lexical.indices
    frequencies = [S3Store(bucket, Cache(tmp_path / "other")).snapshot(SCOPE).document_frequencies([term])]
    assert frequencies[0][0] >= 1
    assert names_in(store) == ["a", "b"]


def test_a_folder_of_somebody_else_is_not_used(bucket: Bucket, tmp_path: Path) -> None:
    publish(S3Store(bucket), "a")
    shared_by_all = tmp_path / "shared"
    shared_by_all.mkdir()
    shared_by_all.chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path)
    for root in (shared_by_all, tmp_path / "link"):
        with pytest.raises(ConfigurationError, match="TMPDIR") as caught:
            S3Store(bucket, Cache(root)).snapshot(SCOPE)
        assert one_sentence(caught.value)


def test_desks_of_the_dead_are_cleared_away_and_those_of_the_living_stay(store: S3Store, tmp_path: Path) -> None:
    publish(store, "a")
    (root,) = tmp_path.glob("chapterverse-*")
    (root / "dead.new" / "draft").mkdir(parents=True)
    os.utime(root / "dead.new", (0, 0))
    with store.publish(SCOPE, NONE):
        (alive,) = (p for p in root.glob("*.new") if p.name != "dead.new")
        os.utime(alive, (0, 0))
        with Cache(root).scratch_dir():
            assert alive.exists()
            assert not (root / "dead.new").exists()
    assert not list(root.glob("*.new"))


def test_a_desk_that_can_not_be_cleared_away_keeps_nobody_out(
    store: S3Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store, "a")
    (root,) = tmp_path.glob("chapterverse-*")
    (root / "deep.new").mkdir()
    os.utime(root / "deep.new", (0, 0))
    remove = shutil.rmtree

    def too_deep(folder: Path, ignore_errors: bool = False) -> None:
        if folder.name == "deep.new":
            raise RecursionError
        remove(folder, ignore_errors)

    # As Python 3.11 does where folders lie a thousand deep.
    monkeypatch.setattr(shutil, "rmtree", too_deep)
    publish(store, "b")
    assert [path.name for path in root.glob("*.new")] == ["deep.new"]


# Races


def test_the_loser_of_a_race_is_told_and_leaves_nothing(bucket: Bucket) -> None:
    publish(S3Store(bucket), "a")
    # Leases that end at once: only the head decides.
    one, other = (S3Store(bucket, lease_seconds=0) for _ in range(2))
    with one.publish(SCOPE, NONE) as late:
        late.write([point("late", "text")])
        found = late.preview().head
        publish(other, "b")
        with pytest.raises(IndexLocked, match="took over") as caught:
            late.renew()
        assert one_sentence(caught.value)
        with pytest.raises(IndexLocked, match="took over"):
            late.commit(Head("docs", "", 2, found.pages, found.chunks, "test"))
    assert packs(bucket) == [1, 2]
    assert names_in(S3Store(bucket)) == ["a", "b"]


def lose_lease(bucket: Bucket) -> None:
    """Remove the lease of the publisher at work, who looks at it only after a quarter of its time."""
    bucket.remove(f"{PLACE}/publish.lease")


def test_the_head_decides_where_a_lost_lease_is_not_noticed(bucket: Bucket) -> None:
    publish(S3Store(bucket), "a")
    one, other = S3Store(bucket), S3Store(bucket, lease_seconds=0)
    with one.publish(SCOPE, NONE) as late:
        late.write([point("late", "text")])
        found = late.preview().head
        lose_lease(bucket)
        publish(other, "b")
        with pytest.raises(IndexLocked, match="published meanwhile") as caught:
            late.commit(Head("docs", "", 2, found.pages, found.chunks, "test"))
        assert one_sentence(caught.value)
    assert packs(bucket) == [1, 2]
    assert names_in(S3Store(bucket)) == ["a", "b"]


def test_the_loser_of_a_first_publication_too(bucket: Bucket) -> None:
    one, other = S3Store(bucket), S3Store(bucket, lease_seconds=0)
    with one.publish(SCOPE, NONE) as late:
        late.write([point("late", "text")])
        late.preview()
        lose_lease(bucket)
        publish(other, "b")
        with pytest.raises(IndexLocked, match="published meanwhile"):
            late.commit(Head("docs", "", 1, 1, 1, "test"))
    assert (packs(bucket), names_in(other)) == ([1], ["b"])


@pytest.mark.parametrize("published", [False, True])
def test_a_sweep_shuts_the_door_on_a_publisher_that_was_given_up(
    bucket: Bucket, server: S3Server, published: bool
) -> None:
    one, other = S3Store(bucket), S3Store(bucket, lease_seconds=0)
    if published:
        publish(other, "a")
    with one.publish(SCOPE, NONE) as late:
        late.write([point("late", "text")])
        late.preview()
        lose_lease(bucket)

        def swept_before_the_head(environ: Any, start: Any, bucket_app: Any) -> Any:
            assert other.sweep(SCOPE) == 1
            return bucket_app(environ, start)

        server.faults.extend([well, swept_before_the_head])
        with pytest.raises(IndexLocked):
            late.commit(Head("docs", "", 1 + published, 1 + published, 1 + published, "test"))
    if published:
        assert names_in(other) == ["a"]
    else:
        assert other.heads() == []
        assert other.is_complete(SCOPE)
        with pytest.raises(IndexMissing):
            other.snapshot(SCOPE)
    assert publish(other, "b").generation == 1 + published


def test_a_lease_is_taken_over_when_its_time_is_up(bucket: Bucket) -> None:
    holder, patient = S3Store(bucket, lease_seconds=60), S3Store(bucket)
    with holder.publish(SCOPE, NONE):
        assert patient.is_publishing(SCOPE)
        with pytest.raises(IndexLocked, match="Another process is publishing docs") as caught:
            publish(patient, "a")
        assert one_sentence(caught.value)
    with S3Store(bucket, lease_seconds=0).publish(SCOPE, NONE):
        assert not patient.is_publishing(SCOPE)
        publish(patient, "a")
    assert names_in(patient) == ["a"]


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"seconds": "x"}', b"\xff", b'{"seconds": 1e999}'])
def test_a_damaged_lease_locks_for_a_while_only(bucket: Bucket, server: S3Server, body: bytes) -> None:
    put(server, bucket, "publish.lease", body)
    with pytest.raises(IndexLocked):
        publish(S3Store(bucket), "a")


def test_a_generation_that_is_removed_under_a_reader_is_not_damage(
    bucket: Bucket, server: S3Server, tmp_path: Path
) -> None:
    store = S3Store(bucket, Cache(tmp_path / "reader"))
    publish(S3Store(bucket, grace=0), "a")

    def overtaken(environ: Any, start: Any, bucket_app: Any) -> Any:
        publish(S3Store(bucket, grace=0), "b")
        publish(S3Store(bucket, grace=0), "c")
        return bucket_app(environ, start)

    server.faults.extend([well, overtaken])
    assert names_in(store) == ["a", "b", "c"]


# Answers that are lost, and requests that are repeated


@pytest.mark.parametrize("lost", range(10))
def test_any_one_lost_answer_changes_nothing(store: S3Store, bucket: Bucket, server: S3Server, lost: int) -> None:
    publish(store, "a")
    server.faults.extend([well] * lost + [unanswered])
    publish(store, "b")
    assert names_in(store) == ["a", "b"]
    assert packs(bucket) == [1, 2]
    assert not server.faults


#: What comes before the write of the head in a second publication: four for the lease, one for the head, two artefacts.
BEFORE_THE_HEAD = 7


def test_a_conflict_with_another_write_is_waited_out(store: S3Store, server: S3Server) -> None:
    publish(store, "a")
    server.faults.extend([well] * BEFORE_THE_HEAD + [refused("409 Conflict", "ConditionalRequestConflict")])
    publish(store, "b")
    assert (names_in(store), len(server.faults)) == (["a", "b"], 0)


def test_what_a_write_in_doubt_may_still_name_is_not_removed(store: S3Store, bucket: Bucket, server: S3Server) -> None:
    publish(store, "a")
    server.faults.extend([well] * BEFORE_THE_HEAD + [refused("409 Conflict", "ConditionalRequestConflict")] * 4)
    with pytest.raises(IndexLocked, match="published meanwhile"):
        publish(store, "b")
    assert (names_in(store), packs(bucket)) == (["a"], [1, 2])


@pytest.mark.parametrize("broken", [1, 3])
def test_a_download_that_breaks_off_goes_on(store: S3Store, server: S3Server, tmp_path: Path, broken: int) -> None:
    publish(store, *"abcdef")
    shutil.rmtree(cached(tmp_path)[0])
    server.requests.clear()
    server.faults.extend([well] + [torn] * broken)
    assert names_in(store) == list("abcdef")
    assert len([r for r in server.requests if ".pack" in r]) == 1 + broken


def test_a_download_that_breaks_off_again_and_again_is_told(store: S3Store, server: S3Server, tmp_path: Path) -> None:
    publish(store, "a")
    shutil.rmtree(cached(tmp_path)[0])
    server.faults.extend([well] + [torn] * 9)
    with pytest.raises(IndexFault, match="can't be reached") as caught:
        store.snapshot(SCOPE)
    assert not isinstance(caught.value, IndexCorrupt)
    assert one_sentence(caught.value)


# Damage


DAMAGED = [
    b"", b"{", b"null", b"[]", b"42", b'"text"', b"{}", b'{"head": null}', b'{"head": {}, "artefact": {}}', b"\xff\xfe",
    b"[" * 100_000, b'{"head": {"format": 1}}',
]  # fmt: skip


@pytest.mark.parametrize("body", DAMAGED)
def test_a_damaged_head_is_told_and_replaced(store: S3Store, bucket: Bucket, server: S3Server, body: bytes) -> None:
    publish(store, "a")
    put(server, bucket, "head.json", body)
    tells_damage(store)
    publish(store, "b")
    assert store.is_complete(SCOPE)
    assert names_in(store) == ["b"]


def tells_damage(store: S3Store) -> None:
    assert not store.is_complete(SCOPE)
    with pytest.raises(IndexCorrupt) as caught:
        store.snapshot(SCOPE)
    assert one_sentence(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "../../../other/@/000001-0123456789ab.pack"), ("name", "head.json"), ("name", 7), ("size", -1),
        ("size", "1"), ("size", None), ("sha256", "f"), ("sha256", ["f" * 64]), ("sha256", "../" * 21 + "x"),
    ],
)  # fmt: skip
def test_a_head_that_names_no_artefact_is_damaged(
    store: S3Store, bucket: Bucket, server: S3Server, field: str, value: object
) -> None:
    publish(store, "a")
    document = head_document(bucket)
    document["artefact"][field] = value
    put(server, bucket, "head.json", json.dumps(document).encode())
    tells_damage(store)


@pytest.mark.parametrize("retired", [None, [], {"x": 1}, {"x": "y"}, {"x": "2026-01-01T00:00:00"}])
def test_a_head_with_nonsense_about_the_past_is_damaged(
    store: S3Store, bucket: Bucket, server: S3Server, retired: object
) -> None:
    publish(store, "a")
    put(server, bucket, "head.json", json.dumps({**head_document(bucket), "retired": retired}).encode())
    tells_damage(store)


def test_a_newer_format_is_not_read_and_not_written(store: S3Store, bucket: Bucket, server: S3Server) -> None:
    publish(store, "a")
    document = head_document(bucket)
    document["head"] |= {"format": FORMAT + 1, "invented": True}
    put(server, bucket, "head.json", json.dumps(document).encode())
    before = objects(bucket), head_document(bucket)
    for act in (store.heads, lambda: store.snapshot(SCOPE), lambda: publish(store, "b"), lambda: store.sweep(SCOPE)):
        with pytest.raises(IndexMismatch, match="upgrade"):
            act()
    assert (objects(bucket), head_document(bucket)) == before


ARTEFACTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "cut": lambda raw: raw[: len(raw) // 2],
    "cut by one": lambda raw: raw[:-1],
    "longer": lambda raw: raw + b"\0",
    "first bit": lambda raw: bytes([raw[0] ^ 1]) + raw[1:],
    "middle bit": lambda raw: raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 16]) + raw[len(raw) // 2 + 1 :],
    "last bit": lambda raw: raw[:-1] + bytes([raw[-1] ^ 128]),
    "noise": lambda raw: bytes(len(raw)),
}


@pytest.mark.parametrize("how", [*ARTEFACTS, "missing"])
def test_a_damaged_artefact_is_told_and_replaced(
    store: S3Store, bucket: Bucket, server: S3Server, tmp_path: Path, how: str
) -> None:
    publish(store, "a")
    opened = store.snapshot(SCOPE)
    name = live_pack(bucket)
    if how == "missing":
        bucket.remove(f"{PLACE}/{name}")
    else:
        put(server, bucket, name, ARTEFACTS[how](get(server, bucket, name)))
    assert not store.is_complete(SCOPE)
    reader = S3Store(bucket, Cache(tmp_path / "reader"))
    with pytest.raises(IndexCorrupt, match="missing or") as caught:
        reader.snapshot(SCOPE)
    assert one_sentence(caught.value)
    assert not list((tmp_path / "reader").rglob("*.*"))
    assert [p.chunk.source_file_path for p in opened.points()] == ["a.md"]
    publish(store, "b")
    assert names_in(reader) == ["b"]
    assert store.is_complete(SCOPE)


# Refusals


def test_an_address_without_a_bucket() -> None:
    for uri in ("s3:", "s3://", "s3:///prefix", "s3://x", "s3://user:key@host/x", "s3://bucket/a/../b", "s3://bucket/a//b",
                "s3://bucket/\n", "s3://bucket/" + "x" * 701, "s3://büro/x"):  # fmt: skip
        with pytest.raises(ConfigurationError, match="There is no store") as caught:
            Bucket.open(uri)
        assert "use s3://BUCKET" in str(caught.value)
    assert str(Bucket.open("s3://bucket")) == "s3://bucket"
    assert str(Bucket.open("s3://bucket/a/b/")) == "s3://bucket/a/b"


def test_a_bucket_without_a_prefix(server: S3Server) -> None:
    store = S3Store(Bucket.open(f"s3://{server.bucket()}"))
    publish(store, "a")
    assert [h.scope for h in store.heads()] == [SCOPE]


def acts(store: S3Store) -> list[Callable[[], object]]:
    return [store.heads, lambda: store.snapshot(SCOPE), lambda: publish(store, "z"), lambda: store.is_publishing(SCOPE)]


REFUSALS: dict[tuple[str, str], tuple[type[ChapterVerseError], str]] = {
    ("403 Forbidden", "AccessDenied"): (ConfigurationError, "allow s3:(ListBucket|GetObject)"),
    ("403 Forbidden", "InvalidAccessKeyId"): (ConfigurationError, "renew them"),
    ("400 Bad Request", "ExpiredToken"): (ConfigurationError, "renew them"),
    ("403 Forbidden", "RequestTimeTooSkewed"): (IndexFault, "clock"),
    ("503 Slow Down", "SlowDown"): (IndexFault, "too busy"),
    ("500 Internal Server Error", "InternalError"): (IndexFault, "too busy"),
    ("404 Not Found", "NoSuchBucket"): (ConfigurationError, "There is no bucket"),
    ("400 Bad Request", "Invented"): (IndexFault, "refused a request .Invented."),
    ("400 Bad Request", "testing-secret"): (IndexFault, "refused a request .an unknown code."),
}


@pytest.mark.parametrize("answer", REFUSALS, ids=lambda answer: answer[1])
def test_every_refusal_is_one_sentence(store: S3Store, server: S3Server, answer: tuple[str, str]) -> None:
    publish(store, "a")
    kind, words = REFUSALS[answer]
    for act in acts(store):
        # boto3 asks a bucket's region again when it is refused.
        server.faults.extend([refused(*answer)] * 9)
        with pytest.raises(kind, match=words) as caught:
            act()
        assert one_sentence(caught.value)
        server.faults.clear()
    assert names_in(store) == ["a"]


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject"])
def test_a_missing_permission_is_named(server: S3Server, action: str) -> None:
    bucket = server.bucket()
    store = S3Store(Bucket.open(f"s3://{bucket}"))
    publish(store, "a")
    denied = {"Effect": "Deny", "Principal": "*", "Action": action, "Resource": f"arn:aws:s3:::{bucket}/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [denied]})
    server.client().put_bucket_policy(Bucket=bucket, Policy=policy)
    reads: list[Callable[[], object]] = [
        S3Store(Bucket.open(f"s3://{bucket}")).heads, lambda: store.snapshot(SCOPE), lambda: store.head(SCOPE),
    ]  # fmt: skip
    for act in reads if action == "s3:GetObject" else [lambda: publish(store, "b")]:
        with pytest.raises(ConfigurationError, match=f"^S3 denies access to s3://{bucket}: allow {action}") as caught:
            act()
        assert one_sentence(caught.value)


def test_a_bucket_that_may_not_be_listed(store: S3Store, server: S3Server) -> None:
    server.faults.append(refused("403 Forbidden", "AccessDenied"))
    with pytest.raises(ConfigurationError, match=r": allow s3:ListBucket\.$"):
        store.heads()


def test_one_busy_answer_is_waited_out(store: S3Store, server: S3Server) -> None:
    publish(store, "a")
    server.faults.extend([refused("503 Slow Down", "SlowDown")])
    assert names_in(store) == ["a"]


def test_a_bucket_that_is_not_there(server: S3Server) -> None:
    for act in acts(S3Store(Bucket.open("s3://no-such-bucket/x"))):
        with pytest.raises(ConfigurationError, match="There is no bucket 'no-such-bucket'") as caught:
            act()
        assert one_sentence(caught.value)


def test_nobody_answers(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:testing-secret@127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    for act in acts(S3Store(Bucket.open("s3://bucket/x"))):
        with pytest.raises(IndexFault, match="can't be reached") as caught:
            act()
        assert one_sentence(caught.value)


def test_an_endpoint_that_is_no_address(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "not an address")
    with pytest.raises(ConfigurationError, match="AWS_ENDPOINT_URL") as caught:
        S3Store(Bucket.open("s3://bucket/x")).heads()
    assert one_sentence(caught.value)


def test_no_credentials(server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = S3Store(Bucket.open(f"s3://{server.bucket()}/x"))
    for act in acts(store):
        with pytest.raises(ConfigurationError, match="no AWS credentials") as caught:
            act()
        assert one_sentence(caught.value)
    monkeypatch.setenv("AWS_PROFILE", "missing")
    with pytest.raises(ConfigurationError, match="no AWS credentials"):
        S3Store(Bucket.open("s3://bucket/x")).heads()


def test_a_service_without_conditional_writes_is_refused_before_anything_is_made(
    store: S3Store, bucket: Bucket, server: S3Server
) -> None:
    publish(store, "a")
    before = packs(bucket), head_document(bucket)
    server.unconditional = True
    with pytest.raises(ConfigurationError, match="no conditional writes") as caught:
        publish(store, "b")
    assert one_sentence(caught.value)
    assert (packs(bucket), head_document(bucket)) == before
    server.unconditional = False
    assert publish(store, "b").generation == 2


def test_a_full_disk_is_told(bucket: Bucket, tmp_path: Path) -> None:
    publish(S3Store(bucket), "a")
    document = head_document(bucket)
    document["artefact"]["size"] = 1 << 60
    shared().client().put_object(
        Bucket=bucket.name, Key=f"{bucket.prefix}{PLACE}/head.json", Body=json.dumps(document).encode()
    )
    with pytest.raises(IndexFault, match=r"can't be unpacked in .*No space left on device.*TMPDIR") as caught:
        S3Store(bucket, Cache(tmp_path / "reader")).snapshot(SCOPE)
    assert not isinstance(caught.value, IndexCorrupt)
    assert one_sentence(caught.value)


# Kills


def killed(environment: dict[str, str], uri: str, at: int) -> None:
    """Publish, and be killed in place of the request of that number."""
    os.environ.update(environment)
    store = S3Store(Bucket.open(uri), lease_seconds=0)
    count = 0

    def die(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        # A request begins with its method, what is sent after that belongs to it.
        if event == "http.client.send" and arguments[1][:4] in (b"GET ", b"PUT ", b"HEAD", b"DELE"):
            count += 1
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die)
    publish(store, "b", delete=("a",))


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_a_kill_before_any_request_leaves_the_old_index_or_the_new_one(
    server: S3Server, nursery: Nursery, tmp_path: Path, first: bool
) -> None:
    old, new = ([], ["b"]) if first else (["a", "x"], ["b", "x"])
    seen = []
    for at in range(1, 40):
        bucket = Bucket.open(f"s3://{server.bucket()}/index")
        store = S3Store(bucket, lease_seconds=0, grace=0)
        if not first:
            publish(store, "a", "x")
        environment = {**server.environment, "TMPDIR": str(tmp_path)}
        end = nursery.start(killed, environment, str(bucket), at).wait()
        with contextlib.suppress(IndexMissing):
            seen.append(names_in(store))
        assert store.is_complete(SCOPE)
        before = store.heads()
        head = publish(store, "b", delete=("a",))
        assert head.generation == 1 + (before[0].generation if before else 0)
        assert names_in(store) == new
        assert packs(bucket) == sorted({head.generation, max(1, head.generation - 1)})
        if not end.killed:
            break
    else:
        pytest.fail("it never came to an end")
    assert at > 8
    assert [s for s in seen if s not in (old, new)] == []
    # Before some request the old index was whole, and before some later one the new.
    assert seen == sorted(seen, key=lambda s: s == new)
    assert new in seen
    assert first or old in seen
