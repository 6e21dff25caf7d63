import type { IChangedArgs } from '@jupyterlab/coreutils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Contents } from '@jupyterlab/services';
import type { PartialJSONValue } from '@lumino/coreutils';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IPipelineChange } from './model';
import { PipelineDoc } from './model';

export const CONTENT_TYPE = 'pipeline';

/** The shared document as JupyterLab's document manager wants to see it. */
export class PipelineModel implements DocumentRegistry.IModel {
  constructor(options: DocumentRegistry.IModelOptions<PipelineDoc> = {}) {
    this.sharedModel = options.sharedModel ?? PipelineDoc.create();
    this.collaborative = !!options.collaborationEnabled;
    this.sharedModel.changed.connect(this._onChange, this);
  }

  readonly sharedModel: PipelineDoc;
  readonly collaborative: boolean;
  readonly defaultKernelName = '';
  readonly defaultKernelLanguage = '';

  get contentChanged(): ISignal<this, void> {
    return this._contentChanged;
  }

  get stateChanged(): ISignal<this, IChangedArgs<unknown>> {
    return this._stateChanged;
  }

  get dirty(): boolean {
    return this.sharedModel.dirty;
  }

  set dirty(value: boolean) {
    if (value !== this.dirty) {
      this.sharedModel.dirty = value;
    }
  }

  get readOnly(): boolean {
    return this._readOnly;
  }

  set readOnly(newValue: boolean) {
    if (newValue !== this._readOnly) {
      const oldValue = this._readOnly;
      this._readOnly = newValue;
      this._stateChanged.emit({ name: 'readOnly', oldValue, newValue });
    }
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (!this._isDisposed) {
      this._isDisposed = true;
      this.sharedModel.dispose();
      Signal.clearData(this);
    }
  }

  toString(): string {
    return this.sharedModel.getSource();
  }

  fromString(value: string): void {
    this.sharedModel.setSource(value);
    this.dirty = false;
  }

  toJSON(): PartialJSONValue {
    return JSON.parse(this.toString() || 'null');
  }

  fromJSON(value: PartialJSONValue): void {
    this.fromString(JSON.stringify(value));
  }

  initialize(): void {
    // The document is complete as it comes.
  }

  private _onChange(_: PipelineDoc, change: IPipelineChange): void {
    if (change.contentChange) {
      this._contentChanged.emit();
    }
    for (const item of change.stateChange ?? []) {
      if (item.oldValue !== item.newValue) {
        this._stateChanged.emit({
          name: item.name,
          oldValue: item.oldValue,
          newValue: item.newValue
        });
      }
    }
  }

  private _readOnly = false;
  private _isDisposed = false;
  private _contentChanged = new Signal<this, void>(this);
  private _stateChanged = new Signal<this, IChangedArgs<unknown>>(this);
}

export class PipelineModelFactory implements DocumentRegistry.IModelFactory<PipelineModel> {
  /** Only a shared document has a content type of its own on the server. */
  constructor(isShared: boolean) {
    this.contentType = isShared ? CONTENT_TYPE : 'file';
  }

  readonly name = 'pipeline';
  readonly contentType: Contents.ContentType;
  readonly fileFormat: Contents.FileFormat = 'text';
  readonly collaborative = true;

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
  }

  createNew(
    options?: DocumentRegistry.IModelOptions<PipelineDoc>
  ): PipelineModel {
    return new PipelineModel(options);
  }

  preferredLanguage(): string {
    return '';
  }

  private _isDisposed = false;
}
