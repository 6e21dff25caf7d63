import { PathExt } from '@jupyterlab/coreutils';
import * as React from 'react';

import type { IConvectApi, IProblem } from '../api';
import { sentenceOf } from '../api';
import { Failure } from '../ui/inputs';
import { translated } from '../ui/sentences';
import { move, spreadOut } from './positions';
import { isOpenGroup } from './graph';
import { pipelineIcon } from './icons';
import type { IDocument } from './schema';
import { dumps } from './serialize';
import type { Session } from './session';

type Import = Awaited<ReturnType<IConvectApi['importPipeline']>>;

/** What becomes of an Elyra pipeline, before anything is written. */
export function ElyraPage({ session }: { session: Session }): JSX.Element {
  const { trans } = session;
  const [result, setResult] = React.useState<Import | null>(null);
  const [error, setError] = React.useState<string | null>(null);
  React.useEffect(() => {
    session.api
      .importPipeline({ path: session.context.localPath })
      .then(setResult, reason => setError(sentenceOf(reason)));
  }, [session]);

  const convert = async () => {
    try {
      await convertElyra(session, result!.document as unknown as IDocument);
    } catch (reason) {
      setError(sentenceOf(reason));
    }
  };
  const count = Object.keys(result?.document.nodes ?? {}).length;
  return (
    <div className="jp-Convect-notice">
      <pipelineIcon.react tag="div" className="jp-Convect-pageIcon" />
      <h2>{trans.__('This is an Elyra pipeline')}</h2>
      <Failure error={error} />
      {result && (
        <>
          <p>
            {trans._n(
              'Its %1 node can be edited and run here.',
              'Its %1 nodes can be edited and run here.',
              count
            )}{' '}
            {trans.__(
              'Saving writes the format of this editor; the original is kept beside it as %1.',
              PathExt.basename(backupPath(session.context.localPath))
            )}
          </p>
          <Report session={session} report={result.report} />
        </>
      )}
      <div className="jp-Convect-pageButtons">
        {result && (
          <button
            className="jp-mod-styled jp-mod-accept"
            onClick={() => void convert()}
          >
            {trans.__('Open in this editor')}
          </button>
        )}
        <button className="jp-mod-styled" onClick={() => session.openAsText()}>
          {trans.__('Open in the text editor')}
        </button>
      </div>
    </div>
  );
}

function Report(props: { session: Session; report: IProblem[] }): JSX.Element {
  const { trans } = props.session;
  if (props.report.length === 0) {
    return <p>{trans.__('Everything in it is kept.')}</p>;
  }
  return (
    <>
      <p>{trans.__('What changes:')}</p>
      <ul className="jp-Convect-report">
        {props.report.map((item, index) => (
          <li key={index} className={`jp-mod-${item.severity}`}>
            {item.node && <b>{item.node}: </b>}
            {translated(item.message, trans)}
            {item.hint && (
              <span className="jp-Convect-aside">
                {' '}
                {translated(item.hint, trans)}
              </span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function backupPath(path: string, count = 1): string {
  const suffix = PathExt.extname(path);
  const stem = path.slice(0, path.length - suffix.length);
  return `${stem}.elyra${count > 1 ? `-${count}` : ''}${suffix}`;
}

/** Keep the original beside, then take over the document, unsaved. */
async function convertElyra(
  session: Session,
  document: IDocument
): Promise<void> {
  const { contents, doc } = session;
  await contents.save(await freeBackup(session), {
    type: 'file',
    format: 'text',
    content: doc.getSource()
  });
  doc.setSource(dumps(document));
  const isOpen = (id: string) => isOpenGroup(session.document, id);
  const boxes = [...session.boxes].filter(([id]) => !isOpen(id));
  move(doc, spreadOut(new Map(boxes)));
  doc.dirty = true;
}

/** An earlier backup is never overwritten. */
async function freeBackup({ contents, context }: Session): Promise<string> {
  for (let count = 1; ; count++) {
    const path = backupPath(context.path, count);
    try {
      await contents.get(path, { content: false });
    } catch {
      return path;
    }
  }
}
