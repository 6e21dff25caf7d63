import type { TranslationBundle } from '@jupyterlab/translation';

import type {
  IClock,
  IKeeper,
  ILedgerLine,
  IScheduleSummary,
  IUpcoming
} from './types';
import { triggerOf } from './types';

/** A time as the clocks in a zone show it, in the language of the page. */
export function timeIn(seconds: number, zone = 'UTC'): string {
  const language = document.documentElement.lang || 'en';
  const how: Intl.DateTimeFormatOptions = {
    weekday: 'short',
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds % 60 >= 1 ? { second: '2-digit' } : {}),
    hour12: false
  };
  const date = new Date(seconds * 1000);
  try {
    return date.toLocaleString(language, { ...how, timeZone: zone });
  } catch {
    // A zone that this browser does not know.
    return date.toLocaleString(language, { ...how, timeZone: 'UTC' });
  }
}

/** `15m`, `6h`, `1h30m`: exactly as long. */
export function durationText(seconds: number): string {
  const units: [number, string][] = [
    [86400, 'd'],
    [3600, 'h'],
    [60, 'm'],
    [1, 's']
  ];
  let left = seconds;
  const parts = units.flatMap(([size, unit]) => {
    const count = Math.floor(left / size);
    left -= count * size;
    return count > 0 ? [`${count}${unit}`] : [];
  });
  return parts.join('') || '0s';
}

/** Seconds of `90`, `90s`, `2h` or `1h30m`; null when it is none of them. */
export function parseDuration(text: string): number | null {
  const plain = text.replace(/\s/g, '');
  if (/^\d+(\.\d+)?$/.test(plain)) {
    return Number(plain);
  }
  if (!/^(\d+(\.\d+)?[smhdw])+$/.test(plain)) {
    return null;
  }
  const sizes: Record<string, number> = {
    s: 1,
    m: 60,
    h: 3600,
    d: 86400,
    w: 604800
  };
  return [...plain.matchAll(/(\d+(?:\.\d+)?)([smhdw])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * sizes[unit],
    0
  );
}

export function clockLabel(trans: TranslationBundle, clock: IClock): string {
  return clock.cron
    ? trans.__('%1 (%2)', clock.cron, clock.zone ?? 'UTC')
    : trans.__('every %1', durationText(clock.every ?? 0));
}

/** What makes a schedule due. */
export function dueLabel(
  trans: TranslationBundle,
  schedule: IScheduleSummary
): string {
  const { clock } = schedule;
  const { file, run, call } = triggerOf(schedule);
  return [
    clock.cron || clock.every ? clockLabel(trans, clock) : '',
    file ? trans.__('file %1', file.pattern) : '',
    run ? trans.__('after a run of %1', run.path ?? run.name ?? '') : '',
    call ? trans.__('when called') : ''
  ]
    .filter(Boolean)
    .join(', ');
}

/** What made a line due, if not the clock. */
export function causeOf(trans: TranslationBundle, line: ILedgerLine): string {
  const values = line.happening?.values ?? {};
  switch (line.happening?.cause) {
    case 'file':
      return String(values.file);
    case 'run':
      return trans.__('Run %1', String(values.run));
    case 'call':
      return trans.__('Called');
    default:
      return '';
  }
}

export function outcomeLabel(
  trans: TranslationBundle,
  outcome: ILedgerLine['outcome']
): string {
  switch (outcome) {
    case 'ran':
      return trans.__('Ran');
    case 'queued':
      return trans.__('Queued');
    case 'skipped':
      return trans.__('Skipped');
    case 'missed':
      return trans.__('Missed');
    case 'paused':
      return trans.__('Paused');
    case 'refused':
      return trans.__('Not started');
    case 'waiting':
      return trans.__('Waiting');
  }
}

/** Who keeps the clock, and what that means. */
export function keeperSentence(
  trans: TranslationBundle,
  keeper: IKeeper | null | undefined
): string {
  if (!keeper) {
    return trans.__(
      'Nobody keeps the clock yet. This server does as soon as there is a schedule.'
    );
  }
  if (keeper.kind === 'process') {
    return trans.__(
      'Kept by process %1 on %2, also while JupyterLab is off.',
      keeper.process,
      keeper.host
    );
  }
  return keeper.standby
    ? trans.__(
        'Kept by a Jupyter server on %1; a process takes over when it stops.',
        keeper.host
      )
    : trans.__(
        'Kept by a Jupyter server on %1 while it is up; what is missed is recorded. “convect schedule keep --detach” also keeps it while JupyterLab is off.',
        keeper.host
      );
}

/** What it means that a cluster keeps the clock. */
export function clusterSentence(
  trans: TranslationBundle,
  runtime: string
): string {
  return trans.__('Kept by %1, also while JupyterLab is off.', runtime);
}

/** What is different where a runtime makes the runs by its own clock. */
export function recurringSentence(
  trans: TranslationBundle,
  runtime: string
): string {
  return trans.__(
    '%1 runs the files as they are now. Of due times that come while it cannot run them, it runs either all in turn, or only the last.',
    runtime
  );
}

/** What happens on nights when the clocks change. */
export function shiftSentence(
  trans: TranslationBundle,
  shift: IUpcoming['shifts'][number],
  zone: string
): string {
  const wall = shift.wall.replace('T', ' ');
  return shift.kind === 'twice'
    ? trans.__(
        '%1 occurs twice that night; it runs once, the first time.',
        wall
      )
    : trans.__(
        '%1 does not exist that night; it runs on %2.',
        wall,
        timeIn(shift.due, zone)
      );
}
