import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { JSONObject } from '@lumino/coreutils';

import { sentenceOf } from '../api';
import type { Session } from './session';

/** Hand a file to the browser, under the name of the pipeline. */
export function download(session: Session, file: Blob, suffix: string): void {
  const stem = PathExt.basename(session.context.localPath, '.pipeline');
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = `${stem}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Download the pipeline, as it is now, as one that Kubeflow Pipelines takes. */
export async function exportToKfp(session: Session): Promise<void> {
  try {
    const { text } = await session.api.exportPipeline({
      to: 'kfp',
      path: session.context.localPath,
      document: session.document as unknown as JSONObject
    });
    download(session, new Blob([text], { type: 'application/yaml' }), 'yaml');
  } catch (error) {
    Notification.error(sentenceOf(error), { autoClose: false });
  }
}
