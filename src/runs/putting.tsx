import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import '../../style/page.css';

import type { ConvectApi, IMadeFile } from '../api';
import { filesToPut, outcomeOfPutting } from './made';

const MOST_SHOWN = 12;

/** Put the files of a run into the project, once it is clear what that will do. */
export async function putFiles(
  api: ConvectApi,
  run: string,
  trans: TranslationBundle
): Promise<void> {
  const [view, made] = await Promise.all([api.run(run), api.made(run)]);
  const files = filesToPut(made, view.steps);
  if (files.length === 0) {
    Notification.info(trans.__('This run made no files.'), { autoClose: 5000 });
    return;
  }
  const answer = await showDialog({
    title: trans.__('Put the files of %1 into the project?', view.name),
    body: <WhatItDoes files={files} project={made.project} trans={trans} />,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Put into the project') })
    ]
  });
  if (!answer.button.accept) {
    return;
  }
  const result = await api.putFiles(run);
  const isWhole = Object.keys(result.kept).length === 0;
  Notification.emit(
    outcomeOfPutting(result, trans),
    isWhole ? 'success' : 'warning',
    { autoClose: isWhole ? 5000 : false }
  );
}

function WhatItDoes(props: {
  files: readonly IMadeFile[];
  project: string | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { files, project, trans } = props;
  const shown = files.slice(0, MOST_SHOWN);
  return (
    <div className="jp-ConvectRuns-putting">
      {project && <code>{project}</code>}
      <ul>
        {shown.map(({ path, change }) => (
          <li key={path}>
            <span className="jp-ConvectRuns-tag">
              {changeLabel(change, trans)}
            </span>
            {path}
          </li>
        ))}
      </ul>
      {files.length > shown.length && (
        <p>
          {trans._n(
            'and %1 more file',
            'and %1 more files',
            files.length - shown.length
          )}
        </p>
      )}
      <p>
        {trans.__(
          'A file that changed after the run was submitted stays as it is.'
        )}
      </p>
    </div>
  );
}

/** What a run did to a file. */
export function changeLabel(
  change: IMadeFile['change'],
  trans: TranslationBundle
): string {
  switch (change) {
    case 'created':
      return trans.__('New');
    case 'changed':
      return trans.__('Changed');
    case 'deleted':
      return trans.__('Deleted');
    case null:
      return trans.__('Output');
  }
}
