/**
 * Keeps the keyboard on a canvas whose nodes come, go and are drawn anew.
 *
 * A node that is wanted gets it in the moment in which it is there, before
 * another key is heard; and no key is lost because the node that had the
 * keyboard is gone.
 */
export class FocusKeeper {
  /** `onFound` is told of a node that had to be waited for. */
  constructor(
    private readonly host: HTMLElement,
    private readonly onFound: (id: string) => void
  ) {
    this._observer = new MutationObserver(() => this.onDrawn());
    this._observer.observe(host, { childList: true, subtree: true });
    document.addEventListener('focusin', this);
  }

  dispose(): void {
    this._observer.disconnect();
    document.removeEventListener('focusin', this);
  }

  /** Give the keyboard to a node, now or as soon as it is drawn. */
  focus(id: string): void {
    this._wanted = this.give(id) ? null : id;
  }

  handleEvent({ target }: Event): void {
    const element = target as HTMLElement;
    this._last = this.host.contains(element) ? element : null;
    if (element !== this.host) {
      // Somebody has gone elsewhere meanwhile.
      this._wanted = null;
    }
  }

  private onDrawn(): void {
    const wanted = this._wanted;
    if (wanted !== null && this.give(wanted)) {
      this._wanted = null;
      this.onFound(wanted);
    }
    const last = this._last;
    if (last?.isConnected === false) {
      this._last = null;
      if (document.activeElement === document.body) {
        const { id } =
          last.closest<HTMLElement>('.react-flow__node')?.dataset ?? {};
        if (id === undefined || !this.give(id)) {
          this.host.focus();
        }
      }
    }
  }

  private give(id: string): boolean {
    const node = this.host.querySelector<HTMLElement>(
      `.react-flow__node[data-id="${CSS.escape(id)}"]`
    );
    node?.focus({ preventScroll: true });
    return node !== null;
  }

  private _last: HTMLElement | null = null;
  private _observer: MutationObserver;
  private _wanted: string | null = null;
}
