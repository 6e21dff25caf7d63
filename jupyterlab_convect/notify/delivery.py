"""Sends a message by mail or HTTP, in the form that each chat takes. If that fails, the reason
contains no secrets."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import smtplib
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode

from ..errors import ConvectError, Refused
from ..pipeline.plan import Json
from ..secret_values import explain_missing, look_up
from .notification import Kind, Message, Notification, check_url, secret_of

PATIENCE, LONGEST = 15.0, 60.0
"""Seconds that a receiver may take for a sign of life, and for all of it."""
LARGEST_ANSWER = 1 << 16
SUBJECT = 150


@dataclass(frozen=True, slots=True)
class MailServer:
    """`c.Convect.smtp`."""

    host: str = ""
    port: int = 0
    security: str = "starttls"
    """`starttls`, `tls` or `none`."""
    user: str | None = None
    password: str | None = None
    """Which secret holds it, as `name/key`."""
    sender: str | None = None


def mail_server(given: Mapping[str, Json]) -> MailServer:
    odd = given.keys() - {"host", "port", "security", "user", "password", "sender"}
    if odd or given.get("security", "starttls") not in ("starttls", "tls", "none"):
        what = next(iter(odd), "security")
        raise ConvectError(f"`{what}` of the mail server is invalid.", code="bad-config")
    return MailServer(**given)


def deliver(notification: Notification, message: Message, server: MailServer) -> None:
    """Refused when it was not taken within `LONGEST` seconds, however little by little."""
    done: Future[None] = Future()

    def work() -> None:
        try:
            _deliver(notification, message, server)
            done.set_result(None)
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=work, name="convect-notify", daemon=True).start()
    try:
        done.result(LONGEST)
    except FutureTimeout:
        raise Refused("It could not be sent: nobody answered in time.", code="not-sent") from None


def _deliver(notification: Notification, message: Message, server: MailServer) -> None:
    try:
        if notification.kind == "mail":
            _mail(notification, message, server)
        else:
            _post(notification, message)
    except (OSError, HTTPException, smtplib.SMTPException) as error:
        raise Refused(f"It could not be sent: {_words(error)}.", code="not-sent") from None


def _mail(notification: Notification, message: Message, server: MailServer) -> None:
    if not server.host:
        raise Refused(
            "No mail server is configured.",
            code="no-mail-server",
            hint='Set c.Convect.smtp = {"host": "mail.example.org"}.',
        )
    mail = EmailMessage()
    sender = server.sender or server.user or f"convect@{server.host}"
    mail["Subject"] = " ".join(message.title.split())[:SUBJECT]
    mail["From"], mail["To"] = sender, ", ".join(notification.to)
    mail["Date"], mail["Message-ID"] = formatdate(), make_msgid(domain="convect")
    mail.set_content(plain_text(message))
    ports = {"tls": 465, "starttls": 587, "none": 25}
    port = server.port or ports[server.security]
    context = ssl.create_default_context()
    if server.security == "tls":
        connection: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, port, timeout=PATIENCE, context=context
        )
    else:
        connection = smtplib.SMTP(server.host, port, timeout=PATIENCE)
    with connection:
        if server.security == "starttls":
            connection.starttls(context=context)
        if server.user and server.password:
            connection.login(server.user, _secret(server.password))
        refused = connection.send_message(mail)
    if refused:
        raise Refused(f"The mail server refused {', '.join(refused)}.", code="not-sent")


def _post(notification: Notification, message: Message) -> None:
    url = notification.url or _secret(notification.secret or "")
    check_url(url)
    body, headers = body_of(notification.kind, message), {"Content-Type": "application/json"}
    key = None if notification.sign is None else _secret(notification.sign)
    if key is not None:
        url, body = signed(notification.kind, url, body, key, time.time())
    data = json.dumps(body, ensure_ascii=False).encode()
    if key is not None and notification.kind == "webhook":
        digest = hmac.new(key.encode(), data, hashlib.sha256).hexdigest()
        headers["X-Hub-Signature-256"] = f"sha256={digest}"
    request = urllib.request.Request(url, data, headers)  # noqa: S310  http and https only
    with _opener.open(request, timeout=PATIENCE) as answer:
        _refuse_error(answer.read(LARGEST_ANSWER))


class _NotElsewhere(urllib.request.HTTPRedirectHandler):
    """Nobody sends messages on: what is asked for there would be another page, without them."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NotElsewhere)


def _refuse_error(answer: bytes) -> None:
    """Some chats answer 200 and an error."""
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        code = found.get("errcode") or found.get("code")
        if isinstance(code, int) and code:
            words = str(found.get("errmsg") or found.get("msg") or "")[:200]
            raise Refused(
                f"It was not accepted: error {code} {words}".rstrip() + ".", code="not-sent"
            )


def _secret(reference: str) -> str:
    secret = secret_of(reference)
    value = look_up(secret)
    if value is None:
        sentence, hint = explain_missing(secret)
        raise Refused(sentence, code="missing-secret", hint=hint)
    return value


def _words(error: Exception) -> str:
    """Without the address, which may be a secret."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the answer was {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        error = error.reason if isinstance(error.reason, Exception) else error
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error
        words = text.decode(errors="replace") if isinstance(text, bytes) else text
        return f"the mail server answered {error.smtp_code} {words}".rstrip(".")
    if isinstance(error, TimeoutError):
        return "nobody answered in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return type(error).__name__


MOST_OF_WECOM = 3800
"""Bytes; it takes 4096."""
OPEN = "Open in JupyterLab"


def body_of(kind: Kind, message: Message) -> dict[str, Json]:
    """The JSON that is posted."""
    match kind:
        case "slack":
            return {"text": _slack(message)}
        case "teams":
            return _teams(message)
        case "feishu":
            return {"msg_type": "text", "content": {"text": plain_text(message)}}
        case "dingtalk":
            text = _markdown(message)
            return {"msgtype": "markdown", "markdown": {"title": message.title, "text": text}}
        case "wecom":
            data = _markdown(message).encode()[:MOST_OF_WECOM]
            return {"msgtype": "markdown", "markdown": {"content": data.decode(errors="ignore")}}
        case _:
            return {
                "event": message.event,
                "title": message.title,
                "text": message.text,
                "lines": list(message.lines),
                "link": message.link,
                **message.facts,
            }


def signed(
    kind: Kind, url: str, body: dict[str, Json], secret: str, now: float
) -> tuple[str, dict[str, Json]]:
    """The address and the body with a signature, as Feishu and DingTalk want it."""
    if kind == "feishu":
        stamp = str(int(now))
        # The text to be signed is the key, and nothing is signed: so they have it.
        digest = hmac.digest(f"{stamp}\n{secret}".encode(), b"", "sha256")
        return url, {**body, "timestamp": stamp, "sign": base64.b64encode(digest).decode()}
    if kind == "dingtalk":
        stamp = str(int(now * 1000))
        digest = hmac.digest(secret.encode(), f"{stamp}\n{secret}".encode(), "sha256")
        query = urlencode({"timestamp": stamp, "sign": base64.b64encode(digest).decode()})
        return f"{url}{'&' if '?' in url else '?'}{query}", body
    return url, body


def plain_text(message: Message) -> str:
    parts = [message.title, message.text, "\n".join(message.lines), message.link]
    return "\n\n".join(part for part in parts if part)


def _slack(message: Message) -> str:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    parts = [f"*{escaped(message.title)}*", escaped(message.text)]
    if message.lines:
        fence = escaped("\n".join(message.lines)).replace("```", "'''")
        parts.append(f"```{fence}```")
    if message.link:
        parts.append(f"<{message.link}|{OPEN}>")
    return "\n".join(parts)


def _markdown(message: Message) -> str:
    parts = [f"### {message.title}", message.text]
    if message.link:
        parts.append(f"[{OPEN}]({message.link})")
    parts += [f"> {line}" for line in message.lines]
    return "\n\n".join(parts)


def _teams(message: Message) -> dict[str, Json]:
    blocks: list[Json] = [
        {"type": "TextBlock", "text": message.title, "weight": "bolder", "wrap": True},
        {"type": "TextBlock", "text": message.text, "wrap": True},
    ]
    if message.lines:
        text = "\n\n".join(message.lines)
        blocks.append({"type": "TextBlock", "text": text, "wrap": True, "fontType": "monospace"})
    actions: list[Json] = [{"type": "Action.OpenUrl", "title": OPEN, "url": message.link}]
    card: dict[str, Json] = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "body": blocks,
        "actions": actions if message.link else [],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
