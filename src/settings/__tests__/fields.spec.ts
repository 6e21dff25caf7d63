import { groupsOf, readQuantity, readValue, writeValue } from '../fields';
import { rowsOf } from '../lists';
import { asPlain } from '../Row';

describe('groupsOf', () => {
  it('has every property of a notebook that people set, in its part', () => {
    const names = Object.fromEntries(
      groupsOf('notebook').map(group => [
        group.name,
        group.fields.map(field => field.name)
      ])
    );
    expect(names.general).toEqual(['name', 'description', 'path', 'after']);
    expect(names.resources).toEqual(['resources']);
    expect(names.parameters).toEqual(['parameters']);
    expect(names.environment).toContain('image');
    expect(names.kubernetes).toEqual(['kubernetes']);
  });

  it('has the inputs of a component among its parameters', () => {
    const group = groupsOf('component').find(
      item => item.name === 'parameters'
    );
    expect(group?.fields.map(field => field.name)).toContain('inputs');
  });
});

describe('values', () => {
  it.each([
    ['2', 2],
    ['0.5', 0.5],
    ['500m', '500m'],
    ['', undefined]
  ])('reads the quantity %s', (text, value) => {
    expect(readQuantity(text)).toBe(value);
  });

  it.each([
    ['3', 'integer', 3],
    ['3.5', 'integer', '3.5'],
    ['0.1', 'number', 0.1],
    ['true', 'boolean', true],
    ['3', 'string', '3'],
    ['[1, 2]', 'array', [1, 2]],
    ['{"a": 1}', 'object', { a: 1 }],
    ['[1,', 'array', '[1,'],
    ['x', undefined, 'x'],
    ['7', undefined, 7],
    ['${{ run.id }}', 'integer', '${{ run.id }}'],
    ['', 'string', undefined]
  ])('reads %s as %s', (text, type, value) => {
    expect(readValue(text, type)).toEqual(value);
    if (
      value !== undefined &&
      !Array.isArray(value) &&
      typeof value !== 'object'
    ) {
      expect(writeValue(value)).toBe(text);
    }
  });
});

describe('rowsOf', () => {
  it('keeps the place and the key of a row that is renamed', () => {
    const rows = rowsOf([], ['A', 'B', 'C']);
    const renamed = rows.map(row =>
      row.name === 'A' ? { ...row, name: 'Z' } : row
    );
    // The shared document gives a renamed key back at its end.
    const after = rowsOf(renamed, ['B', 'C', 'Z']);
    expect(after.map(row => row.name)).toEqual(['Z', 'B', 'C']);
    expect(after[0].key).toBe(rows[0].key);
    const more = rowsOf(after, ['A', 'B', 'C', 'Z']);
    expect(new Set(more.map(row => row.key)).size).toBe(4);
  });
});

it('leaves the marks of code out of tooltips', () => {
  expect(asPlain('Such as `90s` or `${{ parameters.a }}`.')).toBe(
    'Such as 90s or ${{ parameters.a }}.'
  );
});
