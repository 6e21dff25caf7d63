import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONSchema7 } from 'json-schema';

import { sentenceOf } from '../api';
import { Observable } from '../ui/observable';
import type { Complaints, IFormValues } from './settings';
import { complaintsOf, NO_VALUES, settingsOf, valuesOf } from './settings';
import type { ICatalog, ICatalogSettings } from './types';

/** What somebody wants a catalog to be, until the server has taken it. */
export class CatalogForm extends Observable {
  constructor(
    readonly kind: string,
    readonly trans: TranslationBundle,
    private readonly send: (settings: ICatalogSettings) => Promise<ICatalog>,
    /** The catalog to change; null for a new one. */
    readonly catalog: ICatalog | null = null,
    /** What a third party's source wants to know. */
    readonly schema: JSONSchema7 | null = null
  ) {
    super();
    this._values = catalog ? valuesOf(catalog) : NO_VALUES;
  }

  get values(): IFormValues {
    return this._values;
  }

  /** What is wrong; nothing before somebody has tried to go on. */
  get complaints(): Complaints {
    return this._hasTried
      ? complaintsOf(this.kind, this._values, this.trans)
      : {};
  }

  /** Somebody has tried to go on. */
  get hasTried(): boolean {
    return this._hasTried;
  }

  /** What the server said against it. */
  get failure(): string | null {
    return this._failure;
  }

  get isSending(): boolean {
    return this._isSending;
  }

  set(change: Partial<IFormValues>): void {
    this._values = { ...this._values, ...change };
    this._failure = null;
    this.touch();
  }

  /** The catalog as the server has taken it; null when something has to be mended first. */
  async submit(): Promise<ICatalog | null> {
    this._hasTried = true;
    this.touch();
    if (Object.keys(this.complaints).length || this._isSending) {
      return null;
    }
    this._isSending = true;
    this.touch();
    try {
      return await this.send(settingsOf(this.kind, this._values));
    } catch (error) {
      this._failure = sentenceOf(error);
      return null;
    } finally {
      this._isSending = false;
      this.touch();
    }
  }

  private _failure: string | null = null;
  private _hasTried = false;
  private _isSending = false;
  private _values: IFormValues;
}
