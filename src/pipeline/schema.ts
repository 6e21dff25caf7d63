/**
 * The document as types, and the order of its keys.
 * Generated from pipeline/schema.json by scripts/generate_schema.py.
 */

export type Json =
  null | boolean | number | string | Json[] | { [key: string]: Json };

/** A value that can be set for each run. */
export interface IParameter {
  /** The type of its values. */
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';
  /** The value if a run sets none. */
  default?: Json;
  /** What it means. */
  description?: string;
  /** Every run must set a value. */
  required?: boolean;
  /** The only values allowed. */
  choices?: Json[];
  /** What other programs keep here. It is never read and never lost. */
  extra?: { [key: string]: Json };
}

/** What a node needs to run. Everything is optional. */
export interface ISettings {
  /** The container image. A component has its own, which this replaces; the defaults leave it alone. */
  image?: string;
  /** When to fetch the image. */
  pull_policy?: 'Always' | 'IfNotPresent' | 'Never';
  /** The kernel that executes a notebook. The one that the notebook names if it is not set. */
  kernel?: string;
  /** Values may hold expressions. */
  env?: { [key: string]: string };
  /** Environment variables whose values are looked up when the step starts and are stored nowhere. */
  secrets?: ISecret[];
  /** How much of the machine the node needs. */
  resources?: IResources;
  /** Values for the notebook's `parameters` cell; environment variables of a script or command. Values may be or contain expressions. */
  parameters?: { [key: string]: Json };
  /** Volume claims to mount. One with a size is made for the run, and deleted when the run ends. */
  volumes?: IVolume[];
  /** Globs, relative to the folder of the node's file (to the pipeline's folder when it has none). A folder means everything in it. */
  dependencies?: string[];
  /** Globs, relative to the working folder. They are kept with the run and handed to the nodes after it. */
  outputs?: string[];
  /** Numbers to read from the log: a regular expression with one group for each metric. */
  metrics?: { [key: string]: string };
  /** How often to try again after a failure. */
  retries?: number | IRetries;
  /** Stop an attempt after this time: seconds, or a text such as `90s`, `15m`, `2h`, `1d` or `1h30m`. 0 means never. */
  timeout?: number | string;
  /** Reuse the result of an earlier run when nothing it depends on has changed. */
  cache?: boolean;
  /** `source`: the folder of the node's file, in the run's own view of the project. `isolated`: an empty folder with only the declared files. `shared`: the folder itself, together with other runs. Else a folder of the project, relative to the pipeline's. */
  working_folder?: string;
  /** Run a notebook, a script or a command as several processes that work together. */
  distributed?: IDistributed;
  /** Make a Dask cluster for each attempt at a notebook, a script or a command, and remove it afterwards. `Client()` connects with it. */
  dask?: IDask;
  /** Details of the pod, where the runtime has pods. */
  kubernetes?: IKubernetes;
  /** What other programs keep here. It is never read and never lost. */
  extra?: { [key: string]: Json };
}

/** Once per item of a list. */
export interface IForEach {
  /** Inside, the item is `${{ each.name }}`; a field of an item that is an object is `${{ each.name.field }}`. */
  name: string;
  /** The items: a list, or an expression that gives one, such as `${{ parameters.regions }}` or `${{ nodes.prepare.outputs.regions }}`. */
  in: Json[] | string;
  /** How many items run at the same time. As many as there is room for if it is not set. */
  parallel?: number;
}

/** Executes a notebook, in any language that has a kernel. */
export interface INotebookNode extends ISettings {
  /** What sort of node it is. */
  kind: 'notebook';
  /** What people see. The id if it is not set. */
  name?: string;
  /** What it does, in markdown. */
  description?: string;
  /** Relative to the pipeline's folder. */
  path: string;
  /** Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves. */
  after?: string[];
  /** A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it. */
  when?: string;
  /** Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order. */
  for_each?: IForEach;
  /** How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop. */
  run_if?: 'succeeded' | 'failed' | 'always';
  /** Leave it out of every run: it is skipped, and so is what needs it. */
  disabled?: boolean;
}

/** Executes a script: `.py`, `.R` or `.sh`. */
export interface IScriptNode extends ISettings {
  /** What sort of node it is. */
  kind: 'script';
  /** What people see. The id if it is not set. */
  name?: string;
  /** What it does, in markdown. */
  description?: string;
  /** Relative to the pipeline's folder. */
  path: string;
  /** Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves. */
  after?: string[];
  /** A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it. */
  when?: string;
  /** Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order. */
  for_each?: IForEach;
  /** How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop. */
  run_if?: 'succeeded' | 'failed' | 'always';
  /** Leave it out of every run: it is skipped, and so is what needs it. */
  disabled?: boolean;
}

/** Executes a program with arguments. There is no shell in between. */
export interface ICommandNode extends ISettings {
  /** What sort of node it is. */
  kind: 'command';
  /** What people see. The id if it is not set. */
  name?: string;
  /** What it does, in markdown. */
  description?: string;
  /** The program and its arguments, which may contain expressions. */
  command: string[];
  /** Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves. */
  after?: string[];
  /** A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it. */
  when?: string;
  /** Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order. */
  for_each?: IForEach;
  /** How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop. */
  run_if?: 'succeeded' | 'failed' | 'always';
  /** Leave it out of every run: it is skipped, and so is what needs it. */
  disabled?: boolean;
}

/** Executes a ready-made component, whose definition is in the file. */
export interface IComponentNode extends ISettings {
  /** What sort of node it is. */
  kind: 'component';
  /** What people see. The id if it is not set. */
  name?: string;
  /** What it does, in markdown. */
  description?: string;
  /** The digest of its definition, a key of `components`. */
  component: string;
  /** Where the component came from. */
  source?: string;
  /** A value, an expression, or `{"file": path}` for the content of a file, for each input. */
  inputs?: { [key: string]: Json };
  /** Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves. */
  after?: string[];
  /** A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it. */
  when?: string;
  /** Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order. */
  for_each?: IForEach;
  /** How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop. */
  run_if?: 'succeeded' | 'failed' | 'always';
  /** Leave it out of every run: it is skipped, and so is what needs it. */
  disabled?: boolean;
}

/** Runs another pipeline as a part of this one, with its parameters in and its outputs out. */
export interface IPipelineNode {
  /** What sort of node it is. */
  kind: 'pipeline';
  /** What people see. The id if it is not set. */
  name?: string;
  /** What it does, in markdown. */
  description?: string;
  /** Relative to the pipeline's folder. */
  path: string;
  /** Values for the parameters of the pipeline: each is a value or one expression. */
  parameters?: { [key: string]: Json };
  /** Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves. */
  after?: string[];
  /** A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it. */
  when?: string;
  /** Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order. */
  for_each?: IForEach;
  /** How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop. */
  run_if?: 'succeeded' | 'failed' | 'always';
  /** Leave it out of every run: it is skipped, and so is what needs it. */
  disabled?: boolean;
  /** What other programs keep here. It is never read and never lost. */
  extra?: { [key: string]: Json };
}

/** Nodes that belong together. With a rule they run, or are skipped, as a whole. */
export interface IGroupNode {
  /** What sort of node it is. */
  kind: 'group';
  /** What people see. The id if it is not set. */
  name?: string;
  /** What it does, in markdown. */
  description?: string;
  /** Ids of the nodes and groups in it. */
  members: string[];
  /** Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves. */
  after?: string[];
  /** A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it. */
  when?: string;
  /** Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order. */
  for_each?: IForEach;
  /** How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop. */
  run_if?: 'succeeded' | 'failed' | 'always';
  /** Leave it out of every run: it is skipped, and so is what needs it. */
  disabled?: boolean;
  /** What other programs keep here. It is never read and never lost. */
  extra?: { [key: string]: Json };
}

/** An environment variable whose value is looked up when the step starts. */
export interface ISecret {
  /** The variable that gets the value. */
  env: string;
  /** A Kubernetes Secret, or a service in the keyring. */
  name: string;
  /** The key in the Secret, or the user in the keyring. */
  key: string;
}

export interface IRequestAndLimit {
  /** How much is set aside for the node. */
  request?: Quantity;
  /** How much it must not exceed. */
  limit?: Quantity;
}

export interface IResources {
  /** Cores: `2`, `0.5` or `500m`. */
  cpu?: Amount;
  /** Bytes: `512Mi`, `2Gi`. */
  memory?: Amount;
  /** How many GPUs, and of which type. */
  gpu?: number | IGpu;
  /** The size of `/dev/shm`, which data loaders use. */
  shared_memory?: Quantity;
  /** Disk space in the container. */
  ephemeral_storage?: Amount;
}

export interface IGpu {
  /** A fraction where GPUs are shared. */
  count?: number;
  /** The product as the cluster names it, such as `NVIDIA-A100`. */
  type?: string;
  /** What the cluster calls the resource, such as `amd.com/gpu`. */
  resource?: string;
}

/** A volume claim, mounted at a path. */
export interface IVolume {
  /** The name of the persistent volume claim. */
  claim: string;
  /** Where it appears, absolute. */
  path: string;
  /** Only this folder of the volume. */
  sub_path?: string;
  /** The node cannot change it. */
  read_only?: boolean;
  /** Make the claim for the run, of this size: all nodes that name it share it, no other run sees it, and it is deleted when the run ends. Without a size the claim has to exist. */
  size?: number | string;
  /** Who can use the claim that is made: the pods of one node, or of many. */
  mode?: 'ReadWriteOnce' | 'ReadWriteMany' | 'ReadWriteOncePod';
  /** Of the claim that is made. The default class of the cluster if it is missing. */
  storage_class?: string;
}

export interface IRetries {
  /** How often to try again. */
  count?: number;
  /** Seconds before the first retry. */
  delay?: number;
  /** Each further delay is this many times the one before. */
  factor?: number;
}

export interface IDask {
  /** How many workers the cluster has. The step starts when all of them are there. */
  workers?: number;
  /** Options of the Dask gateway, such as `worker_cores`: `convect dask options` lists them. */
  options?: { [key: string]: Json };
  /** The step fails when the workers have not come within this time: seconds, or a text such as `30m`. */
  wait?: number | string;
}

export interface IDistributed {
  /** How many machines. The resources are those of each. */
  nodes?: number;
  /** On Kubernetes, begin with so many nodes when the others do not come, take in those that come later, and continue when nodes are lost. All processes start again with the new number of ranks each time. */
  min_nodes?: number;
  /** A number, `gpu` for one per GPU that the node asks for, or `cpu` for one per CPU. */
  processes?: number | 'gpu' | 'cpu';
  /** What starts the processes: `torchrun`, `mpi` (mpirun), or `plain`, which only sets the environment variables (`RANK`, `WORLD_SIZE`, `MASTER_ADDR` and so on). */
  launcher?: 'plain' | 'torchrun' | 'mpi';
  /** How often all processes, on all nodes, start again in the same folder after one of them failed. */
  restarts?: number;
  /** The rank whose values and metrics are those of the step. */
  outputs_from?: number;
  /** When no process has printed anything or used a CPU or GPU for this time, say so and write the Python stacks of all of them to the log: seconds, or a text such as `10m`. 0 means never. */
  hang_after?: number | string;
  /** `report` only says so. `stop` stops all processes as well, so that `restarts` or retries start them again. */
  on_hang?: 'report' | 'stop';
  /** What runs it on Kubernetes: the kind of an operator's object, `none` for a Job that needs no operator, or `auto`: with several nodes, the first of TrainJob and PyTorchJob that the cluster has (an MPIJob for `mpi`), otherwise a Job. */
  operator?: 'auto' | 'none' | 'TrainJob' | 'PyTorchJob' | 'TFJob' | 'MPIJob';
  /** On Kubernetes, create its pods only when there is room for all of them at the same time, so that no pod holds GPUs while others wait. A queue of Kueue always does so. */
  gang?: boolean;
}

export interface IKubernetes {
  /** Labels that the machine must have. */
  node_selector?: { [key: string]: string };
  /** Taints of machines that the pod accepts. */
  tolerations?: IToleration[];
  /** Labels of the pod. */
  labels?: { [key: string]: string };
  /** Annotations of the pod. */
  annotations?: { [key: string]: string };
  /** The name of a priority class. */
  priority?: string;
  /** The account that the pod acts as. */
  service_account?: string;
  /** Secrets to pull the image from its registry. */
  pull_secrets?: string[];
  /** Amounts of resources that only this cluster has, by name, such as `rdma/hca`. */
  resources?: { [key: string]: string };
}

/** A taint that the pod accepts. */
export interface IToleration {
  /** The taint's key. Every key if it is not set. */
  key?: string;
  /** `Exists` ignores the value. */
  operator?: 'Equal' | 'Exists';
  /** The taint's value. */
  value?: string;
  /** Every effect if it is not set. */
  effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
  /** How long to stay after a `NoExecute` taint appears. */
  seconds?: number;
}

/** A note on the canvas. */
export interface IComment {
  /** What it says, in markdown. */
  text: string;
  /** Ids of the nodes that it belongs to. */
  about?: string[];
  /** What other programs keep here. It is never read and never lost. */
  extra?: { [key: string]: Json };
}

export interface IGroupPlace {
  /** `[x, y]` or `[x, y, width, height]`. */
  at: number[];
  /** A group that shows as one box. */
  folded?: boolean;
}

/** A pipeline: nodes, how they depend on each other, and what each needs to run. */
export interface IDocument {
  /** The version of this format. A program that knows only older versions refuses the file and leaves it alone. */
  convect: 1;
  /** What the pipeline and its runs are called. The file's name if it is not set. */
  name?: string;
  /** What the pipeline is for, in markdown. */
  description?: string;
  /** Values that can be set for each run, used as `${{ parameters.name }}`. */
  parameters?: { [key: string]: IParameter };
  /** Settings of every node that does not say otherwise. Objects merge key by key, lists are joined, single values of the node win. */
  defaults?: ISettings;
  /** The nodes by id. Ids are letters, digits, `_` and `-`, of any language. */
  nodes: { [key: string]: Node };
  /** Values that the pipeline gives to one that has it as a node: an expression for each, used there as `${{ nodes.ID.outputs.name }}`. */
  outputs?: { [key: string]: string };
  /** The definition of each component that a node uses, by digest, so that the file works when its source is gone. */
  components?: { [key: string]: { [key: string]: Json } };
  /** Notes on the canvas, by id. */
  comments?: { [key: string]: IComment };
  /** Where nodes and comments are on the canvas, by id. It has no meaning for a run. */
  layout?: { [key: string]: Place };
  /** What other programs keep here. It is never read and never lost. */
  extra?: { [key: string]: Json };
}

export type Node =
  | INotebookNode
  | IScriptNode
  | ICommandNode
  | IComponentNode
  | IPipelineNode
  | IGroupNode;

export type Quantity = number | string;

export type Amount = number | string | IRequestAndLimit;

export type Place = number[] | IGroupPlace;

export const VERSION = 1;

const SETTINGS = {
  image: {},
  pull_policy: {},
  kernel: {},
  env: { type: 'object' },
  secrets: { items: { $ref: '#/$defs/secret' } },
  resources: { $ref: '#/$defs/resources' },
  parameters: { type: 'object' },
  volumes: { items: { $ref: '#/$defs/volume' } },
  dependencies: {},
  outputs: {},
  metrics: { type: 'object' },
  retries: { oneOf: [{ $ref: '#/$defs/retries' }] },
  timeout: {},
  cache: {},
  working_folder: {},
  distributed: { $ref: '#/$defs/distributed' },
  dask: { $ref: '#/$defs/dask' },
  kubernetes: { $ref: '#/$defs/kubernetes' },
  extra: { $ref: '#/$defs/free' }
};

/** What the order of keys in a file follows: the schema without its words. */
export const SHAPE = {
  type: 'object',
  properties: {
    convect: { const: 1 },
    name: {},
    description: {},
    parameters: {
      type: 'object',
      additionalProperties: { $ref: '#/$defs/parameter' }
    },
    defaults: { $ref: '#/$defs/settings' },
    nodes: { type: 'object', additionalProperties: { $ref: '#/$defs/node' } },
    outputs: { type: 'object' },
    components: {
      type: 'object',
      additionalProperties: { $ref: '#/$defs/free' }
    },
    comments: {
      type: 'object',
      additionalProperties: { $ref: '#/$defs/comment' }
    },
    layout: { type: 'object', additionalProperties: { $ref: '#/$defs/place' } },
    extra: { $ref: '#/$defs/free' }
  },
  $defs: {
    free: { type: 'object' },
    parameter: {
      type: 'object',
      properties: {
        type: {},
        default: {},
        description: {},
        required: {},
        choices: {},
        extra: { $ref: '#/$defs/free' }
      }
    },
    settings: { type: 'object', properties: { ...SETTINGS } },
    node: {
      oneOf: [
        { $ref: '#/$defs/notebook' },
        { $ref: '#/$defs/script' },
        { $ref: '#/$defs/command' },
        { $ref: '#/$defs/component' },
        { $ref: '#/$defs/pipeline' },
        { $ref: '#/$defs/group' }
      ]
    },
    loop: { type: 'object', properties: { name: {}, in: {}, parallel: {} } },
    notebook: {
      type: 'object',
      properties: {
        kind: { const: 'notebook' },
        name: {},
        description: {},
        path: {},
        after: {},
        when: {},
        for_each: { $ref: '#/$defs/loop' },
        run_if: {},
        disabled: {},
        ...SETTINGS
      }
    },
    script: {
      type: 'object',
      properties: {
        kind: { const: 'script' },
        name: {},
        description: {},
        path: {},
        after: {},
        when: {},
        for_each: { $ref: '#/$defs/loop' },
        run_if: {},
        disabled: {},
        ...SETTINGS
      }
    },
    command: {
      type: 'object',
      properties: {
        kind: { const: 'command' },
        name: {},
        description: {},
        command: {},
        after: {},
        when: {},
        for_each: { $ref: '#/$defs/loop' },
        run_if: {},
        disabled: {},
        ...SETTINGS
      }
    },
    component: {
      type: 'object',
      properties: {
        kind: { const: 'component' },
        name: {},
        description: {},
        component: {},
        source: {},
        inputs: { type: 'object' },
        after: {},
        when: {},
        for_each: { $ref: '#/$defs/loop' },
        run_if: {},
        disabled: {},
        ...SETTINGS
      }
    },
    pipeline: {
      type: 'object',
      properties: {
        kind: { const: 'pipeline' },
        name: {},
        description: {},
        path: {},
        parameters: { type: 'object' },
        after: {},
        when: {},
        for_each: { $ref: '#/$defs/loop' },
        run_if: {},
        disabled: {},
        extra: { $ref: '#/$defs/free' }
      }
    },
    group: {
      type: 'object',
      properties: {
        kind: { const: 'group' },
        name: {},
        description: {},
        members: {},
        after: {},
        when: {},
        for_each: { $ref: '#/$defs/loop' },
        run_if: {},
        disabled: {},
        extra: { $ref: '#/$defs/free' }
      }
    },
    secret: { type: 'object', properties: { env: {}, name: {}, key: {} } },
    quantity: {},
    amount: { oneOf: [{ $ref: '#/$defs/range' }] },
    range: {
      type: 'object',
      properties: {
        request: { $ref: '#/$defs/quantity' },
        limit: { $ref: '#/$defs/quantity' }
      }
    },
    resources: {
      type: 'object',
      properties: {
        cpu: { $ref: '#/$defs/amount' },
        memory: { $ref: '#/$defs/amount' },
        gpu: { oneOf: [{ $ref: '#/$defs/gpu' }] },
        shared_memory: { $ref: '#/$defs/quantity' },
        ephemeral_storage: { $ref: '#/$defs/amount' }
      }
    },
    gpu: { type: 'object', properties: { count: {}, type: {}, resource: {} } },
    volume: {
      type: 'object',
      properties: {
        claim: {},
        path: {},
        sub_path: {},
        read_only: {},
        size: {},
        mode: {},
        storage_class: {}
      }
    },
    retries: {
      type: 'object',
      properties: { count: {}, delay: {}, factor: {} }
    },
    dask: {
      type: 'object',
      properties: { workers: {}, options: { type: 'object' }, wait: {} }
    },
    distributed: {
      type: 'object',
      properties: {
        nodes: {},
        min_nodes: {},
        processes: {},
        launcher: {},
        restarts: {},
        outputs_from: {},
        hang_after: {},
        on_hang: {},
        operator: {},
        gang: {}
      }
    },
    kubernetes: {
      type: 'object',
      properties: {
        node_selector: { type: 'object' },
        tolerations: { items: { $ref: '#/$defs/toleration' } },
        labels: { type: 'object' },
        annotations: { type: 'object' },
        priority: {},
        service_account: {},
        pull_secrets: {},
        resources: { type: 'object' }
      }
    },
    toleration: {
      type: 'object',
      properties: { key: {}, operator: {}, value: {}, effect: {}, seconds: {} }
    },
    comment: {
      type: 'object',
      properties: { text: {}, about: {}, extra: { $ref: '#/$defs/free' } }
    },
    place: { oneOf: [{ $ref: '#/$defs/spot' }] },
    spot: { type: 'object', properties: { at: {}, folded: {} } }
  }
};
