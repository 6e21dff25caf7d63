import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import type { IPlan, IRunView } from '../../api';
import type { IPlanView, IPlanViewFactory } from '../../tokens';

/** A plan as a graph, drawn by the editor's canvas, with the state of each step. */
export function PlanGraph(props: {
  plan: IPlan;
  states: Pick<IRunView, 'steps' | 'groups'>;
  selected: string | null;
  planViews: IPlanViewFactory;
  onSelect: (step: string) => void;
}): JSX.Element {
  const { plan, states, selected, planViews } = props;
  const place = React.useRef<HTMLDivElement>(null);
  const [graph, setGraph] = React.useState<IPlanView | null>(null);
  const onSelect = React.useRef(props.onSelect);
  React.useEffect(() => {
    onSelect.current = props.onSelect;
  });
  const digest = React.useMemo(() => JSON.stringify(plan), [plan]);

  React.useEffect(() => {
    const element = place.current;
    if (!element) {
      return;
    }
    let made: IPlanView | null = null;
    let gone = false;
    planViews
      .create(plan, { onSelect: step => onSelect.current(step) })
      .then(created => {
        if (gone) {
          created.widget.dispose();
          return;
        }
        made = created;
        Widget.attach(created.widget, element);
        setGraph(created);
      })
      .catch(console.error);
    return () => {
      gone = true;
      const widget = made?.widget;
      if (widget) {
        // React is at work; what it has drawn in the widget goes afterwards.
        queueMicrotask(() => takeDown(widget));
      }
      setGraph(null);
    };
    // The plan of a run never changes, though each answer has a new copy.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [digest, planViews]);

  React.useEffect(() => {
    graph?.update(states, selected);
  }, [graph, states, selected]);

  return <div ref={place} className="jp-Convect-graph" />;
}

/** Lumino detaches nothing that has left the page, as all that was in a closed tab has. */
function takeDown(widget: Widget): void {
  if (widget.isAttached && !widget.node.isConnected) {
    MessageLoop.sendMessage(widget, Widget.Msg.BeforeDetach);
    MessageLoop.sendMessage(widget, Widget.Msg.AfterDetach);
  }
  widget.dispose();
}
