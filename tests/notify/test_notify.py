"""Notifications, by a real SMTP server and a real HTTP server."""

from __future__ import annotations

import asyncio
import email
import email.policy
import errno
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP
from waiting import eventually

from jupyterlab_convect.errors import ConvectError, Refused
from jupyterlab_convect.notify import delivery, outbox
from jupyterlab_convect.notify.delivery import MailServer, body_of, deliver, mail_server, signed
from jupyterlab_convect.notify.notification import (
    KINDS,
    Message,
    Notification,
    check_notification,
)
from jupyterlab_convect.notify.notifier import Notifier
from jupyterlab_convect.notify.outbox import GIVE_UP, Outbox
from jupyterlab_convect.runs.model import Request, new_id
from jupyterlab_convect.schedules.schedule import Schedule
from jupyterlab_convect.schedules.times import Clock
from jupyterlab_convect.settings import Settings
from jupyterlab_convect.workspace import Workspace

MESSAGE = Message(
    "failure",
    "train: failed",
    "ValueError: no <data>",
    ("line 1", "line 2"),
    "http://lab/lab?convect-run=r",
    {"run": "r"},
)


class Received:
    """A web server that notes what it gets, and answers as it is told."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: tuple[int, bytes] = (200, b"ok")
        self.go_on = threading.Event()
        """Unset while an answer does not come to its end."""
        self.go_on.set()
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.requests.append((self.path, dict(self.headers), body))
                status, text = received.answer
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", received.url)
                self.end_headers()
                self.wfile.write(text)
                received.go_on.wait()

            def do_GET(self) -> None:
                received.requests.append((self.path, dict(self.headers), b"GET"))

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, _, body in self.requests]


@pytest.fixture
def web() -> Iterator[Received]:
    received = Received()
    yield received
    received.server.shutdown()
    received.server.server_close()


class Letters:
    """What the mail server was given."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.mails.append((envelope.rcpt_tos, mail))
        return "250 OK"


@pytest.fixture
async def letters() -> AsyncIterator[tuple[Letters, MailServer]]:
    handler = Letters()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(handler, loop=loop), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield handler, MailServer("127.0.0.1", port, "none", sender="convect@example.org")
    server.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    settings = Settings(
        runs_dir=str(tmp_path / "runs"), index_dir=str(tmp_path / "index"), url="http://lab/"
    )
    workspace = Workspace(settings)
    yield workspace
    workspace.store.close()


def made(kind: Any, **how: Any) -> Notification:
    return Notification(new_id(), "n", time.time(), kind, **how)


async def test_a_mail_reaches_a_mail_server(letters: tuple[Letters, MailServer]):
    received, server = letters
    title = "训练: failed\r\nBcc: eve@example.org"
    message = replace(MESSAGE, title=title)
    notification = made("mail", to=("a@example.org", "b@example.org"))
    await asyncio.to_thread(deliver, notification, message, server)
    [(recipients, mail)] = received.mails
    assert recipients == ["a@example.org", "b@example.org"]
    assert mail["Subject"] == "训练: failed Bcc: eve@example.org"
    assert mail["Bcc"] is None
    text = mail.get_content()
    assert "line 2" in text
    assert "http://lab/lab?convect-run=r" in text


def test_a_message_has_the_shape_that_its_receiver_takes(web: Received):
    for kind in KINDS[1:]:
        deliver(made(kind, url=web.url), MESSAGE, MailServer())
    bodies = dict(zip(KINDS[1:], web.bodies(), strict=True))
    assert bodies["webhook"]["run"] == "r"
    assert bodies["webhook"]["lines"] == ["line 1", "line 2"]
    assert "<http://lab/lab?convect-run=r|" in bodies["slack"]["text"]
    assert "&lt;data&gt;" in bodies["slack"]["text"]
    [card] = bodies["teams"]["attachments"]
    assert card["content"]["actions"][0]["url"] == MESSAGE.link
    assert bodies["feishu"]["msg_type"] == "text"
    assert bodies["dingtalk"]["markdown"]["title"] == "train: failed"
    assert "line 1" in bodies["wecom"]["markdown"]["content"]
    long = replace(MESSAGE, lines=("长" * 4000,))
    assert len(body_of("wecom", long)["markdown"]["content"].encode()) <= 4096


def test_signatures_are_those_of_feishu_and_dingtalk():
    _, body = signed("feishu", "u", {}, "demo", 1599360473)
    assert body["sign"] == "l1N0gAcBjdwBvGm1xMjOF0XSyaLRpR7tuO5dHfhAYc8="
    assert body["timestamp"] == "1599360473"
    url, _ = signed("dingtalk", "https://x/robot?access_token=t", {}, "demo", 1.5)
    assert url.startswith("https://x/robot?access_token=t&timestamp=1500&sign=")


def test_secrets_are_looked_up_and_never_told(web: Received, monkeypatch: pytest.MonkeyPatch):
    notification = made("webhook", secret="team/url", sign="team/key")
    with pytest.raises(Refused, match="secret team/url is not known"):
        deliver(notification, MESSAGE, MailServer())
    monkeypatch.setenv("CONVECT_SECRET_TEAM_URL", web.url)
    monkeypatch.setenv("CONVECT_SECRET_TEAM_KEY", "k")
    deliver(notification, MESSAGE, MailServer())
    [(_, headers, _)] = web.requests
    assert headers["X-Hub-Signature-256"].startswith("sha256=")
    web.answer = (403, b"")
    with pytest.raises(Refused) as refused:
        deliver(notification, MESSAGE, MailServer())
    assert refused.value.sentence == "It could not be sent: the answer was 403 Forbidden."
    web.answer = (200, b'{"errcode": 310000, "errmsg": "sign not match"}')
    with pytest.raises(Refused, match="error 310000 sign not match"):
        deliver(notification, MESSAGE, MailServer())
    monkeypatch.setenv("CONVECT_SECRET_TEAM_URL", "http://127.0.0.1:9/secret-part")
    with pytest.raises(Refused) as refused:
        deliver(notification, MESSAGE, MailServer())
    assert "secret-part" not in refused.value.sentence


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"kind": "pigeon"}, "is not a kind of notification"),
        ({"kind": "mail"}, "A mail goes to"),
        ({"kind": "mail", "to": ("x",)}, "is not a mail address"),
        ({"kind": "slack"}, "Specify where to send it"),
        ({"kind": "slack", "url": "u", "secret": "a/b"}, "Specify where to send it"),
        ({"kind": "slack", "url": "ftp://x"}, "begins with https://"),
        ({"kind": "slack", "url": "http://[x"}, "begins with https://"),
        ({"kind": "slack", "secret": "x"}, "does not name a secret"),
        ({"kind": "slack", "secret": "a/b", "events": ()}, "Choose at least one event"),
        ({"kind": "slack", "secret": "a/b", "events": ("longer",)}, "Specify how long a run may"),
        (
            {"kind": "slack", "secret": "a/b", "path": "a", "run": "b"},
            "is about a schedule, a file",
        ),
    ],
)
def test_bad_input_is_one_sentence(fields: Any, sentence: str):
    with pytest.raises(ConvectError, match=sentence):
        check_notification(made(**fields))
    with pytest.raises(ConvectError, match="of the mail server is invalid"):
        mail_server({"hots": "x"})


def test_a_message_that_is_sent_on_elsewhere_was_not_taken(web: Received):
    web.answer = (302, b"")
    with pytest.raises(Refused, match="the answer was 302"):
        deliver(made("webhook", url=web.url), MESSAGE, MailServer())
    assert len(web.requests) == 1


def test_an_answer_without_end_is_given_up(web: Received, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(delivery, "LONGEST", 0.2)
    web.go_on.clear()
    try:
        with pytest.raises(Refused, match="nobody answered in time"):
            deliver(made("webhook", url=web.url), MESSAGE, MailServer())
    finally:
        web.go_on.set()


def test_an_answer_that_is_nested_without_end_is_none(web: Received):
    web.answer = (200, b"[" * 60_000)
    deliver(made("webhook", url=web.url), MESSAGE, MailServer())


def test_what_was_told_once_is_not_told_again_and_what_was_not_taken_is_tried_again(
    workspace: Workspace,
):
    outbox = Outbox(workspace.store)
    notification = made("webhook", url="http://x")
    outbox.add(notification)
    assert outbox.post(notification, "failure r", MESSAGE)
    assert not Outbox(workspace.store).post(notification, "failure r", MESSAGE)
    [(path, posted)] = outbox.messages()
    assert posted.message == MESSAGE
    pauses = []
    for _ in range(4):
        outbox.note(path, posted, "no", 1000.0)
        [(path, posted)] = outbox.messages()
        pauses.append(posted.next - 1000)
    assert pauses == [5, 10, 20, 40]
    outbox.note(path, posted, "no", posted.created + GIVE_UP + 1)
    [(_, posted)] = outbox.messages()
    assert posted.given_up
    assert outbox.last_of()[notification.id].failed == "no"


async def test_runs_that_end_are_told_about_by_what_they_are(
    workspace: Workspace, tmp_path: Path, write_notebook: Callable[..., Path], web: Received
):
    project = tmp_path / "project"
    project.mkdir()
    write_notebook(project / "good.ipynb", "print(1)")
    write_notebook(project / "bad.ipynb", "print('before')", "1 / 0")
    notifier = workspace.notifier
    notifier.add({"kind": "webhook", "url": web.url, "name": "all"})
    notifier.add({"kind": "webhook", "url": web.url, "events": ["success"], "path": "good.ipynb"})
    await workspace.open()
    runs = {}
    for name in ("good.ipynb", "bad.ipynb"):
        run = workspace.make(Request(name, str(project)))
        await workspace.submit(run)
        await workspace.engine.wait(run.id)
        runs[name] = run.id

    async def told() -> bool:
        await notifier.look()
        return len(web.requests) >= 2

    await eventually(told, "both runs were told about")
    await notifier.look()
    bodies = {body["run"]: body for body in web.bodies()}
    assert len(web.requests) == 2
    bad = bodies[runs["bad.ipynb"]]
    assert (bad["event"], bad["title"]) == ("failure", "bad: failed")
    assert "division by zero" in bad["text"]
    assert any("before" in line or "ZeroDivisionError" in line for line in bad["lines"])
    assert bad["link"] == f"http://lab/lab?convect-run={runs['bad.ipynb']}"
    assert bodies[runs["good.ipynb"]]["event"] == "success"
    assert [view["last"]["sent"] for view in notifier.views()] == [True, True]
    await workspace.close()


async def test_a_server_that_does_not_answer_loses_nothing(
    workspace: Workspace, tmp_path: Path, write_notebook: Callable[..., Path], web: Received
):
    write_notebook(tmp_path / "bad.ipynb", "1 / 0")
    web.answer = (503, b"")
    notifier = workspace.notifier
    notifier.add({"kind": "webhook", "url": web.url})
    await workspace.open()
    run = workspace.make(Request("bad.ipynb", str(tmp_path)))
    await workspace.submit(run)
    await workspace.engine.wait(run.id)

    async def tried() -> bool:
        await notifier.look()
        return bool(web.requests)

    await eventually(tried, "it was tried")
    [view] = notifier.views()
    assert view["last"]["reason"] == (
        "It could not be sent: the answer was 503 Service Unavailable."
    )
    notifier.close()
    web.answer = (200, b"")
    [(path, posted)] = notifier.outbox.messages()
    notifier.outbox.note(path, replace(posted, tries=-20), "again", time.time() - 60)
    other = Notifier(workspace)  # As after a restart.
    await other.look()
    assert len(web.requests) == 2
    await other.look()
    assert len(web.requests) == 2
    other.close()
    await workspace.close()


async def test_missed_and_refused_due_times_are_told_about(workspace: Workspace, web: Received):
    await workspace.open()
    schedules = workspace.scheduling.schedules
    clock = Clock(cron="0 * * * *")
    now = time.time()
    schedule = Schedule(new_id(), "nightly", now - 90000, Request("a.ipynb"), clock)
    schedules.add(schedule)
    notifier = workspace.notifier
    notifier.add(
        {
            "kind": "webhook",
            "url": web.url,
            "events": ["missed", "failure"],
            "schedule": schedule.id,
        }
    )
    gone = [now - 86000, now + 5]
    schedules.write(
        schedule.id,
        {"time": now + 10, "type": "missed", "due": now + 10, "gone": gone},
        {"time": now + 11, "type": "refused", "due": now + 11, "reason": "There is no file."},
    )

    async def told() -> bool:
        await notifier.look()
        return len(web.requests) == 2

    await eventually(told, "both were told about")
    found = {body["title"]: body for body in web.bodies()}
    assert found["nightly: missed"]["text"].startswith("Nobody kept the clock from")
    assert "Due times missed: 2" in found["nightly: missed"]["text"]
    assert found["nightly: not started"]["text"] == "There is no file."
    await workspace.close()


async def test_a_run_that_takes_long_is_told_about_while_it_runs(
    workspace: Workspace, tmp_path: Path, write_notebook: Callable[..., Path], web: Received
):
    write_notebook(tmp_path / "long.ipynb", "import time\ntime.sleep(600)")
    await workspace.open()
    run = workspace.make(Request("long.ipynb", str(tmp_path)))
    await workspace.submit(run)
    notifier = workspace.notifier
    notifier.add(
        {"kind": "webhook", "url": web.url, "events": ["longer"], "longer": 0.1, "run": run.id}
    )

    async def told() -> bool:
        notifier._slow = 0.0
        await notifier.look()
        return bool(web.requests)

    await eventually(told, "it was told about")
    [body] = web.bodies()
    assert (body["event"], body["title"]) == ("longer", "long: still running")
    await workspace.engine.stop(run.id)
    await workspace.engine.wait(run.id)
    await workspace.close()


async def test_a_message_that_cannot_be_sent_holds_up_no_other(workspace: Workspace, web: Received):
    workspace.settings.smtp = {"host": ["no name"]}
    notifier = workspace.notifier
    for given in ({"kind": "mail", "to": ["a@example.org"]}, {"kind": "webhook", "url": web.url}):
        notifier.outbox.post(notifier.outbox.read(notifier.add(given)), "x", MESSAGE)
    await notifier.look()
    assert len(web.requests) == 1
    reasons = {view["kind"]: view["last"]["reason"] for view in notifier.views()}
    assert reasons["webhook"] is None
    assert reasons["mail"].startswith("It could not be sent: ")
    notifier.close()


async def test_a_full_disk_has_no_message_sent_twice(
    workspace: Workspace, web: Received, monkeypatch: pytest.MonkeyPatch
):
    notifier = workspace.notifier
    made = notifier.add({"kind": "webhook", "url": web.url})
    notifier.outbox.post(notifier.outbox.read(made), "x", MESSAGE)

    def write(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(outbox, "write_json", write)
        for _ in range(3):
            await notifier.look()
    assert len(web.requests) == 1
    await notifier.look()
    notifier.close()
    [(_, posted)] = Outbox(workspace.store).messages()
    assert posted.sent is not None


async def test_a_run_that_cannot_be_read_is_told_about_later_and_others_at_once(
    workspace: Workspace,
    tmp_path: Path,
    write_notebook: Callable[..., Path],
    web: Received,
    monkeypatch: pytest.MonkeyPatch,
):
    write_notebook(tmp_path / "bad.ipynb", "1 / 0")
    notifier = workspace.notifier
    notifier.add({"kind": "webhook", "url": web.url})
    await workspace.open()
    runs = [workspace.make(Request("bad.ipynb", str(tmp_path))) for _ in range(2)]
    for run in runs:
        await workspace.submit(run)
        await workspace.engine.wait(run.id)
    read, hidden = workspace.store.read, {runs[0].id}

    def read_others(run_id: str) -> Any:
        if run_id in hidden:
            raise ConvectError("It is damaged.", code="damaged")
        return read(run_id)

    monkeypatch.setattr(workspace.store, "read", read_others)

    async def told(*wanted: str) -> bool:
        await notifier.look()
        return {body["run"] for body in web.bodies()} == set(wanted)

    await eventually(lambda: told(runs[1].id), "the other one was told about")
    hidden.clear()
    await eventually(lambda: told(*(run.id for run in runs)), "it was told about, too")
    notifier.close()
    await workspace.close()
