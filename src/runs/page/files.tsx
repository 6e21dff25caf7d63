import { downloadIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ConvectApi, IMadeFile, IMadeFiles, IRunView } from '../../api';
import { sentenceOf } from '../../api';
import { CommandIDs } from '../../commands';
import type { Execute } from '../../ui';
import { formatSize, isLive, translated, useTrans } from '../../ui';
import { fatesOf, filesToPut } from '../made';
import { changeLabel } from '../putting';
import { Action } from './header';

/** The most files that are drawn before somebody asks for all of them. */
const MOST_SHOWN = 200;

/** The files of a run: those of the step that is looked at first. */
export function Files(props: {
  api: ConvectApi;
  view: IRunView;
  step: string;
  execute: Execute;
}): JSX.Element | null {
  const { api, view, step, execute } = props;
  const trans = useTrans();
  const { made, error } = useMade(api, view.id, view.seq);
  if (error) {
    return (
      <div className="jp-ConvectRuns-hint">
        {translated(sentenceOf(error), trans)}
      </div>
    );
  }
  if (!made) {
    return null;
  }
  if (made.files.length === 0) {
    return (
      <div className="jp-ConvectRuns-hint">
        {isLive(view.state)
          ? trans.__('The files that a step made are here once it has ended.')
          : trans.__('This run made no files.')}
      </div>
    );
  }
  const own = made.files.filter(file => file.step === step);
  const others = made.files.filter(file => file.step !== step);
  const canPut = filesToPut(made, view.steps).length > 0;
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
    <div className="jp-ConvectRuns-files">
      {canPut && (
        <div className="jp-ConvectRuns-files-bar">
          <Action
            wide
            label={trans.__('Put these files into the project')}
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
    </div>
  );
}

function Table(props: {
  files: readonly IMadeFile[];
  made: IMadeFiles;
  view: IRunView;
  /** Whether to say which step a file is of. */
  named: boolean;
  api: ConvectApi;
  execute: Execute;
}): JSX.Element {
  const { files, made, view, named, api, execute } = props;
  const trans = useTrans();
  const [all, setAll] = React.useState(false);
  const fateOf = fatesOf(made, view.steps, trans);
  const shown = all ? files : files.slice(0, MOST_SHOWN);
  return (
    <>
      <table className="jp-ConvectRuns-table">
        <tbody>
          {shown.map(file => (
            <tr key={`${file.step} ${file.path}`} data-file={file.path}>
              <td>
                <Name file={file} run={view.id} execute={execute} />
              </td>
              {named && <td>{file.step}</td>}
              <td>{changeLabel(file.change, trans)}</td>
              <td className="jp-ConvectRuns-number">
                {file.size !== undefined && formatSize(file.size)}
              </td>
              <td className="jp-ConvectRuns-fate">{fateOf(file)}</td>
              <td>
                {file.file !== null && (
                  <a
                    className="jp-ConvectRuns-download"
                    href={api.fileUrl(view.id, file)}
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
      {shown.length < files.length && (
        <button className="jp-Convect-link" onClick={() => setAll(true)}>
          {trans.__('Show all %1 files', files.length)}
        </button>
      )}
    </>
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

/** What a run has made, asked for again whenever the run has changed. */
function useMade(
  api: ConvectApi,
  run: string,
  version: number
): { made: IMadeFiles | null; error: unknown } {
  const [made, setMade] = React.useState<IMadeFiles | null>(null);
  const [error, setError] = React.useState<unknown>(null);
  React.useEffect(() => {
    let current = true;
    api.made(run).then(
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
  }, [api, run, version]);
  return { made, error };
}
