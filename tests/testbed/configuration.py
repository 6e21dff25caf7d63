"""What kubelet, kube-proxy, containerd and the pods' network are told."""

from __future__ import annotations

import json

import images
from places import ADDRESS, BRIDGE, NODE, PKI, PODS, SHARED, STATE


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
        "clusterDNS": ["10.96.0.10"],
        "clusterDomain": "cluster.local",
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
