import type { IOthersRun, IOthersRunView } from '../../api';
import type { IConvectApi } from '../../tokens';
import { isLive, ReadModel } from '../../ui';

const PAUSE = 10_000;

/** Runs of a runtime that were made elsewhere; they are read again while somebody looks. */
export class OthersModel extends ReadModel {
  constructor(
    readonly api: IConvectApi,
    readonly runtime: string
  ) {
    super(PAUSE);
  }

  /** What the runtime is called. */
  displayName: string | null = null;
  runs: readonly IOthersRun[] | null = null;
  /** Where the list goes on, if it does. */
  next: string | null = null;
  selected: string | null = null;
  view: IOthersRunView | null = null;

  select(id: string): void {
    if (id !== this.selected) {
      this.selected = id;
      this.view = null;
      this.touch();
      void this.attempt(() => this.readView());
    }
  }

  /** Runs that are older than those that are listed. */
  async more(): Promise<void> {
    const after = this.next;
    await this.attempt(async () => {
      const page = await this.ask(after ?? '');
      const known = new Set(this.runs?.map(({ id }) => id));
      this.runs = [
        ...(this.runs ?? []),
        ...page.runs.filter(({ id }) => !known.has(id))
      ];
      this.next = page.next;
    });
  }

  /** The newest again, before those that were there already. */
  protected async load(): Promise<void> {
    if (this.displayName === null) {
      const { runtimes } = await this.api.about();
      const own = runtimes.find(({ name }) => name === this.runtime);
      this.displayName = own?.display_name ?? this.runtime;
    }
    const page = await this.ask('');
    const fresh = new Set(page.runs.map(({ id }) => id));
    const older = this.runs?.filter(({ id }) => !fresh.has(id)) ?? [];
    if (!this.runs) {
      this.next = page.next;
    }
    this.runs = [...page.runs, ...older];
    if (this.view === null || isLive(this.view.state)) {
      await this.readView();
    }
  }

  private ask(after: string) {
    return this.api.othersRuns(this.runtime, { after });
  }

  private async readView(): Promise<void> {
    const id = this.selected;
    if (id === null) {
      return;
    }
    const view = await this.api.othersRun({ name: this.runtime, id });
    if (id === this.selected) {
      this.view = view;
    }
  }
}
