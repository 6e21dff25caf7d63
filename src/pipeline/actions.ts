import { Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { FileDialog } from '@jupyterlab/filebrowser';

import { WIDTH } from './boxes';
import * as edits from './edits';
import type { IBox, IPoint } from './graph';
import { foldedInto, isFolded, isGroup, isStep, lineOf } from './graph';
import { isRunnable, kindOf } from './ids';
import type { Json, Node } from './schema';
import type { IAddition, Session } from './session';
import { focusedId, nodeTargets, targets } from './targets';

/** The node for a file, with the id that suits it. */
export function nodeForFile(path: string): { id: string; node: Node } {
  const suffix = PathExt.extname(path);
  return {
    id: PathExt.basename(path, suffix),
    node: { kind: kindOf(path) ?? 'notebook', path }
  };
}

/** Leave nodes out of runs, or put them back. */
export function toggleDisabled(session: Session): void {
  const { doc, trans } = session;
  session.announce(
    edits.toggleDisabled(doc, nodeTargets(session))
      ? trans.__('Disabled.')
      : trans.__('Enabled.')
  );
}

/** Select the node that the keyboard is on, or not any more. */
export function toggleSelected(session: Session): void {
  const id = focusedId(session, 'node');
  if (id !== null) {
    const selection = new Set(session.state.value.selection);
    const wasSelected = selection.delete(id);
    if (!wasSelected) {
      selection.add(id);
    }
    session.state.update({ selection });
    session.announce(
      wasSelected
        ? session.trans.__('Not selected.')
        : session.trans.__('Selected.')
    );
  }
}

/** Add files of the server as nodes, side by side, and select them. */
export function addPaths(
  session: Session,
  paths: readonly string[],
  at: IAddition = {}
): string[] {
  const runnable = paths.filter(isRunnable);
  const refused = paths.filter(path => !isRunnable(path));
  if (refused.length) {
    const names = refused.map(path => PathExt.basename(path)).join(', ');
    Notification.info(
      session.trans.__(
        'Only notebooks, scripts and pipelines can be nodes, so %1 was left out.',
        names
      ),
      { autoClose: 6000 }
    );
  }
  if (runnable.length === 0) {
    return [];
  }
  const start = placeOf(session, at);
  const ids = edits.addNodes(
    session.doc,
    runnable.map((path, index) => {
      const { id, node } = nodeForFile(session.relative(path));
      return {
        id,
        node: { ...node, ...afterOf(at) },
        at: { x: start.x, y: start.y + index * 130 }
      };
    })
  );
  session.select(ids);
  session.announce(
    session.trans._n('%1 node added.', '%1 nodes added.', ids.length)
  );
  return ids;
}

/** What the catalog's drags carry. */
export interface IComponentDrop {
  digest: string;
  definition: { [key: string]: Json };
  name: string;
  source?: string;
}

/** Add a component of the catalog, with its definition. */
export function addComponent(
  session: Session,
  text: string,
  at: IPoint = freePlace(session)
): void {
  const { digest, definition, name, source } = JSON.parse(
    text
  ) as IComponentDrop;
  const node: Node = { kind: 'component', name, component: digest };
  if (source) {
    node.source = source;
  }
  const ids = edits.addNodes(session.doc, [{ id: name, node, at }], {
    [digest]: definition
  });
  session.select(ids);
  session.announce(session.trans.__('%1 added.', name));
}

function placeOf(session: Session, { x, y }: IAddition): IPoint {
  return x === undefined || y === undefined ? freePlace(session) : { x, y };
}

function afterOf({ after }: IAddition): { after?: string[] } {
  return after === undefined ? {} : { after: [after] };
}

/** The middle of the canvas, moved until nothing is there. */
export function freePlace(session: Session): IPoint {
  const center = session.canvas?.center() ?? { x: 0, y: 0 };
  const place = { x: snap(center.x - WIDTH / 2), y: snap(center.y - 30) };
  const taken = [...session.boxes.values()];
  const size = { width: WIDTH, height: 110 };
  while (taken.some(box => overlap(box, { ...place, ...size }))) {
    place.y += 40;
  }
  return place;
}

function overlap(one: IBox, two: IBox): boolean {
  return (
    one.x < two.x + two.width &&
    two.x < one.x + one.width &&
    one.y < two.y + two.height &&
    two.y < one.y + one.height
  );
}

function snap(value: number): number {
  return Math.round(value / 10) * 10;
}

/** Choose files in a dialog; the same as dragging them, by keyboard. */
export async function addFiles(
  session: Session,
  at: IAddition = {}
): Promise<void> {
  const { trans } = session;
  const result = await FileDialog.getOpenFiles({
    manager: session.docManager,
    title: trans.__('Add notebooks, scripts or pipelines'),
    defaultPath: session.folder,
    filter: item =>
      item.type === 'directory' || isRunnable(item.path) ? {} : null
  });
  if (result.button.accept && result.value) {
    const ids = addPaths(
      session,
      result.value
        .filter(item => item.type !== 'directory')
        .map(item => session.contents.localPath(item.path)),
      at
    );
    focusOn(session, ids[0]);
  }
}

export function addCommand(session: Session, at: IAddition = {}): void {
  const [id] = edits.addNodes(session.doc, [
    {
      id: 'command',
      node: { kind: 'command', command: ['echo', 'hello'], ...afterOf(at) },
      at: placeOf(session, at)
    }
  ]);
  session.showProperties(id);
}

export function addNote(session: Session): void {
  const { x, y } = freePlace(session);
  const about = [...session.state.value.selection].filter(id =>
    isStep(session.document.nodes[id])
  );
  const text = session.trans.__('**Note**');
  const id = edits.addComment(session.doc, text, [x, y, 220, 100], about);
  session.select([id]);
  session.canvas?.editNote(id);
}

/** Give the keyboard to a node, if there is one. */
export function focusOn(session: Session, id: string | undefined): void {
  if (id !== undefined) {
    session.canvas?.focus(id);
  }
}

export function removeTargets(session: Session): void {
  const ids = targets(session);
  const focused = focusedId(session, 'edge');
  const lines = new Set(session.state.value.selectedEdges);
  if (focused !== null) {
    lines.add(focused);
  }
  const hidden = foldedInto(session.document);
  const lost = session.edges.filter(edge => lines.has(lineOf(edge, hidden).id));
  if (ids.length === 0 && lost.length === 0) {
    return;
  }
  const next = neighbour(session, ids);
  edits.remove(session.doc, withMembersOfFolded(session, ids), lost);
  session.select([]);
  session.announce(
    ids.length
      ? session.trans._n('%1 removed.', '%1 removed.', ids.length)
      : session.trans.__('Connection removed.')
  );
  focusOn(session, next);
}

/** A folded group goes with what is in it; an open one only as a frame. */
function withMembersOfFolded(session: Session, ids: string[]): string[] {
  const { document } = session;
  const all = new Set(ids);
  for (const id of all) {
    const node = document.nodes[id];
    if (node && isGroup(node) && isFolded(document, id)) {
      node.members.forEach(member => all.add(member));
    }
  }
  return [...all];
}

/** The node that keeps the keyboard when these are gone. */
function neighbour(session: Session, ids: string[]): string | undefined {
  const edge = session.edges.find(
    item => ids.includes(item.target) && !ids.includes(item.source)
  );
  return (
    edge?.source ??
    Object.keys(session.document.nodes).find(id => !ids.includes(id))
  );
}

export function selectAll(session: Session): void {
  const { nodes, comments = {} } = session.document;
  session.select([...Object.keys(nodes), ...Object.keys(comments)]);
}
