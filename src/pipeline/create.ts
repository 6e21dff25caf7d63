import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';

import { WIDTH } from './boxes';
import { nodeForFile } from './actions';
import { freeId } from './edits';
import { FACTORY, isRunnable, SUFFIX } from './ids';
import type { IDocument } from './schema';
import { VERSION } from './schema';
import { dumps } from './serialize';

/** An empty pipeline. */
export function emptyDocument(name: string): IDocument {
  return { convect: VERSION, name, nodes: {}, layout: {} };
}

/** The files one after the other, in the order given, from left to right. */
export function chainOf(
  name: string,
  files: readonly string[],
  folder: string
): IDocument {
  const document = emptyDocument(name);
  const layout: { [id: string]: number[] } = {};
  let before: string | null = null;
  for (const file of files.filter(isRunnable)) {
    const path = PathExt.relative(folder, file);
    const { id: wish, node } = nodeForFile(path);
    const id = freeId(item => item in document.nodes, wish);
    document.nodes[id] =
      before === null ? node : ({ ...node, after: [before] } as typeof node);
    layout[id] = [Object.keys(layout).length * (WIDTH + 80), 0];
    before = id;
  }
  return { ...document, layout };
}

/** Write a new file under a free name, and open it. */
export async function createPipeline(
  docManager: IDocumentManager,
  folder: string,
  make: (name: string) => IDocument
): Promise<ReturnType<IDocumentManager['openOrReveal']>> {
  const { contents } = docManager.services;
  const file = await contents.newUntitled({
    path: folder,
    type: 'file',
    ext: SUFFIX
  });
  const name = PathExt.basename(file.path, SUFFIX);
  return writePipeline(docManager, file.path, make(name));
}

/** Write a file as the editor does, and open it. */
export async function writePipeline(
  docManager: IDocumentManager,
  path: string,
  document: IDocument
): Promise<ReturnType<IDocumentManager['openOrReveal']>> {
  const content = dumps(document);
  const file = { type: 'file', format: 'text', content } as const;
  await docManager.services.contents.save(path, file);
  return docManager.openOrReveal(path, FACTORY);
}
