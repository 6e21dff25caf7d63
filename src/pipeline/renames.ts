import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import { sentenceOf } from '../api';
import { isAtOrIn, resolvePath } from './files';
import { isRunnable, SUFFIX } from './ids';
import type { PipelineDoc } from './model';
import type { IDocument } from './schema';
import { dumps, parse } from './serialize';

/** An open pipeline. */
export interface IOpenPipeline {
  path: string;
  doc: PipelineDoc;
}

/** Pipelines that nobody has open are looked for among this many files. */
const LIMIT = 50;

/**
 * The nodes that name a file that was moved, with the path they should have.
 * Moving the pipeline itself is no reason to change it here: its files stay.
 */
export function movedPaths(
  document: IDocument,
  pipeline: string,
  from: string,
  to: string
): Map<string, string> {
  const folder = PathExt.dirname(pipeline);
  const changes = new Map<string, string>();
  for (const [id, node] of Object.entries(document.nodes)) {
    const place = 'path' in node ? resolvePath(folder, node.path) : null;
    if (place !== null && isAtOrIn(place, from)) {
      const moved = to + place.slice(from.length);
      changes.set(id, PathExt.relative(folder, moved));
    }
  }
  return changes;
}

/** Offer to follow when the file that was renamed is one that pipelines use. */
export async function followRename(
  contents: Contents.IManager,
  { oldValue, newValue }: Contents.IChangedArgs,
  open: IOpenPipeline[],
  trans: TranslationBundle
): Promise<void> {
  const [from, to] = [oldValue?.path, newValue?.path];
  const isFolder = newValue?.type === 'directory';
  if (from && to && (isFolder || isRunnable(from))) {
    await offer(contents, open, from, to, trans).catch(tell);
  }
}

function tell(error: unknown): void {
  Notification.error(sentenceOf(error));
}

interface IAffected {
  path: string;
  count: number;
  update: () => Promise<void> | void;
}

async function offer(
  contents: Contents.IManager,
  open: IOpenPipeline[],
  from: string,
  to: string,
  trans: TranslationBundle
): Promise<void> {
  const affected = [
    ...open.flatMap(item => affectedOpen(item, from, to)),
    ...(await affectedClosed(contents, open, from, to))
  ];
  if (affected.length === 0) {
    return;
  }
  const names = affected.map(item => PathExt.basename(item.path)).join(', ');
  Notification.info(
    trans._n(
      '%2 uses %3, which is now %4.',
      '%1 pipelines (%2) use %3, which is now %4.',
      affected.length,
      names,
      PathExt.basename(from),
      PathExt.basename(to)
    ),
    {
      autoClose: false,
      actions: [
        {
          label: trans._n(
            'Update the pipeline',
            'Update the pipelines',
            affected.length
          ),
          callback: () => {
            for (const item of affected) {
              Promise.resolve(item.update()).catch(tell);
            }
          }
        }
      ]
    }
  );
}

function affectedOpen(
  { path, doc }: IOpenPipeline,
  from: string,
  to: string
): IAffected[] {
  const changes = movedPaths(doc.snapshot, path, from, to);
  return changes.size === 0
    ? []
    : [
        {
          path,
          count: changes.size,
          update: () =>
            doc.edit(draft => {
              for (const [id, moved] of changes) {
                draft.set(['nodes', id, 'path'], moved);
              }
            })
        }
      ];
}

/** Pipelines in the folders of the file, before and after. */
async function affectedClosed(
  contents: Contents.IManager,
  open: IOpenPipeline[],
  from: string,
  to: string
): Promise<IAffected[]> {
  const folders = new Set([PathExt.dirname(from), PathExt.dirname(to)]);
  const files: string[] = [];
  for (const folder of folders) {
    try {
      const { content } = await contents.get(folder);
      for (const item of content as Contents.IModel[]) {
        if (item.path.endsWith(SUFFIX)) {
          files.push(item.path);
        }
      }
    } catch {
      // A folder that is gone has no pipelines.
    }
  }
  const isOpen = (path: string) => open.some(item => item.path === path);
  const found = await Promise.all(
    files
      .filter(path => !isOpen(path))
      .slice(0, LIMIT)
      .map(path => affectedFile(contents, path, from, to))
  );
  return found.flat();
}

async function affectedFile(
  contents: Contents.IManager,
  path: string,
  from: string,
  to: string
): Promise<IAffected[]> {
  const read = async () => {
    const file = await contents.get(path, {
      type: 'file',
      format: 'text',
      content: true
    });
    return parse(String(file.content)).document ?? null;
  };
  const document = await read().catch(() => null);
  const count = document ? movedPaths(document, path, from, to).size : 0;
  const update = async () => {
    // It may have changed since it was looked at.
    const now = await read();
    if (now) {
      const nodes = { ...now.nodes };
      for (const [id, moved] of movedPaths(now, path, from, to)) {
        nodes[id] = { ...nodes[id], path: moved } as (typeof nodes)[string];
      }
      await contents.save(path, {
        type: 'file',
        format: 'text',
        content: dumps({ ...now, nodes })
      });
    }
  };
  return count ? [{ path, count, update }] : [];
}
