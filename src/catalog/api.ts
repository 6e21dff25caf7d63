import type { ConvectApi } from '../api';
import type {
  ICatalog,
  ICatalogs,
  ICatalogSettings,
  IComponent,
  IDefinition,
  IEntry
} from './types';

/** How many components the server gives at once. */
const PAGE = 5000;

/** The part of the REST interface that is about catalogs and components. */
export class CatalogApi {
  constructor(private readonly api: ConvectApi) {}

  catalogs(): Promise<ICatalogs> {
    return this.api.get('catalogs');
  }

  async entries(): Promise<IEntry[]> {
    const entries: IEntry[] = [];
    for (;;) {
      const { components, total } = await this.api.get<{
        components: IEntry[];
        total: number;
      }>('components', { limit: PAGE, offset: entries.length });
      entries.push(...components);
      if (components.length === 0 || entries.length >= total) {
        return entries;
      }
    }
  }

  component(digest: string): Promise<IComponent> {
    return this.api.get(componentPath(digest));
  }

  /** A new catalog, which the server begins to read. */
  add({ auth, ...settings }: ICatalogSettings): Promise<ICatalog> {
    return this.api.post('catalogs', auth ? { auth, ...settings } : settings);
  }

  /** Change a catalog, which the server begins to read again. */
  configure(id: string, settings: ICatalogSettings): Promise<ICatalog> {
    const change = { ...settings, kind: undefined };
    return this.api.send('PATCH', catalogPath(id), change);
  }

  async remove(id: string): Promise<void> {
    await this.api.send('DELETE', catalogPath(id));
  }

  /** Begin to read a catalog's source again. */
  refresh(id: string): Promise<ICatalog> {
    return this.api.post(`${catalogPath(id)}/refresh`, {});
  }

  /** Pin the updates with these digests. */
  take(id: string, digests: readonly string[]): Promise<ICatalog> {
    return this.api.post(`${catalogPath(id)}/take`, { digests });
  }

  /** What an update changes, as a unified diff. */
  async difference(digest: string, update: string): Promise<string> {
    const path = `${componentPath(digest)}/difference/${encode(update)}`;
    return (await this.api.get<{ difference: string }>(path)).difference;
  }

  /** A definition that a pipeline brings along, which no catalog may have. */
  describe(definition: IDefinition): Promise<IComponent> {
    return this.api.post('components/preview', { definition });
  }

  /** Let a component run on this machine without a container, or no longer. */
  approve(definition: IDefinition, approved: boolean): Promise<IComponent> {
    return this.api.post('components/approve', { definition, approved });
  }
}

function catalogPath(id: string): string {
  return `catalogs/${encode(id)}`;
}

function componentPath(digest: string): string {
  return `components/${encode(digest)}`;
}

function encode(part: string): string {
  return encodeURIComponent(part);
}
