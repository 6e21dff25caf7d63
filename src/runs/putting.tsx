import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import '../../style/page.css';

import type { IConvectApi, IMadeFiles } from '../api';
import { sentenceOf } from '../api';
import { translated } from '../ui';
import type { IFileChange } from './made';
import { outcomeOfPutting, spared } from './made';

const MOST_SHOWN = 12;

/** Put the files of a run into the project, once it is clear what that will do. */
export async function putFiles(
  api: IConvectApi,
  run: string,
  trans: TranslationBundle
): Promise<void> {
  const asked = { to_put: true, limit: MOST_SHOWN };
  const [view, made] = await Promise.all([api.run(run), api.made(run, asked)]);
  if (made.to_put === 0) {
    Notification.info(trans.__('This run made no files.'), { autoClose: 5000 });
    return;
  }
  const isWanted = await agrees({
    title: trans.__('Put the files of %1 into the project?', view.name),
    body: (
      <WhatItDoes
        files={made.files}
        count={made.to_put}
        project={made.project}
        trans={trans}
      >
        {trans.__(
          'A file that changed after the run was submitted stays as it is.'
        )}
      </WhatItDoes>
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Put them into the project') })
    ]
  });
  if (isWanted) {
    tell(api, run, await api.putFiles(run), trans);
  }
}

async function agrees(
  options: Partial<Dialog.IOptions<unknown>>
): Promise<boolean> {
  return (await showDialog(options)).button.accept;
}

/** Say what came of it; what was spared can still be replaced. */
function tell(
  api: IConvectApi,
  run: string,
  made: IMadeFiles,
  trans: TranslationBundle
): void {
  const isWhole = Object.keys(made.kept).length === 0;
  const again = () => {
    replaceFiles(api, run, made, trans).catch(error =>
      Notification.error(translated(sentenceOf(error), trans))
    );
  };
  Notification.emit(
    outcomeOfPutting(made, trans),
    isWhole ? 'success' : 'warning',
    {
      autoClose: isWhole ? 5000 : false,
      actions:
        spared(made).length > 0
          ? [{ label: trans.__('Replace…'), callback: again }]
          : []
    }
  );
}

/** Put also those files that would replace what somebody has changed since. */
async function replaceFiles(
  api: IConvectApi,
  run: string,
  made: IMadeFiles,
  trans: TranslationBundle
): Promise<void> {
  const files = spared(made);
  const isWanted = await agrees({
    title: trans.__('Replace what is in the project?'),
    body: (
      <WhatItDoes
        files={files}
        count={files.length}
        project={made.project}
        trans={trans}
      >
        {trans.__('What these files contain now is lost.')}
      </WhatItDoes>
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Replace') })
    ],
    defaultButton: 0
  });
  if (isWanted) {
    tell(api, run, await api.putFiles(run, { replace: true }), trans);
  }
}

function WhatItDoes(props: {
  files: readonly IFileChange[];
  /** How many there are; not all of them need to be in `files`. */
  count: number;
  project: string | null;
  trans: TranslationBundle;
  children: string;
}): JSX.Element {
  const { files, count, project, trans, children } = props;
  const shown = files.slice(0, MOST_SHOWN);
  return (
    <div className="jp-Convect-putting">
      {project && <code>{project}</code>}
      <ul>
        {shown.map(({ path, change }) => (
          <li key={path}>
            <span className="jp-Convect-tag">{changeLabel(change, trans)}</span>
            {path}
          </li>
        ))}
      </ul>
      {count > shown.length && (
        <p>
          {trans._n(
            'and %1 more file',
            'and %1 more files',
            count - shown.length
          )}
        </p>
      )}
      <p>{children}</p>
    </div>
  );
}

/** What a run did to a file. */
export function changeLabel(
  change: IFileChange['change'],
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
