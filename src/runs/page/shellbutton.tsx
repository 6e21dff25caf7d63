import { terminalIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IAbout } from '../../api';
import { Action, useTrans } from '../../ui';
import type { RunModel } from './model';

/** Opens a terminal that executes these words. */
export type OpenTerminal = (words: readonly string[]) => void;

/** There only where the runtime has shells to open. */
export function ShellButton(props: {
  model: RunModel;
  step: string;
  /** Where this process of a distributed step runs. */
  rank?: number;
  openTerminal: OpenTerminal;
}): JSX.Element | null {
  const { model, step, rank, openTerminal } = props;
  const trans = useTrans();
  const [about, setAbout] = React.useState<IAbout | null>(null);
  const { api, id } = model;
  React.useEffect(() => {
    api.about().then(setAbout, () => undefined);
  }, [api]);
  const runtime = about?.runtimes.find(
    ({ name }) => name === model.view?.runtime
  );
  const replica = rank === undefined ? [] : ['--replica', String(rank)];
  return about && runtime?.features.includes('shell') ? (
    <Action
      icon={terminalIcon}
      label={trans.__('Terminal')}
      title={
        rank === undefined
          ? trans.__('Open a terminal where this step runs')
          : trans.__('Open a terminal where rank %1 runs', rank)
      }
      wide
      onClick={() =>
        openTerminal([about.command, 'runs', 'shell', id, step, ...replica])
      }
    />
  ) : null;
}
