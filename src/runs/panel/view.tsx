import { Button } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IAbout, State } from '../../api';
import { sentenceOf } from '../../api';
import { CommandIDs } from '../../commands';
import { convectIcon } from '../../icons';
import type { Execute } from '../../ui';
import {
  Empty,
  runtimeLabel,
  SearchInput,
  Select,
  useModel,
  useTrans
} from '../../ui';
import { ServerBanner } from '../banner';
import { RunList } from './list';
import type { PanelModel } from './model';

type Group = 'running' | 'queued' | 'failed' | 'succeeded' | 'cancelled';

const GROUPS: { name: Group; states: State[] }[] = [
  { name: 'running', states: ['running', 'starting'] },
  { name: 'queued', states: ['queued', 'waiting'] },
  { name: 'failed', states: ['failed', 'lost'] },
  { name: 'succeeded', states: ['succeeded', 'cached'] },
  { name: 'cancelled', states: ['cancelled', 'skipped'] }
];
/** Shown only when there is something to find. */
const RARE: readonly Group[] = ['queued', 'cancelled'];

/** The whole panel: search, filters, the list, and what can be done to several. */
export function RunsView(props: {
  model: PanelModel;
  execute: (command: string, args: Record<string, unknown>) => void;
}): JSX.Element {
  const { execute } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { filter, total, isReady, error } = model.list;
  const about = useAbout(model);
  const filtered = filter.sweep !== 'none';
  const rows = model.rowCount;
  return (
    <>
      <Filters model={model} runtimes={usable(about)} />
      <ServerBanner runs={model.runs} />
      {!isReady && !!error && !model.runs.isUnreachable && (
        <div
          className="jp-Convect-message"
          data-severity="warning"
          role="alert"
        >
          {sentenceOf(error)}
        </div>
      )}
      {isReady && rows === 0 && (filtered ? <Nothing /> : <Welcome />)}
      {rows > 0 && <RunList model={model} execute={execute as Execute} />}
      {model.selection.size > 1 && (
        <div className="jp-Convect-selection">
          <span>{trans.__('%1 marked', model.selection.size)}</span>
          <Button
            small
            onClick={() =>
              execute(CommandIDs.compareRuns, { runs: [...model.selection] })
            }
          >
            {trans.__('Compare')}
          </Button>
          <Button
            small
            onClick={() =>
              execute(CommandIDs.deleteRun, { runs: [...model.selection] })
            }
          >
            {trans.__('Delete')}
          </Button>
          <Button small minimal onClick={() => model.clearSelection()}>
            {trans.__('Clear')}
          </Button>
        </div>
      )}
      <Elsewhere about={about} execute={execute} />
      <div className="jp-Convect-total" role="status">
        {isReady &&
          filtered &&
          (model.list.isExact
            ? trans._n('%1 run', '%1 runs', total)
            : trans.__('More than 1000 runs'))}
      </div>
    </>
  );
}

function Filters(props: {
  model: PanelModel;
  runtimes: readonly string[];
}): JSX.Element {
  const { model, runtimes } = props;
  const trans = useTrans();
  const { filter, counts } = model.list;
  const [text, setText] = React.useState(filter.text);
  React.useEffect(() => {
    const timer = window.setTimeout(() => {
      if (text !== model.list.filter.text) {
        model.setFilter({ text });
      }
    }, 200);
    return () => window.clearTimeout(timer);
  }, [model, text]);
  const label = {
    running: trans.__('Running'),
    queued: trans.__('Queued'),
    failed: trans.__('Failed'),
    succeeded: trans.__('Succeeded'),
    cancelled: trans.__('Stopped')
  };
  return (
    <div className="jp-Convect-filters" role="search">
      <SearchInput
        label={trans.__('Search runs')}
        value={text}
        onChange={setText}
      />
      <div className="jp-Convect-toggles">
        {GROUPS.map(({ name, states }) => {
          const active = filter.states[0] === states[0];
          const count = states.reduce((sum, s) => sum + (counts[s] ?? 0), 0);
          if (RARE.includes(name) && count === 0 && !active) {
            return null;
          }
          return (
            <button
              key={name}
              className="jp-Convect-toggle"
              aria-pressed={active}
              onClick={() => model.setFilter({ states: active ? [] : states })}
            >
              {label[name]}
              {count > 0 && <span>{count}</span>}
            </button>
          );
        })}
        {(model.pinned.total > 0 || filter.isPinned) && (
          <button
            className="jp-Convect-toggle"
            aria-pressed={filter.isPinned}
            onClick={() => model.setFilter({ isPinned: !filter.isPinned })}
          >
            {trans.__('Pinned')}
            <span>{model.pinned.total}</span>
          </button>
        )}
        {runtimes.length > 1 && (
          <Select
            label={trans.__('Runtime')}
            value={filter.runtime}
            options={[
              { value: '', label: trans.__('Everywhere') },
              ...runtimes.map(name => ({
                value: name,
                label: runtimeLabel(trans, name)
              }))
            ]}
            onChange={runtime => model.setFilter({ runtime })}
          />
        )}
      </div>
    </div>
  );
}

/** Runtimes whose servers have runs that were not made here. */
function Elsewhere(props: {
  about: IAbout | null;
  execute: (command: string, args: Record<string, unknown>) => void;
}): JSX.Element {
  const { about, execute } = props;
  const trans = useTrans();
  const named = about?.runtimes.filter(({ features }) =>
    features.includes('others_runs')
  );
  return (
    <>
      {named?.map(({ name, display_name }) => (
        <button
          key={name}
          type="button"
          className="jp-Convect-link jp-Convect-elsewhere"
          onClick={() => execute(CommandIDs.showOthers, { runtime: name })}
        >
          {trans.__(
            'Runs in %1 made elsewhere',
            runtimeLabel(trans, name, display_name)
          )}
        </button>
      ))}
    </>
  );
}

/** What the server is; null until it is known. */
function useAbout(model: PanelModel): IAbout | null {
  const [about, setAbout] = React.useState<IAbout | null>(null);
  React.useEffect(() => {
    model.runs.api.about().then(setAbout, () => undefined);
  }, [model]);
  return about;
}

function usable(about: IAbout | null): string[] {
  const runtimes = about?.runtimes.filter(({ problem }) => !problem) ?? [];
  return runtimes.map(({ name }) => name);
}

function Welcome(): JSX.Element {
  const trans = useTrans();
  return (
    <Empty icon={convectIcon} title={trans.__('No runs yet')}>
      {trans.__(
        'Open a notebook and press “Run as pipeline” in its toolbar. The notebook itself is never changed.'
      )}
    </Empty>
  );
}

function Nothing(): JSX.Element {
  const trans = useTrans();
  return (
    <Empty>{trans.__('No run matches. Search for something else.')}</Empty>
  );
}
