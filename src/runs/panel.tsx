import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ConvectApi, IRunSummary } from '../api';

/** The runs of every runtime, in the left side bar. */
export class RunsPanel extends ReactWidget {
  constructor(
    private readonly api: ConvectApi,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-Convect-runs');
  }

  protected override render(): JSX.Element {
    return <Runs api={this.api} trans={this.trans} />;
  }
}

function Runs({ api, trans }: { api: ConvectApi; trans: TranslationBundle }) {
  const [runs, setRuns] = React.useState<IRunSummary[]>([]);
  React.useEffect(() => {
    api.listRuns({ limit: 50 }).then(
      page => setRuns(page.runs),
      () => setRuns([])
    );
  }, [api]);
  if (runs.length === 0) {
    return <div className="jp-Convect-empty">{trans.__('No runs yet.')}</div>;
  }
  return (
    <ul>
      {runs.map(run => (
        <li key={run.id}>{run.name}</li>
      ))}
    </ul>
  );
}
