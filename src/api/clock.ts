/** Seconds by which two clocks may differ before that is more than rounding and travel. */
const TOLERANCE = 2;

let ahead = 0;

/** Take note of the `Date` of an answer: every time that is shown is the server's. */
export function noteServerDate(header: string | null): void {
  const difference = (Date.parse(header ?? '') - Date.now()) / 1000;
  if (!Number.isNaN(difference)) {
    ahead = Math.abs(difference) > TOLERANCE ? difference : 0;
  }
}

/** Seconds since 1970, by the clock of the server. */
export function serverNow(): number {
  return Date.now() / 1000 + ahead;
}

/** What this browser's clock showed at a time of the server, in milliseconds. */
export function localTime(time: number): number {
  return (time - ahead) * 1000;
}
