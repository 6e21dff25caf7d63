"""Messages in the shapes that chats take."""

from __future__ import annotations

import base64
import hmac
from urllib.parse import urlencode

from ..pipeline.plan import Json
from .notification import Kind, Message

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
