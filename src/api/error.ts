/**
 * What the server answered when it could not do what was asked: one sentence
 * for people, and a hint that says what to do about it.
 *
 * `status` is 0 when the server did not answer at all.
 */
export class ConvectError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly hint: string | null = null
  ) {
    super(message);
    this.name = 'ConvectError';
  }

  /** What was asked for is not there (any more). */
  get isMissing(): boolean {
    return this.status === 404;
  }

  /** The session with the server, or with the hub before it, has ended. */
  get isLoggedOut(): boolean {
    return this.code === LOGGED_OUT;
  }

  /** The server did not answer; asking again later may help. */
  get isUnreachable(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

const LOGGED_OUT = 'logged-out';

/** Whether an answer with this code, or none, means that one has to log in. */
export function isLoggedOut(code: string | undefined): boolean {
  return code === undefined || code === LOGGED_OUT;
}

/** What is said instead of the login page that came as an answer. */
export function loggedOut(status: number): ConvectError {
  return new ConvectError(
    'Your session has ended.',
    status,
    LOGGED_OUT,
    'Log in again in another tab of the browser; this page then continues, and nothing is lost.'
  );
}

/** The server did not answer, or lets nobody in for now: what was asked may still come true. */
export function isAway(error: unknown): boolean {
  return (
    error instanceof ConvectError && (error.isUnreachable || error.isLoggedOut)
  );
}

let translate = (sentence: string): string => sentence;

/** Have `sentenceOf` give what the server says in the language of the page. */
export function translateSentences(how: (sentence: string) => string): void {
  translate = how;
}

/** The sentence to show for any error, with its hint. */
export function sentenceOf(error: unknown): string {
  if (error instanceof ConvectError && error.hint) {
    return `${translate(error.message)} ${translate(error.hint)}`;
  }
  return translate(error instanceof Error ? error.message : String(error));
}
