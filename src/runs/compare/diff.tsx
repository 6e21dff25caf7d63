import { MergeView } from '@codemirror/merge';
import { EditorState } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import * as React from 'react';

/** Two texts side by side, what is equal folded away. */
export default function TextDiff(props: {
  left: string;
  right: string;
}): JSX.Element {
  const { left, right } = props;
  const place = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    const parent = place.current;
    if (!parent) {
      return;
    }
    const extensions = [
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.lineWrapping,
      lineNumbers()
    ];
    const view = new MergeView({
      a: { doc: left, extensions },
      b: { doc: right, extensions },
      collapseUnchanged: { margin: 3, minSize: 6 },
      parent
    });
    return () => view.destroy();
  }, [left, right]);
  return <div ref={place} className="jp-ConvectRuns-diff" />;
}
