import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IConvectApi } from '../api';
import { sentenceOf } from '../api';
import {
  CheckBox,
  Failure,
  Field,
  Observable,
  Select,
  TextField,
  useModel,
  useTrans
} from '../ui';
import { askWith } from '../ui/asking';
import { secondsAt } from './form';
import type { IBackfill, ISchedule, IStarted } from './types';
import { requestOf } from './types';

/** Asks for which due times a schedule is to be run. */
class BackfillForm extends Observable {
  constructor(
    private readonly api: IConvectApi,
    readonly schedule: ISchedule,
    readonly trans: TranslationBundle
  ) {
    super();
    const week = 7 * 86_400_000;
    const day = (time: number) => new Date(time).toISOString().slice(0, 10);
    this.values.begin = day(Date.now() - week);
    this.values.end = day(Date.now());
  }

  readonly values = {
    begin: '',
    end: '',
    which: 'missing' as NonNullable<IBackfill['which']>,
    parameter: '',
    concurrency: '',
    backwards: false
  };

  failure: string | null = null;

  set(change: Partial<BackfillForm['values']>): void {
    Object.assign(this.values, change);
    this.failure = null;
    this.touch();
  }

  async submit(): Promise<IStarted | null> {
    const { begin, end, which, parameter, concurrency, backwards } =
      this.values;
    const [first, last] = [secondsAt(begin), secondsAt(end)];
    if (first === null || last === null) {
      this.failure = this.trans.__(
        'Write a date, as in 2026-05-01 or 2026-05-01T08:00.'
      );
      this.touch();
      return null;
    }
    try {
      return await this.api.backfill(this.schedule.id, {
        begin: first - 0.001,
        end: end.length <= 10 ? last + 86_399 : last,
        which,
        backwards,
        ...(parameter ? { parameter } : {}),
        ...(Number(concurrency) > 0 ? { concurrency: Number(concurrency) } : {})
      });
    } catch (error) {
      this.failure = sentenceOf(error);
      this.touch();
      return null;
    }
  }
}

/** Ask for which due times; what was started, if anything. */
export async function askBackfill(
  api: IConvectApi,
  schedule: ISchedule,
  trans: TranslationBundle
): Promise<IStarted | null> {
  const form = new BackfillForm(api, schedule, trans);
  return await askWith(
    form,
    { title: trans.__('Backfill %1', schedule.name), accept: trans.__('Run') },
    () => <BackfillFields form={form} />
  );
}

function BackfillFields(props: { form: BackfillForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  const { values } = form;
  return (
    <div className="jp-Convect-form">
      <TextField
        label={trans.__('From')}
        value={values.begin}
        onChange={begin => form.set({ begin })}
      />
      <TextField
        label={trans.__('To')}
        value={values.end}
        onChange={end => form.set({ end })}
      />
      <Field label={trans.__('Which')}>
        <Select
          value={values.which}
          options={[
            { value: 'missing', label: trans.__('Due times without a run') },
            {
              value: 'failed',
              label: trans.__('Those, and the ones whose runs failed')
            },
            { value: 'all', label: trans.__('All due times') }
          ]}
          onChange={which => form.set({ which: which as 'missing' })}
        />
      </Field>
      <TextField
        label={trans.__('Parameter')}
        value={values.parameter}
        hint={trans.__(
          'Which is given the date, if none depends on the due time.'
        )}
        suggestions={Object.keys(requestOf(form.schedule).parameters ?? {})}
        onChange={parameter => form.set({ parameter })}
      />
      <TextField
        label={trans.__('At once')}
        value={values.concurrency}
        example={trans.__('as many as fit')}
        onChange={concurrency => form.set({ concurrency })}
      />
      <Field label={trans.__('The last first')}>
        <CheckBox
          checked={values.backwards}
          onChange={backwards => form.set({ backwards })}
        />
      </Field>
      <Failure error={form.failure} />
    </div>
  );
}
