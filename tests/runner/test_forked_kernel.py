"""A kernel that was forked ahead is used only if it says that it takes its assignment."""

import os
import socket
import threading
from pathlib import Path

import pytest

from jupyterlab_convect.runner.forked_kernel import ForkedSpare
from jupyterlab_convect.runner.limits import Limits
from jupyterlab_convect.runtimes.local.fork_children import receive, send


@pytest.fixture
def waiting(tmp_path):
    """A spare, and the other end of the channel of its kernel."""
    ours, keeper = socket.socketpair()
    channel, kernel = socket.socketpair()
    output, printed = os.pipe()
    send(keeper, {"pid": os.getpid(), "folder": str(tmp_path)}, [channel.fileno(), output])
    channel.close()
    os.close(output)
    yield ForkedSpare(ours, receive), kernel
    os.close(printed)
    keeper.close()


async def test_one_that_dies_with_its_assignment_on_the_way_is_not_used(waiting):
    spare, kernel = waiting
    kernel.send(b"r")

    def die():
        assert receive(kernel)[0]["cwd"] == "/"
        kernel.close()

    death = threading.Thread(target=die)
    death.start()
    assert await spare.assign(Path("/"), {}, Limits(), record=None) is None
    death.join()
