import type { Event } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ConvectApi, IRunEvent, IRunSummary, ITrouble } from '../api';
import { RUN_EVENT, SWEEP_EVENT } from '../api';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';
import { LIVE } from '../ui/states';

/** How many live runs are known by name; the number of all is always known. */
const LIVE_LIMIT = 100;

/**
 * What is going on now, over all runtimes.
 *
 * It listens to the events of the server, and asks slowly as well, because an
 * event can be missed. Everything that shows runs listens to this one model.
 */
export class RunsModel extends Observable {
  constructor(
    readonly api: ConvectApi,
    events: Event.IManager,
    standby: Poll.Standby = 'when-hidden'
  ) {
    super();
    this._stream = events.stream;
    this._stream.connect(this.onEvent, this);
    this._refresh = new Coalesced(
      () => this.load().catch(() => undefined),
      400
    );
    this._poll = new Poll({
      name: 'jupyterlab-convect:runs',
      factory: () => Promise.all([this.load(), this.loadHealth()]),
      frequency: { interval: 10000, backoff: true, max: 15000 },
      standby
    });
    this._poll.ticked.connect(this.onTick, this);
  }

  /** Runs that have not ended, the newest first; not all of them when there are many. */
  get live(): readonly IRunSummary[] {
    return this._live;
  }

  get liveCount(): number {
    return this._liveCount;
  }

  /** The server did not answer when it was last asked. */
  get isUnreachable(): boolean {
    return this._isUnreachable;
  }

  /** What of the server does not work now. */
  get troubles(): readonly ITrouble[] {
    return this._troubles;
  }

  /** One run has changed. */
  get runChanged(): ISignal<this, IRunEvent> {
    return this._runChanged;
  }

  /** A sweep has changed; the id. */
  get sweepChanged(): ISignal<this, string> {
    return this._sweepChanged;
  }

  /** Time to ask again for everything that is shown, lest an event was missed. */
  get healing(): ISignal<this, void> {
    return this._healing;
  }

  refresh(): void {
    this._refresh.request();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._stream.disconnect(this.onEvent, this);
    this._poll.dispose();
    this._refresh.dispose();
    super.dispose();
  }

  private onEvent(_: Event.IManager, event: Event.Emission): void {
    if (event.schema_id === RUN_EVENT) {
      this._runChanged.emit(event as unknown as IRunEvent);
      this._refresh.request();
    } else if (event.schema_id === SWEEP_EVENT) {
      this._sweepChanged.emit(String(event.sweep));
    }
  }

  private onTick(_: IDisposable, state: { phase: string }): void {
    if (state.phase === 'resolved') {
      this._healing.emit();
    }
  }

  private async load(): Promise<void> {
    try {
      const page = await this.api.listRuns({
        state: [...LIVE],
        limit: LIVE_LIMIT
      });
      this._live = page.runs;
      this._liveCount = page.total;
      this._isUnreachable = false;
      this.touch();
    } catch (error) {
      if (!this._isUnreachable) {
        this._isUnreachable = true;
        this.touch();
      }
      throw error;
    }
  }

  /** What cannot be asked stays as it was: that the server is away is said already. */
  private async loadHealth(): Promise<void> {
    const about = await this.api.about().catch(() => null);
    if (about && (about.health.length || this._troubles.length)) {
      this._troubles = about.health;
      this.touch();
    }
  }

  private _healing = new Signal<this, void>(this);
  private _isUnreachable = false;
  private _live: IRunSummary[] = [];
  private _liveCount = 0;
  private _poll: Poll;
  private _refresh: Coalesced;
  private _runChanged = new Signal<this, IRunEvent>(this);
  private _stream: Event.Stream;
  private _sweepChanged = new Signal<this, string>(this);
  private _troubles: ITrouble[] = [];
}
