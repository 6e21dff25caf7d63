import type { JSONObject } from '@lumino/coreutils';
import { JSONExt } from '@lumino/coreutils';
import * as React from 'react';

import type { IProfile } from '../api';
import { Field, Select } from '../ui';
import { useForm } from './context';

/** What a profile sets of a form; an image only where there is a field for it. */
export function profileSettings(
  { settings }: IProfile,
  hasImage: boolean
): JSONObject {
  const { image, ...rest } = settings;
  return hasImage && image !== undefined ? { ...rest, image } : rest;
}

/** The profile whose settings these are, if one has them. */
export function profileOf(
  profiles: readonly IProfile[],
  value: JSONObject,
  hasImage: boolean
): IProfile | undefined {
  return profiles.find(profile => {
    const settings = profileSettings(profile, hasImage);
    return (
      Object.keys(settings).length > 0 &&
      Object.entries(settings).every(([name, given]) =>
        JSONExt.deepEqual(value[name] ?? null, given)
      )
    );
  });
}

/** A size to choose instead of numbers, which it fills in. */
export function ProfileField(props: {
  path: readonly string[];
  value: JSONObject;
  hasImage: boolean;
}): JSX.Element | null {
  const { path, value, hasImage } = props;
  const { trans, set, offering } = useForm();
  const profiles = offering?.profiles ?? [];
  if (profiles.length === 0) {
    return null;
  }
  const chosen = profileOf(profiles, value, hasImage);
  return (
    <Field
      label={trans.__('Profile')}
      path={[...path, 'profile'].join('.')}
      hint={chosen?.notes || null}
    >
      <Select
        value={chosen?.name ?? ''}
        options={[
          { value: '', label: trans.__('none') },
          ...profiles.map(({ name }) => ({ value: name, label: name }))
        ]}
        onChange={name => {
          const next = profiles.find(profile => profile.name === name);
          const settings = next ? profileSettings(next, hasImage) : {};
          const before = chosen ? profileSettings(chosen, hasImage) : {};
          for (const key of new Set([
            ...Object.keys(before),
            ...Object.keys(settings)
          ])) {
            set([...path, key], settings[key]);
          }
        }}
      />
    </Field>
  );
}
