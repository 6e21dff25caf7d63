import { readdirSync, readFileSync } from 'fs';
import { join } from 'path';

import { PipelineDoc } from '../model';
import { dumps, parse } from '../serialize';

// The same files that the Python tests read: both sides write the same bytes.
const FOLDER = join(__dirname, '..', '..', '..', 'tests', 'golden');
const FILES = readdirSync(FOLDER).filter(name => name.endsWith('.pipeline'));

describe('golden files', () => {
  it('are there', () => {
    expect(FILES.length).toBeGreaterThan(0);
  });

  it.each(FILES)('%s is written as it was read', name => {
    const text = readFileSync(join(FOLDER, name), 'utf-8');
    const { document } = parse(text);
    expect(dumps(document!)).toBe(text);
    const doc = PipelineDoc.create();
    doc.setSource(text);
    expect(doc.getSource()).toBe(text);
  });
});
