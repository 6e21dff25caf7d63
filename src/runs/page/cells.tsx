import type { INotebookContent } from '@jupyterlab/nbformat';
import * as React from 'react';

import type { IConvectApi, IAttemptKey, State } from '../../api';
import { formatDuration, isLive, StateIcon, useNow, useTrans } from '../../ui';
import { AnsiLine } from './ansi';
import type { ICell, IStepStory } from './events';

/** What the cells of a notebook did; one that failed comes first. */
export function Cells(props: {
  api: IConvectApi;
  attempt: IAttemptKey;
  story: IStepStory;
  /** That of the step. A stop interrupts the cell that runs. */
  state: State;
  onOpen: (cell: number) => void;
}): JSX.Element {
  const { story, state, onOpen } = props;
  const trans = useTrans();
  const ended = story.cells.filter(({ seconds }) => seconds !== null).length;
  const turn = story.cells.length + ended + (isLive(state) ? 0 : 1);
  const sources = useSources(props.api, props.attempt, turn);
  const cells =
    state === 'cancelled' ? story.cells.map(interrupted) : story.cells;
  const failed = cells.filter(cell => cell.error);
  const left = story.total - cells.filter(cell => cell.number > 0).length;
  if (cells.length === 0) {
    return (
      <div className="jp-Convect-hint">{trans.__('No cell has run yet.')}</div>
    );
  }
  return (
    <div className="jp-Convect-cells">
      {failed.map(cell => (
        <FailedCell
          key={cell.index}
          cell={cell}
          source={sources[cell.index]}
          onOpen={onOpen}
        />
      ))}
      <ol>
        {cells.map(cell => (
          <li key={cell.index}>
            <CellLine
              cell={cell}
              source={sources[cell.index]}
              onOpen={onOpen}
            />
          </li>
        ))}
      </ol>
      {left > 0 && (
        <div className="jp-Convect-hint">
          {trans._n('%1 cell has not run.', '%1 cells have not run.', left)}
        </div>
      )}
    </div>
  );
}

/** A cell that a stop has ended did not fail. */
function interrupted(cell: ICell): ICell {
  return cell.error?.name === 'KeyboardInterrupt'
    ? { ...cell, state: 'cancelled', error: null }
    : cell;
}

function FailedCell(props: {
  cell: ICell;
  source: string | undefined;
  onOpen: (cell: number) => void;
}): JSX.Element | null {
  const { cell, source, onOpen } = props;
  const trans = useTrans();
  // What went wrong is said last.
  const toTheEnd = React.useCallback((element: HTMLElement | null) => {
    element?.scrollTo(0, element.scrollHeight);
  }, []);
  if (!cell.error) {
    return null;
  }
  return (
    <section className="jp-Convect-failure" role="alert">
      <h4>
        <StateIcon state="failed" />
        <span>
          {cell.number > 0
            ? trans.__('Cell %1', cell.number)
            : trans.__('Parameters')}
          {': '}
          {cell.error.name}
        </span>
        <button className="jp-Convect-link" onClick={() => onOpen(cell.index)}>
          {trans.__('Show in the notebook')}
        </button>
      </h4>
      {source && <pre className="jp-Convect-source">{source}</pre>}
      <pre
        ref={toTheEnd}
        className="jp-Convect-traceback jp-RenderedText"
        tabIndex={0}
      >
        {cell.error.traceback.split('\n').map((line, index) => (
          <div key={index}>
            <AnsiLine line={line} />
          </div>
        ))}
      </pre>
    </section>
  );
}

function CellLine(props: {
  cell: ICell;
  source: string | undefined;
  onOpen: (cell: number) => void;
}): JSX.Element {
  const { cell, source, onOpen } = props;
  const now = useNow(cell.state === 'running');
  const first = firstLine(source ?? '');
  return (
    <details>
      <summary>
        <StateIcon state={cell.state} />
        <span className="jp-Convect-cellNumber">
          {cell.number > 0 ? cell.number : ''}
        </span>
        <code title={source}>{first}</code>
        <span className="jp-Convect-cellTime">
          {formatDuration(cell.seconds ?? Math.max(0, now - cell.started))}
        </span>
      </summary>
      <CellBody cell={cell} source={source} onOpen={onOpen} />
    </details>
  );
}

function CellBody(props: {
  cell: ICell;
  source: string | undefined;
  onOpen: (cell: number) => void;
}): JSX.Element {
  const { cell, source, onOpen } = props;
  const trans = useTrans();
  return (
    <>
      {source && <pre className="jp-Convect-source">{source}</pre>}
      {cell.output && (
        <pre className="jp-Convect-output">
          {cell.output.split('\n').map((line, index) => (
            <div key={index}>
              <AnsiLine line={line} />
            </div>
          ))}
        </pre>
      )}
      <button className="jp-Convect-link" onClick={() => onOpen(cell.index)}>
        {trans.__('Show in the notebook')}
      </button>
    </>
  );
}

/** The first line that says something. */
function firstLine(source: string): string {
  const lines = source.split('\n').map(line => line.trim());
  return lines.find(line => line && !line.startsWith('#')) ?? lines[0] ?? '';
}

/** The sources of all cells; asked for with each turn until the notebook is there. */
function useSources(
  api: IConvectApi,
  key: IAttemptKey,
  turn: number
): string[] {
  const { run, step, attempt } = key;
  const place = `${run}/${step}/${attempt}`;
  const [found, setFound] = React.useState({ place, sources: NO_SOURCES });
  const isKnown = found.place === place && found.sources !== NO_SOURCES;
  React.useEffect(() => {
    let current = true;
    if (!isKnown && turn > 0) {
      api.notebook({ run, step, attempt }).then(
        notebook =>
          current && setFound({ place, sources: sourcesOf(notebook) }),
        () => undefined
      );
    }
    return () => {
      current = false;
    };
  }, [api, run, step, attempt, place, isKnown, turn]);
  return isKnown ? found.sources : NO_SOURCES;
}

const NO_SOURCES: string[] = [];

function sourcesOf(notebook: INotebookContent): string[] {
  return notebook.cells.map(({ source }) =>
    Array.isArray(source) ? source.join('') : source
  );
}
