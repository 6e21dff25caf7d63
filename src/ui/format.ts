import { Time } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONObject, ReadonlyJSONValue } from '@lumino/coreutils';

import { localTime } from '../api/clock';
import { digitsOf, isNotFinite } from '../api/numbers';

type TimeUnit = 'day' | 'hour' | 'minute' | 'second';

const SYMBOLS: Record<TimeUnit, string> = {
  day: 'd',
  hour: 'h',
  minute: 'min',
  second: 's'
};

/** `0.4 s`, `12 s`, `3 min 05 s`, `2 h 10 min`, `3 d 4 h`; as the language of the page has it. */
export function formatDuration(seconds: number): string {
  if (seconds < 10) {
    return withUnit(Math.max(0, seconds).toFixed(1), 'second');
  }
  if (seconds < 59.5) {
    return withUnit(String(Math.round(seconds)), 'second');
  }
  const whole = Math.round(seconds);
  const pairs: [number, TimeUnit, number, TimeUnit][] = [
    [86400, 'day', 3600, 'hour'],
    [3600, 'hour', 60, 'minute'],
    [60, 'minute', 1, 'second']
  ];
  const [large, largeUnit, small, smallUnit] =
    pairs.find(([size]) => whole >= size) ?? pairs[2];
  const rest = String(Math.floor((whole % large) / small)).padStart(2, '0');
  const most = withUnit(String(Math.floor(whole / large)), largeUnit);
  return `${most} ${withUnit(rest, smallUnit)}`;
}

/** The symbols of the SI in English, elsewhere the words that people read. */
function withUnit(digits: string, unit: TimeUnit): string {
  if (language().startsWith('en')) {
    return `${digits} ${SYMBOLS[unit]}`;
  }
  const [whole, fraction = ''] = digits.split('.');
  return new Intl.NumberFormat(language(), {
    style: 'unit',
    unit,
    unitDisplay: 'short',
    minimumIntegerDigits: whole.length,
    minimumFractionDigits: fraction.length
  }).format(Number(digits));
}

/** Seconds between two times, the second of which may be now. */
export function elapsed(
  started: number | null | undefined,
  ended: number | null | undefined,
  now: number
): number | null {
  return started ? (ended || now) - started : null;
}

/** `5 minutes ago`, in the language of the page. */
export function formatAgo(time: number): string {
  return Time.formatHuman(new Date(localTime(time)));
}

/** To the second, in the language of the page. */
export function formatExact(time: number): string {
  return new Date(time * 1000).toLocaleString(language());
}

/** The time of day, to the second, in the language of the page. */
export function formatClock(time: number): string {
  return new Date(time * 1000).toLocaleTimeString(language(), {
    hour12: false
  });
}

function language(): string {
  return document.documentElement.lang || 'en';
}

/** A number as people read it: no more than five digits that matter. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value) || Number.isInteger(value)) {
    return String(value);
  }
  return String(Number(value.toPrecision(5)));
}

/** A value in one line: text as it is, everything else as JSON. */
export function formatValue(value: ReadonlyJSONValue | undefined): string {
  if (value === undefined) {
    return '';
  }
  if (typeof value === 'number') {
    return formatNumber(value);
  }
  const digits = digitsOf(value);
  if (digits !== null) {
    return formatInteger(digits);
  }
  return typeof value === 'string' ? value : formatJson(value);
}

/** An integer by its digits, of which there may be hundreds. */
function formatInteger(digits: string): string {
  const [, sign, first, rest] = /^(-?)(\d)(\d*)$/.exec(digits) ?? [];
  if (rest.length <= 20) {
    return digits;
  }
  const shown = rest.slice(0, 5).replace(/0+$/, '');
  return `${sign}${first}${shown && `.${shown}`}e+${rest.length}`;
}

/** A value as JSON for people to read: what JSON has no word for is named. */
export function formatJson(value: unknown, indent?: number): string {
  const marked = JSON.stringify(
    value,
    (_, item) =>
      isNotFinite(item)
        ? `\0${item}`
        : (digitsOf(item)?.replace(/^/, '\0') ?? item),
    indent
  );
  return marked.replace(/"\\u0000(NaN|-?Infinity|-?\d+)"/g, '$1');
}

/** When a run ended or, while it has not, when it began. */
export function momentOf(run: {
  created: number;
  started?: number | null;
  ended?: number | null;
}): number {
  return run.ended ?? run.started ?? run.created;
}

/** `lr=0.1, depth=3`. */
export function formatParameters(parameters: {
  readonly [name: string]: ReadonlyJSONValue | undefined;
}): string {
  return Object.entries(parameters)
    .map(([name, value]) => `${name}=${quoted(value) ?? formatValue(value)}`)
    .join(', ');
}

/** A text in quotes that is empty or has a comma, which is taken for the end of it. */
function quoted(value: ReadonlyJSONValue | undefined): string | null {
  return typeof value === 'string' && /^$|[,"]/.test(value)
    ? JSON.stringify(value)
    : null;
}

/** `max:accuracy` in words. */
export function goalLabel(select: string, trans: TranslationBundle): string {
  const metric = select.slice(select.indexOf(':') + 1);
  return select.startsWith('min')
    ? trans.__('the lowest %1', metric)
    : trans.__('the highest %1', metric);
}

/** `1.2 MB`, in the digits of the language of the page. */
export function formatSize(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : 1;
  const amount = new Intl.NumberFormat(language(), {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits
  }).format(size);
  return `${amount} ${units[unit]}`;
}

/** `cpu 2, memory 4Gi, gpu 1 NVIDIA-A100`. */
export function formatResources(resources: ReadonlyJSONObject = {}): string {
  return Object.entries(resources)
    .map(([name, amount]) => `${name} ${amountOf(amount)}`)
    .join(', ');
}

function amountOf(amount: ReadonlyJSONValue): string {
  if (typeof amount !== 'object' || amount === null) {
    return String(amount);
  }
  const { request, limit, count, type } = amount as ReadonlyJSONObject;
  return [request ?? limit ?? count, type]
    .filter(part => part !== undefined && part !== null)
    .join(' ');
}
