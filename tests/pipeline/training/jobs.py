"""Jobs without a fault."""

GOOD = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: train
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: registry:5000/train:v1
              args: ["--backend", "gloo"]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: pytorch
              image: registry:5000/train:v1
"""
TRAIN_JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: train
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    numNodes: 2
"""
MPI_JOB = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: rings
spec:
  slotsPerWorker: 2
  runPolicy:
    cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: launcher
              image: registry:5000/mpi:v1
              command: [mpirun, --allow-run-as-root, -n, "4", -mca, btl, tcp, python, ring.py]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: worker
              image: registry:5000/mpi:v1
              resources:
                limits: {cpu: 2, memory: 4Gi}
"""
