import { boxesOf } from './boxes';
import type { IEdge } from './graph';
import { layOut } from './layout';
import type { IDocument, Json, Node } from './schema';
import { VERSION } from './schema';
import { isObject } from './serialize';
import type { IInner, IInnerEdge, INodeView, ISurroundings } from './views';
import { ViewMaker } from './views';

const MARGIN = 20;

type JsonObject = { [key: string]: Json };

/**
 * What is in a graph component: its tasks, laid out, with the wires between
 * them and to the ends of the graph itself. The tasks have the ids of their
 * steps, `node.task`, so that the state of a run finds them.
 */
export function unfold(
  id: string,
  definition: JsonObject,
  around: ISurroundings
): IInner {
  const graph = isObject(definition.graph) ? definition.graph : {};
  const tasks = isObject(graph.tasks) ? graph.tasks : {};
  const ids = stepIds(id, Object.keys(tasks));
  const document = innerDocument(graph, tasks, ids);
  const edges = taskEdges(tasks, ids);
  const views = new ViewMaker().make(document, edges, around);
  markWired(views, tasks, ids);
  const boxes = boxesOf(document, views);
  let [width, height] = [0, 0];
  for (const [task, { x, y }] of layOut(document, boxes, edges)) {
    const box = { ...boxes.get(task)!, x: x + MARGIN, y: y + MARGIN };
    boxes.set(task, box);
    width = Math.max(width, box.x + box.width + MARGIN);
    height = Math.max(height, box.y + box.height + MARGIN);
  }
  return {
    views,
    boxes,
    edges: [
      ...edges.map(innerEdge),
      ...inputEdges(id, tasks, ids),
      ...outputEdges(id, graph.outputs, ids)
    ],
    width,
    height
  };
}

/** The ids of steps, as the server makes them from the names of tasks. */
export function stepIds(
  node: string,
  tasks: readonly string[]
): Map<string, string> {
  const found = new Map<string, string>();
  const taken = new Set<string>();
  for (const task of tasks) {
    const words = task
      .replace(/[^\p{L}\p{N}_]+/gu, '-')
      .replace(/^-+|-+$/g, '')
      .toLowerCase();
    const short = [...words].slice(0, 50).join('');
    const stem = `${node}.${['', 'outputs'].includes(short) ? 'task' : short}`;
    let id = stem;
    for (let number = 2; taken.has(id); number += 1) {
      id = `${stem}-${number}`;
    }
    taken.add(id);
    found.set(task, id);
  }
  return found;
}

/** The tasks as the nodes of a document: what canvas and layout know how to draw. */
function innerDocument(
  graph: JsonObject,
  tasks: JsonObject,
  ids: ReadonlyMap<string, string>
): IDocument {
  const nodes: { [id: string]: Node } = {};
  for (const [name, task] of Object.entries(tasks)) {
    nodes[ids.get(name)!] = {
      kind: 'component',
      name,
      component: isObject(task) ? String(task.component) : '',
      inputs: argumentsOf(task)
    };
  }
  const components = isObject(graph.components) ? graph.components : {};
  return {
    convect: VERSION,
    nodes,
    components: components as IDocument['components']
  };
}

/** Between the tasks: values, and order where no value says it. */
function taskEdges(
  tasks: JsonObject,
  ids: ReadonlyMap<string, string>
): IEdge[] {
  return Object.entries(tasks).flatMap(([name, task]) => {
    const target = ids.get(name)!;
    const values = Object.entries(argumentsOf(task)).flatMap(
      ([input, argument]): IEdge[] => {
        const taken = takenFrom(argument);
        const source = ids.get(taken?.task ?? '');
        return !taken || source === undefined
          ? []
          : [
              {
                id: `${source}.${taken.output}>${target}.${input}`,
                kind: 'value',
                source,
                target,
                output: taken.output,
                path: ['inputs', input]
              }
            ];
      }
    );
    const wired = new Set(values.map(edge => edge.source));
    const order = textsOf(isObject(task) ? task.after : undefined)
      .map(other => ids.get(other))
      .filter(source => source !== undefined && !wired.has(source))
      .map((source): IEdge => ({
        id: `${source}>${target}`,
        kind: 'order',
        source: source!,
        target
      }));
    return [...values, ...order];
  });
}

/** An end that takes an input of the graph or an output of a task is wired, not set. */
function markWired(
  views: ReadonlyMap<string, INodeView>,
  tasks: JsonObject,
  ids: ReadonlyMap<string, string>
): void {
  for (const [name, task] of Object.entries(tasks)) {
    const view = views.get(ids.get(name)!);
    for (const port of view?.inputs ?? []) {
      const argument = argumentsOf(task)[port.name];
      if (givenBy(argument) !== null || takenFrom(argument)) {
        port.isWired = true;
        port.isSet = false;
      }
    }
  }
}

function innerEdge(edge: IEdge): IInnerEdge {
  return {
    id: edge.id,
    kind: edge.kind,
    source: edge.source,
    target: edge.target,
    output: edge.output,
    input: edge.path?.[1]
  };
}

/** From the inputs of the graph to the tasks that take them. */
function inputEdges(
  node: string,
  tasks: JsonObject,
  ids: ReadonlyMap<string, string>
): IInnerEdge[] {
  return Object.entries(tasks).flatMap(([name, task]) =>
    Object.entries(argumentsOf(task)).flatMap(([input, argument]) => {
      const output = givenBy(argument);
      const target = ids.get(name)!;
      return output === null
        ? []
        : [
            {
              id: `${node}:${output}>${target}.${input}`,
              kind: 'value' as const,
              source: node,
              output,
              target,
              input
            }
          ];
    })
  );
}

/** From the tasks to the outputs of the graph. */
function outputEdges(
  node: string,
  outputs: Json | undefined,
  ids: ReadonlyMap<string, string>
): IInnerEdge[] {
  return Object.entries(isObject(outputs) ? outputs : {}).flatMap(
    ([input, argument]) => {
      const taken = takenFrom(argument);
      const source = ids.get(taken?.task ?? '');
      return !taken || source === undefined
        ? []
        : [
            {
              id: `${source}.${taken.output}>${node}:${input}`,
              kind: 'value' as const,
              source,
              output: taken.output,
              target: node,
              input
            }
          ];
    }
  );
}

function argumentsOf(task: Json): JsonObject {
  return isObject(task) && isObject(task.arguments) ? task.arguments : {};
}

function takenFrom(
  argument: Json | undefined
): { task: string; output: string } | null {
  const taken = isObject(argument) ? argument.taskOutput : undefined;
  return isObject(taken)
    ? { task: String(taken.task), output: String(taken.output) }
    : null;
}

function givenBy(argument: Json | undefined): string | null {
  return isObject(argument) && typeof argument.graphInput === 'string'
    ? argument.graphInput
    : null;
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
