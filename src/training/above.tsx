import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { MainAreaWidget } from '@jupyterlab/apputils';
import type { CodeEditor } from '@jupyterlab/codeeditor';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Widget } from '@lumino/widgets';
import * as React from 'react';

import '../../style/form.css';
import '../../style/page.css';
import '../../style/training.css';

import type { IProblem } from '../api';
import type { IConvectApi, IRunsOpener } from '../tokens';
import {
  Action,
  translated,
  TranslationProvider,
  useModel,
  useTrans
} from '../ui';
import { TrainingActions } from './actions';
import { TrainingForm } from './form';
import { TrainingModel } from './model';

/** Put what there is to say about a training job above its text. */
export function addAbove(
  widget: MainAreaWidget,
  context: DocumentRegistry.Context,
  app: JupyterFrontEnd,
  api: IConvectApi,
  opener: IRunsOpener,
  trans: TranslationBundle
): void {
  if (widget.isDisposed) {
    return;
  }
  const model = new TrainingModel(api, context);
  const above = new AboveText(
    <TranslationProvider value={trans}>
      <Above
        model={model}
        actions={new TrainingActions(app, opener, model)}
        goTo={line => goTo(widget.content, line)}
      />
    </TranslationProvider>
  );
  widget.contentHeader.addWidget(above);
  widget.disposed.connect(() => model.dispose());
}

/** As high as what it shows, up to half of the window: the layout around it only knows limits. */
class AboveText extends ReactWidget {
  constructor(private readonly content: JSX.Element) {
    super();
    this.addClass('jp-Convect-training');
  }

  protected override render(): JSX.Element {
    return <div ref={element => this.observe(element)}>{this.content}</div>;
  }

  private observe(element: HTMLElement | null): void {
    this._observer.disconnect();
    if (element) {
      this._observer.observe(element);
    }
  }

  private _observer = new ResizeObserver(([{ target }]) => {
    const height = Math.min(target.scrollHeight, window.innerHeight / 2);
    this.node.style.minHeight = `${Math.ceil(height)}px`;
    this.parent?.fit();
  });
}

function goTo(content: Widget, line: number): void {
  const { editor } = content as { editor?: CodeEditor.IEditor };
  const position = { line: line - 1, column: 0 };
  editor?.setCursorPosition(position);
  editor?.revealPosition(position);
  editor?.focus();
}

function Above(props: {
  model: TrainingModel;
  actions: TrainingActions;
  goTo: (line: number) => void;
}): JSX.Element | null {
  const model = useModel(props.model);
  const { actions, goTo } = props;
  const trans = useTrans();
  const [isOpen, setOpen] = React.useState(false);
  const [report, setReport] = React.useState<readonly IProblem[]>([]);
  const { found, failure } = model;
  if (!found) {
    return failure ? <Failure sentence={failure} /> : null;
  }
  const { faults, jobs } = found;
  const mended = faults.filter(fault => fault.is_mended).length;
  const make = (work: () => Promise<readonly IProblem[]>) => () => {
    void model.attempt(work).then(made => setReport(made ?? []));
  };
  const isWhole = faults.length === 0;
  const why = isWhole ? undefined : trans.__('Mend the problems first.');
  return (
    <>
      <div className="jp-Convect-trainingHead">
        <b>
          {jobs.map(({ kind }) => kind).join(', ') || trans.__('Training job')}
        </b>
        <span>{jobs.map(({ name }) => name).join(', ')}</span>
        <span role="status" data-severity={isWhole ? undefined : 'error'}>
          {isWhole
            ? trans.__('No problems')
            : trans._n('%1 problem', '%1 problems', faults.length)}
        </span>
        <div
          className="jp-Convect-actions"
          role="toolbar"
          aria-label={trans.__('Training job')}
        >
          {mended > 0 && (
            <Action
              label={trans._n('Mend %1 problem', 'Mend %1 problems', mended)}
              onClick={() => model.mend()}
            />
          )}
          {jobs.length > 0 && (
            <button
              className="jp-Convect-action"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
            >
              {trans.__('Form')}
            </button>
          )}
          <Action
            label={trans.__('Run as it is')}
            title={
              why ??
              trans.__('Create it in the cluster, and follow it as a run')
            }
            disabled={!isWhole || jobs.length !== 1}
            onClick={make(() => actions.run())}
          />
          <Action
            label={trans.__('To a pipeline')}
            title={why ?? trans.__('Make a pipeline of it, beside this file')}
            disabled={!isWhole}
            onClick={make(() => actions.toPipeline())}
          />
          {jobs.some(({ kind }) => kind !== 'TrainJob') && (
            <Action
              label={trans.__('To a TrainJob')}
              title={why ?? trans.__('Make a TrainJob of it, beside this file')}
              disabled={!isWhole}
              onClick={make(() => actions.toTrainJob())}
            />
          )}
        </div>
      </div>
      {failure && <Failure sentence={failure} />}
      <div className="jp-Convect-trainingBody">
        {report.length > 0 && (
          <Report report={report} onClose={() => setReport([])} />
        )}
        {faults.length > 0 && (
          <ul className="jp-Convect-faults" aria-label={trans.__('Problems')}>
            {faults.map(({ line, message, hint }, index) => (
              <li key={index}>
                <button className="jp-Convect-link" onClick={() => goTo(line)}>
                  {trans.__('Line %1', line)}
                </button>
                <span>
                  {translated(message, trans)}{' '}
                  {hint && (
                    <span className="jp-Convect-help">
                      {translated(hint, trans)}
                    </span>
                  )}
                </span>
              </li>
            ))}
          </ul>
        )}
        {isOpen &&
          jobs.map((job, index) => (
            <TrainingForm key={index} job={job} model={model} />
          ))}
      </div>
    </>
  );
}

function Failure({ sentence }: { sentence: string }): JSX.Element {
  return (
    <div className="jp-Convect-message" data-severity="error" role="alert">
      {sentence}
    </div>
  );
}

/** What is different in what was made. */
function Report(props: {
  report: readonly IProblem[];
  onClose: () => void;
}): JSX.Element {
  const trans = useTrans();
  return (
    <div className="jp-Convect-message" role="status">
      <p>{trans.__('What changes:')}</p>
      <ul>
        {props.report.map(({ message, hint }, index) => (
          <li key={index}>
            {translated(message, trans)} {hint && translated(hint, trans)}
          </li>
        ))}
      </ul>
      <Action label={trans.__('Close')} onClick={props.onClose} />
    </div>
  );
}
