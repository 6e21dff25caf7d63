"""What kubelet, kube-proxy, containerd and the pods' network are told."""

from __future__ import annotations

import json
from typing import Any

import images
from places import (
    ADDRESS,
    BRIDGE,
    DNS_HEALTH,
    DNS_PORT,
    DNS_SERVICE,
    KUBECONFIG,
    NODE,
    PKI,
    PODS,
    SHARED,
    STATE,
)


def write() -> None:
    """All files that the parts are started with."""
    for name in ("etcd", "kubelet", "containerd", "logs", "podlogs", "shared", "cni", "images"):
        (STATE / name).mkdir(parents=True, exist_ok=True)
    (STATE / "etcd").chmod(0o700)
    SHARED.chmod(0o777)
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": f"unix://{STATE}/containerd/socket",
        "address": ADDRESS,
        "port": 11250,
        "readOnlyPort": 0,
        "healthzPort": 11248,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(PKI / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(PKI / "kubelet.crt"),
        "tlsPrivateKeyFile": str(PKI / "kubelet.key"),
        "oomScoreAdj": 0,
        "failSwapOn": False,
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": "cluster.local",
        # Nothing of this machine's own name servers gets into a pod.
        "resolvConf": "",
        "podLogsDir": str(STATE / "podlogs"),
        "evictionHard": {
            "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%",
        },
        "localStorageCapacityIsolation": False,
        "volumePluginDir": str(STATE / "kubelet" / "plugins"),
        "nodeStatusUpdateFrequency": "4s",
        "nodeStatusReportFrequency": "30s",
    }  # fmt: skip
    proxy = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(PKI / "proxy.conf")},
        "mode": "iptables",
        "clusterCIDR": PODS,
        "hostnameOverride": NODE,
        "conntrack": {"maxPerCore": 0},
        "metricsBindAddress": "127.0.0.1:11249",
        "healthzBindAddress": "127.0.0.1:11247",
    }
    network = {
        "cniVersion": "0.4.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "bridge",
                "bridge": BRIDGE,
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": PODS, "gateway": ADDRESS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": str(STATE / "containerd" / "ipam"),
                },
            }
        ],
    }
    # YAML is a superset of JSON.
    (STATE / "kubelet.yaml").write_text(json.dumps(kubelet, indent=2))
    (STATE / "proxy.yaml").write_text(json.dumps(proxy, indent=2))
    (STATE / "cni" / "10-testbed.conflist").write_text(json.dumps(network, indent=2))
    (STATE / "containerd.toml").write_text(_containerd())
    (STATE / "Corefile").write_text(_corefile())


def dns_service() -> dict[str, Any]:
    """The address that kubelet names to pods, and the process on this machine behind it."""
    ports = [
        {"name": f"dns-{protocol.lower()}", "port": 53, "protocol": protocol}
        for protocol in ("UDP", "TCP")
    ]
    name = {"name": "kube-dns", "namespace": "kube-system"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": name,
        "spec": {
            "clusterIP": DNS_SERVICE,
            "ports": [{**port, "targetPort": DNS_PORT} for port in ports],
        },
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**name, "labels": {"kubernetes.io/service-name": "kube-dns"}},
        "addressType": "IPv4",
        "ports": [{**port, "port": DNS_PORT} for port in ports],
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
    }
    return {"apiVersion": "v1", "kind": "List", "items": [service, endpoints]}


def _corefile() -> str:
    """Names of the cluster, and NXDOMAIN for every other: no question leaves the machine.

    Two blocks, because within one the catch-all would be asked first.
    """
    zones = ("cluster.local", "in-addr.arpa", "ip6.arpa")
    return f"""{" ".join(f"{zone}:{DNS_PORT}" for zone in zones)} {{
    bind {ADDRESS}
    errors
    ready {DNS_HEALTH}
    kubernetes {" ".join(zones)} {{
        kubeconfig {KUBECONFIG}
        pods insecure
        ttl 0
    }}
}}
.:{DNS_PORT} {{
    bind {ADDRESS}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


def _containerd() -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{STATE}/containerd/root"
state = "{STATE}/containerd/state"
oom_score = 0
[grpc]
  address = "{STATE}/containerd/socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "{STATE}/containerd/opt"
[{cri}]
  sandbox_image = "{images.PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [{cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [{cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [{cri}.containerd.runtimes.runc.options]
        SystemdCgroup = false
  [{cri}.cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{STATE}/cni"
"""
