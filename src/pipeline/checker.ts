import type { JSONObject } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Debouncer } from '@lumino/polling';

import type { IConvectApi, IProblem } from '../api';
import type { IDocument } from './schema';
import { Store } from './store';

/** Long enough not to check every letter, short enough to feel immediate. */
const DELAY = 300;

const ORDER = { error: 0, warning: 1, info: 2 } as const;

export interface IChecked {
  problems: readonly IProblem[];
  /** The server did not answer: `problems` are those of an earlier state. */
  isStale: boolean;
}

/** Asks the server's validator whenever the document has changed. */
export class Checker implements IDisposable {
  constructor(
    private readonly api: IConvectApi,
    private readonly read: () => { document: IDocument; path: string } | null
  ) {
    this._debouncer = new Debouncer(() => this.check(), DELAY);
  }

  readonly store = new Store<IChecked>({ problems: [], isStale: false });

  get isDisposed(): boolean {
    return this._debouncer.isDisposed;
  }

  dispose(): void {
    this._debouncer.dispose();
    this.store.dispose();
  }

  request(): void {
    this._debouncer.invoke().catch(() => undefined);
  }

  /** Check now. */
  async check(): Promise<void> {
    const subject = this.read();
    const turn = ++this._turn;
    if (!subject) {
      return;
    }
    try {
      const answer = await this.api.validate({
        ...subject,
        document: subject.document as unknown as JSONObject
      });
      if (turn === this._turn && !this.isDisposed) {
        const problems = [...answer.problems].sort(
          (a, b) => ORDER[a.severity] - ORDER[b.severity]
        );
        const isSame =
          JSON.stringify(problems) ===
          JSON.stringify(this.store.value.problems);
        this.store.update({
          isStale: false,
          ...(isSame ? {} : { problems })
        });
      }
    } catch {
      if (turn === this._turn && !this.isDisposed) {
        this.store.update({ isStale: true });
      }
    }
  }

  private _debouncer: Debouncer;
  private _turn = 0;
}
