import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { Contents } from '@jupyterlab/services';
import type { IStateDB } from '@jupyterlab/statedb';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { IConvectApi, IRequest, ISelection } from '../api';
import { sentenceOf } from '../api';
import { CommandIDs } from '../commands';
import type { IRunsOpener } from '../tokens';
import { freePath } from '../ui/freepath';
import { isObject } from '../ui/json';
import { translated } from '../ui/sentences';
import type { Begun, IChoice, ISubject, IUnsaved } from './dialog';
import {
  choiceOf,
  documentOf,
  isNotebook,
  isParams,
  isPipeline,
  isScript,
  pipelineOf,
  RunDialog,
  RunForm
} from './dialog';
import type { IPreferences } from './preferences';

const MEMORY = 'jupyterlab-convect:choice';

/** What asking for a run needs of JupyterLab. */
export interface ILaunchContext {
  app: JupyterFrontEnd;
  api: IConvectApi;
  opener: IRunsOpener;
  documents: IDocumentManager;
  state: IStateDB | null;
  trans: TranslationBundle;
  /** What the form begins with where nothing is remembered. */
  preferences: () => Promise<IPreferences>;
}

/** A part of a pipeline, and the run whose results the rest is taken from. */
export interface IPart {
  select: ISelection;
  of?: string;
}

/** What somebody has chosen already: it goes before what is remembered. */
export interface IPreset {
  runtime: string;
  settings: JSONObject;
}

/** Ask how to run files, one or several as one pipeline; what has begun, if anything. */
export async function launchFiles(
  context: ILaunchContext,
  files: readonly string[],
  preset?: IPreset
): Promise<Begun | null> {
  const { app, trans } = context;
  const { contents } = app.serviceManager;
  const runnable = files
    .map(path => contents.localPath(path))
    .filter(path => isNotebook(path) || isScript(path) || isAlone(path));
  const refuse = (sentence: string) => {
    Notification.warning(sentence, { autoClose: 5000 });
    return null;
  };
  if (runnable.length === 0) {
    return refuse(
      trans.__('Open or select a notebook, a script or a pipeline first.')
    );
  }
  if (runnable.length === 1) {
    return report(async () =>
      ask(context, await subjectAt(context, runnable[0]), { preset })
    );
  }
  if (runnable.some(isAlone)) {
    return refuse(
      trans.__(
        'A pipeline runs by itself. Select one pipeline, or only notebooks and scripts.'
      )
    );
  }
  const title = trans._n('%1 file', '%1 files', runnable.length);
  const subject = { path: null, document: pipelineOf([], true), title };
  return ask(context, subject, { files: runnable, preset });
}

/** Ask again what a run was asked, and begin what is made of it. */
export async function launchLike(
  context: ILaunchContext,
  run: string
): Promise<Begun | null> {
  return report(async () => {
    const { request, name } = await context.api.run(run);
    const subject = await subjectOf(context, request, name);
    return ask(context, subject, { choice: choiceOf(request) });
  });
}

/**
 * Run a part of the pipeline that is in the editor as the run before was run. It
 * asks only for what that did not say, or when a notebook has to be saved first.
 */
export async function launchPart(
  context: ILaunchContext,
  path: string,
  { select, of }: IPart
): Promise<Begun | null> {
  return report(async () => {
    const whole = await subjectAt(context, path);
    const choice = of
      ? choiceOf((await context.api.run(of)).request)
      : undefined;
    const title = `${whole.title} › ${select.node}`;
    const subject = { ...whole, select, of, title };
    return ask(context, subject, { choice, isQuick: true });
  });
}

/** It is a pipeline of its own, and no node of another one. */
function isAlone(path: string): boolean {
  return isPipeline(path) || isParams(path);
}

async function report<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    Notification.error(sentenceOf(error), { autoClose: 8000 });
    return null;
  }
}

/** Show the form, begin what is chosen, and remember it; what has begun, if anything. */
async function ask(
  context: ILaunchContext,
  subject: ISubject,
  options: {
    choice?: IChoice;
    files?: readonly string[];
    preset?: IPreset;
    /** Begin at once when nothing is left to ask. */
    isQuick?: boolean;
  } = {}
): Promise<Begun | null> {
  const { api, app, state, trans } = context;
  const { choice, files, isQuick, preset } = options;
  const key = subject.path && `${MEMORY}:${subject.path}`;
  const remembered = key && !choice && (await state?.fetch(key));
  const changed = files ?? filesOf(subject);
  // It is disposed of below, whatever happens.
  // eslint-disable-next-line jupyter/require-disposable-ownership
  const form = new RunForm(api, subject, trans, {
    choice:
      choice ?? withPreset((remembered || null) as IChoice | null, preset),
    isRemembered: !choice,
    defaults: choice ? undefined : await context.preferences(),
    files,
    unsaved: unsaved(
      context.documents,
      isQuick ? changed.filter(path => path !== subject.path) : changed
    ),
    kernels: kernelsOf(app)
  });
  try {
    if (isQuick) {
      await form.ready;
      const begun =
        form.canRun && !form.hasUnsavedChanges ? await form.submit() : null;
      if (begun) {
        await show(context, begun, subject.path);
        return begun;
      }
    }
    const dialog = new RunDialog(form);
    const answer = await dialog.ask();
    dialog.dispose();
    if (answer && key) {
      const made = form.choice as unknown as ReadonlyPartialJSONValue;
      // What is remembered is a convenience: the run has begun.
      await state?.save(key, made).catch(console.warn);
    }
    if (answer && 'begun' in answer) {
      await show(context, answer.begun, subject.path);
      return answer.begun;
    }
    if (answer) {
      await saveAsPipeline(app, form);
    }
    return null;
  } finally {
    form.dispose();
  }
}

/** What is remembered with what is chosen already. */
export function withPreset(
  remembered: Partial<IChoice> | null,
  preset: IPreset | undefined
): Partial<IChoice> | null {
  if (!preset) {
    return remembered;
  }
  const { runtime, settings } = preset;
  const options = remembered?.runtime === runtime ? remembered.options : {};
  return {
    ...remembered,
    runtime,
    options,
    settings: { ...remembered?.settings, ...settings }
  };
}

/** A file as it is run: a pipeline as it is in its editor, if it has changed there. */
async function subjectAt(
  context: ILaunchContext,
  path: string
): Promise<ISubject> {
  const title = PathExt.basename(path);
  if (isParams(path)) {
    return { path, title, ...(await converted(context, path)) };
  }
  if (!isPipeline(path)) {
    return { path, document: null, title };
  }
  const document = pipelineInEditor(context.documents, path);
  if (document) {
    return { path, document, content: document, isInEditor: true, title };
  }
  const text = await textAt(context.app.serviceManager.contents, path);
  if (isElyra(text)) {
    return { path, title, ...(await converted(context, path)) };
  }
  const content = pipelineIn(text);
  return { path, document: null, content, isInEditor: false, title };
}

/** What is wrong with a file that cannot be read is said when it is asked for its parameters. */
async function textAt(contents: Contents.IManager, path: string) {
  const file = await contents
    .get(path, { type: 'file', format: 'text' })
    .catch(() => null);
  return String(file?.content ?? '');
}

export function isElyra(text: string): boolean {
  const content = objectIn(text);
  return content !== null && !('convect' in content) && 'pipelines' in content;
}

/** A file of another program runs as what it is converted to, and stays as it is. */
async function converted(
  { api, trans }: ILaunchContext,
  path: string
): Promise<Pick<ISubject, 'document' | 'content' | 'notes'>> {
  const { document, report } = await api.importPipeline({ path });
  const notes = report.map(({ message }) => translated(message, trans));
  return { document, content: document, notes };
}

/** The files that are open and have changed, and how to save them. */
export function unsaved(
  documents: IDocumentManager,
  files: readonly string[]
): IUnsaved | undefined {
  const changed = [...new Set(files)]
    .map(path => documents.findWidget(path))
    .map(widget => widget && documents.contextForWidget(widget))
    .filter(context => !!context)
    .filter(context => context.model.dirty);
  return changed.length > 0
    ? {
        names: changed.map(context => PathExt.basename(context.path)),
        save: async () => {
          await Promise.all(changed.map(context => context.save()));
        }
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
  return pipelineIn(model.toString());
}

function pipelineIn(text: string): JSONObject | null {
  const content = objectIn(text);
  return content && 'convect' in content ? content : null;
}

function objectIn(text: string): JSONObject | null {
  try {
    const content: unknown = JSON.parse(text);
    return isObject(content) ? content : null;
  } catch {
    return null;
  }
}

/** The file itself, and those of its nodes. */
export function filesOf({ path, document, content }: ISubject): string[] {
  const folder = PathExt.dirname(path ?? '');
  const { nodes } = document ?? content ?? {};
  const paths = Object.values(isObject(nodes) ? nodes : {})
    .map(node => (isObject(node) ? node.path : null))
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
async function saveAsPipeline(
  { commands, serviceManager }: JupyterFrontEnd,
  { subject, outcome, parameters }: RunForm
): Promise<void> {
  const { contents } = serviceManager;
  await report(async () => {
    const document = documentOf(subject, outcome, parameters);
    const path = await freePath(contents, pipelinePath(subject));
    await commands.execute(CommandIDs.createPipeline, {
      path,
      document: JSON.stringify(document)
    });
  });
}

async function subjectOf(
  context: ILaunchContext,
  request: IRequest,
  name: string
): Promise<ISubject> {
  const path = request.path ?? null;
  const content =
    path && isPipeline(path) && !request.document
      ? pipelineIn(await textAt(context.app.serviceManager.contents, path))
      : null;
  return {
    path,
    document: request.document ?? null,
    content,
    isAgain: true,
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
