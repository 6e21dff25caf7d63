import * as React from 'react';

import type { ConvectApi, IAttemptKey, IFile } from '../../api';
import { sentenceOf } from '../../api';
import { formatSize, useTrans } from '../../ui';

/** The files that a step left behind. */
export function Files(props: {
  api: ConvectApi;
  attempt: IAttemptKey;
  /** Ask again when this changes. */
  version: number;
}): JSX.Element {
  const { api, version } = props;
  const { run, step, attempt } = props.attempt;
  const trans = useTrans();
  const [files, setFiles] = React.useState<IFile[] | null>(null);
  const [error, setError] = React.useState<unknown>(null);
  React.useEffect(() => {
    let current = true;
    api.files({ run, step, attempt }).then(
      found => {
        if (current) {
          setFiles(found);
          setError(null);
        }
      },
      reason => current && setError(reason)
    );
    return () => {
      current = false;
    };
  }, [api, run, step, attempt, version]);
  if (error) {
    return <div className="jp-ConvectRuns-hint">{sentenceOf(error)}</div>;
  }
  if (files?.length === 0) {
    return (
      <div className="jp-ConvectRuns-hint">
        {trans.__('No files. Files are kept when the pipeline declares them.')}
      </div>
    );
  }
  return (
    <table className="jp-ConvectRuns-table">
      <tbody>
        {(files ?? []).map(file => (
          <tr key={file.path}>
            <td>
              <a
                href={api.fileUrl(props.attempt, file.path)}
                download={file.path.split('/').pop()}
                title={file.digest ?? undefined}
              >
                {file.path}
              </a>
            </td>
            <td className="jp-ConvectRuns-number">{formatSize(file.size)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
