import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICodeCell } from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { Kernel, KernelMessage } from '@jupyterlab/services';
import { MimeData } from '@lumino/coreutils';

/** Packages whose versions matter between a kernel and the workers of a cluster. */
const PACKAGES = [
  'dask',
  'distributed',
  'msgpack',
  'cloudpickle',
  'numpy',
  'pandas',
  'toolz',
  'lz4'
];
const VERSIONS = `__import__('json').dumps({'python': __import__('platform').python_version(), **{each.metadata['Name'].lower(): each.version for each in __import__('importlib.metadata').metadata.distributions() if (each.metadata['Name'] or '').lower() in ${JSON.stringify(PACKAGES)}}})`;

/** What notebooks take cells from when something is dropped on them. */
const CELLS = 'application/vnd.jupyter.cells';

/**
 * The code that connects a notebook with a cluster.
 *
 * It finds the name of the cluster by its id: whoever reads the name in a notebook could see the
 * cluster's dashboard.
 */
export function clientCode(id: string): string {
  return [
    'from hashlib import sha256',
    '',
    'from dask_gateway import Gateway',
    '',
    'gateway = Gateway()',
    'name = next(',
    '    each.name',
    '    for each in gateway.list_clusters()',
    `    if sha256(each.name.encode()).hexdigest().startswith(${JSON.stringify(id)})`,
    ')',
    'cluster = gateway.connect(name)',
    'client = cluster.get_client()',
    'client'
  ].join('\n');
}

/** The same as a cell that can be dropped on a notebook, or as text that can be dropped elsewhere. */
export function clientCell(id: string): MimeData {
  const source = clientCode(id);
  const cell: ICodeCell = {
    cell_type: 'code',
    source,
    metadata: { trusted: true },
    outputs: [],
    execution_count: null
  };
  const carried = new MimeData();
  carried.setData(CELLS, [cell]);
  carried.setData('text/plain', source);
  return carried;
}

/** The notebook that was used last, else one that is open. */
export function notebookOf(app: JupyterFrontEnd): NotebookPanel | null {
  const open: NotebookPanel[] = [];
  for (const widget of app.shell.widgets('main')) {
    if ('sessionContext' in widget && 'content' in widget) {
      const panel = widget as NotebookPanel;
      if (panel.context?.path?.endsWith('.ipynb')) {
        open.push(panel);
      }
    }
  }
  return open.find(panel => panel.isVisible) ?? open[0] ?? null;
}

/** Put code into a new cell of a notebook, below the one that is chosen. */
export async function insertCode(
  app: JupyterFrontEnd,
  panel: NotebookPanel,
  code: string
): Promise<void> {
  app.shell.activateById(panel.id);
  await app.commands.execute('notebook:insert-cell-below');
  await app.commands.execute('notebook:replace-selection', { text: code });
}

/** What a kernel of Python has installed; null when it does not tell. */
export async function versionsOf(
  kernel: Kernel.IKernelConnection | null | undefined
): Promise<Record<string, string> | null> {
  if (!kernel || kernel.status !== 'idle') {
    return null;
  }
  const { language_info: language } = (await kernel.info) ?? {};
  if (language?.name !== 'python') {
    return null;
  }
  const reply = await kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    user_expressions: { versions: VERSIONS }
  }).done;
  const { content } = reply as KernelMessage.IExecuteReplyMsg;
  const told = (content as KernelMessage.IExecuteReply).user_expressions
    ?.versions as { data?: Record<string, string> } | undefined;
  const text = told?.data?.['text/plain'];
  return text
    ? (JSON.parse(text.slice(1, -1)) as Record<string, string>)
    : null;
}
