"""What is said when the cluster opens no shell."""

import pytest

from jupyterlab_convect.runtimes.kubernetes.shell import _words_of


class BadStatus(Exception):
    """As the WebSocket library raises it."""

    def __init__(self, body: object) -> None:
        super().__init__("Handshake status 500 Internal Server Error -+-+- {} -+-+- None")
        self.resp_body = body


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"kind": "Status", "message": "pods is forbidden."}', "pods is forbidden"),
        (b'container not found ("step")\n', 'container not found ("step")'),
        (b"[1]", "[1]"),
        (b"", "Handshake status 500 Internal Server Error"),
        (None, "Handshake status 500 Internal Server Error"),
    ],
)
def test_the_words_of_the_cluster_are_passed_on(body: object, words: str) -> None:
    assert _words_of(BadStatus(body)) == words
