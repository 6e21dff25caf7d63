import { PipelineDoc } from '../model';
import { parse } from '../serialize';

describe('parse', () => {
  it.each([
    ['{"convect": 1, "nodes": {}', 'malformed-json'],
    ['', 'malformed-json'],
    ['[]', 'not-an-object'],
    ['{"nodes": {}}', 'bad-version'],
    ['{"convect": "1", "nodes": {}}', 'bad-version'],
    ['{"convect": 2, "nodes": {}}', 'newer-version'],
    ['{"doc_type": "pipeline", "pipelines": []}', 'foreign-format'],
    ['{"convect": 1}', 'not-an-object'],
    ['{"convect": 1, "nodes": {"a": 3}}', 'not-an-object'],
    ['{"convect": 1, "nodes": {}, "defaults": []}', 'not-an-object'],
    [
      '{"convect": 1, "nodes": {}, "extra": {"n": 9007199254740993}}',
      'inexact-number'
    ]
  ])('refuses %s', (text, code) => {
    expect(parse(text).malformed?.code).toBe(code);
    const doc = PipelineDoc.create();
    doc.setSource(text);
    expect(doc.getSource()).toBe(text);
  });

  it('takes digits in a text for what they are', () => {
    const text = '{"convect": 1, "nodes": {}, "name": "\\"9007199254740993"}';
    expect(parse(text).document).toBeDefined();
  });
});
