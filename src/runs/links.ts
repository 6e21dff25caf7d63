/** What a link to a run carries in its query: `/lab?convect-run=<id>`. */
export const LINK = 'convect-run';
export const SWEEP_LINK = 'convect-sweep';

/** An address that opens a run in any browser that may see this server. */
export function linkToRun(baseUrl: string, id: string): string {
  const url = new URL('lab', new URL(baseUrl, window.location.href));
  url.searchParams.set(LINK, id);
  return url.href;
}
