import type { IConvectApi } from '../api';
import { ConvectError } from '../api';
import type { Json } from './schema';
import type { Session } from './session';

interface IFound {
  digest: string;
  definition: { [key: string]: Json };
}

/** How long a catalog may take to read one address, in ms. */
const PATIENCE = 60000;

/**
 * Put the definition of a component into the document: from the server's store
 * or, when it is not there, read from where the node says it came from.
 */
export async function fetchComponent(
  session: Session,
  id: string
): Promise<void> {
  const { api, doc, trans } = session;
  const node = session.document.nodes[id];
  if (node?.kind !== 'component') {
    return;
  }
  const found =
    (await stored(api, node.component)) ?? (await read(api, node.source ?? ''));
  if (!found) {
    throw new Error(
      node.source
        ? trans.__('It is not at %1 any more.', node.source)
        : trans.__('The file does not say where it came from.')
    );
  }
  doc.edit(draft => {
    draft.put('components', found.digest, found.definition);
    draft.set(['nodes', id, 'component'], found.digest);
  });
  session.announce(
    found.digest === node.component
      ? trans.__('Fetched.')
      : trans.__(
          'Fetched, in a different version from the one in the pipeline.'
        )
  );
}

/**
 * Bring a component, wherever the pipeline uses it, to the version that the
 * catalogs have now. Gives the number of nodes that have another one since.
 */
export async function updateComponent(
  session: Session,
  id: string
): Promise<number> {
  const { api, doc } = session;
  const node = session.document.nodes[id];
  if (node?.kind !== 'component') {
    return 0;
  }
  const old = node.component;
  const { components } = await api.listComponents();
  const listed = components.filter(
    item => item.digest && item.source === node.source
  );
  const name = session.document.components?.[old]?.name;
  // A file may hold several: the one of that name, or the only one.
  const found =
    listed.find(item => item.name === name) ??
    (listed.length === 1 ? listed[0] : undefined);
  if (!found || found.digest === old) {
    return 0;
  }
  const newer = await stored(api, found.digest);
  if (!newer) {
    return 0;
  }
  const ids = Object.entries(session.document.nodes)
    .filter(([, item]) => item.kind === 'component' && item.component === old)
    .map(([item]) => item);
  doc.edit(draft => {
    draft.put('components', newer.digest, newer.definition);
    for (const item of ids) {
      draft.set(['nodes', item, 'component'], newer.digest);
    }
    draft.put('components', old, undefined);
  });
  return ids.length;
}

async function stored(
  api: IConvectApi,
  digest: string
): Promise<IFound | null> {
  try {
    const { definition } = await api.component(digest);
    return { digest, definition: definition as IFound['definition'] };
  } catch (error) {
    if (error instanceof ConvectError && error.isMissing) {
      return null;
    }
    throw error;
  }
}

/** Import an address as a catalog of its own, which stays only if it has something. */
async function read(api: IConvectApi, source: string): Promise<IFound | null> {
  if (!/^https?:/.test(source)) {
    return null;
  }
  const { id } = await api.addCatalog({
    name: source.slice(source.lastIndexOf('/') + 1) || source,
    kind: 'url',
    urls: [source]
  });
  const found = await firstOf(api, id);
  if (!found) {
    await api.deleteCatalog(id);
  }
  return found;
}

/** The first component of a catalog, once it has been read. */
async function firstOf(api: IConvectApi, id: string): Promise<IFound | null> {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    const { catalogs } = await api.catalogs();
    const catalog = catalogs.find(item => item.id === id);
    if (catalog && !catalog.progress) {
      const { components } = await api.listComponents({ catalog: id });
      const [first] = components.filter(item => item.digest);
      return first ? stored(api, first.digest) : null;
    }
    await new Promise(resolve => setTimeout(resolve, 500));
  }
  return null;
}
