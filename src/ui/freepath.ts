import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';

/** The path itself, or one like it with a number, that no file has yet. */
export async function freePath(
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
