from __future__ import annotations

from typing import Any

import pytest


async def test_a_notification_is_made_listed_tried_and_removed(api: Any) -> None:
    assert await api("GET", "notifications") == (200, {"notifications": []})
    body = {"kind": "webhook", "url": "http://127.0.0.1:9/x", "name": "team", "events": ["missed"]}
    status, made = await api("POST", "notifications", body)
    assert (status, made["name"], made["events"], made["last"]) == (201, "team", ["missed"], None)
    _, listed = await api("GET", "notifications")
    assert [each["id"] for each in listed["notifications"]] == [made["id"]]
    for path, sent in ((f"notifications/{made['id']}/test", {}), ("notifications/test", body)):
        status, error = await api("POST", path, sent)
        assert (status, error["code"]) == (422, "not-sent")
        assert "connection refused" in error["message"]
    status, _ = await api("DELETE", f"notifications/{made['id']}")
    assert status == 204
    assert (await api("DELETE", f"notifications/{made['id']}"))[0] == 404
    assert (await api("POST", f"notifications/{made['id']}/test", {}))[0] == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"kind": "pigeon"}, 400),
        ({"kind": "mail", "to": []}, 400),
        ({"kind": "slack", "url": "nowhere"}, 400),
        ({"kind": "slack", "secret": "a/b", "events": []}, 400),
        ({"kind": "slack", "secret": "a/b", "schedule": "20260101-000000000-abcdef"}, 404),
        ({"kind": "slack", "secret": "a/b", "run": "20260101-000000000-abcdef"}, 404),
        ({"kind": "slack", "secret": "a/b", "other": 1}, 400),
    ],
)
async def test_a_bad_notification_is_a_sentence(api: Any, body: Any, status: int) -> None:
    found, error = await api("POST", "notifications", body)
    assert found == status
    assert error["message"]
    assert (await api("GET", "notifications"))[1]["notifications"] == []


async def test_secrets_are_named_and_never_shown(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVECT_SECRET_TEAM_URL", "http://127.0.0.1:9/hidden")
    _, made = await api("POST", "notifications", {"kind": "slack", "secret": "team/url"})
    status, error = await api("POST", f"notifications/{made['id']}/test", {})
    assert status == 422
    _, listed = await api("GET", "notifications")
    assert "hidden" not in str((made, error, listed))
