/** What a link to a run carries in its query: `/lab?convect-run=<id>`. */
export const LINK = 'convect-run';
export const SWEEP_LINK = 'convect-sweep';

/** An address that opens a run in any browser that may see this server. */
export function linkToRun(baseUrl: string, id: string): string {
  return linkTo(baseUrl, LINK, id);
}

export function linkToSweep(baseUrl: string, id: string): string {
  return linkTo(baseUrl, SWEEP_LINK, id);
}

function linkTo(baseUrl: string, what: string, id: string): string {
  const url = new URL('lab', new URL(baseUrl, window.location.href));
  url.searchParams.set(what, id);
  return url.href;
}
