"""Addresses of services: a version at the end, and where their hosts are."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

import pytest

from chapterverse.ext.net.address import is_public, strip_version
from chapterverse.text.hosts import is_loopback, is_private

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


#: IANA's registries of special-purpose addresses for IPv4 and IPv6, whole, as of 2025, with the RFC of each block; then
#: what other registries keep for no single public server.
REGISTERED = {
    "0.0.0.0/8": "RFC 791", "0.0.0.0/32": "RFC 1122", "10.0.0.0/8": "RFC 1918", "100.64.0.0/10": "RFC 6598",
    "127.0.0.0/8": "RFC 1122", "169.254.0.0/16": "RFC 3927", "172.16.0.0/12": "RFC 1918", "192.0.0.0/24": "RFC 6890",
    "192.0.0.0/29": "RFC 7335", "192.0.0.8/32": "RFC 7600", "192.0.0.9/32": "RFC 7723", "192.0.0.10/32": "RFC 8155",
    "192.0.0.170/32": "RFC 8880", "192.0.0.171/32": "RFC 7050", "192.0.2.0/24": "RFC 5737",
    "192.31.196.0/24": "RFC 7535", "192.52.193.0/24": "RFC 7450", "192.88.99.0/24": "RFC 7526",
    "192.88.99.2/32": "RFC 6751", "192.168.0.0/16": "RFC 1918", "192.175.48.0/24": "RFC 7534",
    "198.18.0.0/15": "RFC 2544", "198.51.100.0/24": "RFC 5737", "203.0.113.0/24": "RFC 5737",
    "240.0.0.0/4": "RFC 1112", "255.255.255.255/32": "RFC 8190",
    "::1/128": "RFC 4291", "::/128": "RFC 4291", "64:ff9b:1::/48": "RFC 8215", "100::/64": "RFC 6666",
    "100:0:0:1::/64": "RFC 9780", "2001::/23": "RFC 2928", "2001::/32": "RFC 4380", "2001:1::1/128": "RFC 7723",
    "2001:1::2/128": "RFC 8155", "2001:1::3/128": "RFC 9665", "2001:2::/48": "RFC 5180", "2001:3::/32": "RFC 7450",
    "2001:4:112::/48": "RFC 7535", "2001:10::/28": "RFC 4843", "2001:20::/28": "RFC 7343", "2001:30::/28": "RFC 9374",
    "2001:db8::/32": "RFC 3849", "2002::/16": "RFC 3056", "2620:4f:8000::/48": "RFC 7534", "3fff::/20": "RFC 9637",
    "5f00::/16": "RFC 9602", "fc00::/7": "RFC 4193", "fe80::/10": "RFC 4291",
    "224.0.0.0/4": "RFC 5771", "ff00::/8": "RFC 4291", "fec0::/10": "RFC 3879", "::/96": "RFC 4291",
    "168.63.129.16/32": "Azure",
}  # fmt: skip
#: Beside them, and public.
NEIGHBORS = [
    "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
    "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
    "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.31.195.255", "192.31.197.0", "192.88.98.255", "192.88.100.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::", "2003::",
    "2620:4f:7fff:ffff::", "2620:4f:8001::", "2001:db7:ffff::", "2001:db9::", "2606:4700::1111",
]  # fmt: skip


def embedded(address: str) -> list[str]:
    """Return the addresses of IPv6 that lead to one of IPv4 where they lead anywhere."""
    high, low = (int.from_bytes(bytes(map(int, address.split("."))), "big") >> shift & 0xFFFF for shift in (16, 0))
    return [
        f"::ffff:{address}", f"::{address}", f"64:ff9b::{address}", f"64:ff9b:1::{address}",
        f"2002:{high:x}:{low:x}::1", f"2001:0:5db8:d822:0:ffff:{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}",
    ]  # fmt: skip


@pytest.mark.parametrize("block", REGISTERED)
def test_no_special_address_is_public(block: str) -> None:
    network: IPv4Network | IPv6Network = ip_network(block)
    ends = {str(network[0]), str(network[-1]), str(network[network.num_addresses // 2])}
    for address in ends:
        assert not is_public(address), address
        if network.version == 4:
            assert [one for one in embedded(address) if is_public(one)] == []


@pytest.mark.parametrize("address", NEIGHBORS)
def test_addresses_beside_special_ones_are_public(address: str) -> None:
    assert is_public(address)
    if "." in address:
        # Only what must lead to that very address is as public.
        assert [is_public(one) for one in embedded(address)] == [True, False, True, False, False, False]
