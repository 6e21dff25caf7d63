import { commandOf, containersOf, piecesOf } from '../definition';
import type { IDefinition } from '../types';

function text(argument: Parameters<typeof piecesOf>[0]): string {
  return piecesOf(argument)
    .map(piece => (piece.isPlace ? `<${piece.text}>` : piece.text))
    .join('');
}

describe('piecesOf', () => {
  it('shows text as it is and marks what is put in', () => {
    expect(text('--rows')).toBe('--rows');
    expect(text({ inputValue: 'rows' })).toBe('<inputValue rows>');
    expect(text({ outputPath: 'table' })).toBe('<outputPath table>');
    expect(text({ executorInput: true })).toBe('<executorInput>');
  });

  it('follows what is nested', () => {
    expect(text({ concat: ['gs://', { inputValue: 'bucket' }, '/x'] })).toBe(
      'gs://<inputValue bucket>/x'
    );
    expect(
      text({
        if: {
          cond: { isPresent: 'seed' },
          then: ['--seed', { inputValue: 'seed' }],
          else: ['--no-seed']
        }
      })
    ).toBe(
      '<if ><isPresent seed>< then >--seed <inputValue seed>< else >--no-seed< end>'
    );
  });

  it('shows what it does not know as JSON', () => {
    expect(text({ metadata: { input: 'a', key: 'k' } })).toContain('"key":"k"');
  });
});

test('a command is its command and its arguments', () => {
  const command = commandOf({
    image: 'i',
    command: ['python3', '-c'],
    args: [{ inputValue: 'x' }]
  });
  expect(command).toHaveLength(3);
});

test('all containers of a graph are found', () => {
  const leaf = (name: string): IDefinition => ({
    name,
    container: { image: name }
  });
  const graph: IDefinition = {
    name: 'g',
    graph: {
      components: {
        a: leaf('a'),
        b: {
          name: 'inner',
          graph: { components: { c: leaf('c') } }
        }
      }
    }
  };
  expect(containersOf(graph).map(item => item.name)).toEqual(['a', 'c']);
});
