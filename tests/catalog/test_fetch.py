"""Addresses are read within limits, and never where users may not go."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jupyterlab_convect.catalog.fetch import Fetcher, Policy, is_internal
from jupyterlab_convect.errors import ConvectError, Missing, Refused

OPEN = Policy(hosts=("127.0.0.1",), timeout=60, max_bytes=1000)


def refused(url: str, policy: Policy = OPEN, kind: type[ConvectError] = ConvectError) -> str:
    with pytest.raises(kind) as caught:
        Fetcher(policy).get(url)
    return caught.value.sentence


def test_a_text_is_read(site: Any) -> None:
    assert Fetcher(OPEN).get(site.put("/a%20b.yaml?v=1", "x: 2")).data == b"x: 2"
    assert Fetcher(OPEN).get(site.put("/a.yaml", "x: 1")).data == b"x: 1"


def test_internal_addresses_are_refused_unless_an_administrator_opens_them(site: Any) -> None:
    url = site.put("/a.yaml", "x: 1")
    assert "internal address" in refused(url, Policy(), Refused)
    assert "internal address" in refused(url.replace("127.0.0.1", "localhost"), Policy(), Refused)
    assert not site.asked


@pytest.mark.parametrize(
    ("address", "internal"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("169.254.169.254", True),
        ("100.64.0.1", True),
        ("0.0.0.0", True),
        ("224.0.0.1", True),
        ("::1", True),
        ("fe80::1", True),
        ("fd00::1", True),
        ("::ffff:10.0.0.1", True),
        ("2002:0a00:0001::1", True),
        ("64:ff9b::a00:1", True),
        ("8.8.8.8", False),
        ("2001:4860:4860::8888", False),
        ("::ffff:8.8.8.8", False),
    ],
)
def test_internal_addresses_are_known_in_every_disguise(address: str, internal: bool) -> None:
    assert is_internal(ipaddress.ip_address(address)) is internal


def test_the_connection_goes_to_the_address_that_was_looked_at(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that changes its answer after the check leads nowhere else."""
    real = socket.getaddrinfo
    asked = []

    def resolve(host: str, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host == "rebinding.example":
            asked.append(host)
            answer = "127.0.0.1" if len(asked) == 1 else "10.9.9.9"
            return real(answer, port, *args, **kwargs)
        return real(host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    url = site.put("/a.yaml", "x: 1").replace("127.0.0.1", "rebinding.example")
    assert Fetcher(Policy(hosts=("rebinding.example",))).get(url).data == b"x: 1"
    assert asked == ["rebinding.example"]
    assert site.asked[0][1]["Host"].startswith("rebinding.example")


def test_redirects_are_followed_and_looked_at_again(site: Any) -> None:
    site.put("/there", "x: 1")
    assert Fetcher(OPEN).get(site.put("/here", "", 302, location="/there")).data == b"x: 1"
    hop = site.put("/hop", "", 301, location="http://localhost:1/")
    assert "internal address" in refused(hop, kind=Refused)
    assert "not a web address" in refused(site.put("/file", "", 302, location="file:///etc/passwd"))
    assert "too often" in refused(site.put("/loop", "", 302, location="/loop"))


def test_a_secret_goes_to_its_host_and_not_along_with_a_redirect(site: Any) -> None:
    other = site.put("/b", "x: 1").replace("127.0.0.1", "localhost")
    url = site.put("/a", "", 302, location=other)
    policy = Policy(hosts=("127.0.0.1", "localhost"))
    Fetcher(policy, "Bearer s3cret", frozenset({"127.0.0.1"})).get(url)
    assert [headers.get("Authorization") for _, headers in site.asked] == ["Bearer s3cret", None]


def test_what_is_too_large_is_refused(site: Any) -> None:
    assert "larger" in refused(site.put("/big", b"x" * 2000))
    assert "larger" in refused(site.put("/liar", b"", content_length=str(10**9)))


def test_what_is_cut_short_is_refused(site: Any) -> None:
    assert "cannot be reached" in refused(site.put("/short", b"x", content_length="500"))


def test_what_drips_is_cut_off(site: Any) -> None:
    url = site.put("/slow", b"x", content_length="500")
    site.slow.add("/slow")
    assert "took longer than 0.3 s" in refused(url, Policy(hosts=("127.0.0.1",), timeout=0.3))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("text/html; charset=utf-8", "web page"),
        ("image/png", "cannot be a component"),
        ("application/zip", "cannot be a component"),
    ],
)
def test_what_is_not_text_is_refused(site: Any, kind: str, words: str) -> None:
    assert words in refused(site.put("/x", "<html>", content_type=kind))


@pytest.mark.parametrize("kind", ["application/x-yaml", "text/yaml", "application/octet-stream"])
def test_every_type_that_servers_give_to_yaml_is_taken(site: Any, kind: str) -> None:
    assert Fetcher(OPEN).get(site.put("/x", "x: 1", content_type=kind)).data == b"x: 1"


def test_what_is_not_there_says_so(site: Any) -> None:
    assert "was not found (404)" in refused(site.url + "/none", kind=Missing)
    assert "needs authorization (403)" in refused(site.put("/secret", "", 403), kind=Refused)
    assert "answered with 500" in refused(site.put("/broken", "", 500))
    site.close()
    assert "cannot be reached" in refused(site.url + "/closed")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://host/x",
        "//host/x",
        "x.yaml",
        "http://",
        "http://[::1",
        "http://host:99999/",
        "https://user:password@host/",
        "http://ho st/",
        "http://host/\r\nX: y",
    ],
)
def test_what_is_no_web_address_is_refused_before_anything_is_asked(url: str) -> None:
    sentence = refused(url)
    assert "web address" in sentence or "password" in sentence
    assert "user:password" not in sentence


def test_several_are_read_at_once_and_fail_alone(site: Any) -> None:
    urls = [site.put(f"/{number}", str(number)) for number in range(20)] + [site.url + "/none"]
    found = Fetcher(OPEN).many(urls)
    assert [found[url] for url in urls[:-1]] == [str(number).encode() for number in range(20)]
    assert isinstance(found[urls[-1]], Missing)


@pytest.fixture
def resolving(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have a name server that knows a name."""
    real = socket.getaddrinfo

    def know(name: str, *addresses: str) -> None:
        known = socket.getaddrinfo

        def resolve(host: str, port: Any, *args: Any, **kwargs: Any) -> Any:
            if host != name:
                return known(host, port, *args, **kwargs)
            return [item for each in addresses for item in real(each, port, *args, **kwargs)]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)

    return know


@pytest.fixture
def proxied(site: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Everything goes by way of a proxy, which the site plays: it is asked for whole addresses."""
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, site.url.replace("://", "://me:p%40ss@"))
    monkeypatch.setenv("no_proxy", "")
    return site


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_only_a_proxy_can_resolve_is_refused(proxied: Any, scheme: str) -> None:
    """The proxy may stand where internal names mean something."""
    assert "known to the proxy only" in refused(f"{scheme}://intranet.invalid/a", kind=Refused)
    for host in ("10.0.0.1", "169.254.169.254", "[::1]", "localhost", "0x7f000001"):
        assert "internal address" in refused(f"{scheme}://{host}/a", Policy(), Refused)
    assert not proxied.asked


def test_a_proxy_is_asked_for_what_an_administrator_opened(proxied: Any) -> None:
    proxied.pages["http://intranet.invalid/a?b=1"] = (200, {"Content-Type": "text/plain"}, b"x: 1")
    policy = Policy(hosts=("*.invalid",), timeout=60)
    assert Fetcher(policy).get("http://intranet.invalid/a?b=1").data == b"x: 1"
    _, headers = proxied.asked[0]
    assert headers["Host"] == "intranet.invalid"
    assert headers["Proxy-Authorization"] == "Basic bWU6cEBzcw=="


def test_a_proxy_is_asked_for_a_name_that_is_known_to_be_public(
    proxied: Any, resolving: Callable[..., None]
) -> None:
    resolving("public.example", "192.0.43.8")
    resolving("private.example", "192.0.43.8", "10.0.0.1")
    proxied.pages["http://public.example/a"] = (200, {"Content-Type": "text/plain"}, b"x: 1")
    assert Fetcher(Policy(timeout=60)).get("http://public.example/a").data == b"x: 1"
    assert "internal address" in refused("http://private.example/a", Policy(), Refused)
    assert len(proxied.asked) == 1


def test_https_goes_through_a_proxy_in_a_tunnel(
    resolving: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving("public.example", "192.0.43.8")
    heard: list[bytes] = []

    def serve(peer: socket.socket) -> None:
        heard.append(peer.recv(10_000))
        peer.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        heard.append(peer.recv(10_000))

    with listening(serve) as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        refused("https://public.example/a", Policy(timeout=60))
    assert heard[0].startswith(b"CONNECT public.example:443 ")
    assert heard[1][:1] == b"\x16"
    assert b"public.example" in heard[1]


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that talks to one caller."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def work() -> None:
            peer, _ = server.accept()
            with peer, contextlib.suppress(OSError):
                serve(peer)

        thread = threading.Thread(target=work)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


def test_a_handshake_that_drips_is_cut_off() -> None:
    def drip(peer: socket.socket) -> None:
        peer.sendall(b"\x16\x03\x03\x40\x00")
        while True:
            peer.sendall(b"\x02")
            time.sleep(0.02)

    with listening(drip) as port:
        url = f"https://127.0.0.1:{port}/"
        assert "took longer than 0.3 s" in refused(url, Policy(hosts=("127.0.0.1",), timeout=0.3))


def test_the_addresses_of_a_name_share_one_time_limit(
    resolving: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving("slow.example", "127.0.0.1", "127.0.0.2", "127.0.0.3")
    given: list[float] = []

    def connect(address: Any, timeout: float) -> None:
        given.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    refused("http://slow.example/a", Policy(hosts=("slow.example",), timeout=10))
    assert len(given) == 3
    assert given[0] <= 10 / 3


def test_redirects_share_one_time_limit(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    site.put("/c", "x: 1")
    site.put("/b", "", 302, location="/c")
    url = site.put("/a", "", 302, location="/b")
    real, deadlines = Fetcher._open, []

    def connect(self: Fetcher, parts: Any, deadline: float) -> Any:
        deadlines.append(deadline)
        return real(self, parts, deadline)

    monkeypatch.setattr(Fetcher, "_open", connect)
    assert Fetcher(OPEN).get(url).data == b"x: 1"
    assert deadlines == [deadlines[0]] * 3


def test_https_is_https_however_it_is_written(
    site: Any, resolving: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = site.put("/a", "", 302, location=site.put("/b", "x: 1"))

    def open_plainly(self: Fetcher, parts: Any, deadline: float) -> Any:
        return real(self, parts._replace(scheme="http"), deadline)

    real = Fetcher._open
    monkeypatch.setattr(Fetcher, "_open", open_plainly)
    assert "redirects from https" in refused(url.replace("http:", "HTTPS:"), kind=Refused)


def test_a_secret_is_not_sent_over_an_open_connection(
    proxied: Any, resolving: Callable[..., None]
) -> None:
    """Not even when a component in the catalog refers to such an address of the same host."""
    resolving("public.example", "192.0.43.8")
    proxied.pages["http://public.example/a"] = (200, {"Content-Type": "text/plain"}, b"x: 1")
    fetcher = Fetcher(Policy(timeout=60), "Bearer s3cret", frozenset({"public.example"}))
    assert fetcher.get("http://public.example/a").data == b"x: 1"
    assert "Authorization" not in proxied.asked[0][1]


def test_a_catalog_as_a_whole_has_its_time(site: Any) -> None:
    urls = [site.put("/a", "x: 1")]
    with pytest.raises(ConvectError, match="The catalog took longer than 600 s"):
        Fetcher(OPEN, until=time.monotonic()).many(urls)
    assert not site.asked
