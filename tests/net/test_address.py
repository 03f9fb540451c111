"""Addresses of services: a version at the end, and where their hosts are."""

from __future__ import annotations

import pytest

from chapterverse.net.address import is_loopback, is_private, is_public, strip_version

HOST = "http://localhost:11434"


@pytest.mark.parametrize("end", ["/v1", "/v2/", "/V1//"])
def test_a_version_at_the_end_is_left_out(end: str) -> None:
    assert strip_version(f"{HOST}{end}") == HOST
    assert strip_version(f" {HOST}/proxy{end}") == f"{HOST}/proxy"


@pytest.mark.parametrize(
    "url", [HOST, f"{HOST}/", f"{HOST}/api", f"{HOST}/v1/openai", f"{HOST}/api/v3", "https://v1.example.com"]
)
def test_any_other_address_is_taken_as_it_is(url: str) -> None:
    assert strip_version(url) == url


@pytest.mark.parametrize("host", ["localhost", "docs.localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_hosts_of_this_machine_are_private_too(host: str) -> None:
    assert is_loopback(host)
    assert is_private(host)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.7", "192.168.1.2", "fd00::1", "100.64.0.1", "100.127.255.254", "models.local", "gpu.internal", "ollama",
        "gpu.lan", "gpu.lan.", "vllm.models.svc", "vllm.models.svc.cluster.local", "a.internal", "a.home.arpa",
    ],
)  # fmt: skip
def test_hosts_of_a_private_network_are_not_this_machine(host: str) -> None:
    assert is_private(host)
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "93.184.216.34", "100.63.0.1", "100.128.0.1", "2606:2800:220:1::1", "localhost.example.com", "example.com", "",
        "lan.example.com", "svc.example", "local.example",
    ],
)  # fmt: skip
def test_other_hosts_are_not_private(host: str) -> None:
    assert not is_private(host)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True), ("2606:2800:220:1::1", True), ("::ffff:93.184.216.34", True),
        ("64:ff9b::5db8:d822", True), ("127.0.0.1", False), ("10.1.2.3", False), ("172.16.0.1", False),
        ("192.168.0.1", False), ("169.254.169.254", False), ("100.64.0.1", False), ("0.0.0.0", False),
        ("224.0.0.1", False), ("255.255.255.255", False), ("::", False), ("::1", False), ("fe80::1%eth0", False),
        ("fd00:ec2::254", False), ("fec0::1", False), ("ff02::1", False), ("::ffff:127.0.0.1", False),
        ("64:ff9b::7f00:1", False), ("2002:7f00:1::", False), ("2001:db8::1", False), ("2001::7f00:1", False),
        ("::7f00:1", False), ("64:ff9b:1::7f00:1", False),
    ],
)  # fmt: skip
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public
