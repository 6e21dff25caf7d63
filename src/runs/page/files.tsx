import { downloadIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IConvectApi, IMadeFile, IMadeFiles, IRunView } from '../../api';
import { fileOperation, sentenceOf } from '../../api';
import { CommandIDs } from '../../commands';
import type { Execute } from '../../ui';
import { Action, formatSize, isLive, translated, useTrans } from '../../ui';
import { fatesOf } from '../made';
import { changeLabel } from '../putting';

/** The files that are shown at first; each time somebody asks, many times more. */
const PAGE = 200;
const MORE = 5;
/** What one request gives at most. */
const MOST = 1000;

/** The files of a run: those of the step that is looked at first. */
export function Files(props: {
  api: IConvectApi;
  view: IRunView;
  step: string;
  execute: Execute;
}): JSX.Element | null {
  const { api, view, step, execute } = props;
  const trans = useTrans();
  const { made, error, more } = useMade(api, view, step);
  if (error) {
    return (
      <div className="jp-Convect-hint">
        {translated(sentenceOf(error), trans)}
      </div>
    );
  }
  if (!made) {
    return null;
  }
  if (made.files.length === 0) {
    return (
      <div className="jp-Convect-hint">
        {isLive(view.state)
          ? trans.__('The files that a step made are here once it has ended.')
          : trans.__('This run made no files.')}
      </div>
    );
  }
  const own = made.files.filter(file => file.step === step);
  const others = made.files.filter(file => file.step !== step);
  const left = made.total - made.files.length;
  const table = (files: readonly IMadeFile[], named: boolean) => (
    <Table
      files={files}
      made={made}
      view={view}
      named={named}
      api={api}
      execute={execute}
    />
  );
  return (
    <div className="jp-Convect-files">
      {made.to_put > 0 && (
        <div className="jp-Convect-filesBar">
          <Action
            wide
            label={
              made.put.length < made.to_put
                ? trans.__('Put these files into the project')
                : trans.__('Put these files into the project again')
            }
            title={
              isLive(view.state)
                ? trans.__('The run has not ended yet.')
                : undefined
            }
            disabled={isLive(view.state)}
            onClick={() => execute(CommandIDs.putFiles, { run: view.id })}
          />
          {made.project && <code title={made.project}>{made.project}</code>}
        </div>
      )}
      {own.length > 0 && table(own, false)}
      {others.length > 0 && (
        <>
          <h4>{trans.__('Files of other steps')}</h4>
          {table(others, true)}
        </>
      )}
      {left > 0 && (
        <button className="jp-Convect-link" onClick={more}>
          {trans._n('Show %1 more file', 'Show %1 more files', left)}
        </button>
      )}
    </div>
  );
}

function Table(props: {
  files: readonly IMadeFile[];
  made: IMadeFiles;
  view: IRunView;
  /** Whether to say which step a file is of. */
  named: boolean;
  api: IConvectApi;
  execute: Execute;
}): JSX.Element {
  const { files, made, view, named, api, execute } = props;
  const trans = useTrans();
  const fateOf = fatesOf(made, trans);
  return (
    <table className="jp-Convect-table">
      <tbody>
        {files.map(file => (
          <tr key={`${file.step} ${file.path}`} data-file={file.path}>
            <td>
              <Name file={file} run={view.id} execute={execute} />
            </td>
            {named && <td>{file.step}</td>}
            <td>{changeLabel(file.change, trans)}</td>
            <td className="jp-Convect-digits">
              {file.size !== undefined && formatSize(file.size)}
            </td>
            <td className="jp-Convect-fate">{fateOf(file)}</td>
            <td>
              {file.file !== null && (
                <a
                  className="jp-Convect-download"
                  href={api.url(...fileOperation(view.id, file))}
                  download={nameOf(file)}
                  title={trans.__('Download')}
                  aria-label={trans.__('Download %1', file.path)}
                >
                  <downloadIcon.react tag="span" />
                </a>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Opens the file as the run left it; what is gone has only a name. */
function Name(props: {
  file: IMadeFile;
  run: string;
  execute: Execute;
}): JSX.Element {
  const { file, run, execute } = props;
  const trans = useTrans();
  if (file.file === null) {
    return <>{file.path}</>;
  }
  const { step, attempt, size } = file;
  return (
    <button
      className="jp-Convect-link"
      title={trans.__('Open the file as the run left it')}
      onClick={() =>
        execute(CommandIDs.openFile, {
          run,
          step,
          attempt,
          file: file.file,
          size
        })
      }
    >
      {file.path}
    </button>
  );
}

function nameOf({ path }: IMadeFile): string | undefined {
  return path.split('/').pop();
}

/** What a run has made, asked for again whenever a step of it has ended. */
function useMade(
  api: IConvectApi,
  view: IRunView,
  step: string
): { made: IMadeFiles | null; error: unknown; more: () => void } {
  const { id, state, files, steps_done: done } = view;
  const [limit, setLimit] = React.useState(PAGE);
  const [made, setMade] = React.useState<IMadeFiles | null>(null);
  const [error, setError] = React.useState<unknown>(null);
  React.useEffect(() => {
    let current = true;
    madeUpTo(api, id, step, limit).then(
      found => {
        if (current) {
          setMade(found);
          setError(null);
        }
      },
      reason => current && setError(reason)
    );
    return () => {
      current = false;
    };
  }, [api, id, step, limit, state, files, done]);
  return { made, error, more: () => setLimit(limit * MORE) };
}

/** The first files of a run, with as many requests as that takes. */
async function madeUpTo(
  api: IConvectApi,
  run: string,
  step: string,
  limit: number
): Promise<IMadeFiles> {
  const first = await api.made(run, { step, limit: Math.min(limit, MOST) });
  const files = [...first.files];
  while (files.length < Math.min(limit, first.total)) {
    const offset = files.length;
    const page = await api.made(run, { step, offset, limit: MOST });
    if (page.files.length === 0) {
      break;
    }
    files.push(...page.files);
  }
  return { ...first, files };
}
