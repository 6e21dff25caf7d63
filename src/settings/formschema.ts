/**
 * The schema of the document, for forms.
 * Generated from pipeline/schema.json by scripts/generate_schema.py.
 */

/* eslint-disable jupyter/no-untranslated-string -- forms translate these words. */

/** Titles of the parts of a form, in order. */
export const GROUPS = {
  general: 'General',
  environment: 'Environment',
  resources: 'Resources',
  parameters: 'Parameters',
  data: 'Data',
  behaviour: 'Behaviour',
  flow: 'When and how often',
  distributed: 'Distributed training',
  dask: 'Dask cluster',
  kubernetes: 'Kubernetes'
} as const;

const SETTINGS = {
  image: {
    title: 'Image',
    description:
      'The container image. A component has its own, which this replaces; the defaults leave it alone.',
    type: 'string',
    minLength: 1,
    'x-form': {
      group: 'environment',
      widget: 'image',
      placeholder: 'registry/image:tag'
    }
  },
  pull_policy: {
    title: 'Pull policy',
    description: 'When to fetch the image.',
    enum: ['Always', 'IfNotPresent', 'Never'],
    'x-form': { group: 'environment' }
  },
  kernel: {
    title: 'Kernel',
    description:
      'The kernel that executes a notebook. The one that the notebook names if it is not set.',
    type: 'string',
    minLength: 1,
    'x-form': { group: 'environment', widget: 'kernel' }
  },
  env: {
    title: 'Environment variables',
    description: 'Values may hold expressions.',
    type: 'object',
    additionalProperties: { type: 'string' },
    'x-form': { group: 'environment', widget: 'pairs' }
  },
  secrets: {
    title: 'Secrets',
    description:
      'Environment variables whose values are looked up when the step starts and are stored nowhere.',
    type: 'array',
    items: { $ref: '#/$defs/secret' },
    'x-form': { group: 'environment' }
  },
  resources: {
    title: 'Resources',
    description: 'How much of the machine the node needs.',
    $ref: '#/$defs/resources',
    'x-form': { group: 'resources' }
  },
  parameters: {
    title: 'Parameters',
    description:
      "Values for the notebook's `parameters` cell; environment variables of a script or command. Values may be or contain expressions.",
    type: 'object',
    additionalProperties: true,
    'x-form': { group: 'parameters', widget: 'parameters' }
  },
  volumes: {
    title: 'Volumes',
    description:
      'Volume claims to mount. One with a size is made for the run, and deleted when the run ends.',
    type: 'array',
    items: { $ref: '#/$defs/volume' },
    'x-form': { group: 'data' }
  },
  dependencies: {
    title: 'Files it needs',
    description:
      "Globs, relative to the folder of the node's file (to the pipeline's folder when it has none). A folder means everything in it.",
    type: 'array',
    items: { type: 'string', minLength: 1 },
    'x-form': { group: 'data', widget: 'globs' }
  },
  outputs: {
    title: 'Files it makes',
    description:
      'Globs, relative to the working folder. They are kept with the run and handed to the nodes after it.',
    type: 'array',
    items: { type: 'string', minLength: 1 },
    'x-form': { group: 'data', widget: 'globs' }
  },
  metrics: {
    title: 'Metrics',
    description:
      'Numbers to read from the log: a regular expression with one group for each metric.',
    type: 'object',
    additionalProperties: { type: 'string', minLength: 1 },
    'x-form': { group: 'data', widget: 'pairs' }
  },
  retries: {
    title: 'Retries',
    description: 'How often to try again after a failure.',
    oneOf: [{ type: 'integer', minimum: 0 }, { $ref: '#/$defs/retries' }],
    'x-form': { group: 'behaviour' }
  },
  timeout: {
    title: 'Timeout',
    description:
      'Stop an attempt after this time: seconds, or a text such as `90s`, `15m`, `2h`, `1d` or `1h30m`. 0 means never.',
    oneOf: [
      { type: 'number', minimum: 0 },
      { type: 'string', format: 'duration' }
    ],
    'x-form': { group: 'behaviour', placeholder: '2h' }
  },
  cache: {
    title: 'Reuse results',
    description:
      'Reuse the result of an earlier run when nothing it depends on has changed.',
    type: 'boolean',
    default: false,
    'x-form': { group: 'behaviour' }
  },
  working_folder: {
    title: 'Working folder',
    description:
      "`source`: the folder of the node's file, in the run's own view of the project. `isolated`: an empty folder with only the declared files. `shared`: the folder itself, together with other runs. Else a folder of the project, relative to the pipeline's.",
    type: 'string',
    minLength: 1,
    default: 'source',
    examples: ['source', 'isolated', 'shared'],
    'x-form': { group: 'behaviour', widget: 'folder' }
  },
  distributed: {
    title: 'Distributed training',
    description:
      'Run a notebook, a script or a command as several processes that work together.',
    $ref: '#/$defs/distributed',
    'x-form': { group: 'distributed' }
  },
  dask: {
    title: 'Dask cluster',
    description:
      'Make a Dask cluster for each attempt at a notebook, a script or a command, and remove it afterwards. `Client()` connects with it.',
    $ref: '#/$defs/dask',
    'x-form': { group: 'dask' }
  },
  kubernetes: {
    title: 'Kubernetes',
    description: 'Details of the pod, where the runtime has pods.',
    $ref: '#/$defs/kubernetes',
    'x-form': { group: 'kubernetes' }
  },
  extra: { $ref: '#/$defs/free' }
} as const;

/** What every kind of node can have. */
const NODE = {
  name: {
    title: 'Name',
    description: 'What people see. The id if it is not set.',
    type: 'string',
    'x-form': { group: 'general' }
  },
  description: {
    title: 'Description',
    description: 'What it does, in markdown.',
    type: 'string',
    'x-form': { group: 'general', widget: 'markdown' }
  },
  after: {
    title: 'After',
    description:
      'Ids of the nodes and groups that have to succeed first. Nodes that an expression names are added by themselves.',
    type: 'array',
    items: { type: 'string' },
    uniqueItems: true,
    'x-form': { group: 'general', widget: 'nodes' }
  },
  when: {
    title: 'When',
    description:
      'A condition, such as `${{ nodes.train.outputs.auc >= 0.8 }}`. Where it is false, the node is skipped, and so is what needs it.',
    type: 'string',
    minLength: 1,
    'x-form': {
      group: 'flow',
      widget: 'condition',
      placeholder: '${{ nodes.train.outputs.auc >= 0.8 }}'
    }
  },
  for_each: {
    title: 'For each',
    description:
      'Run once per item of a list. Elsewhere an output is then the list of the outputs of all items, in order.',
    $ref: '#/$defs/loop',
    'x-form': { group: 'flow', widget: 'loop' }
  },
  run_if: {
    title: 'Run if',
    description:
      'How the nodes before it must have ended: `succeeded`, `failed` (at least one of them), or `always`, also after a stop.',
    enum: ['succeeded', 'failed', 'always'],
    default: 'succeeded',
    'x-form': { group: 'flow', widget: 'run_if' }
  },
  disabled: {
    title: 'Disabled',
    description:
      'Leave it out of every run: it is skipped, and so is what needs it.',
    type: 'boolean',
    default: false,
    'x-form': { group: 'flow' }
  }
} as const;

/** JSON Schema, with mixins merged in. */
export const SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://jupyterlab-convect.dev/schema/pipeline/v1.json',
  title: 'Pipeline',
  description:
    'A pipeline: nodes, how they depend on each other, and what each needs to run.',
  type: 'object',
  properties: {
    convect: {
      title: 'Format version',
      description:
        'The version of this format. A program that knows only older versions refuses the file and leaves it alone.',
      type: 'integer',
      const: 1
    },
    name: {
      title: 'Name',
      description:
        "What the pipeline and its runs are called. The file's name if it is not set.",
      type: 'string'
    },
    description: {
      title: 'Description',
      description: 'What the pipeline is for, in markdown.',
      type: 'string',
      'x-form': { widget: 'markdown' }
    },
    parameters: {
      title: 'Parameters',
      description:
        'Values that can be set for each run, used as `${{ parameters.name }}`.',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/parameter' }
    },
    defaults: {
      title: 'Defaults',
      description:
        'Settings of every node that does not say otherwise. Objects merge key by key, lists are joined, single values of the node win.',
      $ref: '#/$defs/settings'
    },
    nodes: {
      title: 'Nodes',
      description:
        'The nodes by id. Ids are letters, digits, `_` and `-`, of any language.',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/node' }
    },
    outputs: {
      title: 'Outputs',
      description:
        'Values that the pipeline gives to one that has it as a node: an expression for each, used there as `${{ nodes.ID.outputs.name }}`.',
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1 }
    },
    components: {
      title: 'Components',
      description:
        'The definition of each component that a node uses, by digest, so that the file works when its source is gone.',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/free' }
    },
    comments: {
      title: 'Comments',
      description: 'Notes on the canvas, by id.',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/comment' }
    },
    layout: {
      title: 'Layout',
      description:
        'Where nodes and comments are on the canvas, by id. It has no meaning for a run.',
      type: 'object',
      additionalProperties: { $ref: '#/$defs/place' }
    },
    extra: { $ref: '#/$defs/free' }
  },
  required: ['convect', 'nodes'],
  additionalProperties: false,
  $defs: {
    free: {
      title: 'Extra',
      description:
        'What other programs keep here. It is never read and never lost.',
      type: 'object',
      additionalProperties: true
    },
    parameter: {
      title: 'Parameter',
      description: 'A value that can be set for each run.',
      type: 'object',
      properties: {
        type: {
          title: 'Type',
          description: 'The type of its values.',
          enum: ['string', 'integer', 'number', 'boolean', 'array', 'object']
        },
        default: {
          title: 'Default',
          description: 'The value if a run sets none.'
        },
        description: {
          title: 'Description',
          description: 'What it means.',
          type: 'string'
        },
        required: {
          title: 'Required',
          description: 'Every run must set a value.',
          type: 'boolean',
          default: false
        },
        choices: {
          title: 'Choices',
          description: 'The only values allowed.',
          type: 'array',
          items: {}
        },
        extra: { $ref: '#/$defs/free' }
      },
      additionalProperties: false
    },
    settings: {
      title: 'Settings',
      description: 'What a node needs to run. Everything is optional.',
      type: 'object',
      properties: { ...SETTINGS },
      required: [],
      additionalProperties: false
    },
    node: {
      title: 'Node',
      oneOf: [
        { $ref: '#/$defs/notebook' },
        { $ref: '#/$defs/script' },
        { $ref: '#/$defs/command' },
        { $ref: '#/$defs/component' },
        { $ref: '#/$defs/pipeline' },
        { $ref: '#/$defs/group' }
      ]
    },
    loop: {
      title: 'For each',
      description: 'Once per item of a list.',
      type: 'object',
      properties: {
        name: {
          title: 'Name of the item',
          description:
            'Inside, the item is `${{ each.name }}`; a field of an item that is an object is `${{ each.name.field }}`.',
          type: 'string',
          minLength: 1
        },
        in: {
          title: 'List',
          description:
            'The items: a list, or an expression that gives one, such as `${{ parameters.regions }}` or `${{ nodes.prepare.outputs.regions }}`.',
          oneOf: [{ type: 'array', items: {} }, { type: 'string' }]
        },
        parallel: {
          title: 'At a time',
          description:
            'How many items run at the same time. As many as there is room for if it is not set.',
          type: 'integer',
          minimum: 1
        }
      },
      required: ['name', 'in'],
      additionalProperties: false
    },
    notebook: {
      title: 'Notebook',
      description: 'Executes a notebook, in any language that has a kernel.',
      type: 'object',
      properties: {
        kind: {
          title: 'Kind',
          description: 'What sort of node it is.',
          const: 'notebook'
        },
        name: NODE.name,
        description: NODE.description,
        path: {
          title: 'Notebook',
          description: "Relative to the pipeline's folder.",
          type: 'string',
          minLength: 1,
          'x-form': { group: 'general', widget: 'file' }
        },
        after: NODE.after,
        when: NODE.when,
        for_each: NODE.for_each,
        run_if: NODE.run_if,
        disabled: NODE.disabled,
        ...SETTINGS
      },
      required: ['kind', 'path'],
      additionalProperties: false
    },
    script: {
      title: 'Script',
      description: 'Executes a script: `.py`, `.R` or `.sh`.',
      type: 'object',
      properties: {
        kind: {
          title: 'Kind',
          description: 'What sort of node it is.',
          const: 'script'
        },
        name: NODE.name,
        description: NODE.description,
        path: {
          title: 'Script',
          description: "Relative to the pipeline's folder.",
          type: 'string',
          minLength: 1,
          'x-form': { group: 'general', widget: 'file' }
        },
        after: NODE.after,
        when: NODE.when,
        for_each: NODE.for_each,
        run_if: NODE.run_if,
        disabled: NODE.disabled,
        ...SETTINGS
      },
      required: ['kind', 'path'],
      additionalProperties: false
    },
    command: {
      title: 'Command',
      description:
        'Executes a program with arguments. There is no shell in between.',
      type: 'object',
      properties: {
        kind: {
          title: 'Kind',
          description: 'What sort of node it is.',
          const: 'command'
        },
        name: NODE.name,
        description: NODE.description,
        command: {
          title: 'Command',
          description:
            'The program and its arguments, which may contain expressions.',
          type: 'array',
          items: { type: 'string' },
          minItems: 1,
          'x-form': { group: 'general', widget: 'arguments' }
        },
        after: NODE.after,
        when: NODE.when,
        for_each: NODE.for_each,
        run_if: NODE.run_if,
        disabled: NODE.disabled,
        ...SETTINGS
      },
      required: ['kind', 'command'],
      additionalProperties: false
    },
    component: {
      title: 'Component',
      description:
        'Executes a ready-made component, whose definition is in the file.',
      type: 'object',
      properties: {
        kind: {
          title: 'Kind',
          description: 'What sort of node it is.',
          const: 'component'
        },
        name: NODE.name,
        description: NODE.description,
        component: {
          title: 'Component',
          description: 'The digest of its definition, a key of `components`.',
          type: 'string',
          minLength: 1
        },
        source: {
          title: 'Came from',
          description: 'Where the component came from.',
          type: 'string',
          'x-form': { group: 'general' }
        },
        inputs: {
          title: 'Inputs',
          description:
            'A value, an expression, or `{"file": path}` for the content of a file, for each input.',
          type: 'object',
          additionalProperties: true,
          'x-form': { group: 'parameters', widget: 'inputs' }
        },
        after: NODE.after,
        when: NODE.when,
        for_each: NODE.for_each,
        run_if: NODE.run_if,
        disabled: NODE.disabled,
        ...SETTINGS
      },
      required: ['kind', 'component'],
      additionalProperties: false
    },
    pipeline: {
      title: 'Pipeline',
      description:
        'Runs another pipeline as a part of this one, with its parameters in and its outputs out.',
      type: 'object',
      properties: {
        kind: {
          title: 'Kind',
          description: 'What sort of node it is.',
          const: 'pipeline'
        },
        name: NODE.name,
        description: NODE.description,
        path: {
          title: 'Pipeline',
          description: "Relative to the pipeline's folder.",
          type: 'string',
          minLength: 1,
          'x-form': { group: 'general', widget: 'file' }
        },
        parameters: {
          title: 'Parameters',
          description:
            'Values for the parameters of the pipeline: each is a value or one expression.',
          type: 'object',
          additionalProperties: true,
          'x-form': { group: 'parameters', widget: 'parameters' }
        },
        after: NODE.after,
        when: NODE.when,
        for_each: NODE.for_each,
        run_if: NODE.run_if,
        disabled: NODE.disabled,
        extra: { $ref: '#/$defs/free' }
      },
      required: ['kind', 'path'],
      additionalProperties: false
    },
    group: {
      title: 'Group',
      description:
        'Nodes that belong together. With a rule they run, or are skipped, as a whole.',
      type: 'object',
      properties: {
        kind: {
          title: 'Kind',
          description: 'What sort of node it is.',
          const: 'group'
        },
        name: NODE.name,
        description: NODE.description,
        members: {
          title: 'Members',
          description: 'Ids of the nodes and groups in it.',
          type: 'array',
          items: { type: 'string' },
          uniqueItems: true
        },
        after: NODE.after,
        when: NODE.when,
        for_each: NODE.for_each,
        run_if: NODE.run_if,
        disabled: NODE.disabled,
        extra: { $ref: '#/$defs/free' }
      },
      required: ['kind', 'members'],
      additionalProperties: false
    },
    secret: {
      title: 'Secret',
      description:
        'An environment variable whose value is looked up when the step starts.',
      type: 'object',
      properties: {
        env: {
          title: 'Environment variable',
          description: 'The variable that gets the value.',
          type: 'string',
          minLength: 1
        },
        name: {
          title: 'Secret',
          description: 'A Kubernetes Secret, or a service in the keyring.',
          type: 'string',
          minLength: 1
        },
        key: {
          title: 'Key',
          description: 'The key in the Secret, or the user in the keyring.',
          type: 'string',
          minLength: 1
        }
      },
      required: ['env', 'name', 'key'],
      additionalProperties: false
    },
    quantity: {
      title: 'Quantity',
      description: 'A Kubernetes quantity: `2`, `0.5`, `500m`, `2Gi`, `1e3`.',
      oneOf: [
        { type: 'number', minimum: 0 },
        { type: 'string', format: 'quantity' }
      ]
    },
    amount: {
      title: 'Amount',
      description:
        'A quantity to request, or `request` and `limit` separately.',
      oneOf: [
        { type: 'number', minimum: 0 },
        { type: 'string', format: 'quantity' },
        { $ref: '#/$defs/range' }
      ]
    },
    range: {
      title: 'Request and limit',
      type: 'object',
      properties: {
        request: {
          title: 'Request',
          description: 'How much is set aside for the node.',
          $ref: '#/$defs/quantity'
        },
        limit: {
          title: 'Limit',
          description: 'How much it must not exceed.',
          $ref: '#/$defs/quantity'
        }
      },
      additionalProperties: false
    },
    resources: {
      title: 'Resources',
      type: 'object',
      properties: {
        cpu: {
          title: 'CPU',
          description: 'Cores: `2`, `0.5` or `500m`.',
          $ref: '#/$defs/amount'
        },
        memory: {
          title: 'Memory',
          description: 'Bytes: `512Mi`, `2Gi`.',
          $ref: '#/$defs/amount'
        },
        gpu: {
          title: 'GPU',
          description: 'How many GPUs, and of which type.',
          oneOf: [{ type: 'number', minimum: 0 }, { $ref: '#/$defs/gpu' }]
        },
        shared_memory: {
          title: 'Shared memory',
          description: 'The size of `/dev/shm`, which data loaders use.',
          $ref: '#/$defs/quantity'
        },
        ephemeral_storage: {
          title: 'Temporary disk',
          description: 'Disk space in the container.',
          $ref: '#/$defs/amount'
        }
      },
      additionalProperties: false
    },
    gpu: {
      title: 'GPUs',
      type: 'object',
      properties: {
        count: {
          title: 'Count',
          description: 'A fraction where GPUs are shared.',
          type: 'number',
          minimum: 0
        },
        type: {
          title: 'Type',
          description:
            'The product as the cluster names it, such as `NVIDIA-A100`.',
          type: 'string',
          minLength: 1
        },
        resource: {
          title: 'Resource name',
          description:
            'What the cluster calls the resource, such as `amd.com/gpu`.',
          type: 'string',
          minLength: 1,
          default: 'nvidia.com/gpu'
        }
      },
      additionalProperties: false
    },
    volume: {
      title: 'Volume',
      description: 'A volume claim, mounted at a path.',
      type: 'object',
      properties: {
        claim: {
          title: 'Claim',
          description: 'The name of the persistent volume claim.',
          type: 'string',
          minLength: 1
        },
        path: {
          title: 'Path',
          description: 'Where it appears, absolute.',
          type: 'string',
          minLength: 1
        },
        sub_path: {
          title: 'Sub-path',
          description: 'Only this folder of the volume.',
          type: 'string'
        },
        read_only: {
          title: 'Read-only',
          description: 'The node cannot change it.',
          type: 'boolean',
          default: false
        },
        size: {
          title: 'Size',
          description:
            'Make the claim for the run, of this size: all nodes that name it share it, no other run sees it, and it is deleted when the run ends. Without a size the claim has to exist.',
          oneOf: [
            { type: 'number', minimum: 0 },
            { type: 'string', format: 'quantity' }
          ]
        },
        mode: {
          title: 'Access mode',
          description:
            'Who can use the claim that is made: the pods of one node, or of many.',
          enum: ['ReadWriteOnce', 'ReadWriteMany', 'ReadWriteOncePod'],
          default: 'ReadWriteOnce'
        },
        storage_class: {
          title: 'Storage class',
          description:
            'Of the claim that is made. The default class of the cluster if it is missing.',
          type: 'string',
          minLength: 1
        }
      },
      required: ['claim', 'path'],
      additionalProperties: false
    },
    retries: {
      title: 'Retries',
      type: 'object',
      properties: {
        count: {
          title: 'Count',
          description: 'How often to try again.',
          type: 'integer',
          minimum: 0,
          default: 0
        },
        delay: {
          title: 'Delay',
          description: 'Seconds before the first retry.',
          type: 'number',
          minimum: 0,
          default: 1
        },
        factor: {
          title: 'Factor',
          description: 'Each further delay is this many times the one before.',
          type: 'number',
          minimum: 1,
          default: 2
        }
      },
      additionalProperties: false
    },
    dask: {
      title: 'Dask cluster',
      type: 'object',
      properties: {
        workers: {
          title: 'Workers',
          description:
            'How many workers the cluster has. The step starts when all of them are there.',
          type: 'integer',
          minimum: 1,
          maximum: 100000,
          default: 1
        },
        options: {
          title: 'Options',
          description:
            'Options of the Dask gateway, such as `worker_cores`: `convect dask options` lists them.',
          type: 'object',
          additionalProperties: true
        },
        wait: {
          title: 'Wait at most',
          description:
            'The step fails when the workers have not come within this time: seconds, or a text such as `30m`.',
          oneOf: [
            { type: 'number', minimum: 1 },
            { type: 'string', format: 'duration' }
          ],
          default: '10m'
        }
      },
      additionalProperties: false
    },
    distributed: {
      title: 'Distributed training',
      type: 'object',
      properties: {
        nodes: {
          title: 'Nodes',
          description: 'How many machines. The resources are those of each.',
          type: 'integer',
          minimum: 1,
          default: 1
        },
        min_nodes: {
          title: 'Fewest nodes',
          description:
            'On Kubernetes, begin with so many nodes when the others do not come, take in those that come later, and continue when nodes are lost. All processes start again with the new number of ranks each time.',
          type: 'integer',
          minimum: 1
        },
        processes: {
          title: 'Processes per node',
          description:
            'A number, `gpu` for one per GPU that the node asks for, or `cpu` for one per CPU.',
          oneOf: [
            { type: 'integer', minimum: 1 },
            { type: 'string', enum: ['gpu', 'cpu'] }
          ],
          default: 1
        },
        launcher: {
          title: 'Launcher',
          description:
            'What starts the processes: `torchrun`, `mpi` (mpirun), or `plain`, which only sets the environment variables (`RANK`, `WORLD_SIZE`, `MASTER_ADDR` and so on).',
          enum: ['plain', 'torchrun', 'mpi'],
          default: 'plain'
        },
        restarts: {
          title: 'Restarts',
          description:
            'How often all processes, on all nodes, start again in the same folder after one of them failed.',
          type: 'integer',
          minimum: 0,
          default: 0
        },
        outputs_from: {
          title: 'Outputs from',
          description:
            'The rank whose values and metrics are those of the step.',
          type: 'integer',
          minimum: 0,
          default: 0
        },
        hang_after: {
          title: 'Hangs after',
          description:
            'When no process has printed anything or used a CPU or GPU for this time, say so and write the Python stacks of all of them to the log: seconds, or a text such as `10m`. 0 means never.',
          oneOf: [
            { type: 'number', minimum: 0 },
            { type: 'string', format: 'duration' }
          ],
          'x-form': { placeholder: '10m' }
        },
        on_hang: {
          title: 'When it hangs',
          description:
            '`report` only says so. `stop` stops all processes as well, so that `restarts` or retries start them again.',
          enum: ['report', 'stop'],
          default: 'report'
        },
        operator: {
          title: 'Training operator',
          description:
            "What runs it on Kubernetes: the kind of an operator's object, `none` for a Job that needs no operator, or `auto`: with several nodes, the first of TrainJob and PyTorchJob that the cluster has (an MPIJob for `mpi`), otherwise a Job.",
          enum: ['auto', 'none', 'TrainJob', 'PyTorchJob', 'TFJob', 'MPIJob'],
          default: 'auto'
        },
        gang: {
          title: 'All nodes at once',
          description:
            'On Kubernetes, create its pods only when there is room for all of them at the same time, so that no pod holds GPUs while others wait. A queue of Kueue always does so.',
          type: 'boolean',
          default: false
        }
      },
      additionalProperties: false
    },
    kubernetes: {
      title: 'Kubernetes',
      type: 'object',
      properties: {
        node_selector: {
          title: 'Node selector',
          description: 'Labels that the machine must have.',
          type: 'object',
          additionalProperties: { type: 'string' },
          'x-form': { widget: 'pairs' }
        },
        tolerations: {
          title: 'Tolerations',
          description: 'Taints of machines that the pod accepts.',
          type: 'array',
          items: { $ref: '#/$defs/toleration' }
        },
        labels: {
          title: 'Labels',
          description: 'Labels of the pod.',
          type: 'object',
          additionalProperties: { type: 'string' },
          'x-form': { widget: 'pairs' }
        },
        annotations: {
          title: 'Annotations',
          description: 'Annotations of the pod.',
          type: 'object',
          additionalProperties: { type: 'string' },
          'x-form': { widget: 'pairs' }
        },
        priority: {
          title: 'Priority class',
          description: 'The name of a priority class.',
          type: 'string'
        },
        service_account: {
          title: 'Service account',
          description: 'The account that the pod acts as.',
          type: 'string'
        },
        pull_secrets: {
          title: 'Pull secrets',
          description: 'Secrets to pull the image from its registry.',
          type: 'array',
          items: { type: 'string', minLength: 1 }
        },
        resources: {
          title: 'Other resources',
          description:
            'Amounts of resources that only this cluster has, by name, such as `rdma/hca`.',
          type: 'object',
          additionalProperties: { type: 'string', format: 'quantity' },
          'x-form': { widget: 'pairs' }
        }
      },
      additionalProperties: false
    },
    toleration: {
      title: 'Toleration',
      description: 'A taint that the pod accepts.',
      type: 'object',
      properties: {
        key: {
          title: 'Key',
          description: "The taint's key. Every key if it is not set.",
          type: 'string'
        },
        operator: {
          title: 'Operator',
          description: '`Exists` ignores the value.',
          enum: ['Equal', 'Exists'],
          default: 'Equal'
        },
        value: {
          title: 'Value',
          description: "The taint's value.",
          type: 'string'
        },
        effect: {
          title: 'Effect',
          description: 'Every effect if it is not set.',
          enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
        },
        seconds: {
          title: 'Seconds',
          description: 'How long to stay after a `NoExecute` taint appears.',
          type: 'integer'
        }
      },
      additionalProperties: false
    },
    comment: {
      title: 'Comment',
      description: 'A note on the canvas.',
      type: 'object',
      properties: {
        text: {
          title: 'Text',
          description: 'What it says, in markdown.',
          type: 'string',
          'x-form': { widget: 'markdown' }
        },
        about: {
          title: 'About',
          description: 'Ids of the nodes that it belongs to.',
          type: 'array',
          items: { type: 'string' },
          uniqueItems: true
        },
        extra: { $ref: '#/$defs/free' }
      },
      required: ['text'],
      additionalProperties: false
    },
    place: {
      title: 'Place',
      description:
        '`[x, y]`, `[x, y, width, height]`, or an object when there is more to say.',
      oneOf: [
        { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 4 },
        { $ref: '#/$defs/spot' }
      ]
    },
    spot: {
      title: 'Place of a group',
      type: 'object',
      properties: {
        at: {
          title: 'At',
          description: '`[x, y]` or `[x, y, width, height]`.',
          type: 'array',
          items: { type: 'number' },
          minItems: 2,
          maxItems: 4
        },
        folded: {
          title: 'Folded',
          description: 'A group that shows as one box.',
          type: 'boolean',
          default: false
        }
      },
      required: ['at'],
      additionalProperties: false
    }
  }
} as const;
