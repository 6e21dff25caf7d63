import type { ReadonlyJSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type {
  IConvectApi,
  IAttempt,
  IAttemptKey,
  IManifest,
  IPlanStep,
  IRunView,
  IStep
} from '../../api';
import { EnvironmentRows } from './environment';
import { commandLine, runtimeLabel, translated, useTrans } from '../../ui';

/** Where a step ran and how: what was asked of the runtime, and what it made of it. */
export function Details(props: {
  api: IConvectApi;
  /** Null while there has been no attempt. */
  attemptKey: IAttemptKey | null;
  view: IRunView;
  planned: IPlanStep;
  step: IStep;
  attempt: IAttempt | undefined;
}): JSX.Element {
  const { api, attemptKey, view, planned, step, attempt } = props;
  const trans = useTrans();
  const { manifest, cluster } = useManifest(api, attemptKey);
  const rows: [string, ReadonlyJSONValue | undefined | null][] = [
    [trans.__('Run'), view.id],
    [trans.__('Runtime'), runtimeLabel(trans, view.runtime)],
    [trans.__('File'), planned.path],
    [trans.__('Command'), commandLine(planned.command ?? [])],
    [trans.__('Image'), planned.image],
    [trans.__('Kernel'), planned.kernel],
    [trans.__('Resources'), planned.resources],
    [trans.__('Environment variables'), planned.env],
    [trans.__('Working folder'), planned.working_folder as string | undefined],
    [trans.__('Timeout (seconds)'), planned.timeout],
    [trans.__('Reuse'), step.cache && translated(step.cache, trans)],
    [trans.__('User'), view.user],
    [trans.__('Digest of the source'), planned.digest],
    [trans.__('Reason in the words of the runtime'), attempt?.detail],
    [trans.__('The same from a terminal'), commandOf(view)],
    [trans.__('Manifest'), manifest],
    [trans.__('What the cluster said of it'), cluster]
  ];
  const filled = rows.filter(
    ([, value]) =>
      value !== undefined &&
      value !== null &&
      value !== '' &&
      !(typeof value === 'object' && Object.keys(value).length === 0)
  );
  return (
    <table className="jp-Convect-table">
      <tbody>
        {filled.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              {typeof value === 'string' ? (
                <code>{value}</code>
              ) : (
                <pre>{JSON.stringify(value, null, 2)}</pre>
              )}
            </td>
          </tr>
        ))}
      </tbody>
      <EnvironmentRows
        api={api}
        run={view.id}
        step={step.id}
        ended={step.ended ?? null}
        git={view.git}
      />
    </table>
  );
}

const NOTHING: IManifest = { manifest: null, cluster: null };

/** What the runtime was asked for in its own words, and what it said of it, once they are there. */
function useManifest(api: IConvectApi, key: IAttemptKey | null): IManifest {
  const [manifest, setManifest] = React.useState(NOTHING);
  const { run = '', step = '', attempt = 0 } = key ?? {};
  React.useEffect(() => {
    let current = true;
    setManifest(NOTHING);
    if (attempt > 0) {
      api.manifest({ run, step, attempt }).then(
        found => current && setManifest(found),
        () => undefined
      );
    }
    return () => {
      current = false;
    };
  }, [api, run, step, attempt]);
  return manifest;
}

/** A command line that asks for the same; null when it would take more than that. */
export function commandOf(view: IRunView): string | null {
  const { path, parameters, settings, options, runtime } = view.request;
  const more = { ...settings, ...options };
  if (!path || Object.keys(more).length > 0) {
    return null;
  }
  const values = Object.entries(parameters ?? {}).flatMap(([name, value]) => [
    '-p',
    `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`
  ]);
  const where = runtime && runtime !== 'local' ? ['--runtime', runtime] : [];
  return commandLine(['convect', 'run', path, ...values, ...where]);
}
