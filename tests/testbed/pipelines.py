"""A real Kubeflow Pipelines on the test bed.

Usage: python pipelines.py up | down

The database, an S3 server and ML Metadata are processes of this machine on the bridge's
address; the API server, the persistence agent, the controller of schedules and Argo's
controller are pods. `cluster.down` takes all of it away.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import build
import cluster
import images
import pipelines_build as programs
import s3
import yaml
from places import ADDRESS, KUBECONFIG, STATE

Manifest = dict[str, Any]

NAMESPACE = "kubeflow"
HOST = "10.96.0.88"
ENDPOINT = f"http://{HOST}:8888"
PLACE = STATE / "kfp"
PARTS = ("kfp-database", "kfp-objects", "kfp-metadata")
SERVICES = {  # name: (fixed address, port, port on this machine)
    "minio-service": ("10.96.0.90", 9000, 19000),
    "metadata-grpc-service": ("10.96.0.91", 8080, 18080),
    "mysql": ("10.96.0.92", 3306, 13306),
}
USER, PASSWORD = "minio", "minio123"
REGION = "minio"
"""What the launcher signs with unless it is told otherwise, and the S3 server checks that."""
DEPLOYMENTS = (
    *("ml-pipeline", "ml-pipeline-persistenceagent", "ml-pipeline-scheduledworkflow"),
    "workflow-controller",
)
DEBIAN = ("mariadb-server-core", "mariadb-client-core")
"""These have no service that would start by itself."""


def what_is_missing() -> str | None:
    """Why there can be no Kubeflow Pipelines on this machine, in a sentence."""
    if os.environ.get("KUBECONFIG"):
        return "It is started on a cluster of our own only, and KUBECONFIG names another one."
    if missing := cluster.what_is_missing():
        return missing
    if shutil.which("go") is None:
        return "It is built with Go 1.26, which is not installed."
    if not programs.is_built() and shutil.which("gcc") is None:
        return "Its API server is built with a C compiler, which is not installed."
    if shutil.which("mariadbd") is None and shutil.which("apt-get") is None:
        return f"It needs these Debian packages: {' '.join(DEBIAN)}."
    return None


def up() -> str:
    """Start it, and the cluster below it; the address of its API."""
    folder = programs.build_programs()
    s3.build_program()
    if "etcd" in cluster.parts() and cluster.program_of("etcd") != (folder / "etcd").resolve():
        raise SystemExit("The cluster that is up has an etcd that Argo cannot watch: end it first.")
    cluster.ETCD = str(folder / "etcd")
    cluster.up()
    began = time.monotonic()
    _start_stores()
    kfp, argo = _import_images(folder)
    source, argo_source = programs.module(programs.MODULE), programs.module(programs.ARGO)
    _define(source, argo_source)
    _apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    # Pods find the services by variables, which only those get that are started later.
    _apply([*_services(), *_settings(source), *_accounts(source, argo_source)])
    _apply(_deployments(source, argo_source, kfp, argo))
    _wait("the API server of Kubeflow Pipelines", _is_healthy, 180)
    for name in DEPLOYMENTS:
        _kubectl("rollout", "status", f"deployment/{name}", "--timeout=120s")
    seconds = time.monotonic() - began
    build.say(f"Kubeflow Pipelines is ready in {seconds:.0f} s: {ENDPOINT}")
    return ENDPOINT


def scale(replicas: int) -> None:
    """Take the API server away, or bring it back."""
    _kubectl("scale", "deployment/ml-pipeline", f"--replicas={replicas}")


def pods(run_id: str) -> list[Manifest]:
    """The pods of a run of Kubeflow's."""
    found = _kubectl("get", "pods", "-l", f"pipeline/runid={run_id}", "-o", "json")
    return list(json.loads(found)["items"])


def objects() -> Path:
    """The folder in which Kubeflow's store keeps what tasks leave."""
    return PLACE / "objects"


def lineage(run_id: str) -> list[Manifest]:
    """What ML Metadata knows of the tasks of a run."""
    _, _, port = SERVICES["metadata-grpc-service"]
    program = str(Path(__file__).with_name("metadata_read.py"))
    command = [str(programs.metadata_python()), program, f"{ADDRESS}:{port}", run_id]
    return list(json.loads(_run(*command)))


def _start_stores() -> None:
    if shutil.which("mariadbd") is None:
        wait = ("-o", "DPkg::Lock::Timeout=600")  # somebody else may be installing
        _run("apt-get", "install", "-y", "-q", "--no-install-recommends", *wait, *DEBIAN)
    data = PLACE / "database"
    if not data.exists():
        data.mkdir(parents=True)
        (PLACE / "objects").mkdir()
        _run(
            "mariadb-install-db",
            *("--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db"),
            "--auth-root-authentication-method=normal",
        )
    (PLACE / "grant.sql").write_text(
        f"CREATE OR REPLACE USER 'kfp'@'%' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL PRIVILEGES ON *.* TO 'kfp'@'%';\n"
    )
    objects, metadata, database = (port for _, _, port in SERVICES.values())
    commands = {
        "kfp-database": [
            *("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}"),
            "--character-set-server=utf8mb4",  # as the MySQL that Kubeflow comes with
            *(f"--socket={PLACE}/database.sock", f"--pid-file={PLACE}/database.pid"),
            *(f"--bind-address={ADDRESS}", f"--port={database}"),
            *(f"--init-file={PLACE}/grant.sql", "--skip-name-resolve"),
            *("--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"),
            "--performance-schema=OFF",
        ],
        "kfp-objects": [
            *(str(s3.program()), "--access", USER, "--secret", PASSWORD, "--region", REGION),
            *("--port", f"{ADDRESS}:{objects}", "posix", str(PLACE / "objects")),
        ],
        "kfp-metadata": [
            str(programs.metadata_python()),
            str(Path(__file__).with_name("metadata_server.py")),
            *(f"{ADDRESS}:{metadata}", str(PLACE / "metadata.db")),
        ],
    }
    running = cluster.parts()
    for name, command in commands.items():
        if name not in running:
            cluster.start(name, command)
    for name, (_, _, port) in SERVICES.items():
        _wait(name, lambda port=port: _listens(port), 60)  # type: ignore[misc]


def _import_images(folder: Path) -> tuple[str, str]:
    """The images of Kubeflow's programs and of Argo's, by names that change with them."""
    config = programs.module(programs.MODULE) / "backend" / "src" / "apiserver" / "config"
    found = []
    for stem, names, user in (
        ("kfp", (*programs.PROGRAMS,), "1000"),
        ("argoexec", (*programs.ARGO_PROGRAMS,), ""),
    ):
        name = f"testbed/{stem}:{_recipe(folder, names)}"
        found.append(name)
        if cluster.has_image(name):
            continue
        build.say(f"making the image {name}")
        root = images.fresh(PLACE / "root")
        for place in ("bin", "config"):
            (root / place).mkdir()
        for program in names:
            shutil.copy(folder / program, root / "bin" / program)
        shutil.copyfile(config / "config.json", root / "config" / "config.json")
        path = images.archive(root, name, PLACE / "image.tar", user=user)
        cluster.import_image(path)
        path.unlink()
        shutil.rmtree(root)
    return found[0], found[1]


def _recipe(folder: Path, names: tuple[str, ...]) -> str:
    stamps = [(name, (folder / name).stat().st_mtime_ns) for name in names]
    return hashlib.sha256(json.dumps(stamps).encode()).hexdigest()[:8]


def _define(source: Path, argo: Path) -> None:
    """The kinds of objects; Argo's complete definitions are refused by Kubernetes."""
    kinds = sorted((argo / "manifests/base/crds/minimal").glob("argoproj*.yaml"))
    pipeline = source / "manifests/kustomize/base/pipeline/cluster-scoped"
    for file in (*kinds, pipeline / "scheduled-workflow-crd.yaml"):
        cluster.apply(file)


def _services() -> list[Manifest]:
    items: list[Manifest] = []
    for name, (address, port, target) in SERVICES.items():
        main = {"name": "main", "port": port, "protocol": "TCP"}
        spec = {"clusterIP": address, "ports": [{**main, "targetPort": target}]}
        items.append(_object("v1", "Service", name, spec=spec))
        slice_ = _object("discovery.k8s.io/v1", "EndpointSlice", name, addressType="IPv4")
        slice_["metadata"]["labels"] = {"kubernetes.io/service-name": name}
        slice_ |= {"endpoints": [{"addresses": [ADDRESS]}], "ports": [{**main, "port": target}]}
        items.append(slice_)
    # The second port is found by its name.
    ports = [
        {"name": name, "port": port, "targetPort": port}
        for name, port in (("http", 8888), ("grpc", 8887))
    ]
    spec = {"clusterIP": HOST, "selector": {"app": "ml-pipeline"}, "ports": ports}
    return [*items, _object("v1", "Service", "ml-pipeline", spec=spec)]


def _settings(source: Path) -> list[Manifest]:
    base = source / "manifests/kustomize/base"
    (install,) = _read(base / "installs/generic/pipeline-install-config.yaml")
    address, port, _ = SERVICES["mysql"]
    install["data"] |= {"mysqlHost": address, "mysqlPort": str(port), "dbHost": address}
    secret = "mlpipeline-minio-artifact"
    store = {
        "endpoint": f"{SERVICES['minio-service'][0]}:9000",
        "bucket": "mlpipeline",
        "insecure": True,
        "region": REGION,
        "keyFormat": "artifacts/{{workflow.name}}/{{pod.name}}",
        "accessKeySecret": {"name": secret, "key": "accesskey"},
        "secretKeySecret": {"name": secret, "key": "secretkey"},
    }
    maps = {
        "workflow-controller-configmap": {
            "artifactRepository": json.dumps({"archiveLogs": True, "s3": store}),
            "executor": json.dumps({"imagePullPolicy": "Never"}),
        },
        # The launcher's arguments name these variables; without them it ends in a panic.
        "metadata-grpc-configmap": {
            "METADATA_GRPC_SERVICE_HOST": SERVICES["metadata-grpc-service"][0],
            "METADATA_GRPC_SERVICE_PORT": "8080",
        },
        "kfp-launcher": {"defaultPipelineRoot": ""},
    }
    secrets = {
        "mysql-secret": {"username": "kfp", "password": PASSWORD},
        secret: {"accesskey": USER, "secretkey": PASSWORD},
    }
    return [
        install,
        *(_object("v1", "ConfigMap", name, data=data) for name, data in maps.items()),
        *(_object("v1", "Secret", name, stringData=data) for name, data in secrets.items()),
    ]


def _accounts(source: Path, argo: Path) -> list[Manifest]:
    pipeline = source / "manifests/kustomize/base/pipeline"
    stems = (
        *("ml-pipeline-apiserver", "ml-pipeline-persistenceagent"),
        *("ml-pipeline-scheduledworkflow", "pipeline-runner"),
    )
    files = [
        pipeline / f"{stem}-{kind}.yaml" for stem in stems for kind in ("role", "rolebinding", "sa")
    ]
    rights = argo / "manifests/cluster-install/workflow-controller-rbac"
    kinds = ("clusterrole", "clusterrolebinding", "role", "rolebinding")
    files += [rights / f"workflow-controller-{kind}.yaml" for kind in kinds]
    controller = argo / "manifests/base/workflow-controller"
    files += [controller / f"workflow-controller-{kind}.yaml" for kind in ("sa", "priorityclass")]
    return [item for file in files for item in _read(file)]


def _deployments(source: Path, argo: Path, kfp: str, argoexec: str) -> list[Manifest]:
    logs = "--logtostderr=true"
    known = {
        "ml-pipeline-apiserver": (
            ["/bin/apiserver", "--config=/config", logs],
            {
                "OBJECTSTORECONFIG_REGION": REGION,
                "V2_DRIVER_IMAGE": kfp,
                "V2_LAUNCHER_IMAGE": kfp,
                # It does not start without these two; there is no such server here.
                "ML_PIPELINE_VISUALIZATIONSERVER_SERVICE_HOST": "127.0.0.1",
                "ML_PIPELINE_VISUALIZATIONSERVER_SERVICE_PORT": "8888",
                "TAG_NAME": programs.VERSION,
            },
        ),
        "ml-pipeline-persistenceagent": (
            [
                *("/bin/persistence_agent", logs, f"--namespace={NAMESPACE}"),
                *("--ttlSecondsAfterWorkflowFinish=86400", f"--mlPipelineAPIServerName={HOST}"),
            ],
            {},
        ),
        "ml-pipeline-scheduledworkflow": (
            [
                *("/bin/controller", logs, f"--namespace={NAMESPACE}"),
                f"--mlPipelineAPIServerName={HOST}",
            ],
            {},
        ),
    }
    items = []
    for stem, (command, environment) in known.items():
        place = source / "manifests/kustomize/base/pipeline" / f"{stem}-deployment.yaml"
        (item,) = _read(place)
        (container,) = item["spec"]["template"]["spec"]["containers"]
        kept = [entry for entry in container.get("env", []) if entry["name"] not in environment]
        added = [{"name": name, "value": value} for name, value in environment.items()]
        container |= {"image": kfp, "command": command, "env": [*kept, *added]}
        items.append(item)
    folder = argo / "manifests/base/workflow-controller"
    (item,) = _read(folder / "workflow-controller-deployment.yaml")
    (container,) = item["spec"]["template"]["spec"]["containers"]
    words = ["--configmap", "workflow-controller-configmap", "--namespaced"]
    container |= {"image": argoexec, "args": [*words, "--executor-image", argoexec]}
    container["securityContext"]["runAsUser"] = 8737
    # Ten seconds otherwise, for every pod of a run.
    container["env"].append({"name": "DEFAULT_REQUEUE_TIME", "value": "1s"})
    # There is one, and a machine that is busy is no reason to end it.
    container["env"].append({"name": "LEADER_ELECTION_DISABLE", "value": "true"})
    items.append(item)
    for item in items:
        item["spec"]["replicas"] = 1
        for container in item["spec"]["template"]["spec"]["containers"]:
            for name in ("resources", "livenessProbe", "startupProbe"):
                container.pop(name, None)
            if "readinessProbe" in container:
                container["readinessProbe"] |= {"timeoutSeconds": 30, "failureThreshold": 60}
            container["imagePullPolicy"] = "Never"
    return items


def _object(version: str, kind: str, name: str, **content: Any) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **content}


def _read(path: Path) -> list[Manifest]:
    return [item for item in yaml.safe_load_all(path.read_text()) if item]


def _apply(items: list[Manifest]) -> None:
    everywhere = ("Namespace", "PriorityClass", "ClusterRole", "ClusterRoleBinding")
    for item in items:
        if item["kind"] not in everywhere:
            item["metadata"]["namespace"] = NAMESPACE
        for subject in item.get("subjects", []):
            subject["namespace"] = NAMESPACE
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    _kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=text)


def _kubectl(*arguments: str, given: str | None = None) -> str:
    program = build.cache_folder() / "kubectl"
    command = [str(program), f"--kubeconfig={KUBECONFIG}", "-n", NAMESPACE, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def _run(*command: str) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stdout[-300:]}{done.stderr[-300:]}")
    return done.stdout


def _is_healthy() -> bool:
    try:
        with urllib.request.urlopen(f"{ENDPOINT}/apis/v2beta1/healthz", timeout=2) as answer:
            return "multi_user" in json.load(answer)
    except (OSError, ValueError):
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0


def _wait(what: str, done: Any, seconds: int) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"Waited {seconds} s for {what} in vain: see {STATE / 'logs'}.")
        time.sleep(0.2)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["up"]:
            print(up())
        case ["down"]:
            cluster.down()
        case _:
            raise SystemExit(__doc__)
