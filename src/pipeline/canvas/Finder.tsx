import { Panel } from '@xyflow/react';
import * as React from 'react';

import type { Session } from '../session';
import { useStore } from '../store';

/** Finds nodes by what their cards say; Enter goes from one to the next. */
export function Finder(props: IFinderProps): JSX.Element | null {
  const isFinding = useStore(props.session.state, state => state.isFinding);
  return isFinding ? <FinderBox {...props} /> : null;
}

interface IFinderProps {
  session: Session;
  /** Somebody writes here now, or no longer: keys are letters. */
  onWriting: (isWriting: boolean) => void;
}

function FinderBox({ session, onWriting }: IFinderProps): JSX.Element {
  const { trans } = session;
  const [text, setText] = React.useState('');
  const [at, setAt] = React.useState(-1);
  const found = React.useMemo(() => findNodes(session, text), [session, text]);
  const field = React.useRef<HTMLInputElement>(null);
  React.useEffect(() => {
    field.current?.focus();
    return () => onWriting(false);
  }, [onWriting]);
  const go = (index: number) => {
    if (found.length) {
      const next = (index + found.length) % found.length;
      setAt(next);
      session.select([found[next]]);
      session.canvas?.reveal(found[next]);
    }
  };
  const close = () => {
    session.state.update({ isFinding: false });
    if (found[at] === undefined) {
      session.canvas?.focusPane();
    } else {
      session.canvas?.focus(found[at]);
    }
  };
  const count = found.length
    ? trans.__('%1 of %2', Math.max(at, 0) + 1, found.length)
    : trans.__('No match');
  return (
    <Panel position="top-right" className="jp-Convect-finder">
      <input
        ref={field}
        type="search"
        className="jp-mod-styled"
        aria-label={trans.__('Find nodes')}
        placeholder={trans.__('Find nodes')}
        value={text}
        onChange={event => {
          setText(event.target.value);
          setAt(-1);
        }}
        onFocus={() => onWriting(true)}
        onBlur={() => onWriting(false)}
        onKeyDown={event => {
          if (event.nativeEvent.isComposing) {
            return;
          }
          if (event.key === 'Enter') {
            go(at + (event.shiftKey ? -1 : 1));
          } else if (event.key === 'Escape') {
            // The editor would deselect what was found.
            event.stopPropagation();
            close();
          }
        }}
      />
      <span role="status">{text && count}</span>
    </Panel>
  );
}

/** The nodes and notes of which some text has these letters, in reading order. */
export function findNodes(session: Session, text: string): string[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) {
    return [];
  }
  const { boxes, document, views } = session;
  const textOf = (id: string) => {
    const view = views.get(id);
    return view
      ? [
          id,
          view.name,
          view.subtitle,
          ...[...view.inputs, ...view.outputs].map(port => port.name)
        ]
      : [document.comments?.[id]?.text ?? ''];
  };
  return [...boxes]
    .filter(([id]) =>
      textOf(id).some(item => item.toLowerCase().includes(wanted))
    )
    .sort(([, a], [, b]) => a.x - b.x || a.y - b.y)
    .map(([id]) => id);
}
