import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type { IConvectApi, IEndpoint, IRuntime } from '../api';
import { ConvectError, sentenceOf } from '../api';
import { Observable } from '../ui';
import type { IAskedForm } from '../ui/asking';

const EMPTY = {
  id: '',
  runtime: 'local',
  image: '',
  cpu: '',
  memory: '',
  gpu: '',
  concurrency: '',
  queue: '',
  rate: '',
  idle: ''
};
const NUMBERS = ['gpu', 'concurrency', 'queue', 'rate', 'idle'] as const;
const LIMITS = ['concurrency', 'queue', 'rate', 'idle'] as const;

/** What is typed into a field. */
export type EndpointText = Exclude<keyof typeof EMPTY, 'runtime'>;
type Values = typeof EMPTY;

/** What is asked before a file is made callable. */
export class EndpointForm extends Observable implements IAskedForm<IEndpoint> {
  constructor(
    private readonly api: IConvectApi,
    readonly path: string,
    readonly trans: TranslationBundle
  ) {
    super();
    void this.load();
  }

  values: Readonly<Values> = EMPTY;
  runtimes: readonly Omit<IRuntime, 'options_schema'>[] = [];
  complaints: Partial<Record<EndpointText, string>> = {};
  failure: unknown = null;

  set(values: Partial<Values>): void {
    this.values = { ...this.values, ...values };
    for (const name of Object.keys(values)) {
      delete this.complaints[name as EndpointText];
    }
    this.touch();
  }

  /** Whether calls run in pods. */
  get hasPods(): boolean {
    return this.features.includes('image');
  }

  /** How many limits are chosen. */
  get limits(): number {
    return LIMITS.filter(name => this.values[name].trim()).length;
  }

  /** Where calls run, and the function of a cell tagged `serve` stays loaded. */
  get place(): string {
    const { trans } = this;
    if (!this.hasPods) {
      return trans.__('Calls run on this machine.');
    }
    return this.features.includes('workers')
      ? trans.__(
          'Each call runs in a pod. A function in a cell tagged “serve” stays loaded in a Deployment.'
        )
      : trans.__(
          'Each call runs there. A function in a cell tagged “serve” cannot be called.'
        );
  }

  async submit(): Promise<IEndpoint | null> {
    this.complaints = {};
    for (const name of NUMBERS) {
      const text = this.values[name].trim();
      if (text && !(Number(text) >= 0)) {
        this.complaints[name] = this.trans.__('Enter a number.');
      }
    }
    this.failure = null;
    let made: IEndpoint | null = null;
    if (Object.keys(this.complaints).length === 0) {
      try {
        made = await this.api.addEndpoint(this.body());
      } catch (error) {
        this.complain(error);
      }
    }
    this.touch();
    return made;
  }

  private complain(error: unknown): void {
    const isOfAddress =
      error instanceof ConvectError &&
      (error.status === 409 ||
        (error.code === 'bad-endpoint' && this.limits === 0));
    if (isOfAddress) {
      this.complaints = { id: sentenceOf(error) };
    } else {
      this.failure = error;
    }
  }

  private body(): Parameters<IConvectApi['addEndpoint']>[0] {
    const { path, hasPods } = this;
    const given = Object.fromEntries(
      Object.entries(this.values)
        .map(([name, text]) => [name, text.trim()])
        .filter(([, text]) => text)
    ) as Partial<Values>;
    const number = (name: (typeof NUMBERS)[number]) =>
      given[name] === undefined ? undefined : Number(given[name]);
    const { cpu, memory } = given;
    const gpu = number('gpu');
    const resources: JSONObject = {
      ...(cpu ? { cpu } : {}),
      ...(memory ? { memory } : {}),
      ...(gpu !== undefined ? { gpu } : {})
    };
    const settings: JSONObject = {
      ...(given.image ? { image: given.image } : {}),
      ...(Object.keys(resources).length > 0 ? { resources } : {})
    };
    const idle = number('idle');
    return {
      path,
      id: given.id,
      runtime: given.runtime,
      settings: hasPods ? settings : undefined,
      concurrency: number('concurrency'),
      queue: number('queue'),
      rate: number('rate'),
      idle: idle === undefined ? undefined : 60 * idle
    };
  }

  private get features(): readonly string[] {
    const { runtime } = this.values;
    return this.runtimes.find(each => each.name === runtime)?.features ?? [];
  }

  private async load(): Promise<void> {
    try {
      const about = await this.api.about();
      this.runtimes = about.runtimes;
      this.values = { ...this.values, runtime: about.default_runtime };
    } catch (error) {
      this.failure = error;
    }
    this.touch();
  }
}
