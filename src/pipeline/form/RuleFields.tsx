import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { problemsAt, readValue, Row, words, writeValue } from '../../settings';
import type { ISettingProps } from '../../settings';
import { formatValue, Select, TextInput, translated } from '../../ui';
import type { IConvectApi } from '../../api';
import { sentenceOf } from '../../api';
import { loopAround, referencesFor, runsAnyway } from '../completion';
import { expressionOf, innerOf, shownOf } from '../expressions';
import type { IParameter, Json } from '../schema';
import { isObject } from '../serialize';
import { useStore } from '../store';
import { useForm } from './context';
import { ExpressionInput } from './ExpressionInput';

/** When it runs; what comes of that with the values of the last run stands below. */
export function ConditionField(props: ISettingProps): JSX.Element {
  const { set, session, node } = useForm();
  const { trans } = session;
  const { schema } = props.field;
  const text = shownOf(props.value);
  const example = innerOf(schema['x-form']?.placeholder ?? '') ?? '';
  return (
    <Row
      label={words(trans, schema.title ?? '')}
      help={words(trans, schema.description ?? '')}
      path={props.path}
      isSet={props.value !== undefined}
    >
      <ExpressionInput
        value={text}
        placeholder={trans.__('for example %1', example)}
        names={referencesFor(session, node, 'when')}
        onChange={next => set(props.path, expressionOf(next))}
      />
      <LastRun path={props.path} expression={props.value} />
    </Row>
  );
}

/** Over which list it runs, what an item is called, and how many run at a time. */
export function LoopField(props: ISettingProps): JSX.Element {
  const { set, session, node } = useForm();
  const { trans } = session;
  const { schema } = props.field;
  const loop = isObject(props.value) ? props.value : {};
  const { properties = {} } = schema;
  const items = loop.in;
  const [chosen, setChosen] = React.useState<'list' | 'expression' | null>(
    null
  );
  const source =
    chosen ??
    (typeof items === 'string' && items.includes('${{')
      ? 'expression'
      : 'list');
  const write = (key: string, value: Json | undefined) => {
    const next: { [key: string]: Json } = { ...loop };
    if (value === undefined) {
      delete next[key];
    } else {
      next[key] = value;
    }
    // An item needs some name.
    if (key === 'in' && value !== undefined && !('name' in next)) {
      next.name = 'item';
    }
    const isEmpty =
      next.in === undefined && (key === 'in' || next.name === undefined);
    set(props.path, isEmpty ? undefined : next);
  };
  return (
    <>
      <Row
        label={words(trans, schema.title ?? '')}
        help={words(trans, schema.description ?? '')}
        path={[...props.path, 'name']}
        isSet={props.value !== undefined}
      >
        <TextInput
          value={writeValue(loop.name)}
          placeholder={trans.__('for example %1', 'region')}
          onChange={text => write('name', text.trim() || undefined)}
        />
      </Row>
      <Row
        label={words(trans, properties.in?.title ?? '')}
        help={words(trans, properties.in?.description ?? '')}
        path={[...props.path, 'in']}
        isSet={items !== undefined}
        extra={
          <Select
            value={source}
            label={trans.__('Where the items come from')}
            options={[
              { value: 'list', label: trans.__('Values') },
              { value: 'expression', label: trans.__('Expression') }
            ]}
            onChange={next => setChosen(next as typeof source)}
          />
        }
      >
        {source === 'expression' ? (
          <>
            <ExpressionInput
              value={Array.isArray(items) ? '' : shownOf(items)}
              names={referencesFor(session, node, 'for_each')}
              onChange={next => write('in', expressionOf(next))}
            />
            <LastRun
              path={[...props.path, 'in']}
              expression={typeof items === 'string' ? items : undefined}
            />
          </>
        ) : (
          <TextInput
            value={writeList(items)}
            placeholder={trans.__('for example %1', 'eu, us, 3')}
            onChange={next => write('in', readList(next))}
          />
        )}
      </Row>
      <Row
        label={words(trans, properties.parallel?.title ?? '')}
        help={words(trans, properties.parallel?.description ?? '')}
        path={[...props.path, 'parallel']}
        isSet={loop.parallel !== undefined}
      >
        <TextInput
          type="number"
          min={1}
          value={writeValue(loop.parallel)}
          placeholder={trans.__('as many as there is room for')}
          onChange={text =>
            write('parallel', text === '' ? undefined : Number(text))
          }
        />
      </Row>
    </>
  );
}

/** What was typed as a list: JSON, or values with commas between them. */
export function readList(
  text: string,
  type?: IParameter['type']
): Json[] | undefined {
  if (text.trim() === '') {
    return undefined;
  }
  if (text.trim().startsWith('[')) {
    try {
      const value = JSON.parse(text) as Json;
      if (Array.isArray(value)) {
        return value;
      }
    } catch {
      // Still being typed, or no JSON.
    }
  }
  return text
    .split(/[,，]/)
    .map(item => item.trim())
    .filter(item => item !== '')
    .map(item => readValue(item, type)!);
}

export function writeList(
  value: Json | undefined,
  type?: IParameter['type']
): string {
  if (!Array.isArray(value)) {
    return writeValue(value);
  }
  const text = value.map(writeValue).join(', ');
  return JSON.stringify(readList(text, type) ?? []) === JSON.stringify(value)
    ? text
    : JSON.stringify(value);
}

export function RunIfField(props: ISettingProps): JSX.Element {
  const { set, session } = useForm();
  const { trans } = session;
  const { schema } = props.field;
  return (
    <Row
      label={words(trans, schema.title ?? '')}
      help={words(trans, schema.description ?? '')}
      path={props.path}
      isSet={props.value !== undefined}
    >
      <Select
        value={props.value === 'succeeded' ? '' : writeValue(props.value)}
        options={[
          { value: '', label: trans.__('everything before it succeeded') },
          { value: 'failed', label: trans.__('something before it failed') },
          { value: 'always', label: trans.__('always, also after a stop') }
        ]}
        onChange={value => set(props.path, value || undefined)}
      />
    </Row>
  );
}

/** What an expression comes to with the values of a run. */
type Evaluated = Awaited<ReturnType<IConvectApi['evaluate']>>;

const PAUSE = 300;

/** What the expression would have been with the values of the newest run. */
function LastRun(props: {
  path: readonly string[];
  expression: Json | undefined;
}): JSX.Element | null {
  const { session, problems, node } = useForm();
  const { api, trans, document } = session;
  const { expression } = props;
  const loop = loopAround(document, node);
  const isAnyway = runsAnyway(document, node);
  const last = useStore(session.runs.store, ({ run, runs }) => run ?? runs[0]);
  const run = last?.id;
  const seq = last?.seq;
  const [answer, setAnswer] = React.useState<Evaluated | string | null>(null);
  React.useEffect(() => {
    let isGone = false;
    if (run === undefined || typeof expression !== 'string') {
      setAnswer(null);
      return;
    }
    const timer = setTimeout(() => {
      const place = { loop, runs_anyway: isAnyway || undefined };
      api.evaluate(run, { expression, ...place }).then(
        found => !isGone && setAnswer(found),
        error => !isGone && setAnswer(sentenceOf(error))
      );
    }, PAUSE);
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [api, run, seq, expression, loop, isAnyway]);
  // What is wrong with it anyway is said by the field.
  const isWrong = problemsAt(problems, props.path).some(
    ({ severity }) => severity === 'error'
  );
  if (answer === null || isWrong) {
    return null;
  }
  if (typeof answer === 'string') {
    return (
      <span className="jp-Convect-help jp-Convect-lastRun">
        {trans.__('With the last run: %1', translated(answer, trans))}
      </span>
    );
  }
  const { value } = answer;
  return (
    <span
      className="jp-Convect-help jp-Convect-lastRun"
      data-value={typeof value === 'boolean' ? String(value) : undefined}
      role="status"
    >
      {outcomeOf(answer, props.path, trans)}
    </span>
  );
}

/** What an expression would have been, as a sentence. */
function outcomeOf(
  { value, values, items }: Evaluated,
  path: readonly string[],
  trans: TranslationBundle
): string {
  if (items) {
    return path[0] === 'when'
      ? trans._n(
          'With the last run this would be true for %2 of %1 item.',
          'With the last run this would be true for %2 of %1 items.',
          items.total,
          items.true
        )
      : trans._n(
          'With the last run this would be %1 item in all.',
          'With the last run this would be %1 items in all.',
          items.length
        );
  }
  if (Array.isArray(value)) {
    return trans._n(
      'With the last run this would be %1 item.',
      'With the last run this would be %1 items.',
      value.length
    );
  }
  const given = Object.entries(values)
    .map(([name, item]) => trans.__('%1 was %2', name, formatValue(item)))
    .join(', ');
  return value === true
    ? trans.__('With the last run this would be true: %1.', given)
    : value === false
      ? trans.__('With the last run this would be false: %1.', given)
      : trans.__('With the last run: %1', given);
}
