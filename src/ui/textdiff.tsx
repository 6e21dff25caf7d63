import { MergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import * as React from 'react';

import '../../style/changes.css';

import { useTrans } from './hooks';

/** Two texts side by side, what is equal folded away. */
export default function TextDiff(props: {
  left: string;
  right: string;
}): JSX.Element {
  const { left, right } = props;
  const trans = useTrans();
  const place = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    const parent = place.current;
    if (!parent) {
      return;
    }
    const named = (label: string) => [
      EditorView.contentAttributes.of({ 'aria-label': label }),
      EditorState.phrases.of({
        '$ unchanged lines': trans.__('$ unchanged lines')
      }),
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.lineWrapping,
      lineNumbers()
    ];
    const view = new MergeView({
      a: { doc: left, extensions: named(trans.__('Before')) },
      b: { doc: right, extensions: named(trans.__('After')) },
      collapseUnchanged: { margin: 3, minSize: 6 },
      parent
    });
    return () => view.destroy();
  }, [left, right, trans]);
  return <div ref={place} className="jp-Convect-diff" />;
}
