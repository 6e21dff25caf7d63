import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { ISharedFile } from '@jupyter/ydoc';
import type { JSONValue } from '@lumino/coreutils';

import type { IOffering, ITrainingCheck, ITrainingField } from '../api';
import { sentenceOf } from '../api';
import type { IConvectApi } from '../tokens';
import { offeringOf } from '../settings/offering';
import { Coalesced, Observable } from '../ui';

const PAUSE = 400;

/** A training job in an editor: what is wrong with it, and what its form shows. */
export class TrainingModel extends Observable {
  constructor(
    readonly api: IConvectApi,
    readonly context: DocumentRegistry.Context
  ) {
    super();
    this._checks = new Coalesced(() => this.check(), PAUSE);
    context.model.contentChanged.connect(this.onChange, this);
    this._checks.request();
    void offeringOf(api).then(offering => {
      this.offering = offering;
      this.touch();
    });
  }

  /** What an administrator offers, once that is known. */
  offering: IOffering | null = null;
  /** Null until the server has looked at it. */
  found: ITrainingCheck | null = null;
  /** Why the last thing that was asked for was not done. */
  failure: string | null = null;

  get text(): string {
    return this.context.model.toString();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.context.model.contentChanged.disconnect(this.onChange, this);
      this._checks.dispose();
      super.dispose();
    }
  }

  /** Put right what has one remedy. */
  mend(): void {
    const mended = this.found?.mended;
    if (mended) {
      this.write(mended);
    }
  }

  /** Write another value of a field into the text. */
  async change(field: ITrainingField, value: JSONValue): Promise<void> {
    await this.attempt(async () => {
      const before = this.text;
      const { text } = await this.api.changeTraining({
        text: before,
        paths: field.paths,
        value
      });
      if (this.text === before) {
        this.write(text);
      }
    });
  }

  /** Do something, and say why if it cannot be done. */
  async attempt<T>(work: () => Promise<T>): Promise<T | null> {
    try {
      this.failure = null;
      return await work();
    } catch (error) {
      this.failure = sentenceOf(error);
      return null;
    } finally {
      this.touch();
    }
  }

  private onChange(): void {
    this._checks.request();
  }

  private async check(): Promise<void> {
    const { text } = this;
    const found = await this.attempt(() => this.api.checkTraining({ text }));
    if (found && text === this.text) {
      this.found = found;
      this.touch();
    }
  }

  /** Only what differs is replaced, so that cursors stay where they are. */
  private write(text: string): void {
    const before = this.text;
    const most = Math.min(before.length, text.length);
    let start = 0;
    while (start < most && before[start] === text[start]) {
      start += 1;
    }
    let same = 0;
    while (
      same < most - start &&
      before[before.length - 1 - same] === text[text.length - 1 - same]
    ) {
      same += 1;
    }
    const shared = this.context.model.sharedModel as unknown as ISharedFile;
    shared.updateSource(
      start,
      before.length - same,
      text.slice(start, text.length - same)
    );
  }

  private _checks: Coalesced;
}
