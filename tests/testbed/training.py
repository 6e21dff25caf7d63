"""The operators of Kubeflow for training on the test bed, built once: as pods, from the manifests
of their own modules, with the webhooks and the rights that those have.

Usage: python training.py   builds them
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import build
import cluster
import images
import yaml
from places import KUBECONFIG, STATE

PLACE = STATE / "training"
PATIENCE = 600
"""Seconds after which something that a busy machine does slowly counts as not done."""
Object = dict[str, Any]


@dataclass(frozen=True)
class Part:
    name: str
    module: str
    version: str
    package: str
    namespace: str
    deployment: str
    manifests: str
    """The folder of its kustomization."""
    secret: str = ""
    """Where its webhook finds a certificate; it has none without."""
    authority: str = ""
    service: str = ""
    arguments: tuple[str, ...] = ()
    program: str = "manager"

    @property
    def released(self) -> str:
        return f"{self.module}@v{self.version}"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}"

    @property
    def image(self) -> str:
        own = hashlib.sha256(WAIT_FOR_MASTER.encode()).hexdigest()[:8]
        return f"testbed/{self.name}:{self.version}" + (f"-{own}" if self is TRAINING else "")


JOB_SET = Part(
    "jobset",
    "sigs.k8s.io/jobset",
    "0.12.0",
    ".",
    "jobset-system",
    "jobset-controller-manager",
    "config/default",
    "jobset-webhook-server-cert",
    "jobset-ca",
    "jobset-webhook-service.jobset-system.svc",
)
TRAINER = Part(
    "trainer",
    "github.com/kubeflow/trainer/v2",
    "2.3.0",
    "./cmd/trainer-controller-manager",
    "kubeflow-system",
    "kubeflow-trainer-controller-manager",
    "manifests/overlays/manager",
    "kubeflow-trainer-webhook-cert",
    "kubeflow-trainer-ca",
    "kubeflow-trainer-controller-manager.kubeflow-system.svc",
)
TRAINING = Part(
    "training-operator",
    "github.com/kubeflow/training-operator",
    "1.9.4",
    "./cmd/training-operator.v1",
    "kubeflow",
    "training-operator",
    "manifests/overlays/standalone",
    "training-operator-webhook-cert",
    "training-operator-ca",
    "training-operator.kubeflow.svc",
    (
        # Its MPIJob has the same name as the one of the MPI operator, and another version.
        *(f"--enable-scheme={each}job" for each in ("pytorch", "tf", "xgboost", "paddle", "jax")),
        f"--pytorch-init-container-image={images.BARE}",
    ),
)
MPI = Part(
    "mpi-operator",
    "github.com/kubeflow/mpi-operator",
    "0.7.0",
    "./cmd/mpi-operator",
    "mpi-operator",
    "mpi-operator",
    "manifests/overlays/standalone",
    program="opt/mpi-operator",
)
PARTS = (JOB_SET, TRAINER, TRAINING, MPI)
"""In the order in which they are started."""
OLD_MPI = "mpijobs.kubeflow.org"
TORCH = "testbed/torch:bookworm-1"
TORCH_PACKAGES = ("python3-torch", "python3-mpi4py", "openmpi-bin")
"""What is in that image, as Debian has it."""
# What its own image would do, with a program that the image here has, and as we may run it.
WAIT_FOR_MASTER = """- name: init-pytorch
  image: {{.InitContainerImage}}
  imagePullPolicy: Never
  securityContext:
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL]}
  command:
  - python3
  - -c
  - |
    import socket, time
    for _ in range({{.MaxTries}} * 4):
        try:
            socket.getaddrinfo("{{.MasterAddr}}", 1)
            break
        except OSError:
            time.sleep(0.5)
    else:
        raise SystemExit("{{.MasterAddr}} cannot be found.")
"""


def up(*parts: Part) -> None:
    """Start them on the cluster that is up, and wait until they answer."""
    for part in parts or PARTS:
        build_program(part)
        _import(part)
    for part in parts or PARTS:
        _apply(part)
    for part in parts or PARTS:
        _roll_out(part)


def down(*parts: Part) -> None:
    """Take away their definitions, and with these all objects of theirs, and themselves."""
    for part in reversed(parts or PARTS):
        # Others may live in its namespace.
        objects = [item for item in _objects(part) if item["kind"] != "Namespace"]
        for chosen in (_is_definition, lambda item: not _is_definition(item)):
            items = [item for item in objects if chosen(item)]
            _kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", given=_list(items))


def is_up(part: Part) -> bool:
    found = _kubectl("-n", part.namespace, "get", "deployment", part.deployment, "-o", "json")
    return bool(found and json.loads(found).get("status", {}).get("readyReplicas"))


def stop(part: Part) -> None:
    """Leave its definitions, and nobody who acts on them."""
    _scale(part, 0)
    deadline = time.monotonic() + PATIENCE
    while is_up(part):
        if time.monotonic() > deadline:
            raise SystemExit(f"{part.name} does not stop.")
        time.sleep(0.2)


def restart(part: Part) -> None:
    _scale(part, 1)
    _roll_out(part)


def build_program(part: Part) -> Path:
    """Built now if it is not there yet."""
    return build.build_of_module(build.cache_folder() / part.file, part.released, part.package)


def what_torch_lacks() -> str | None:
    """Why no image with torch can be made here."""
    if (build.cache_folder() / "torch.tar").exists() or shutil.which("mmdebstrap"):
        return None
    return "The image with torch is made by mmdebstrap, which is not installed."


def import_torch() -> None:
    """An image with torch and Open MPI: made once, which takes minutes."""
    if cluster.has_image(TORCH):
        return
    target = build.cache_folder() / "torch.tar"
    if not target.exists():
        build.say(f"making an image with {', '.join(TORCH_PACKAGES)}")
        PLACE.mkdir(parents=True, exist_ok=True)
        root = PLACE / "torch-root"
        shutil.rmtree(root, ignore_errors=True)
        packages = f"--include={','.join(TORCH_PACKAGES)}"
        command = ["mmdebstrap", "--quiet", "--variant=minbase", packages, "bookworm", str(root)]
        subprocess.run(command, check=True)
        _finish_torch(root)
        images.archive(root, TORCH, target)
        shutil.rmtree(root)
    cluster.import_image(target)


def _finish_torch(root: Path) -> None:
    """Its torchrun always fails on Python 3.11, where a Flag leaves out some of its members."""
    path = root / "usr/lib/python3/dist-packages/torch/distributed/elastic/multiprocessing/api.py"
    text = path.read_text()
    broken = "            for s in Std:\n"
    if broken not in text:
        raise SystemExit("The torch of Debian is not the one that has to be mended.")
    path.write_text(text.replace(broken, broken.replace("Std:", "map(Std, range(4)):")))
    for device in (root / "dev").iterdir():
        shutil.rmtree(device) if device.is_dir() and not device.is_symlink() else device.unlink()


def is_built() -> bool:
    return all((build.cache_folder() / part.file).exists() for part in PARTS)


def _scale(part: Part, count: int) -> None:
    _kubectl("-n", part.namespace, "scale", f"--replicas={count}", f"deployment/{part.deployment}")


def _roll_out(part: Part) -> None:
    words = ("rollout", "status", f"deployment/{part.deployment}", f"--timeout={PATIENCE}s")
    if "successfully" not in _kubectl("-n", part.namespace, *words):
        raise SystemExit(f"{part.name} did not start on the test bed.")


def _apply(part: Part) -> None:
    """Its namespace, its definitions, and once these are known the rest."""
    objects = _objects(part)
    stages: tuple[Callable[[Object], bool], ...] = (
        lambda item: item["kind"] == "Namespace",
        _is_definition,
        lambda item: item["kind"] != "Namespace" and not _is_definition(item),
    )
    for stage in stages:
        items = [item for item in objects if stage(item)]
        words = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        if items and not _kubectl(*words, given=_list(items)):
            raise SystemExit(f"The manifests of {part.name} could not be applied.")
        if stage is _is_definition:
            _wait_for([item["metadata"]["name"] for item in items])


def _wait_for(definitions: list[str]) -> None:
    """Asked too early, kubectl gives up at once."""
    names = [f"crd/{name}" for name in definitions]
    deadline = time.monotonic() + PATIENCE
    while not _kubectl("wait", "--for=condition=Established", "--timeout=5s", *names):
        if time.monotonic() > deadline:
            raise SystemExit(f"The API server does not take {', '.join(definitions)}.")
        time.sleep(0.2)


def _objects(part: Part) -> list[Object]:
    text = _kubectl("kustomize", str(_kustomization(part)))
    objects = [item for item in yaml.safe_load_all(text) if item]
    unwanted = () if part is MPI else (OLD_MPI,)
    return [_changed(part, item) for item in objects if item["metadata"]["name"] not in unwanted]


def _is_definition(item: Object) -> bool:
    return bool(item["kind"] == "CustomResourceDefinition")


def _changed(part: Part, item: Object) -> Object:
    """Our image, a certificate that is there from the beginning, and no waiting for a lease."""
    if item["kind"] == "Secret" and item["metadata"]["name"] == part.secret:
        item.pop("data", None)
        item["stringData"] = _certificate(part)
    elif item["kind"] == "ConfigMap":
        content = item.get("data") or {}
        for key, text in content.items():
            content[key] = text.replace("leaderElect: true", "leaderElect: false")
    elif item["kind"] == "Deployment":
        for container in item["spec"]["template"]["spec"]["containers"]:
            container.update(image=part.image, imagePullPolicy="Never")
            container.pop("resources", None)
            container["args"] = [*_without_schemes(container.get("args")), *part.arguments]
            if "readinessProbe" in container:
                container["readinessProbe"].update(initialDelaySeconds=0, periodSeconds=1)
    return item


def _without_schemes(arguments: list[str] | None) -> list[str]:
    return [word for word in arguments or () if not word.startswith("--enable-scheme")]


def _certificate(part: Part) -> dict[str, str]:
    """As the operator itself would make it; then a pod would wait for it to be mounted."""
    folder = PLACE / part.name
    folder.mkdir(parents=True, exist_ok=True)

    def openssl(words: str, *more: str) -> None:
        command = ["openssl", *words.split(), *more]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    if not (folder / "tls.crt").exists():
        openssl(
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.pem -out ca.crt -days 3650 -subj",
            *(f"/CN={part.authority}", "-addext", f"subjectAltName=DNS:{part.authority}"),
        )
        openssl("rsa -in ca.pem -traditional -out ca.key")
        openssl(
            "req -newkey rsa:2048 -nodes -keyout tls.key -out tls.csr -subj", f"/CN={part.service}"
        )
        (folder / "tls.ext").write_text(
            f"subjectAltName=DNS:{part.service}\nextendedKeyUsage=serverAuth\n"
        )
        openssl(
            "x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 "
            "-out tls.crt -extfile tls.ext"
        )
    names = ("ca.crt", "ca.key", "tls.crt", "tls.key")
    return {name: (folder / name).read_text() for name in names}


def _import(part: Part) -> None:
    if cluster.has_image(part.image):
        return
    PLACE.mkdir(parents=True, exist_ok=True)
    root = images.fresh(PLACE / "root")
    target = root / part.program
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(build.cache_folder() / part.file, target)
    if part is TRAINING:
        (root / "etc" / "config").mkdir()
        (root / "etc" / "config" / "initContainer.yaml").write_text(WAIT_FOR_MASTER)
    archive = PLACE / f"{part.name}.tar"
    path = images.archive(root, part.image, archive, entrypoint=[f"/{part.program}"])
    cluster.import_image(path)
    path.unlink()
    shutil.rmtree(root)


def _kustomization(part: Part) -> Path:
    module = build.folder_of_module(part.released)
    if part is not TRAINER:
        return module / part.manifests
    # It asks another server for the manifests of JobSet, which is here already.
    copy = PLACE / "manifests"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(module / "manifests", copy)
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    folder = copy.parent / part.manifests
    file = folder / "kustomization.yaml"
    file.write_text(re.sub(r"\n *- ../../third-party/jobset.*", "", file.read_text()))
    return folder


def _list(items: list[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _kubectl(*arguments: str, given: str | None = None) -> str:
    """What it says; nothing when it fails."""
    command = [str(build.cache_folder() / "kubectl"), f"--kubeconfig={KUBECONFIG}", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode and "wait" not in arguments and "get" not in arguments:
        build.say(done.stderr.strip())
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    for each in PARTS:
        print(build_program(each))
