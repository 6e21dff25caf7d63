import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import {
  Background,
  BackgroundVariant,
  MiniMap,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode
} from '@xyflow/react';
import * as React from 'react';

import { TranslationProvider } from '../../ui/hooks';
import { ownerOf } from '../graph';
import type { IViewport, Session } from '../session';
import { useStore } from '../store';
import { Banner } from './Banner';
import { CanvasContext } from './context';
import { ConnectionHint } from './ConnectionHint';
import { ariaLabels } from './labels';
import { makeConnection, refusal } from './connections';
import { Controls } from './Controls';
import { EmptyHint } from './EmptyHint';
import { Finder } from './Finder';
import type { FlowEdge, FlowNode } from './flow';
import { Others } from './Others';
import { EDGE_TYPES, MANY, NODE_TYPES, TOO_MANY } from './types';
import { useCanvasContext } from './useCanvasContext';
import { useDistance } from './useDistance';
import { useFlow } from './useFlow';
import { FIT, useFitWhenSeen, useHandle } from './useHandle';

export interface ICanvasProps {
  session: Session;
  rendermime: IRenderMimeRegistry;
}

/** The editor's canvas. */
export function Canvas(props: ICanvasProps): JSX.Element {
  return (
    <TranslationProvider value={props.session.trans}>
      <ReactFlowProvider>
        <Surface {...props} />
      </ReactFlowProvider>
    </TranslationProvider>
  );
}

const GRID: [number, number] = [10, 10];
const MINIMAP = { width: 150, height: 100 };

function Surface({ session, rendermime }: ICanvasProps): JSX.Element {
  const { trans } = session;
  const flow = useFlow(session);
  const context = useCanvasContext(session, rendermime);
  const [isConnecting, setConnecting] = React.useState(false);
  const [isWriting, setWriting] = React.useState(false);
  const host = React.useRef<HTMLDivElement>(null);
  const distance = useDistance();
  const isSnapping = useStore(session.state, state => state.isSnapping);
  const isMinimapOn = useStore(session.state, state => state.isMinimapOn);
  const { isReadOnly } = context;
  useHandle(session, host, context.editNote);

  const { viewport } = session.state.value;
  // An empty canvas is not fitted: what is dropped first should stay in its place.
  // A very large pipeline opens at its beginning, where it can be read.
  const [isFitted] = React.useState(
    !viewport && flow.nodes.length > 0 && flow.nodes.length <= MANY
  );
  useFitWhenSeen(host, isFitted);
  const [start] = React.useState(() => viewport ?? startOf(flow.nodes));
  const classes = ['jp-Convect-canvas', distance];
  if (isConnecting) {
    classes.push('jp-mod-connecting');
  }
  if (isWriting || context.editedNote !== null) {
    classes.push('jp-mod-writing');
  }
  return (
    <CanvasContext.Provider value={context}>
      <div
        ref={host}
        className={classes.join(' ')}
        tabIndex={-1}
        onContextMenuCapture={event => {
          // Menus are chosen by it: the pane is around everything else.
          event.currentTarget.dataset.context = contextOf(event.target);
          const { id } =
            (event.target as HTMLElement).closest<HTMLElement>(
              '.react-flow__node'
            )?.dataset ?? {};
          session.pointed = id === undefined ? null : ownerOf(id);
        }}
        onFocus={event => {
          const { dataset } = event.target as HTMLElement;
          if (dataset.id && event.target.matches(':focus-visible')) {
            session.canvas?.reveal(dataset.id);
          }
        }}
      >
        <ReactFlow<FlowNode, FlowEdge>
          // Arrowheads are found by it: each tab has its own.
          id={session.id}
          nodes={flow.nodes}
          edges={flow.edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          onNodesChange={flow.onNodesChange}
          onEdgesChange={flow.onEdgesChange}
          onNodeDragStart={flow.onDragStart}
          onNodeDragStop={flow.onDragStop}
          onSelectionDragStart={flow.onDragStart}
          onSelectionDragStop={(event, nodes) =>
            flow.onDragStop(event, nodes[0], nodes)
          }
          onNodeClick={(event, node) => {
            // One of several becomes the only one, unless keys say otherwise.
            if (!event.shiftKey && !event.ctrlKey && !event.metaKey) {
              session.select([ownerOf(node.id)]);
            }
          }}
          onNodeContextMenu={(_, node) => {
            const id = ownerOf(node.id);
            if (!session.state.value.selection.has(id)) {
              session.select([id]);
            }
          }}
          onEdgeContextMenu={(_, edge) => session.select([], [edge.id])}
          onNodeDoubleClick={(_, node) => {
            const id = ownerOf(node.id);
            if (node.type === 'note') {
              context.editNote(node.id);
            } else if (session.document.nodes[id]?.kind === 'pipeline') {
              void session.openFile(id);
            } else {
              session.showProperties(id);
            }
          }}
          onConnectStart={() => setConnecting(true)}
          onConnect={ends => {
            makeConnection(session.doc, ends);
            session.announce(trans.__('Connected.'));
          }}
          onConnectEnd={(event, { fromHandle, toNode }) => {
            setConnecting(false);
            // Dropped where nothing is: something new may begin there.
            if (fromHandle?.type === 'source' && !toNode && !isReadOnly) {
              const { clientX, clientY } =
                'changedTouches' in event ? event.changedTouches[0] : event;
              const client = { x: clientX, y: clientY };
              const { x, y } = session.canvas!.toDocument(client);
              const place = { x: Math.round(x), y: Math.round(y) - 24 };
              session.offerNodes(client, {
                ...place,
                after: fromHandle.nodeId
              });
            }
          }}
          isValidConnection={ends =>
            refusal(
              session.document,
              session.edges,
              {
                ...ends,
                sourceHandle: ends.sourceHandle ?? null,
                targetHandle: ends.targetHandle ?? null
              },
              trans
            ) === null
          }
          // Not as state: nothing should be drawn again because of it.
          onMoveStart={() => host.current?.setAttribute('data-moving', '')}
          onMoveEnd={(_, place) => {
            host.current?.removeAttribute('data-moving');
            session.state.update({ viewport: place });
          }}
          defaultViewport={start}
          fitView={isFitted}
          fitViewOptions={FIT}
          minZoom={0.05}
          maxZoom={2}
          snapToGrid={isSnapping}
          snapGrid={GRID}
          nodesDraggable={!isReadOnly}
          nodesConnectable={!isReadOnly}
          edgesReconnectable={false}
          elevateNodesOnSelect={false}
          onlyRenderVisibleElements={flow.nodes.length > MANY}
          // Keys are commands, which people can set; see schema/pipeline.json.
          disableKeyboardA11y
          deleteKeyCode={null}
          selectionMode={SelectionMode.Partial}
          multiSelectionKeyCode={['Meta', 'Control', 'Shift']}
          zoomOnDoubleClick={false}
          connectionRadius={24}
          ariaLabelConfig={ariaLabels(trans)}
        >
          <Background
            variant={BackgroundVariant.Dots}
            gap={20}
            size={1.2}
            color="var(--jp-border-color1)"
          />
          {isMinimapOn && flow.nodes.length <= TOO_MANY && (
            <MiniMap
              pannable
              zoomable
              nodeClassName={node => `jp-mod-${node.type}`}
              className="jp-Convect-minimap"
              style={MINIMAP}
            />
          )}
          <Controls session={session} />
          <ConnectionHint session={session} />
          <Banner session={session} />
          <Finder session={session} onWriting={setWriting} />
          <Others session={session} host={host} />
        </ReactFlow>
        {flow.nodes.length === 0 && <EmptyHint session={session} />}
        <div id={`${session.id}-keys`} hidden>
          {trans.__(
            'Enter shows the properties, Space selects, the arrow keys move it, C connects it, D disables it, Delete removes it, the arrow keys with Control go to another node.'
          )}
        </div>
        <Announcer session={session} />
      </div>
    </CanvasContext.Provider>
  );
}

/** What the context menu is about. */
function contextOf(target: EventTarget): string {
  const element = target as HTMLElement;
  if (element.closest('.react-flow__node-step')) {
    return 'node step';
  }
  if (element.closest('.react-flow__node, .react-flow__nodesselection')) {
    return 'node';
  }
  return element.closest('.react-flow__edge') ? 'edge' : 'pane';
}

function startOf(nodes: readonly FlowNode[]): IViewport {
  const zoom = 0.8;
  const left = Math.min(...nodes.map(node => node.position.x));
  const top = Math.min(...nodes.map(node => node.position.y));
  return nodes.length
    ? { x: 40 - left * zoom, y: 40 - top * zoom, zoom }
    : { x: 0, y: 0, zoom: 1 };
}

function Announcer({ session }: { session: Session }): JSX.Element {
  const text = useStore(session.state, state => state.announcement);
  return (
    <div className="jp-Convect-announcer" role="status" aria-live="polite">
      {text}
    </div>
  );
}
