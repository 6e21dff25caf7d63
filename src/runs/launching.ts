import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { Contents } from '@jupyterlab/services';
import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { ConvectApi, IRequest } from '../api';
import { sentenceOf } from '../api';
import type { IRunsOpener } from '../tokens';
import type { Begun, IChoice, ISubject } from './dialog';
import {
  choiceOf,
  documentOf,
  isNotebook,
  isPipeline,
  isScript,
  pipelineOf,
  RunDialog,
  RunForm
} from './dialog';

const MEMORY = 'jupyterlab-convect:choice';

/** What asking for a run needs of JupyterLab. */
export interface ILaunchContext {
  app: JupyterFrontEnd;
  api: ConvectApi;
  opener: IRunsOpener;
  documents: IDocumentManager;
  state: IStateDB | null;
  trans: TranslationBundle;
}

/** Ask how to run files, one or several as one pipeline; what has begun, if anything. */
export async function launchFiles(
  context: ILaunchContext,
  files: readonly string[]
): Promise<Begun | null> {
  const { app, trans } = context;
  const { contents } = app.serviceManager;
  const runnable = files
    .map(path => contents.localPath(path))
    .filter(path => isNotebook(path) || isScript(path) || isPipeline(path));
  if (runnable.length === 0) {
    Notification.warning(
      trans.__('Open or select a notebook, a script or a pipeline first.'),
      { autoClose: 5000 }
    );
    return null;
  }
  if (runnable.length === 1) {
    const [path] = runnable;
    const title = PathExt.basename(path);
    const document = isPipeline(path)
      ? pipelineInEditor(context.documents, path)
      : null;
    return ask(context, {
      path,
      document,
      isInEditor: document !== null,
      title
    });
  }
  const title = trans._n('%1 file', '%1 files', runnable.length);
  const nodes = runnable.filter(path => !isPipeline(path));
  const document = pipelineOf(title, nodes);
  return ask(context, { path: null, document, title });
}

/** Ask again what a run was asked, and begin what is made of it. */
export async function launchLike(
  context: ILaunchContext,
  run: string
): Promise<void> {
  try {
    const { request, name } = await context.api.run(run);
    const subject = { ...subjectOf(request, name), isAgain: true };
    await ask(context, subject, choiceOf(request));
  } catch (error) {
    Notification.error(sentenceOf(error), { autoClose: 8000 });
  }
}

/** Show the form, begin what is chosen, and remember it; what has begun, if anything. */
async function ask(
  context: ILaunchContext,
  subject: ISubject,
  given?: IChoice
): Promise<Begun | null> {
  const { api, state, trans } = context;
  const key = subject.path && `${MEMORY}:${subject.path}`;
  const remembered = key && !given && (await state?.fetch(key));
  const form = new RunForm(api, subject, trans, {
    choice: given ?? ((remembered || null) as IChoice | null),
    save: unsaved(context.documents, filesOf(subject)),
    kernels: kernelsOf(context.app)
  });
  const dialog = new RunDialog(form);
  const answer = await dialog.ask();
  dialog.dispose();
  if (answer && key) {
    const choice = form.choice as unknown as ReadonlyPartialJSONValue;
    await state?.save(key, choice);
  }
  if (answer && 'begun' in answer) {
    await show(context, answer.begun, subject.path);
  } else if (answer) {
    await showAsPipeline(context.app, form);
  }
  form.dispose();
  return answer && 'begun' in answer ? answer.begun : null;
}

/** How to save the files that are open and have changed; undefined when none has. */
function unsaved(
  documents: IDocumentManager,
  files: readonly string[]
): (() => Promise<void>) | undefined {
  const changed = files
    .map(path => documents.findWidget(path))
    .map(widget => widget && documents.contextForWidget(widget))
    .filter(context => context?.model.dirty);
  return changed.length > 0
    ? async () => {
        await Promise.all(changed.map(context => context?.save()));
      }
    : undefined;
}

/** A pipeline as it is in its editor, if it has changed there. */
export function pipelineInEditor(
  documents: IDocumentManager,
  path: string
): JSONObject | null {
  const widget = documents.findWidget(path);
  const model = widget && documents.contextForWidget(widget)?.model;
  if (!model?.dirty) {
    return null;
  }
  try {
    const content = JSON.parse(model.toString());
    return typeof content === 'object' && content && 'convect' in content
      ? (content as JSONObject)
      : null;
  } catch {
    return null;
  }
}

function filesOf({ path, document }: ISubject): string[] {
  const folder = PathExt.dirname(path ?? '');
  const nodes = Object.values((document?.nodes ?? {}) as JSONObject);
  const paths = nodes
    .map(node => (node as JSONObject).path)
    .filter(file => typeof file === 'string')
    .map(file => PathExt.join(folder, file));
  return path === null ? paths : [path, ...paths];
}

/** The kernels of the server, the default one first. */
function kernelsOf(app: JupyterFrontEnd): string[] {
  const { specs } = app.serviceManager.kernelspecs;
  const names = Object.keys(specs?.kernelspecs ?? {});
  return specs
    ? [specs.default, ...names.filter(name => name !== specs.default)]
    : [];
}

/** Show it, unless its editor is in sight, which shows it by itself. */
async function show(
  { opener, documents }: ILaunchContext,
  begun: Begun,
  path: string | null
): Promise<void> {
  const editor = path && isPipeline(path) ? documents.findWidget(path) : null;
  await opener.showBegun(begun, { isShown: editor?.isVisible });
}

/** Keep what the form says as a file next to the source, and open it. */
async function showAsPipeline(
  { commands, serviceManager }: JupyterFrontEnd,
  { subject, outcome, parameters }: RunForm
): Promise<void> {
  const { contents } = serviceManager;
  try {
    let path = subject.path ?? '';
    if (!isPipeline(path)) {
      const content = documentOf(subject, outcome, parameters);
      path = await freePath(contents, pipelinePath(subject));
      await contents.save(path, {
        type: 'file',
        format: 'text',
        content: `${JSON.stringify(content, null, 2)}\n`
      });
    }
    await commands.execute('docmanager:open', { path });
  } catch (error) {
    Notification.error(sentenceOf(error));
  }
}

function subjectOf(request: IRequest, name: string): ISubject {
  const path = request.path ?? null;
  return {
    path,
    document: request.document ?? null,
    title: path ? PathExt.basename(path) : name
  };
}

function pipelinePath({ path, title }: ISubject): string {
  if (!path) {
    return `${title}.pipeline`;
  }
  const stem = PathExt.basename(path, PathExt.extname(path));
  return PathExt.join(PathExt.dirname(path), `${stem}.pipeline`);
}

/** The path itself, or one like it with a number, that no file has yet. */
async function freePath(
  contents: Contents.IManager,
  path: string
): Promise<string> {
  const folder = await contents.get(PathExt.dirname(path));
  const taken = new Set(
    (folder.content as Contents.IModel[]).map(item => item.name)
  );
  const extension = PathExt.extname(path);
  const stem = path.slice(0, path.length - extension.length);
  let free = path;
  for (let number = 2; taken.has(PathExt.basename(free)); number += 1) {
    free = `${stem}-${number}${extension}`;
  }
  return free;
}
