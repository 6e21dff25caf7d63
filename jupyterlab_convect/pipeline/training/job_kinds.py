"""What the resources of the training operators may hold, as compact shapes.

After the definitions of training-operator 1.9, mpi-operator 0.7 and Trainer 2.3. A shape is one of
the words below, a tuple of the texts to choose from, a list with the shape of its items, or a dict
of properties, in which `*` stands for any name and `!` behind a name says that it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Shape = Any
ANY, TEXT, WHOLE, FLAG, AMOUNT, IMAGE = "any", "text", "whole", "flag", "amount", "image"


def _all(shape: Shape, names: str) -> dict[str, Shape]:
    """Properties of the same shape."""
    return dict.fromkeys(names.split(), shape)


_OPEN = {"*": ANY}
_TEXTS = {"*": TEXT}
_META = {
    **_all(TEXT, "name generateName namespace uid resourceVersion selfLink"),
    **_all(_TEXTS, "labels annotations"),
    **_all([ANY], "ownerReferences managedFields"),
    "finalizers": [TEXT],
    "creationTimestamp": ANY,
    "generation": WHOLE,
}
_ENV = [{"name!": TEXT, "value": TEXT, "valueFrom": _OPEN}]
_RESOURCES = {**_all({"*": AMOUNT}, "limits requests"), "claims": [_OPEN]}
_MOUNT = {
    **_all(TEXT, "name! mountPath! subPath subPathExpr recursiveReadOnly mountPropagation"),
    "readOnly": FLAG,
}
_PORT = {
    **_all(WHOLE, "containerPort! hostPort"),
    **_all(TEXT, "name hostIP"),
    "protocol": ("TCP", "UDP", "SCTP"),
}
CONTAINER = {
    "name!": TEXT,
    "image!": IMAGE,
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "env": _ENV,
    "envFrom": [{**_all(ANY, "configMapRef secretRef"), "prefix": TEXT}],
    "ports": [_PORT],
    "resources": _RESOURCES,
    "volumeMounts": [_MOUNT],
    **_all([TEXT], "command args"),
    **_all(TEXT, "workingDir restartPolicy terminationMessagePath terminationMessagePolicy"),
    **_all(_OPEN, "securityContext lifecycle livenessProbe readinessProbe startupProbe"),
    **_all([ANY], "volumeDevices restartPolicyRules resizePolicy"),
    **_all(FLAG, "stdin stdinOnce tty"),
}
_SOURCES = """
awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral
fc flexVolume flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs
persistentVolumeClaim photonPersistentDisk portworxVolume projected quobyte rbd scaleIO secret
storageos vsphereVolume
"""
_TOLERATION = {
    **_all(TEXT, "key value"),
    "operator": ("Exists", "Equal", "Lt", "Gt"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "tolerationSeconds": WHOLE,
}
_POD = {
    "containers!": [CONTAINER],
    "initContainers": [CONTAINER],
    "volumes": [{"name!": TEXT, **_all(_OPEN, _SOURCES)}],
    "nodeSelector": _TEXTS,
    "tolerations": [_TOLERATION],
    "imagePullSecrets": [{"name": TEXT}],
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "resources": _RESOURCES,
    "overhead": {"*": AMOUNT},
    **_all(TEXT, "serviceAccountName serviceAccount priorityClassName preemptionPolicy nodeName"),
    **_all(TEXT, "schedulerName runtimeClassName hostname hostnameOverride subdomain dnsPolicy"),
    **_all(FLAG, "hostNetwork hostIPC hostPID hostUsers shareProcessNamespace setHostnameAsFQDN"),
    **_all(FLAG, "automountServiceAccountToken enableServiceLinks"),
    **_all(WHOLE, "priority terminationGracePeriodSeconds activeDeadlineSeconds"),
    **_all(_OPEN, "affinity securityContext dnsConfig os schedulingGroup"),
    **_all([ANY], "ephemeralContainers hostAliases readinessGates resourceClaims"),
    **_all([ANY], "schedulingGates topologySpreadConstraints"),
}
_SCHEDULING = {
    **_all(WHOLE, "minAvailable scheduleTimeoutSeconds"),
    **_all(TEXT, "queue priorityClass"),
    "minResources": {"*": AMOUNT},
}
_CLEAN_UP = ("None", "Running", "All")
_RUN_POLICY = {
    "cleanPodPolicy": _CLEAN_UP,
    **_all(WHOLE, "ttlSecondsAfterFinished activeDeadlineSeconds backoffLimit"),
    "suspend": FLAG,
    "managedBy": TEXT,
    "schedulingPolicy": _SCHEDULING,
}
_ELASTIC = {
    **_all(WHOLE, "minReplicas maxReplicas maxRestarts nProcPerNode rdzvPort"),
    **_all(TEXT, "rdzvHost rdzvId"),
    "rdzvBackend": ("c10d", "etcd", "etcd-v2"),
    "rdzvConf": [_all(TEXT, "key value")],
    "standalone": FLAG,
    "metrics": [ANY],
}
_RESTARTS = ("Always", "OnFailure", "Never", "ExitCode")
_SOURCE = {"storageUri": TEXT, "env": _ENV, "secretRef": {"name": TEXT}}
_TRAINER = {
    "image": IMAGE,
    **_all([TEXT], "command args"),
    "env": _ENV,
    **_all(WHOLE, "numNodes numProcPerNode"),
    "resourcesPerNode": _RESOURCES,
}
_PATCH = {
    "manager!": TEXT,
    "time": ANY,
    "trainingRuntimeSpec": {"template": _OPEN},
}


@dataclass(frozen=True, slots=True)
class JobKind:
    versions: dict[str, Shape]
    """The shape of `spec` for each `apiVersion`, the newest first."""
    replicas: str | None = None
    """The property with the roles."""
    roles: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    """Roles that must be there."""
    single: tuple[str, ...] = ()
    """Roles that have one replica."""
    container: str | None = None
    """What one of the containers has to be called."""


def _roles(roles: tuple[str, ...], restarts: tuple[str, ...] = _RESTARTS) -> Shape:
    template = {"metadata": _META, "spec!": _POD}
    role = {"replicas": WHOLE, "restartPolicy": restarts, "template!": template}
    return dict.fromkeys(roles, role)


_PYTORCH = ("Master", "Worker")
_TF = ("Chief", "Master", "PS", "Worker", "Evaluator")
_MPI = ("Launcher", "Worker")
KINDS = {
    "PyTorchJob": JobKind(
        {
            "kubeflow.org/v1": {
                "pytorchReplicaSpecs!": _roles(_PYTORCH),
                "runPolicy": _RUN_POLICY,
                "elasticPolicy": _ELASTIC,
                "nprocPerNode": TEXT,
            }
        },
        "pytorchReplicaSpecs",
        _PYTORCH,
        single=("Master",),
        container="pytorch",
    ),
    "TFJob": JobKind(
        {
            "kubeflow.org/v1": {
                "tfReplicaSpecs!": _roles(_TF),
                "runPolicy": _RUN_POLICY,
                "successPolicy": ("", "AllWorkers"),
                "enableDynamicWorker": FLAG,
            }
        },
        "tfReplicaSpecs",
        _TF,
        single=("Chief", "Master"),
        container="tensorflow",
    ),
    "MPIJob": JobKind(
        {
            "kubeflow.org/v2beta1": {
                "mpiReplicaSpecs!": _roles(_MPI, ("OnFailure", "Never")),
                "runPolicy": _RUN_POLICY,
                "slotsPerWorker": WHOLE,
                "sshAuthMountPath": TEXT,
                "runLauncherAsWorker": FLAG,
                "mpiImplementation": ("OpenMPI", "Intel", "MPICH"),
                "launcherCreationPolicy": ("AtStartup", "WaitForWorkersReady"),
            },
            "kubeflow.org/v1": {
                "mpiReplicaSpecs!": _roles(_MPI),
                "runPolicy": _RUN_POLICY,
                "slotsPerWorker": WHOLE,
                "mainContainer": TEXT,
                "cleanPodPolicy": _CLEAN_UP,
            },
        },
        "mpiReplicaSpecs",
        _MPI,
        needed=("Launcher",),
        single=("Launcher",),
    ),
    "TrainJob": JobKind(
        {
            "trainer.kubeflow.org/v1alpha1": {
                "runtimeRef!": _all(TEXT, "name! kind apiGroup"),
                "trainer": _TRAINER,
                "initializer": _all(_SOURCE, "dataset model"),
                "runtimePatches": [_PATCH],
                "suspend": FLAG,
                "activeDeadlineSeconds": WHOLE,
                "managedBy": TEXT,
            }
        },
    ),
}


def job_shape(spec: Shape) -> Shape:
    return {"apiVersion!": TEXT, "kind!": TEXT, "metadata!": _META, "spec!": spec, "status": ANY}
