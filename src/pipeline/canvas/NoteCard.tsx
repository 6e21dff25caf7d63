import type { NodeProps } from '@xyflow/react';
import { NodeResizer } from '@xyflow/react';
import * as React from 'react';

import { useCanvas } from './context';
import type { NoteFlowNode } from './flow';

const LEAST = { width: 100, height: 50 };

/** A note in markdown. A double click or Enter turns it into a text field. */
export const NoteCard = React.memo(function NoteCard({
  id,
  data,
  selected
}: NodeProps<NoteFlowNode>): JSX.Element {
  const { editedNote, isReadOnly, resizeNote } = useCanvas();
  return (
    <div className="jp-Pipeline-note">
      <NodeResizer
        isVisible={selected && !isReadOnly}
        minWidth={LEAST.width}
        minHeight={LEAST.height}
        onResizeEnd={(_, { x, y, width, height }) =>
          resizeNote(id, [x, y, width, height])
        }
      />
      {editedNote === id ? (
        <NoteField id={id} text={data.text} />
      ) : (
        <Markdown text={data.text} />
      )}
    </div>
  );
});

function NoteField(props: { id: string; text: string }): JSX.Element {
  const { editNote, setNote, trans } = useCanvas();
  const [text, setText] = React.useState(props.text);
  const field = React.useRef<HTMLTextAreaElement>(null);
  React.useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const close = () => {
    setNote(props.id, text);
    editNote(null);
  };
  return (
    <textarea
      ref={field}
      className="jp-Pipeline-noteField nodrag nowheel nopan"
      aria-label={trans.__('Text of the note, in markdown')}
      value={text}
      onChange={event => setText(event.target.value)}
      onBlur={close}
      onKeyDown={event => {
        event.stopPropagation();
        if (event.key === 'Escape') {
          // Leaving the field writes the note.
          event.currentTarget
            .closest<HTMLElement>('.react-flow__node')
            ?.focus();
        }
      }}
    />
  );
}

function Markdown({ text }: { text: string }): JSX.Element {
  const { renderMarkdown } = useCanvas();
  const host = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    if (host.current) {
      void renderMarkdown(text, host.current);
    }
  }, [text, renderMarkdown]);
  return <div ref={host} className="jp-Pipeline-noteText" />;
}
