"""The REST interface of Kubeflow Pipelines, version v2beta1. Everything here blocks."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.filepost import encode_multipart_formdata

from ...errors import ConvectError, Missing, Refused
from ...pipeline.plan import Json
from .argo_nodes import LOG
from .credentials import Credentials, Kubeconfig, Session

API = "/apis/v2beta1"
LARGEST_ANSWER = 64 << 20
LARGEST_WORDS = 300


class Unreachable(Refused):
    """Nobody answers, or not as one who can be trusted; it may be different in a minute."""

    status = 503


class NotSignedIn(Refused):
    """The server wants to know who we are, or does no longer believe it."""


class NotAllowed(Refused):
    """The server knows who we are, and refuses."""


class NoJson(Refused):
    """Something else answers at this address: a page for people, most likely."""


class Upload(NamedTuple):
    """A file as a form sends it."""

    data: bytes
    kind: str


class Client:
    def __init__(
        self, endpoint: str, credentials: Credentials, *, ca_file: str = "", namespace: str = ""
    ) -> None:
        self.endpoint = checked_endpoint(endpoint)
        self.namespace = namespace
        self.credentials = credentials
        pool = credentials.pool if isinstance(credentials, Kubeconfig) else None
        self.session = Session(self.endpoint, ca_file, pool)

    def health(self) -> dict[str, Json]:
        """What the server says of itself: `multi_user`, and perhaps its version."""
        found: dict[str, Json] = self.call("GET", f"{API}/healthz")
        return found

    def create_run(self, name: str, spec: Json, *, service_account: str = "") -> dict[str, Json]:
        body = {
            "display_name": name,
            "pipeline_spec": spec,
            "runtime_config": {},
            **({"service_account": service_account} if service_account else {}),
        }
        if self.namespace:
            body["experiment_id"] = self.experiment()
        found: dict[str, Json] = self.call("POST", f"{API}/runs", body)
        return found

    def create_recurring(self, body: Mapping[str, Json]) -> dict[str, Json]:
        where = {"experiment_id": self.experiment()} if self.namespace else {}
        found: dict[str, Json] = self.call("POST", f"{API}/recurringruns", {**body, **where})
        return found

    def recurring(self, recurring_id: str) -> dict[str, Json]:
        found: dict[str, Json] = self.call("GET", f"{API}/recurringruns/{recurring_id}")
        return found

    def switch_recurring(self, recurring_id: str, *, on: bool) -> None:
        verb = "enable" if on else "disable"
        self.call("POST", f"{API}/recurringruns/{recurring_id}:{verb}")

    def delete_recurring(self, recurring_id: str) -> None:
        self.call("DELETE", f"{API}/recurringruns/{recurring_id}")

    def runs_of_recurring(self, recurring_id: str, page_token: str = "") -> dict[str, Json]:
        """A page of the runs that it made, the newest first; each has its whole pipeline."""
        predicate = {
            "operation": "EQUALS",
            "key": "recurring_run_id",
            "string_value": recurring_id,
        }
        query = {
            "page_size": "10",
            "sort_by": "created_at desc",
            "filter": json.dumps({"predicates": [predicate]}),
            **self._of_namespace,
            **({"page_token": page_token} if page_token else {}),
        }
        found: dict[str, Json] = self.call("GET", f"{API}/runs", query=query)
        return found

    def experiment(self, name: str = "Default") -> str:
        """The id of an experiment of the namespace, made if it is not there."""
        rule = {"predicates": [{"operation": "EQUALS", "key": "name", "string_value": name}]}
        query = {"namespace": self.namespace, "filter": json.dumps(rule)}
        listed = self.call("GET", f"{API}/experiments", query=query).get("experiments") or []
        if not listed:
            body = {"display_name": name, "namespace": self.namespace}
            listed = [self.call("POST", f"{API}/experiments", body)]
        return str(listed[0]["experiment_id"])

    def run(self, run_id: str) -> dict[str, Json]:
        found: dict[str, Json] = self.call("GET", f"{API}/runs/{run_id}")
        return found

    def runs(self, page_size: int = 20, page_token: str = "") -> dict[str, Json]:
        query = {
            "page_size": str(page_size),
            "sort_by": "created_at desc",
            **self._of_namespace,
            **({"page_token": page_token} if page_token else {}),
        }
        found: dict[str, Json] = self.call("GET", f"{API}/runs", query=query)
        return found

    def run_named(self, name: str) -> str | None:
        """The id of the newest run of that name, if there is one."""
        rule = {"predicates": [{"operation": "EQUALS", "key": "name", "string_value": name}]}
        query = {
            "page_size": "1",
            "sort_by": "created_at desc",
            "filter": json.dumps(rule),
            **self._of_namespace,
        }
        listed = self.call("GET", f"{API}/runs", query=query).get("runs") or []
        return str(listed[0]["run_id"]) if listed else None

    def log(self, run_id: str, node: str) -> bytes:
        """What the container of a node has said, once it has ended. Missing before that."""
        path = f"{API}/runs/{run_id}/nodes/{node}/artifacts/{LOG}:read"
        return base64.b64decode(self.call("GET", path).get("data") or "")

    def terminate(self, run_id: str) -> None:
        self.call("POST", f"{API}/runs/{run_id}:terminate")

    def retry(self, run_id: str) -> None:
        self.call("POST", f"{API}/runs/{run_id}:retry")

    def delete(self, run_id: str) -> None:
        self.call("DELETE", f"{API}/runs/{run_id}")

    def pipeline_named(self, name: str) -> str | None:
        """The id of the pipeline of that name, if there is one."""
        rule = {"predicates": [{"operation": "EQUALS", "key": "name", "string_value": name}]}
        query = {"filter": json.dumps(rule), "page_size": "1", **self._of_namespace}
        listed = self.call("GET", f"{API}/pipelines", query=query).get("pipelines") or []
        return str(listed[0]["pipeline_id"]) if listed else None

    def pipeline_version(self, reference: Mapping[str, Json]) -> dict[str, Json]:
        """A version of a pipeline, with its spec; the newest where no version is named."""
        path = f"{API}/pipelines/{reference['pipeline_id']}/versions"
        version = reference.get("pipeline_version_id")
        if version:
            found: dict[str, Json] = self.call("GET", f"{path}/{version}")
            return found
        query = {"page_size": "1", "sort_by": "created_at desc"}
        listed = self.call("GET", path, query=query).get("pipeline_versions") or []
        return dict(listed[0]) if listed else {}

    def publish(self, name: str, version: str, text: str) -> dict[str, str]:
        """Make a version of a pipeline, and the pipeline if there is none of that name yet."""
        pipeline = self.pipeline_named(name)
        if pipeline is None:
            body = {"display_name": name, **self._of_namespace}
            pipeline = str(self.call("POST", f"{API}/pipelines", body)["pipeline_id"])
        data, kind = encode_multipart_formdata({"uploadfile": ("pipeline.yaml", text.encode())})
        query = {"name": version, "pipelineid": pipeline}
        path = f"{API}/pipelines/upload_version"
        found = self.call("POST", path, Upload(data, kind), query)
        return {"pipeline": pipeline, "version": str(found["pipeline_version_id"])}

    @property
    def _of_namespace(self) -> dict[str, str]:
        return {"namespace": self.namespace} if self.namespace else {}

    def call(
        self, method: str, path: str, body: Json = None, query: Mapping[str, str] | None = None
    ) -> Json:
        """The answer to a request; who is not signed in any more signs in once again."""
        try:
            return self._call(method, path, body, query)
        except NotSignedIn:
            if not self.credentials.renew(self.session):
                raise
            return self._call(method, path, body, query)

    def _call(self, method: str, path: str, body: Json, query: Mapping[str, str] | None) -> Json:
        address = path + (f"?{urlencode(query)}" if query else "")
        upload = body if isinstance(body, Upload) else None
        data = upload.data if upload else None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", **self.credentials.headers(self.session)}
        if data is not None:
            headers["Content-Type"] = upload.kind if upload else "application/json"
        try:
            answer = self.session.send(method, self.endpoint + address, headers, data)
        except urllib3.exceptions.HTTPError as error:
            raise unreachable(self.endpoint, error) from None
        return read_answer(answer, self.endpoint, self.namespace)


def page_of_version(base: str, published: Mapping[str, str]) -> str:
    """Where Kubeflow shows a version of a pipeline; empty where its page is not known."""
    path = f"/#/pipelines/details/{published['pipeline']}/version/{published['version']}"
    return f"{base}{path}" if base else ""


def checked_endpoint(endpoint: str) -> str:
    """The address without what does not belong to it. A ConvectError when it is none."""
    try:
        parts = urlsplit(endpoint.strip())
    except ValueError:  # Half an IPv6 address, for one.
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConvectError(
            f"“{endpoint[:80]}” is not the address of a Kubeflow Pipelines server.",
            code="bad-address",
            hint="It begins with https:// or http://, and may end with /pipeline.",
        )
    if parts.username or parts.password:
        raise ConvectError(
            "The address of the Kubeflow Pipelines server must not contain a password.",
            code="bad-address",
            hint="Put it into the keyring.",
        )
    path = parts.path.split("/apis/")[0].rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def unreachable(endpoint: str, error: Exception) -> Unreachable:
    """What keeps us from a server, in plain words."""
    host = urlsplit(endpoint).netloc
    reason: Any = getattr(error, "reason", error)
    if isinstance(reason, urllib3.exceptions.NameResolutionError):
        return Unreachable(f"There is no host {host}.", code="unknown-host")
    if "CERTIFICATE_VERIFY_FAILED" in str(reason):
        return Unreachable(
            f"The certificate of {host} is not trusted here.",
            code="bad-certificate",
            hint="Name the file of its authority: --ca, or KF_PIPELINES_SSL_SA_CERTS.",
        )
    if isinstance(reason, urllib3.exceptions.SSLError):
        return Unreachable(
            f"{host} does not speak HTTPS.", code="no-https", hint="Try http:// instead."
        )
    if isinstance(reason, urllib3.exceptions.NewConnectionError):
        return Unreachable(f"{host} refused the connection.", code="unreachable")
    return Unreachable(f"{host} does not answer.", code="timeout")


def read_answer(answer: urllib3.BaseHTTPResponse, endpoint: str, namespace: str) -> Json:
    """The JSON of an answer, or what is wrong with it."""
    host = urlsplit(endpoint).netloc
    data = answer.data
    kind = answer.headers.get("Content-Type", "")
    if answer.status in (301, 302, 303, 307, 308, 401):
        raise NotSignedIn(f"{host} asks to sign in.", code="not-signed-in")
    try:
        told = json.loads(data) if data else {}
    except ValueError:
        told = None
    if answer.status == 403:
        if told is None and "html" in kind:
            raise NotSignedIn(f"{host} asks to sign in.", code="not-signed-in")
        raise NotAllowed(
            f"You are not allowed to use Kubeflow Pipelines in namespace {namespace}."
            if namespace
            else "You are not allowed to use this Kubeflow Pipelines.",
            code="not-allowed",
        )
    if answer.status >= 500 and not isinstance(told, dict):
        raise Unreachable(f"{host} returned the error {answer.status}.", code="server-error")
    if not isinstance(told, dict):
        raise NoJson(
            f"{host} returned a web page instead of data.",
            code="no-json",
            hint="The address of Kubeflow behind its dashboard ends with /pipeline.",
        )
    if answer.status == 404:
        raise Missing(f"Kubeflow Pipelines has no such thing: {_words(told)}.", code="missing")
    if answer.status >= 400:
        raise Refused(f"Kubeflow Pipelines rejected it: {_words(told)}.", code="refused")
    return told


def _words(told: Mapping[str, Any]) -> str:
    """The innermost of the errors that a message is made of, without the stack that some have."""
    text = str(told.get("message") or told.get("error") or "no reason is given")
    first = text.split("\n")[0].split(" goroutine ")[0]
    return re.split(r"\b[A-Z]\w*Error: ", first)[-1][:LARGEST_WORDS].rstrip(". ")
