import { useReactFlow, ViewportPortal } from '@xyflow/react';
import { Throttler } from '@lumino/polling';
import * as React from 'react';

import type { IBox, IPoint } from '../graph';
import type { Session } from '../session';
import { useStore } from '../store';

/** What each person tells the others of the same document, under this name. */
const FIELD = 'pipeline';
/** How often the place of a pointer is told, in ms. */
const PAUSE = 80;

interface IPresence {
  pointer: IPoint | null;
  selection: string[];
}

/** Somebody else who has the document open. */
export interface IOther extends IPresence {
  id: number;
  name: string;
  colour: string;
}

/** The others among those who have the document open, as far as they look at the canvas. */
export function othersIn(
  states: ReadonlyMap<number, { [field: string]: unknown }>,
  own: number
): IOther[] {
  return [...states].flatMap(([id, { user, [FIELD]: presence }]) => {
    if (id === own || !presence) {
      return [];
    }
    const { name, display_name, color } = (user ?? {}) as {
      name?: string;
      display_name?: string;
      color?: string;
    };
    const { pointer = null, selection = [] } = presence as Partial<IPresence>;
    return [
      {
        id,
        pointer,
        selection,
        name: display_name || name || '',
        colour: color || 'var(--jp-brand-color1)'
      }
    ];
  });
}

/** Where other people point, and what they have selected, while a document is shared. */
export function Others(props: {
  session: Session;
  host: React.RefObject<HTMLElement>;
}): JSX.Element | null {
  const { session, host } = props;
  usePresence(session, host);
  const others = useOthers(session);
  if (others.length === 0) {
    return null;
  }
  const { boxes } = session;
  return (
    <ViewportPortal>
      {others.map(other => (
        <React.Fragment key={other.id}>
          {other.selection.map(id => (
            <Ring key={id} box={boxes.get(id)} colour={other.colour} />
          ))}
          {other.pointer && <Pointer {...other} at={other.pointer} />}
        </React.Fragment>
      ))}
    </ViewportPortal>
  );
}

function Ring(props: {
  box: IBox | undefined;
  colour: string;
}): JSX.Element | null {
  const { box, colour } = props;
  return box ? (
    <div
      className="jp-Convect-otherRing"
      style={{
        transform: `translate(${box.x}px, ${box.y}px)`,
        width: box.width,
        height: box.height,
        borderColor: colour
      }}
    />
  ) : null;
}

function Pointer(props: IOther & { at: IPoint }): JSX.Element {
  const { at, colour, name } = props;
  return (
    <div
      className="jp-Convect-other"
      style={{ transform: `translate(${at.x}px, ${at.y}px)` }}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d="M1 1l5 13 2.2-5.6L14 6z" fill={colour} />
      </svg>
      <span style={{ background: colour }}>{name}</span>
    </div>
  );
}

/** Tell the others where this pointer is, and what is selected here. */
function usePresence(
  session: Session,
  host: React.RefObject<HTMLElement>
): void {
  const { awareness } = session.doc;
  const { screenToFlowPosition } = useReactFlow();
  const selection = useStore(session.state, state => state.selection);
  const pointer = React.useRef<IPoint | null>(null);
  React.useEffect(() => {
    const tell = () =>
      awareness.setLocalStateField(FIELD, {
        pointer: pointer.current,
        selection: [...selection]
      });
    const throttler = new Throttler(tell, PAUSE);
    const onMove = ({ clientX, clientY }: PointerEvent) => {
      const { x, y } = screenToFlowPosition({ x: clientX, y: clientY });
      pointer.current = { x: Math.round(x), y: Math.round(y) };
      void throttler.invoke();
    };
    const onLeave = () => {
      pointer.current = null;
      tell();
    };
    const node = host.current;
    node?.addEventListener('pointermove', onMove);
    node?.addEventListener('pointerleave', onLeave);
    tell();
    return () => {
      throttler.dispose();
      node?.removeEventListener('pointermove', onMove);
      node?.removeEventListener('pointerleave', onLeave);
      awareness.setLocalStateField(FIELD, null);
    };
  }, [awareness, host, screenToFlowPosition, selection]);
}

function useOthers(session: Session): IOther[] {
  const { awareness } = session.doc;
  const [others, setOthers] = React.useState<IOther[]>([]);
  React.useEffect(() => {
    const read = () => {
      const found = othersIn(awareness.getStates(), awareness.clientID);
      setOthers(before =>
        JSON.stringify(before) === JSON.stringify(found) ? before : found
      );
    };
    awareness.on('change', read);
    read();
    return () => awareness.off('change', read);
  }, [awareness]);
  return others;
}
