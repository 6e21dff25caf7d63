import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { IDefaultFileBrowser } from '@jupyterlab/filebrowser';

const RUNNABLE = /\.(ipynb|py|r|sh|pipeline)$/i;

/** The file that can be run and is named, selected in the file browser, or in sight. */
export function fileMeant(
  app: JupyterFrontEnd,
  browser: IDefaultFileBrowser | null,
  documents: IDocumentManager,
  named: unknown
): string | null {
  const path = named ? String(named) : (inBrowser() ?? inSight());
  const file = path && app.serviceManager.contents.localPath(path);
  return file && RUNNABLE.test(file) ? file : null;

  function inBrowser(): string | undefined {
    const item = app.contextMenuHitTest(node =>
      node.classList.contains('jp-DirListing-item')
    );
    return item && browser?.selectedItems().next().value?.path;
  }

  function inSight(): string | undefined {
    const current = app.shell.currentWidget;
    return (current && documents.contextForWidget(current)?.path) ?? undefined;
  }
}
