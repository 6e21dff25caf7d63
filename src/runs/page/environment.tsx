import * as React from 'react';

import type {
  IConvectApi,
  IEnvironment,
  IGit,
  IGitDifference,
  IRunEnvironment,
  IStepEnvironment
} from '../../api';
import { serverNow } from '../../api';
import { formatSize, SearchInput, useTrans } from '../../ui';

/** Seconds after the end of a step within which its record may still come. */
const SOON = 30;
const AGAIN_AFTER = 1000;

/** What a step was executed with, as a part of a table. */
export function EnvironmentRows(props: {
  api: IConvectApi;
  run: string;
  step: string;
  /** When the step ended; null while it has not. */
  ended: number | null;
  git: IGit | null;
}): JSX.Element {
  const { api, run, step, ended, git } = props;
  const trans = useTrans();
  const environment = useEnvironment(api, run, step, ended);
  const found = environment?.steps[step];
  const python = environment?.environments[found?.digest ?? ''];
  return (
    <tbody>
      <tr className="jp-Convect-tableSection">
        <th colSpan={2} scope="rowgroup">
          {trans.__('Environment')}
        </th>
      </tr>
      {git && (
        <Row name={trans.__('Git commit')}>
          <code>
            {[git.commit.slice(0, 12), git.branch].filter(Boolean).join(' ')}
          </code>
          {git.dirty && (
            <Uncommitted difference={environment?.git?.difference ?? null} />
          )}
        </Row>
      )}
      {python && (
        <>
          <Row name={trans.__('Python')}>
            <code>{`${python.implementation} ${python.python}, ${python.platform}`}</code>
          </Row>
          <Row name={trans.__('Packages')}>
            <Packages environment={python} />
          </Row>
        </>
      )}
      {found ? (
        <StepRows found={found} />
      ) : (
        <tr>
          <td colSpan={2} className="jp-Convect-hint">
            {ended === null
              ? trans.__('The rest is recorded when the step has ended.')
              : environment && trans.__('The environment was not recorded.')}
          </td>
        </tr>
      )}
    </tbody>
  );
}

function StepRows({ found }: { found: IStepEnvironment }): JSX.Element {
  const trans = useTrans();
  const { host } = found;
  const size = [
    host.cpus && trans._n('%1 CPU', '%1 CPUs', host.cpus),
    host.memory && formatSize(host.memory)
  ];
  const rows: [string, string | null | undefined][] = [
    [trans.__('Language'), found.language],
    [trans.__('Interpreter'), found.interpreter],
    [trans.__('Digest of the environment'), found.digest],
    [trans.__('Digest of the image'), found.image],
    [trans.__('Node'), found.node],
    [trans.__('Host'), [host.name, ...size].filter(Boolean).join(', ')],
    [trans.__('System'), [host.system, host.machine].filter(Boolean).join(' ')],
    [trans.__('GPUs'), (host.gpus ?? []).join(', ')]
  ];
  return (
    <>
      {rows
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <Row key={name} name={name}>
            <code>{value}</code>
          </Row>
        ))}
    </>
  );
}

function Row(props: { name: string; children: React.ReactNode }): JSX.Element {
  return (
    <tr>
      <th scope="row">{props.name}</th>
      <td>{props.children}</td>
    </tr>
  );
}

/** How many there are; on demand which, and those whose name one is looking for. */
export function Packages(props: { environment: IEnvironment }): JSX.Element {
  const { packages } = props.environment;
  const trans = useTrans();
  const [wanted, setWanted] = React.useState('');
  const names = Object.keys(packages);
  const shown = names.filter(name => name.includes(wanted.toLowerCase()));
  return (
    <details className="jp-Convect-packages">
      <summary>{trans._n('%1 package', '%1 packages', names.length)}</summary>
      <SearchInput
        label={trans.__('Search packages')}
        value={wanted}
        onChange={text => setWanted(text.trim())}
      />
      {shown.length === 0 ? (
        <div className="jp-Convect-hint">
          {trans.__('No package has such a name.')}
        </div>
      ) : (
        <ul>
          {shown.map(name => (
            <li key={name}>
              <code>{name}</code> <code>{packages[name]}</code>
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}

/** Changes that are in no commit; what they are once it is known. */
function Uncommitted(props: {
  difference: IGitDifference | null;
}): JSX.Element {
  const { difference } = props;
  const trans = useTrans();
  if (!difference) {
    return <> {trans.__('(with uncommitted changes)')}</>;
  }
  const { text, cut, untracked, untracked_cut: more } = difference;
  return (
    <details className="jp-Convect-uncommitted">
      <summary>{trans.__('Uncommitted changes')}</summary>
      {text && (
        <pre tabIndex={0}>
          {text.split('\n').map((line, index) => (
            <span key={index} className={kindOf(line)}>
              {`${line}\n`}
            </span>
          ))}
        </pre>
      )}
      {cut && (
        <div className="jp-Convect-hint">
          {trans.__('The rest was too long to be kept.')}
        </div>
      )}
      {untracked.length > 0 && (
        <>
          <div>{trans.__('Source files that git does not know:')}</div>
          <ul>
            {untracked.map(name => (
              <li key={name}>
                <code>{name}</code>
              </li>
            ))}
            {more && <li>…</li>}
          </ul>
        </>
      )}
    </details>
  );
}

/** The class of a line of a unified difference. */
export function kindOf(line: string): string {
  if (/^(diff |index |\+\+\+ |--- |@@ )/.test(line)) {
    return 'jp-mod-place';
  }
  return line.startsWith('+')
    ? 'jp-mod-added'
    : line.startsWith('-')
      ? 'jp-mod-removed'
      : '';
}

/** What is known of a run, asked for again while the record of a step may be on its way. */
function useEnvironment(
  api: IConvectApi,
  run: string,
  step: string,
  ended: number | null
): IRunEnvironment | null {
  const [environment, setEnvironment] = React.useState<IRunEnvironment | null>(
    null
  );
  React.useEffect(() => {
    let timer: number | undefined;
    let current = true;
    const load = async () => {
      const found = await api.environment(run);
      if (!current) {
        return;
      }
      setEnvironment(found);
      const isFresh = ended !== null && serverNow() - ended < SOON;
      if (isFresh && !found.steps[step]) {
        timer = window.setTimeout(
          () => void load().catch(() => undefined),
          AGAIN_AFTER
        );
      }
    };
    void load().catch(() => undefined);
    return () => {
      current = false;
      window.clearTimeout(timer);
    };
  }, [api, run, step, ended]);
  return environment;
}
