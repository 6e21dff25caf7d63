import { PathExt } from '@jupyterlab/coreutils';
import * as React from 'react';

import '../../style/schedules.css';

import {
  CheckBox,
  Failure,
  Field,
  runtimeLabel,
  Section,
  Select,
  TextField,
  useModel,
  useTrans
} from '../ui';
import { Parameter } from '../settings/parameters';
import { SweepFields } from '../settings/sweepchoice';
import { askWith } from '../ui/asking';
import type { IScheduleValues, ScheduleForm } from './form';
import { isClock } from './form';
import type { ISchedule } from './types';
import {
  clusterSentence,
  keeperSentence,
  recurringSentence,
  shiftSentence,
  timeIn
} from './words';

const EXAMPLES = [
  '0 2 * * *',
  '30 2 * * 1-5',
  '*/15 * * * *',
  '@hourly',
  '@daily',
  '@weekly',
  '@monthly'
];

/** Ask for a new schedule, or how one is to be changed; null when nobody wants it. */
export async function askSchedule(
  form: ScheduleForm
): Promise<ISchedule | null> {
  const { trans, edited, path } = form;
  const title = edited
    ? trans.__('Edit %1', edited.name)
    : trans.__('Schedule %1', PathExt.basename(path ?? ''));
  const accept = edited ? trans.__('Save') : trans.__('Schedule');
  return await askWith(form, { title, accept }, () => (
    <ScheduleFields form={form} />
  ));
}

function Text(props: {
  form: ScheduleForm;
  name: {
    [K in keyof IScheduleValues]: IScheduleValues[K] extends string ? K : never;
  }[keyof IScheduleValues];
  label: string;
  hint?: string;
  error?: string | null;
  example?: string;
  suggestions?: readonly string[];
}): JSX.Element {
  const { form, name, error, ...field } = props;
  return (
    <TextField
      {...field}
      value={form.values[name]}
      error={error ?? form.complaints[name]}
      onChange={value => form.set({ [name]: value })}
    />
  );
}

function ScheduleFields(props: { form: ScheduleForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  const { values } = form;
  return (
    <div className="jp-Convect-form" aria-busy={form.isBusy}>
      <Text
        form={form}
        name="name"
        label={trans.__('Name')}
        example={form.edited?.name ?? stemOf(form.path ?? '')}
      />
      <Field label={trans.__('Runs')}>
        <Select
          value={values.kind}
          options={[
            {
              value: 'cron',
              label: trans.__('At the times of a cron expression')
            },
            { value: 'every', label: trans.__('At intervals') },
            {
              value: 'file',
              label: trans.__('When a file appears or changes')
            },
            { value: 'run', label: trans.__('When another run has ended') },
            {
              value: 'call',
              label: trans.__('When it is called, as by a webhook')
            }
          ]}
          onChange={kind => form.set({ kind: kind as IScheduleValues['kind'] })}
        />
      </Field>
      {values.kind === 'cron' && (
        <Text
          form={form}
          name="cron"
          label={trans.__('Cron')}
          hint={trans.__(
            'Minute, hour, day of the month, month, day of the week.'
          )}
          error={form.clockError}
          suggestions={EXAMPLES}
        />
      )}
      {values.kind === 'every' && (
        <Text
          form={form}
          name="every"
          label={trans.__('Every')}
          hint={trans.__('15m, 6h or 1d, counted from now on.')}
          error={form.clockError}
        />
      )}
      {values.kind === 'file' && <FileFields form={form} />}
      {values.kind === 'run' && <RunFields form={form} />}
      {values.kind === 'call' && (
        <p className="jp-Convect-help">
          {trans.__(
            'The page of the schedule shows the address and the token. Calls with the token, and webhooks of GitHub, GitLab or Gitea that are signed with it, make it due.'
          )}
        </p>
      )}
      {isClock(values.kind) && (
        <>
          <Text
            form={form}
            name="zone"
            label={trans.__('Time zone')}
            suggestions={zones()}
          />
          <NextTimes form={form} />
        </>
      )}
      <Parameters form={form} />
      <Rules form={form} />
      <KeptBy form={form} />
      <Failure error={form.failure} />
    </div>
  );
}

/** Who keeps the clock: to choose where the cluster can, and in words. */
function KeptBy({ form }: { form: ScheduleForm }): JSX.Element {
  const trans = useTrans();
  const { clockKeeper, keptBy } = form;
  const name =
    clockKeeper &&
    runtimeLabel(trans, clockKeeper.name, clockKeeper.display_name);
  return (
    <>
      {name && (
        <Field label={trans.__('Clock')}>
          <Select
            value={keptBy}
            options={[
              { value: 'here', label: trans.__('Kept here') },
              { value: 'runtime', label: trans.__('Kept by %1', name) }
            ]}
            onChange={chosen =>
              form.set({ keptBy: chosen as IScheduleValues['keptBy'] })
            }
          />
        </Field>
      )}
      <p className="jp-Convect-help">
        {name && keptBy === 'runtime'
          ? clusterSentence(trans, name)
          : keeperSentence(trans, form.keeper)}
      </p>
      {name &&
        keptBy === 'runtime' &&
        clockKeeper?.features.includes('recurring') && (
          <p className="jp-Convect-help">{recurringSentence(trans, name)}</p>
        )}
    </>
  );
}

function FileFields({ form }: { form: ScheduleForm }): JSX.Element {
  const trans = useTrans();
  return (
    <>
      <Text
        form={form}
        name="pattern"
        label={trans.__('Files')}
        hint={trans.__(
          'From the root folder of the project; files that are there already do not count.'
        )}
      />
      <Text
        form={form}
        name="settle"
        label={trans.__('Not changed for')}
        hint={trans.__('So that no file is read while it is being written.')}
      />
      <Field label={trans.__('Changed files count again')}>
        <CheckBox
          checked={form.values.changed}
          onChange={changed => form.set({ changed })}
        />
      </Field>
    </>
  );
}

function RunFields({ form }: { form: ScheduleForm }): JSX.Element {
  const trans = useTrans();
  return (
    <>
      <Text form={form} name="after" label={trans.__('Runs of the file')} />
      <Field label={trans.__('That have')}>
        <Select
          value={form.values.afterState}
          options={[
            { value: 'succeeded', label: trans.__('Succeeded') },
            { value: 'failed', label: trans.__('Failed') },
            { value: 'ended', label: trans.__('Ended, however') }
          ]}
          onChange={state =>
            form.set({ afterState: state as IScheduleValues['afterState'] })
          }
        />
      </Field>
    </>
  );
}

/** The name of a file without its ending. */
function stemOf(path: string): string {
  return PathExt.basename(path, PathExt.extname(path));
}

/** Those that the browser knows. */
function zones(): string[] {
  const intl = Intl as typeof Intl & {
    supportedValuesOf?: (key: 'timeZone') => string[];
  };
  return ['UTC', ...(intl.supportedValuesOf?.('timeZone') ?? [])];
}

function NextTimes({ form }: { form: ScheduleForm }): JSX.Element {
  const trans = useTrans();
  const { upcoming, values } = form;
  return (
    <Field label={trans.__('Next')} isGroup>
      <ol className="jp-Convect-nextTimes" aria-live="polite">
        {upcoming?.next.map(due => (
          <li key={due}>{timeIn(due, values.zone)}</li>
        ))}
        {upcoming?.next.length === 0 && <li>{trans.__('Not due any more')}</li>}
        {!upcoming && <li>–</li>}
      </ol>
      {upcoming?.shifts.map(shift => (
        <span key={shift.wall} className="jp-Convect-help">
          {shiftSentence(trans, shift, values.zone)}
        </span>
      ))}
    </Field>
  );
}

function Parameters({ form }: { form: ScheduleForm }): JSX.Element | null {
  const trans = useTrans();
  const { parameters, references } = form;
  if (parameters.length === 0) {
    return null;
  }
  return (
    <>
      <fieldset className="jp-Convect-group">
        <legend>{trans.__('Parameters')}</legend>
        {parameters.map(parameter => (
          <Parameter key={parameter.name} form={form} parameter={parameter} />
        ))}
        <p className="jp-Convect-help">
          {trans.__(
            'A parameter can have the value %1.',
            references.slice(0, 2).join(', ')
          )}
        </p>
      </fieldset>
      {form.isSweep && (
        <>
          <SweepFields form={form} metrics={form.metrics} />
          <p className="jp-Convect-summary" role="status">
            {trans._n(
              'A sweep of %1 run each time',
              'A sweep of %1 runs each time',
              form.size
            )}
          </p>
        </>
      )}
    </>
  );
}

function Rules({ form }: { form: ScheduleForm }): JSX.Element {
  const trans = useTrans();
  const { values, complaints } = form;
  const [isOpen, setOpen] = React.useState(!!form.edited);
  const isWrong = Object.keys(complaints).some(
    name => !['every', 'pattern', 'settle', 'after'].includes(name)
  );
  return (
    <Section
      title={trans.__('Rules')}
      isOpen={isOpen || isWrong}
      onToggle={setOpen}
    >
      <Field label={trans.__('While an earlier run goes on')}>
        <Select
          value={values.overlap}
          options={[
            { value: 'skip', label: trans.__('Skip the new one') },
            { value: 'queue', label: trans.__('Wait') },
            { value: 'stop', label: trans.__('Stop the old one') }
          ]}
          onChange={overlap =>
            form.set({ overlap: overlap as IScheduleValues['overlap'] })
          }
        />
      </Field>
      <Text
        form={form}
        name="concurrency"
        label={trans.__('Runs at the same time')}
      />
      <Field label={trans.__('Make up for what was missed')}>
        <Select
          value={values.missed}
          options={[
            { value: 'none', label: trans.__('Nothing') },
            { value: 'last', label: trans.__('The last') },
            { value: 'all', label: trans.__('All of them') }
          ]}
          onChange={missed =>
            form.set({ missed: missed as IScheduleValues['missed'] })
          }
        />
      </Field>
      {values.missed !== 'none' && (
        <Text form={form} name="deadline" label={trans.__('Within')} />
      )}
      <Field
        label={trans.__('Pin the files')}
        hint={trans.__(
          'Always run the files as they are now, whatever is edited later.'
        )}
      >
        <CheckBox
          checked={values.pinned}
          onChange={pinned => form.set({ pinned })}
        />
      </Field>
      {form.runtimes.length > 1 && (
        <Field label={trans.__('Where')}>
          <Select
            value={values.runtime}
            options={form.runtimes.map(({ name, display_name, problem }) => ({
              value: name,
              label: runtimeLabel(trans, name, display_name),
              disabled: !!problem
            }))}
            onChange={runtime => form.set({ runtime })}
          />
        </Field>
      )}
      <Text
        form={form}
        name="start"
        label={trans.__('Not before')}
        example="2026-05-01T08:00"
      />
      <Text
        form={form}
        name="end"
        label={trans.__('Not after')}
        example="2026-12-31"
      />
      <Text
        form={form}
        name="jitter"
        label={trans.__('Jitter')}
        example="5m"
        hint={trans.__('Each run is delayed by at most this much.')}
      />
    </Section>
  );
}
