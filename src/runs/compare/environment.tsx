import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IConvectApi, IRunEnvironment, IRunView } from '../../api';
import { Check, useTrans } from '../../ui';
import type { IComparedLine } from './table';

interface IColumn {
  facts: Record<string, string>;
  packages: Record<string, string>;
}

/**
 * Python, platform, host and packages of several runs, side by side. Those of a
 * run that has no record are empty, and no reason to call the others different.
 */
export function environmentLines(
  environments: readonly (IRunEnvironment | undefined)[],
  trans: TranslationBundle
): IComparedLine[] {
  const several = environments.some(
    found => found && digestsOf(found).length > 1
  );
  const columns = environments.map(found =>
    found && Object.keys(found.steps).length > 0
      ? columnOf(found, several, trans)
      : null
  );
  const names = [
    ...namesOf(columns.map(column => column?.facts)),
    ...namesOf(columns.map(column => column?.packages)).sort()
  ];
  return names.map(name => {
    const values = columns.map(
      column => column?.facts[name] ?? column?.packages[name] ?? ''
    );
    const known = values.filter((_, index) => columns[index] !== null);
    return { name, values, differs: new Set(known).size > 1 };
  });
}

function namesOf(
  all: readonly (Record<string, string> | undefined)[]
): string[] {
  return [...new Set(all.flatMap(each => Object.keys(each ?? {})))];
}

function columnOf(
  found: IRunEnvironment,
  several: boolean,
  trans: TranslationBundle
): IColumn {
  const column: IColumn = { facts: {}, packages: {} };
  for (const [id, step] of Object.entries(found.steps)) {
    const nameOf = (name: string) => (several ? `${id}: ${name}` : name);
    const environment = found.environments[step.digest ?? ''];
    const facts: [string, string | null | undefined][] = [
      [trans.__('Host'), step.node ?? step.host.name],
      [trans.__('Digest of the image'), step.image],
      [trans.__('Language'), step.language],
      [
        trans.__('Python'),
        environment && `${environment.implementation} ${environment.python}`
      ],
      [trans.__('Platform'), environment?.platform]
    ];
    for (const [name, value] of facts) {
      if (value) {
        column.facts[nameOf(name)] ??= value;
      }
    }
    for (const [name, version] of Object.entries(environment?.packages ?? {})) {
      column.packages[nameOf(name)] = version;
    }
  }
  return column;
}

function digestsOf({ steps }: IRunEnvironment): (string | null)[] {
  return [...new Set(Object.values(steps).map(({ digest }) => digest))];
}

/** The part of the table that tells what runs were executed with: what differs, or all of it. */
export function EnvironmentLines(props: {
  api: IConvectApi;
  views: readonly IRunView[];
  children: (lines: IComparedLine[]) => JSX.Element | null;
}): JSX.Element | null {
  const { api, views, children } = props;
  const trans = useTrans();
  const [showsAll, setShowsAll] = React.useState(false);
  const found = useEnvironments(api, views);
  const lines = environmentLines(
    views.map(({ id }) => found[id]),
    trans
  );
  if (lines.length === 0) {
    return null;
  }
  const differing = lines.filter(({ differs }) => differs);
  const unknown = views.filter(
    ({ id }) => Object.keys(found[id]?.steps ?? {}).length === 0
  );
  return (
    <>
      {children(showsAll ? lines : differing)}
      <tbody>
        <tr>
          <td colSpan={views.length + 1}>
            <Check
              label={trans.__('Also show the packages that are the same')}
              checked={showsAll}
              onChange={setShowsAll}
            />
            {unknown.length > 0 ? (
              <span className="jp-Convect-help">
                {trans.__('Not every run has a record of its packages.')}
              </span>
            ) : (
              views.length > 1 &&
              differing.length === 0 && (
                <span className="jp-Convect-help">
                  {trans.__('Python and all packages are the same.')}
                </span>
              )
            )}
          </td>
        </tr>
      </tbody>
    </>
  );
}

/** What the runs were executed with, by run. */
function useEnvironments(
  api: IConvectApi,
  views: readonly IRunView[]
): Record<string, IRunEnvironment> {
  const [found, setFound] = React.useState<Record<string, IRunEnvironment>>({});
  // A run that goes on gets more of it.
  const wanted = views.map(({ id, steps_done: done }) => `${id} ${done}`);
  const key = wanted.join('\n');
  React.useEffect(() => {
    let current = true;
    for (const id of key.split('\n').map(each => each.split(' ')[0])) {
      if (id) {
        api.environment(id).then(
          environment =>
            current && setFound(before => ({ ...before, [id]: environment })),
          () => undefined
        );
      }
    }
    return () => {
      current = false;
    };
  }, [api, key]);
  return found;
}
