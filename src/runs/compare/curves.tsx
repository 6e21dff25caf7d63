import * as React from 'react';

import type { IConvectApi, IRunView } from '../../api';
import { useKept, useTrans } from '../../ui';
import { EventsModel } from '../page/events';
import type { ICurve } from '../page/metrics';
import { LookBar, MetricChart, PLAIN } from '../page/metrics';
import { namesOf } from './table';

/** Steps whose curves are read at most. */
const MOST = 20;

/** The metrics of several runs over time, one chart for each metric. */
export function Curves(props: {
  api: IConvectApi;
  views: readonly IRunView[];
  isShown: boolean;
}): JSX.Element | null {
  const { api, views, isShown } = props;
  const trans = useTrans();
  const [look, setLook] = useKept('curves', PLAIN);
  const curves = useCurves(api, views, isShown);
  const charts = [...curves].filter(([, found]) =>
    found.some(({ points }) => points.length > 1)
  );
  if (charts.length === 0) {
    return null;
  }
  return (
    <section className="jp-Convect-metrics">
      <h3>{trans.__('Curves')}</h3>
      <LookBar look={look} onLook={setLook} />
      {charts.map(([name, found]) => (
        <section key={name} className="jp-Convect-metric">
          <h4>{name}</h4>
          <MetricChart name={name} curves={found} look={look} />
        </section>
      ))}
    </section>
  );
}

/** The curves of each metric, read anew when a run has changed. */
function useCurves(
  api: IConvectApi,
  views: readonly IRunView[],
  isShown: boolean
): ReadonlyMap<string, ICurve[]> {
  const [curves, setCurves] = React.useState(new Map<string, ICurve[]>());
  const changes = views.map(({ id, seq }) => `${id} ${seq}`).join(',');
  React.useEffect(() => {
    if (!isShown) {
      return;
    }
    const tails = views
      .flatMap(view => stepsOf(view).map(key => ({ view, key })))
      .slice(0, MOST)
      .map(({ view, key }) => ({ view, events: new EventsModel(api, key) }));
    const names = namesOf(views);
    const gather = () => {
      const found = new Map<string, ICurve[]>();
      for (const { view, events } of tails) {
        for (const [metric, points] of events.story.metrics) {
          const of = found.get(metric) ?? [];
          const name = names[views.indexOf(view)];
          found.set(metric, [...of, { name, points: [...points] }]);
        }
      }
      setCurves(found);
    };
    tails.forEach(({ events }) => events.changed.connect(gather));
    return () => tails.forEach(({ events }) => events.dispose());
    // The views are new objects whenever one of them has changed.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [api, changes, isShown]);
  return curves;
}

function stepsOf(view: IRunView) {
  return Object.values(view.steps)
    .filter(({ attempts }) => attempts.length > 0)
    .map(({ id, attempts }) => ({
      run: view.id,
      step: id,
      attempt: attempts.length
    }));
}
