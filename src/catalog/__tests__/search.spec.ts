import { find, prepare, rowsOf, wordsOf } from '../search';
import type { IEntry } from '../types';

function entry(name: string, more: Partial<IEntry> = {}): IEntry {
  return {
    catalog: 'c',
    source: `${name}.yaml`,
    part: 0,
    digest: `sha256:${name}`,
    name,
    description: '',
    format: 'v1',
    image: '',
    inputs: [],
    outputs: [],
    categories: [],
    update: null,
    gone: false,
    error: null,
    ...more
  };
}

const ENTRIES = [
  entry('Train a model', { inputs: ['learning_rate'], categories: ['Models'] }),
  entry('Split CSV', { description: 'Splits Rows at random' }),
  entry('Download', { categories: ['Data', 'Web'] }),
  entry('训练模型', { description: '梯度提升', categories: ['Models'] })
];

function names(text: string): string[] {
  return find(prepare(ENTRIES), wordsOf(text)).map(item => item.name);
}

describe('find', () => {
  it('gives everything by name when nothing is asked for', () => {
    expect(names(' ')).toHaveLength(4);
    expect(names('').slice(0, 3)).toEqual([
      'Download',
      'Split CSV',
      'Train a model'
    ]);
  });

  it('looks at names, descriptions and inputs, in any case', () => {
    expect(names('SPLIT')).toEqual(['Split CSV']);
    expect(names('random rows')).toEqual(['Split CSV']);
    expect(names('learning')).toEqual(['Train a model']);
    expect(names('梯度')).toEqual(['训练模型']);
  });

  it('wants every word', () => {
    expect(names('train nothing')).toEqual([]);
  });

  it('gives those first that have the words in their name', () => {
    const items = prepare([entry('A', { description: 'plot' }), entry('Plot')]);
    expect(find(items, ['plot']).map(item => item.name)).toEqual(['Plot', 'A']);
  });
});

describe('rowsOf', () => {
  const all = prepare(ENTRIES).map(item => item.entry);

  it('puts a component into each of its categories, and the rest last', () => {
    const rows = rowsOf(all, () => true);
    const shown = rows.map(row =>
      row.kind === 'category' ? `# ${row.name}` : row.entry.name
    );
    expect(shown).toEqual([
      '# Data',
      'Download',
      '# Models',
      'Train a model',
      '训练模型',
      '# Web',
      'Download',
      '# ',
      'Split CSV'
    ]);
  });

  it('gives every row a key of its own', () => {
    const keys = rowsOf(all, () => true).map(row => row.key);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('keeps the members of a closed category out', () => {
    const rows = rowsOf(all, name => name !== 'Models');
    expect(rows).toContainEqual({
      kind: 'category',
      key: 'category Models',
      name: 'Models',
      count: 2,
      isOpen: false
    });
    expect(rows.map(row => row.key).join()).not.toContain('Train');
  });
});
