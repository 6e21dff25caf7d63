import type { IDiscovery } from '../api';
import { wholeReference } from './expressions';
import type { IEdge, StepNode } from './graph';
import { declaredFiles } from './graph';
import type { Json } from './schema';
import { isObject } from './serialize';

/** A value that a node takes or gives. */
export interface IPort {
  name: string;
  /** `string`, `integer`, …; missing when it is not known. */
  type?: string;
  help?: string;
  default?: Json;
  choices?: Json[];
  isRequired?: boolean;
  /** The node says a value of its own, other than an output of a node. */
  isSet?: boolean;
  /** It takes, or something takes from it, a value over an edge. */
  isWired?: boolean;
  /** The file or component does not know it. */
  isUnknown?: boolean;
  /** Passed as a file, not as a value. */
  isFile?: boolean;
  /** A file that the node declares: its name is a path, or a pattern of paths. */
  isPath?: boolean;
}

export interface IPorts {
  inputs: IPort[];
  outputs: IPort[];
}

/** The facts of a file, or why there are none. */
export type Found = IDiscovery | { error: string; isMissing: boolean };

export function hasFacts(found: Found | undefined): found is IDiscovery {
  return found !== undefined && !('error' in found);
}

/** The ports of a node, known ones first, in their own order. */
export function portsOf(
  id: string,
  node: StepNode,
  found: Found | undefined,
  definition: Json | undefined,
  edges: readonly IEdge[]
): IPorts {
  const declared =
    node.kind === 'component'
      ? componentPorts(definition)
      : discoveredPorts(found);
  const values =
    (node.kind === 'component' ? node.inputs : node.parameters) ?? {};
  const inputs = new Map(declared.inputs.map(port => [port.name, port]));
  for (const [name, value] of Object.entries(values)) {
    const isWired = wholeReference(value)?.kind === 'output';
    inputs.set(name, {
      ...(inputs.get(name) ?? unknown(name, declared.isComplete)),
      isSet: !isWired,
      isWired
    });
  }
  const outputs = new Map(declared.outputs.map(port => [port.name, port]));
  for (const edge of edges) {
    if (edge.kind === 'value' && edge.source === id && edge.output) {
      const known = outputs.get(edge.output);
      outputs.set(edge.output, {
        ...(known ?? unknown(edge.output, declared.areOutputsComplete)),
        isWired: true
      });
    }
  }
  const files = declaredFiles(node).map((name): IPort => ({
    name,
    isPath: true,
    isWired: edges.some(edge => edge.kind === 'file' && edge.output === name)
  }));
  return {
    inputs: [...inputs.values()],
    outputs: [...outputs.values(), ...files]
  };
}

function unknown(name: string, isComplete: boolean): IPort {
  return isComplete ? { name, isUnknown: true } : { name };
}

interface IDeclared extends IPorts {
  /** There are no others than these. */
  isComplete: boolean;
  areOutputsComplete: boolean;
}

function discoveredPorts(found: Found | undefined): IDeclared {
  if (!hasFacts(found)) {
    return {
      inputs: [],
      outputs: [],
      isComplete: false,
      areOutputsComplete: false
    };
  }
  return {
    inputs: (found.parameters ?? []).map(parameter => ({
      name: parameter.name,
      type: parameter.type ?? undefined,
      help: parameter.help ?? undefined,
      default: parameter.default,
      choices: parameter.choices?.length ? parameter.choices : undefined,
      isRequired: parameter.required
    })),
    outputs: (found.outputs ?? []).map(name => ({ name })),
    isComplete: found.kind === 'notebook' && !!found.parameters,
    areOutputsComplete: !!found.outputs
  };
}

/** The ends of a component, as the definition in the document has them. */
function componentPorts(definition: Json | undefined): IDeclared {
  const isKnown = isObject(definition);
  return {
    inputs: isKnown ? ends(definition.inputs, 'value') : [],
    outputs: isKnown ? ends(definition.outputs, 'file') : [],
    isComplete: isKnown,
    areOutputsComplete: isKnown
  };
}

/** Definitions leave out what has its default, such as the way of passing. */
function ends(value: Json | undefined, passed: 'value' | 'file'): IPort[] {
  return (Array.isArray(value) ? value : [])
    .filter(isObject)
    .filter(end => typeof end.name === 'string')
    .map(end => ({
      name: end.name as string,
      type: typeName(end.type),
      help: typeof end.description === 'string' ? end.description : undefined,
      default: end.default ?? undefined,
      isFile: (end.passed ?? passed) === 'file' || undefined,
      isRequired:
        passed === 'value' && !end.optional && (end.default ?? null) === null
    }));
}

function typeName(type: Json | undefined): string | undefined {
  if (typeof type === 'string') {
    return type;
  }
  return isObject(type) ? Object.keys(type)[0] : undefined;
}
