import { PathExt } from '@jupyterlab/coreutils';
import { FileDialog } from '@jupyterlab/filebrowser';

import { isRunnable } from '../ids';
import type { Session } from '../session';

/** Let the user choose files or a folder; paths as the document writes them. */
export async function pickFiles(
  session: Session,
  options: {
    several?: boolean;
    folder?: boolean;
    runnable?: boolean;
    /** The folder, on the server, that the paths should be relative to. */
    from?: string;
  } = {}
): Promise<string[]> {
  const { docManager, folder, trans } = session;
  const result = options.folder
    ? await FileDialog.getExistingDirectory({
        manager: docManager,
        title: trans.__('Choose a folder'),
        defaultPath: folder
      })
    : await FileDialog.getOpenFiles({
        manager: docManager,
        title: options.several
          ? trans.__('Choose files')
          : trans.__('Choose a file'),
        defaultPath: folder,
        filter: item =>
          !options.runnable ||
          item.type === 'directory' ||
          isRunnable(item.path)
            ? {}
            : null
      });
  if (!result.button.accept || !result.value) {
    return [];
  }
  return result.value.map(item =>
    PathExt.relative(
      options.from ?? folder,
      session.contents.localPath(item.path)
    )
  );
}
