import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { addIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import '../../style/schedules.css';

import type { IConvectApi } from '../api';
import { sentenceOf } from '../api';
import type { Execute, IPageOptions } from '../ui';
import {
  Action,
  CheckBox,
  Failure,
  Field,
  Observable,
  Page,
  Select,
  TextField,
  translated,
  useModel,
  useTrans
} from '../ui';
import { askWith } from '../ui/asking';
import { ScheduleCommands } from './ids';
import type { ScheduleNews } from './model';
import { Watching } from './model';
import type { INotification, INotificationBody } from './types';
import { durationText, parseDuration, timeIn } from './words';

type Kind = INotificationBody['kind'];
type Event = NonNullable<INotificationBody['events']>[number];

const EVENTS: readonly Event[] = ['success', 'failure', 'missed', 'longer'];

/** Whom to tell about runs and schedules. */
export class NotificationsModel extends Watching {
  constructor(api: IConvectApi, news: ScheduleNews) {
    super(api, news);
  }

  get notifications(): readonly INotification[] | null {
    return this._notifications;
  }

  protected async load(): Promise<void> {
    const [{ notifications }, { schedules }] = await Promise.all([
      this.api.listNotifications(),
      this.api.listSchedules()
    ]);
    this._notifications = notifications;
    this._names = new Map(schedules.map(({ id, name }) => [id, name]));
  }

  /** What a notification is about; null when that is all runs. */
  aboutOf({ path, run, schedule }: INotification): string | null {
    return path ?? run ?? (schedule && (this._names.get(schedule) ?? schedule));
  }

  private _names = new Map<string, string>();
  private _notifications: INotification[] | null = null;
}

/** All notifications, in the main area. */
export class NotificationsPage extends Page<NotificationsModel> {
  constructor(model: NotificationsModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-schedules');
    this.title.label = options.trans.__('Notifications');
  }

  protected get name(): string | null {
    return null;
  }

  protected content(execute: Execute): JSX.Element {
    return <NotificationList model={this.model} execute={execute} />;
  }
}

function NotificationList(props: {
  model: NotificationsModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { notifications, error } = model;
  if (!notifications) {
    return <>{error ? sentenceOf(error) : null}</>;
  }
  return (
    <>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans.__('Notifications')}</h2>
          <div className="jp-Convect-actions">
            <Action
              icon={addIcon}
              wide
              label={trans.__('Add…')}
              onClick={() => props.execute(ScheduleCommands.notify, {})}
            />
          </div>
        </div>
        <div className="jp-Convect-facts">
          {trans.__(
            'Messages are sent while a Jupyter server is up, or by “convect schedule keep”.'
          )}
        </div>
      </header>
      {notifications.length === 0 ? (
        <div className="jp-Convect-empty">
          <h3>{trans.__('No notifications yet')}</h3>
          <p>
            {trans.__(
              'Get messages by mail, in a chat or by a webhook when runs succeed, fail, take long or are missed.'
            )}
          </p>
        </div>
      ) : (
        <div className="jp-Convect-scheduleScroll">
          <table className="jp-Convect-scheduleTable">
            <thead>
              <tr>
                <th>{trans.__('Name')}</th>
                <th>{trans.__('To')}</th>
                <th>{trans.__('When')}</th>
                <th>{trans.__('About')}</th>
                <th>{trans.__('Last')}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {notifications.map(each => (
                <NotificationRow key={each.id} model={model} view={each} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function NotificationRow(props: {
  model: NotificationsModel;
  view: INotification;
}): JSX.Element {
  const { model, view } = props;
  const trans = useTrans();
  const [told, setTold] = React.useState<string | null>(null);
  const act = (work: () => Promise<unknown>, done: string) => () => {
    setTold(trans.__('Sending…'));
    work().then(
      () => setTold(done),
      error => setTold(translated(sentenceOf(error), trans))
    );
  };
  const { last } = view;
  return (
    <tr data-notification={view.id}>
      <td>{view.name}</td>
      <td>
        {kindLabel(trans, view.kind)}{' '}
        {view.to.join(', ') || view.url || view.secret}
      </td>
      <td>
        {view.events
          .map(event => eventLabel(trans, event, view.longer))
          .join(', ')}
      </td>
      <td>{model.aboutOf(view) ?? trans.__('All runs')}</td>
      <td aria-live="polite">
        {told ??
          (last &&
            `${timeIn(last.time, zone())}: ${
              last.sent
                ? trans.__('sent')
                : translated(last.reason ?? '', trans) ||
                  trans.__('not sent yet')
            }`)}
      </td>
      <td className="jp-Convect-lineActions">
        <button
          type="button"
          className="jp-Convect-link"
          onClick={act(
            () => model.api.testNotification(view.id),
            trans.__('The test was sent.')
          )}
        >
          {trans.__('Test')}
        </button>
        <button
          type="button"
          className="jp-Convect-link"
          onClick={() => void remove(model, view, trans)}
        >
          {trans.__('Remove…')}
        </button>
      </td>
    </tr>
  );
}

async function remove(
  model: NotificationsModel,
  view: INotification,
  trans: TranslationBundle
): Promise<void> {
  const { button } = await showDialog({
    title: trans.__('Remove %1?', view.name),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Remove') })
    ]
  });
  if (button.accept) {
    await model.api.deleteNotification(view.id);
    model.refresh();
  }
}

function zone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function kindLabel(trans: TranslationBundle, kind: Kind): string {
  return {
    mail: trans.__('Mail'),
    webhook: trans.__('Webhook (JSON)'),
    slack: 'Slack',
    teams: 'Microsoft Teams',
    feishu: trans.__('Feishu'),
    dingtalk: trans.__('DingTalk'),
    wecom: trans.__('WeCom')
  }[kind];
}

function eventLabel(
  trans: TranslationBundle,
  event: Event,
  longer: number | null = null
): string {
  return {
    success: trans.__('Succeeded'),
    failure: trans.__('Failed'),
    missed: trans.__('Missed'),
    longer: longer
      ? trans.__('Longer than %1', durationText(longer))
      : trans.__('Takes long')
  }[event];
}

/** What the fields of a new notification hold. */
export class NotificationForm extends Observable {
  constructor(
    private readonly api: IConvectApi,
    readonly trans: TranslationBundle,
    private readonly schedule: string | null
  ) {
    super();
  }

  values = {
    name: '',
    kind: 'mail' as Kind,
    to: '',
    secret: '',
    url: '',
    sign: '',
    events: new Set<Event>(['failure']),
    longer: '1h',
    path: ''
  };

  failure: string | null = null;
  told: string | null = null;

  get isAboutSchedule(): boolean {
    return this.schedule !== null;
  }

  set(change: Partial<NotificationForm['values']>): void {
    this.values = { ...this.values, ...change };
    this.failure = this.told = null;
    this.touch();
  }

  toggle(event: Event, isOn: boolean): void {
    const events = new Set(this.values.events);
    if (isOn) {
      events.add(event);
    } else {
      events.delete(event);
    }
    this.set({ events });
  }

  body(): INotificationBody {
    const { name, kind, to, secret, url, sign, events, longer, path } =
      this.values;
    const isMail = kind === 'mail';
    return {
      kind,
      name: name || null,
      events: EVENTS.filter(event => events.has(event)),
      to: isMail ? to.split(/[\s,;]+/).filter(Boolean) : [],
      url: isMail ? null : url || null,
      secret: isMail ? null : secret || null,
      sign: isMail ? null : sign || null,
      longer: events.has('longer') ? parseDuration(longer) : null,
      schedule: this.schedule,
      path: this.schedule ? null : path || null
    };
  }

  async test(): Promise<void> {
    await this.attempt(async () => {
      await this.api.tryNotification(this.body());
      this.told = this.trans.__('The test was sent.');
    });
  }

  async submit(): Promise<INotification | null> {
    return await this.attempt(() => this.api.addNotification(this.body()));
  }

  private async attempt<T>(work: () => Promise<T>): Promise<T | null> {
    this.failure = this.told = null;
    try {
      if (this.values.events.size === 0) {
        throw new Error(this.trans.__('Choose what to get messages about.'));
      }
      return await work();
    } catch (error) {
      this.failure = translated(sentenceOf(error), this.trans);
      return null;
    } finally {
      this.touch();
    }
  }
}

/** Ask for a new notification, of a schedule if one is given. */
export async function askNotification(
  form: NotificationForm
): Promise<INotification | null> {
  const { trans } = form;
  return await askWith(
    form,
    { title: trans.__('Add Notification'), accept: trans.__('Add') },
    () => <NotificationFields form={form} />
  );
}

function NotificationFields(props: { form: NotificationForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  const { values } = form;
  const kinds: Kind[] = [
    'mail',
    'slack',
    'teams',
    'feishu',
    'dingtalk',
    'wecom',
    'webhook'
  ];
  return (
    <div className="jp-Convect-form">
      <TextField
        label={trans.__('Name')}
        value={values.name}
        example={kindLabel(trans, values.kind)}
        onChange={name => form.set({ name })}
      />
      <Field label={trans.__('By')}>
        <Select
          value={values.kind}
          options={kinds.map(value => ({
            value,
            label: kindLabel(trans, value)
          }))}
          onChange={kind => form.set({ kind: kind as Kind })}
        />
      </Field>
      {values.kind === 'mail' ? (
        <TextField
          label={trans.__('Addresses')}
          value={values.to}
          example="me@example.org"
          hint={trans.__('The mail server is configured in c.Convect.smtp.')}
          onChange={to => form.set({ to })}
        />
      ) : (
        <>
          <TextField
            label={trans.__('Secret with the address')}
            value={values.secret}
            example="slack/url"
            hint={trans.__(
              'Its name and key, in the keyring or in a variable CONVECT_SECRET_<name>_<key> of the server.'
            )}
            onChange={secret => form.set({ secret })}
          />
          <TextField
            label={trans.__('Or the address itself')}
            value={values.url}
            example="https://"
            onChange={url => form.set({ url })}
          />
          <TextField
            label={trans.__('Secret to sign with')}
            value={values.sign}
            onChange={sign => form.set({ sign })}
          />
        </>
      )}
      <Field label={trans.__('When runs')} isGroup>
        {EVENTS.map(event => (
          <label key={event} className="jp-Convect-choice">
            <CheckBox
              checked={values.events.has(event)}
              onChange={isOn => form.toggle(event, isOn)}
            />
            {eventLabel(trans, event)}
          </label>
        ))}
      </Field>
      {values.events.has('longer') && (
        <TextField
          label={trans.__('Longer than')}
          value={values.longer}
          onChange={longer => form.set({ longer })}
        />
      )}
      {!form.isAboutSchedule && (
        <TextField
          label={trans.__('Only runs of the file')}
          value={values.path}
          example={trans.__('all runs')}
          onChange={path => form.set({ path })}
        />
      )}
      <Field label={trans.__('Try it')} isGroup>
        <button
          type="button"
          className="jp-Convect-link"
          onClick={() => void form.test()}
        >
          {trans.__('Test')}
        </button>
        {form.told && <span role="status">{form.told}</span>}
      </Field>
      <Failure error={form.failure} />
    </div>
  );
}
