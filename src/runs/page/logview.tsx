import { Button, downloadIcon } from '@jupyterlab/ui-components';
import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import type { ConvectApi, IAttemptKey } from '../../api';
import { formatSize, useModel, useTrans } from '../../ui';
import { AnsiLine } from './ansi';
import { LogModel, LogSearch } from './log';

const LINE = 18;

/** The log of an attempt: live, searchable, of any size. */
export function LogView(props: {
  api: ConvectApi;
  attempt: IAttemptKey;
}): JSX.Element {
  const { api, attempt } = props;
  const { run, step, attempt: number } = attempt;
  const [model, setModel] = React.useState<LogModel | null>(null);
  const [isWhole, setWhole] = React.useState(false);
  React.useEffect(() => {
    const log = new LogModel(api, { run, step, attempt: number }, isWhole);
    setModel(log);
    return () => log.dispose();
  }, [api, run, step, number, isWhole]);
  return model ? (
    <Log model={model} api={api} onReadAll={() => setWhole(true)} />
  ) : (
    <></>
  );
}

function Log(props: {
  model: LogModel;
  api: ConvectApi;
  onReadAll: () => void;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { lines, dropped } = model.buffer;
  const count =
    lines[lines.length - 1] === '' ? lines.length - 1 : lines.length;
  const scroller = React.useRef<HTMLDivElement>(null);
  const [follow, setFollow] = React.useState(!model.isComplete);
  const [text, setText] = React.useState('');
  const [hit, setHit] = React.useState(0);
  const [isWrapped, setWrapped] = React.useState(false);
  const found = React.useMemo(() => new LogSearch(text), [text]);
  const { hits } = found.update(model.buffer);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE,
    overscan: 30
  });
  React.useEffect(() => virtualizer.measure(), [virtualizer, isWrapped]);
  const { scrollToIndex } = virtualizer;
  React.useEffect(() => {
    if (follow && count > 0) {
      scrollToIndex(count - 1, { align: 'end' });
    }
  }, [follow, count, scrollToIndex]);
  const anyHit = hits.length > 0;
  React.useEffect(() => {
    if (anyHit) {
      scrollToIndex(hits[hit % hits.length], { align: 'center' });
    }
    // Only when something is searched for or found, not whenever the log grows.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [text, hit, anyHit]);

  const onScroll = () => {
    const element = scroller.current;
    if (element) {
      const rest =
        element.scrollHeight - element.scrollTop - element.clientHeight;
      setFollow(rest < LINE * 2 && !model.isComplete);
    }
  };
  const current = hits[hit % Math.max(1, hits.length)];

  return (
    <div className="jp-ConvectRuns-log">
      <div className="jp-ConvectRuns-log-bar">
        <input
          className="jp-mod-styled"
          type="search"
          placeholder={trans.__('Search the log')}
          aria-label={trans.__('Search the log')}
          value={text}
          onChange={event => {
            setText(event.target.value);
            setHit(0);
            setFollow(false);
          }}
          onKeyDown={event => {
            if (event.key === 'Enter' && hits.length > 0) {
              const step = event.shiftKey ? hits.length - 1 : 1;
              setHit((hit + step) % hits.length);
            }
          }}
        />
        <span className="jp-ConvectRuns-log-hits" role="status">
          {text &&
            (hits.length
              ? `${(hit % hits.length) + 1}/${hits.length}`
              : trans.__('not found'))}
        </span>
        <label>
          <input
            type="checkbox"
            checked={follow}
            disabled={model.isComplete}
            onChange={event => setFollow(event.target.checked)}
          />
          {trans.__('Follow')}
        </label>
        <label>
          <input
            type="checkbox"
            checked={isWrapped}
            onChange={event => setWrapped(event.target.checked)}
          />
          {trans.__('Wrap lines')}
        </label>
        <Button
          minimal
          small
          title={trans.__('Download the log')}
          aria-label={trans.__('Download the log')}
          onClick={() => window.open(props.api.logUrl(model.key))}
        >
          <downloadIcon.react tag="span" />
        </Button>
      </div>
      {model.skipped > 0 && (
        <div className="jp-ConvectRuns-banner">
          {trans.__(
            'The first %1 are left out here.',
            formatSize(model.skipped)
          )}{' '}
          <button className="jp-Convect-link" onClick={props.onReadAll}>
            {trans.__('Read all')}
          </button>
        </div>
      )}
      {dropped > 0 && (
        <div className="jp-ConvectRuns-banner">
          {trans.__(
            'The first %1 lines are left out here. Download the log to see them.',
            dropped
          )}
        </div>
      )}
      {model.isComplete && count === 0 && (
        <div className="jp-ConvectRuns-hint">
          {trans.__('Nothing was printed.')}
        </div>
      )}
      {model.error && count === 0 && (
        <div className="jp-ConvectRuns-hint">{model.error.message}</div>
      )}
      <div
        ref={scroller}
        className={
          isWrapped
            ? 'jp-ConvectRuns-log-lines jp-RenderedText jp-mod-wrapped'
            : 'jp-ConvectRuns-log-lines jp-RenderedText'
        }
        role="log"
        aria-label={trans.__('Log')}
        aria-live="off"
        tabIndex={0}
        onScroll={onScroll}
      >
        <pre style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map(item => (
            <div
              key={item.key}
              ref={isWrapped ? virtualizer.measureElement : undefined}
              data-index={item.index}
              className={
                item.index === current
                  ? 'jp-ConvectRuns-log-line jp-mod-current'
                  : 'jp-ConvectRuns-log-line'
              }
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <AnsiLine line={lines[item.index]} />
            </div>
          ))}
        </pre>
      </div>
    </div>
  );
}
