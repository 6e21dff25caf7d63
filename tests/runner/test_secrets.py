"""The values of secrets are used, and written down nowhere."""

import json

import hypothesis.strategies as st
import pytest
from hypothesis import given

from jupyterlab_convect.runner.masking import MASK, Mask, secrets_in
from jupyterlab_convect.runner.record import StepRecord

SECRET = "s3cr\"et\nwith 'quotes' é"


@pytest.fixture
def _secret(monkeypatch):
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setenv("CONVECT_SECRETS", "TOKEN,NOT_SET")


@pytest.mark.usefixtures("_secret")
def test_a_notebook_that_prints_its_secret(bench):
    ended = bench.cells(
        "import os, sys\ntoken = os.environ['TOKEN']\nprint('CONVECT_SECRETS' in os.environ)\n"
        "print(token); print(repr(token))\ntoken",
        "for letter in token:\n    sys.stdout.write(letter); sys.stdout.flush()",
        "from jupyterlab_convect import output\noutput('token', 'x' + token)\n"
        "import json; print(json.dumps(token)); print(json.dumps(token, ensure_ascii=False))",
        "raise ValueError(token)",
        parameters={"x": 1},
    )
    assert ended.state == "failed"
    for path in ended.folder.rglob("*"):
        text = path.read_text()
        for line in (SECRET, *SECRET.splitlines()):
            assert line not in text, path
            assert json.dumps(line)[1:-1] not in text, path
    assert ended.log.startswith(f"False\n{MASK}\n")
    assert ended.outputs["values"] == {"token": "x" + MASK}
    assert MASK in ended.reason
    assert MASK in ended.printed(2)


@pytest.mark.usefixtures("_secret")
def test_a_script_that_prints_its_secret(bench):
    ended = bench.script("import os\nprint('a', os.environ['TOKEN'], 'b')\nexit(1)")
    for path in ended.folder.rglob("*"):
        assert "s3cr" not in path.read_text(), path
    assert ended.log == f"a {MASK} b\n"


def test_only_what_is_named_is_a_secret():
    assert secrets_in({"CONVECT_SECRETS": "A,B,", "A": "one", "C": "two", "B": ""}) == {"one"}
    assert secrets_in({"A": "one"}) == frozenset()


def test_what_is_too_short_to_be_a_secret_is_left():
    assert Mask({"1", "abc"})("abc 1") == "abc 1"


@given(
    st.lists(st.text(alphabet="abcd\n", min_size=4, max_size=8), min_size=1, max_size=3),
    st.lists(st.text(alphabet="abcdx\n", max_size=12), max_size=12),
)
def test_a_secret_is_masked_however_the_text_is_cut(tmp_path_factory, secrets, chunks):
    folder = tmp_path_factory.mktemp("record")
    record = StepRecord(folder, Mask(set(secrets)))
    for chunk in chunks:
        record.log(chunk)
    record.close()
    written = (folder / "log.txt").read_text()
    assert not any(secret in written for secret in secrets)
    if not any(secret in "".join(chunks) for secret in _forms(secrets)):
        assert written == "".join(chunks)


def _forms(secrets):
    return {line for secret in secrets for line in (secret, secret.strip(), *secret.splitlines())
            if len(line) >= 4}  # fmt: skip
