import {
  Button,
  caretDownIcon,
  caretUpIcon,
  downloadIcon
} from '@jupyterlab/ui-components';
import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import type { IConvectApi } from '../../api';
import {
  Check,
  formatClock,
  formatExact,
  formatSize,
  IconButton,
  KeptState,
  SearchInput,
  useKept,
  useModel,
  useTrans
} from '../../ui';
import { AnsiLine } from './ansi';
import type { LogModel } from './log';
import { LogSearch, markAt } from './log';
import type { EventsModel, ILogMark } from './events';
import type { RunModel } from './model';
import type { Tail } from './tail';

const LINE = 18;

/** Reads on while it is seen. */
export function useFollowing(tail: Tail | null, isShown: boolean): void {
  React.useEffect(() => {
    if (tail) {
      tail.isPaused = !isShown;
      return () => {
        tail.isPaused = true;
      };
    }
  }, [tail, isShown]);
}

/** The log of an attempt: live, searchable, of any size. */
export function LogView({ model }: { model: RunModel }): JSX.Element | null {
  const { log, events, isShown, api } = model;
  useFollowing(log, isShown);
  useFollowing(events, isShown);
  return (
    log &&
    events && (
      <TimedLog
        model={log}
        events={events}
        api={api}
        onReadAll={() => model.readWholeLog()}
      />
    )
  );
}

interface ILogProps {
  model: LogModel;
  api: IConvectApi;
  onReadAll: () => void;
}

function TimedLog(props: ILogProps & { events: EventsModel }): JSX.Element {
  const { events, ...rest } = props;
  return <Log {...rest} marks={useModel(events).story.marks} />;
}

/** The lines of a log, with what is known of when they were written. */
export function Log(
  props: ILogProps & { marks: readonly ILogMark[] }
): JSX.Element {
  const model = useModel(props.model);
  const { marks } = props;
  const trans = useTrans();
  const { lines, starts, dropped } = model.buffer;
  const count =
    lines[lines.length - 1] === '' ? lines.length - 1 : lines.length;
  const scroller = React.useRef<HTMLDivElement>(null);
  const kept = React.useContext(KeptState);
  const { step, attempt } = model.key;
  const place = `log place ${step} ${attempt} ${model.replica ?? ''}`;
  const isNew = !kept.has(place);
  const [follow, setFollow] = React.useState(isNew && !model.isComplete);
  const [text, setText] = useKept('log search', '');
  const [hit, setHit] = useKept('log hit', 0);
  const [isWrapped, setWrapped] = useKept('log wrap', false);
  const [isTimed, setTimed] = useKept('log times', false);
  const found = React.useMemo(() => new LogSearch(text), [text]);
  const { hits } = found.update(model.buffer);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE,
    initialOffset: Number(kept.get(place) ?? 0),
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
  const shownHit = React.useRef(isNew ? '' : `${text} ${hit}`);
  React.useEffect(() => {
    if (anyHit && shownHit.current !== `${text} ${hit}`) {
      shownHit.current = `${text} ${hit}`;
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
      kept.set(place, element.scrollTop);
    }
  };
  const current = hits[hit % Math.max(1, hits.length)];
  const goOn = (by: 1 | -1) => setHit((hit + by + hits.length) % hits.length);

  return (
    <div className="jp-Convect-log">
      <div className="jp-Convect-logBar">
        <SearchInput
          label={trans.__('Search the log')}
          value={text}
          onChange={wanted => {
            setText(wanted);
            setHit(0);
            setFollow(false);
          }}
          onKeyDown={event => {
            if (event.key === 'Enter' && hits.length > 0) {
              goOn(event.shiftKey ? -1 : 1);
            }
          }}
        />
        <span className="jp-Convect-logHits" role="status">
          {text &&
            (hits.length
              ? `${(hit % hits.length) + 1}/${hits.length}`
              : trans.__('not found'))}
        </span>
        {hits.length > 1 && (
          <>
            <IconButton
              icon={caretUpIcon}
              label={trans.__('Previous')}
              onClick={() => goOn(-1)}
            />
            <IconButton
              icon={caretDownIcon}
              label={trans.__('Next')}
              onClick={() => goOn(1)}
            />
          </>
        )}
        <Check
          label={trans.__('Follow')}
          checked={follow}
          isDisabled={model.isComplete}
          onChange={setFollow}
        />
        <Check
          label={trans.__('Wrap lines')}
          checked={isWrapped}
          onChange={setWrapped}
        />
        {marks.length > 0 && (
          <Check
            label={trans.__('Times')}
            checked={isTimed}
            onChange={setTimed}
          />
        )}
        <Button
          minimal
          small
          title={trans.__('Download the log')}
          aria-label={trans.__('Download the log')}
          onClick={() =>
            window.open(
              props.api.url('log', model.key, {
                download: '1',
                replica: model.replica
              })
            )
          }
        >
          <downloadIcon.react tag="span" />
        </Button>
      </div>
      {model.skipped > 0 && (
        <div className="jp-Convect-message" data-severity="warning">
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
        <div className="jp-Convect-message" data-severity="warning">
          {trans.__(
            'The first %1 lines are left out here. Download the log to see them.',
            dropped
          )}
        </div>
      )}
      {model.isComplete && count === 0 && (
        <div className="jp-Convect-hint">
          {trans.__('Nothing was printed.')}
        </div>
      )}
      {model.error && count === 0 && (
        <div className="jp-Convect-hint">{model.error.message}</div>
      )}
      <div
        ref={scroller}
        className={
          isWrapped
            ? 'jp-Convect-logLines jp-RenderedText jp-mod-wrapped'
            : 'jp-Convect-logLines jp-RenderedText'
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
              data-stream={markAt(marks, starts[item.index])?.stream}
              className={
                item.index === current
                  ? 'jp-Convect-logLine jp-mod-current'
                  : 'jp-Convect-logLine'
              }
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {isTimed && <LogTime mark={markAt(marks, starts[item.index])} />}
              <AnsiLine line={lines[item.index]} />
            </div>
          ))}
        </pre>
      </div>
    </div>
  );
}

/** When a line was written, to the second. */
function LogTime({ mark }: { mark: ILogMark | null }): JSX.Element {
  return (
    <time
      className="jp-Convect-logTime"
      title={mark ? formatExact(mark.time) : ''}
    >
      {mark ? formatClock(mark.time) : ''}
    </time>
  );
}
