import type { ICatalogEntry } from '../api';
import type { Components } from '../api/schema';

export type {
  ICatalog,
  ICatalogs,
  IContainer,
  IDefinition,
  IReadingError
} from '../api';

type Schemas = Components['schemas'];

/** How a catalog is configured. */
export type ICatalogSettings = Schemas['CatalogBody'] & { kind: string };

/** A component as lists show it, or why there is none. */
export type IEntry = ICatalogEntry;

/** An input or an output. */
export type IEnd = Schemas['ComponentEnd'];

/** All that there is to see of a component. */
export type IComponent = Schemas['ComponentView'];
