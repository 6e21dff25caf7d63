import { groupsOf, readQuantity, readValue, writeValue } from '../fields';

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
