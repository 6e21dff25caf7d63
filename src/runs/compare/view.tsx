import type { ReadonlyJSONObject } from '@lumino/coreutils';
import * as React from 'react';

import type { IConvectApi, IRunView } from '../../api';
import { sentenceOf } from '../../api';
import { CommandIDs } from '../../commands';
import { curvesIcon } from '../../icons';
import type { Execute } from '../../ui';
import {
  Action,
  Ago,
  Failure,
  formatDuration,
  formatExact,
  formatParameters,
  lazy,
  momentOf,
  Select,
  StateIcon,
  useKept,
  useModel,
  useTrans
} from '../../ui';
import { Curves } from './curves';
import { EnvironmentLines } from './environment';
import { LoopLines } from './loops';
import type { CompareModel } from './model';
import { textOf } from './notebooks';
import type { IComparedLine } from './table';
import {
  environmentOf,
  executedStep,
  linesOf,
  metricLines,
  resultsOf,
  sameSources,
  toldApart
} from './table';

const TextDiff = lazy(() => import('../../ui/textdiff'));

/** Runs side by side: parameters, metrics, environment, and the sources of two of them. */
export function CompareView(props: {
  model: CompareModel;
  execute: Execute;
}): JSX.Element {
  const { execute } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { views, others, error } = model;
  const parameters = linesOf(
    views.map(view => view.parameters as ReadonlyJSONObject)
  );
  return (
    <>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans._n('%1 run', '%1 runs', views.length)}</h2>
          {others.length > 0 && (
            <Select
              label={trans.__('Add a run')}
              value=""
              options={[
                { value: '', label: trans.__('Add a run…') },
                ...others.map(run => ({
                  value: run.id,
                  label: `${run.name} · ${formatExact(run.created)} · ${formatParameters(run.parameters)}`
                }))
              ]}
              onChange={run => model.add(run)}
            />
          )}
          {views.length > 0 && (
            <Action
              icon={curvesIcon}
              label={trans.__('Open in TensorBoard')}
              onClick={() =>
                execute(CommandIDs.openTensorBoard, {
                  runs: views.map(({ id }) => id)
                })
              }
            />
          )}
        </div>
        <Failure error={error} />
      </header>
      <div className="jp-Convect-compare">
        <table className="jp-Convect-table">
          <thead>
            <tr>
              <th />
              {views.map((view, index) => (
                <th key={view.id} scope="col">
                  <StateIcon state={view.state} />
                  <button
                    className="jp-Convect-link"
                    onClick={() =>
                      execute(CommandIDs.openRun, { run: view.id })
                    }
                  >
                    {view.name}
                  </button>
                  {views.length > 1 && (
                    <button
                      className="jp-Convect-link"
                      aria-label={trans.__('Take %1 away', view.name)}
                      title={trans.__('Take away')}
                      onClick={() => model.remove(view.id)}
                    >
                      ×
                    </button>
                  )}
                  <div>{toldApart(parameters, index)}</div>
                  <div className="jp-Convect-help">
                    <Ago time={momentOf(view)} />
                    {view.started && view.ended
                      ? ` · ${formatDuration(view.ended - view.started)}`
                      : ''}
                  </div>
                </th>
              ))}
              {views.length > 1 && (
                <th scope="col">
                  {views.length === 2
                    ? trans.__('Difference')
                    : trans.__('Lowest to highest')}
                </th>
              )}
            </tr>
          </thead>
          <Lines title={trans.__('Parameters')} lines={parameters} />
          <Lines title={trans.__('Metrics')} lines={metricLines(views)} />
          <Lines
            title={trans.__('Values')}
            lines={linesOf(views.map(view => resultsOf(view, 'outputs')))}
          />
          <LoopLines api={model.api} views={views}>
            {(title, lines) => <Lines title={title} lines={lines} />}
          </LoopLines>
          <Lines
            title={trans.__('Environment')}
            lines={linesOf(views.map(view => environmentOf(view, trans)))}
          />
          <EnvironmentLines api={model.api} views={views}>
            {lines => (
              <Lines title={trans.__('Python and packages')} lines={lines} />
            )}
          </EnvironmentLines>
        </table>
        <Curves api={model.api} views={views} isShown={model.isShown} />
        {views.length > 1 && <SourceDiff views={views} api={model.api} />}
      </div>
    </>
  );
}

function Lines(props: {
  title: string;
  lines: IComparedLine[];
}): JSX.Element | null {
  const { title, lines } = props;
  const trans = useTrans();
  if (lines.length === 0) {
    return null;
  }
  return (
    <tbody>
      <tr className="jp-Convect-tableSection">
        <th colSpan={lines[0].values.length + 2} scope="rowgroup">
          {title}
        </th>
      </tr>
      {lines.map(({ name, values, differs, best, difference }, index) => (
        <tr
          key={`${name} ${index}`}
          className={differs ? 'jp-mod-differs' : ''}
        >
          <th scope="row">{name}</th>
          {values.map((value, index) => (
            <td key={index}>
              <code>{value}</code>
              {index === best && (
                <span className="jp-Convect-tag jp-mod-best">
                  {trans.__('Best')}
                </span>
              )}
            </td>
          ))}
          {values.length > 1 && (
            <td className="jp-Convect-digits">{difference}</td>
          )}
        </tr>
      ))}
    </tbody>
  );
}

/** The sources of one notebook or script in two runs. */
function SourceDiff(props: {
  views: readonly IRunView[];
  api: IConvectApi;
}): JSX.Element | null {
  const { views, api } = props;
  const trans = useTrans();
  const [right, setRight] = useKept('source right', 1);
  const [a, b] = [views[0], views[Math.min(right, views.length - 1)]];
  const pairs = sameSources(a, b);
  const [chosen, setChosen] = useKept('source step', '');
  const pair = pairs.find(([{ id }]) => id === chosen) ?? pairs[0];
  const step = pair ? executedStep(a, pair[0]) : '';
  const otherStep = pair ? executedStep(b, pair[1]) : '';
  const isScript = pair?.[0].kind === 'script';
  const [texts, setTexts] = React.useState<[string, string] | null>(null);
  const [failure, setFailure] = React.useState<string | null>(null);
  const [left, other] = [a.id, b.id];
  React.useEffect(() => {
    let current = true;
    setTexts(null);
    setFailure(null);
    if (step) {
      const source = async (run: string, step: string) => {
        const key = { run, step, attempt: 1 };
        return isScript
          ? api.source(key).then(({ text }) => text)
          : textOf(await api.notebook(key, { source: '1' }));
      };
      Promise.all([source(left, step), source(other, otherStep)]).then(
        found => current && setTexts(found),
        error => current && setFailure(sentenceOf(error))
      );
    }
    return () => {
      current = false;
    };
  }, [api, left, other, step, otherStep, isScript]);
  if (!step) {
    return null;
  }
  return (
    <section>
      <h3 className="jp-Convect-inline">
        {trans.__('Source')}
        {pairs.length > 1 && (
          <Select
            label={trans.__('Step')}
            value={pair[0].id}
            options={pairs.map(([{ id }]) => ({ value: id, label: id }))}
            onChange={setChosen}
          />
        )}
        {views.length > 2 && (
          <Select
            label={trans.__('Compare the first with')}
            value={String(right)}
            options={views.slice(1).map((view, index) => ({
              value: String(index + 1),
              label: `${view.name} · ${formatExact(view.created)}`
            }))}
            onChange={index => setRight(Number(index))}
          />
        )}
      </h3>
      {failure && <div className="jp-Convect-hint">{failure}</div>}
      {texts &&
        (texts[0] === texts[1] ? (
          <div className="jp-Convect-hint">
            {trans.__('The sources are the same.')}
          </div>
        ) : (
          <React.Suspense fallback={null}>
            <TextDiff left={texts[0]} right={texts[1]} />
          </React.Suspense>
        ))}
    </section>
  );
}
