import type { JSONSchema7 } from 'json-schema';

import type { Json } from '../pipeline/schema';

/** Names what is sent to prove who asks; the secret itself stays where it is. */
export interface IAuth {
  /** An environment variable of the server. */
  env?: string;
  /** A secret of the keyring, and the key in it. */
  name?: string;
  key?: string;
  scheme?: string;
}

/** How a catalog is configured. */
export interface ICatalogSettings {
  name: string;
  /** `url`, `file`, `folder`, or what a third party adds. */
  kind: string;
  urls?: string[];
  path?: string | null;
  categories?: string[];
  auth?: IAuth | null;
  /** Addresses to read instead of references that are dead. */
  replacements?: { [url: string]: string };
  /** What only a third party's source understands. */
  options?: { [name: string]: Json };
  /** Seconds between two looks for changes; null: only when somebody asks. */
  refresh?: number | null;
}

/** The catalogs there are, and those there can be. */
export interface ICatalogs {
  catalogs: ICatalog[];
  kinds: string[];
  /** JSON Schema of the options of each third party's kind. */
  schemas: { [kind: string]: JSONSchema7 };
}

/** What was wrong when a source was read. */
export interface IReadingError {
  file?: string;
  /** From 1; 0 or missing means the file as a whole. */
  line?: number;
  message: string;
  hint?: string | null;
}

/** A catalog as lists show it. */
export interface ICatalog extends ICatalogSettings {
  id: string;
  /** Seconds since 1970; null before the first time. */
  refreshed?: number | null;
  /** Why nothing could be read at all. */
  error?: IReadingError | null;
  /** While it is being read. */
  progress?: { done: number; total: number } | null;
  counts: { components: number; errors: number; updates: number };
}

/** A component as lists show it, or why there is none. */
export interface IEntry {
  catalog: string;
  source: string;
  /** Which one it is in a file of several. */
  part: number;
  /** Empty when it could not be read so far. */
  digest: string;
  name: string;
  description: string;
  image: string;
  inputs: readonly string[];
  outputs: readonly string[];
  categories: readonly string[];
  /** The digest of a newer text that can be taken. */
  update: string | null;
  /** It is no longer where it came from; it goes on working. */
  gone: boolean;
  error: IReadingError | null;
}

export interface IContainer {
  image: string;
  command?: Json[];
  args?: Json[];
  env?: { [name: string]: Json };
}

/** A complete definition, as pipelines embed it; what has its default is left out. */
export interface IDefinition {
  name: string;
  container?: IContainer;
  graph?: { components?: { [key: string]: IDefinition } };
  [key: string]: unknown;
}

/** An input or an output. */
export interface IEnd {
  name: string;
  /** As the component names it; empty when it does not. */
  type: string;
  description: string;
  passed: 'value' | 'file';
  /** Only inputs have these. */
  default?: Json;
  required?: boolean;
}

/** All that there is to see of a component. */
export interface IComponent {
  digest: string;
  name: string;
  description: string;
  inputs: readonly IEnd[];
  outputs: readonly IEnd[];
  image: string | null;
  /** The parts of a graph. */
  tasks: readonly {
    name: string;
    component: string;
    unsupported: string | null;
  }[];
  /** What keeps it from running outside of Kubeflow, as sentences. */
  unsupported: readonly string[];
  /** Python packages that it needs when it runs without its image. */
  packages: readonly string[];
  definition: IDefinition;
  /** Whether it may run on this machine without a container. */
  approved: boolean;
  /** Whether this machine can run containers. */
  contained: boolean;
}
