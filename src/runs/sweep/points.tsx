import * as React from 'react';

import type { Axis, ParameterType } from '../../api';
import { sentenceOf } from '../../api';
import { useKept, useTrans } from '../../ui';
import { parseAxis, sizeOf } from '../../settings/parametervalues';
import type { SweepModel } from './model';

/** Changed files that are named. */
const MOST_NAMES = 3;

/** A line to add points to a sweep: values for each parameter it goes over. */
export function AddPoints(props: {
  model: SweepModel;
  onDone: () => void;
}): JSX.Element {
  const { model, onDone } = props;
  const trans = useTrans();
  const names = Object.keys(model.view?.space ?? {});
  const changed = model.view?.changed ?? [];
  const [texts, setTexts] = useKept<Record<string, string>>('points', {});
  const [failure, setFailure] = React.useState<string | null>(null);
  const space: Record<string, Axis> = {};
  let problem: string | null = null;
  for (const name of names) {
    const type = typeOf(model, name);
    const parsed = parseAxis(type, texts[name] ?? '', 'grid', trans);
    if ('error' in parsed) {
      problem ??= `${name}: ${parsed.error}`;
    } else {
      space[name] = parsed.value;
    }
  }
  const size = sizeOf(Object.values(space));
  const add = async () => {
    try {
      await model.api.addPoints(model.id, { space, mode: 'grid' });
      model.refresh();
      onDone();
    } catch (error) {
      setFailure(sentenceOf(error));
    }
  };
  return (
    <form
      className="jp-Convect-points"
      onSubmit={event => {
        event.preventDefault();
        void add();
      }}
    >
      {names.map((name, index) => (
        <label key={name}>
          {name}
          <input
            className="jp-mod-styled"
            autoFocus={index === 0}
            value={texts[name] ?? ''}
            placeholder="1, 2  |  1..10"
            onChange={event =>
              setTexts({ ...texts, [name]: event.target.value })
            }
          />
        </label>
      ))}
      <button
        className="jp-Dialog-button jp-mod-accept jp-mod-styled"
        type="submit"
        disabled={problem !== null}
        title={problem ?? undefined}
      >
        {problem
          ? trans.__('Add')
          : trans._n('Add %1 run', 'Add %1 runs', size)}
      </button>
      {changed.length > 0 && (
        <span className="jp-Convect-pointsNote">
          {trans.__(
            'Changed since this sweep was submitted: %1. Points that you add run the version of then; to run that of today, start a new sweep with “Run as pipeline”.',
            changed.slice(0, MOST_NAMES).join(', ') +
              (changed.length > MOST_NAMES ? ', …' : '')
          )}
        </span>
      )}
      {failure && (
        <span className="jp-Convect-error" role="alert">
          {failure}
        </span>
      )}
    </form>
  );
}

/** The type of a parameter, as its values so far show it. */
function typeOf(model: SweepModel, name: string): ParameterType | null {
  const value = model.points[0]?.parameters[name];
  switch (typeof value) {
    case 'number':
      return model.points.every(run => Number.isInteger(run.parameters[name]))
        ? null
        : 'number';
    case 'string':
      return 'string';
    case 'boolean':
      return 'boolean';
    default:
      return null;
  }
}
