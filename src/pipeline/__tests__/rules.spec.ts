import { nullTranslator } from '@jupyterlab/translation';

import { boxesOf } from '../boxes';
import type { IGroup } from '../../api';
import { stepOf } from '../../api/types';
import { completionAt, loopAround, referencesFor } from '../completion';
import { toFlow } from '../canvas/flow';
import { paste } from '../clipboard';
import { connect, remove, renameNode, toggleDisabled } from '../edits';
import {
  briefExpression,
  mapNodes,
  referencesIn,
  wholeReference
} from '../expressions';
import { readList, writeList } from '../form/RuleFields';
import { edgesOf } from '../graph';
import { PipelineDoc } from '../model';
import { cycleOf, orderOf, reachable } from '../order';
import { ruleBadge, rulesOf, ruleSentence } from '../rules';
import type { IDocument } from '../schema';
import { dumps } from '../serialize';
import { ViewMaker } from '../views';
import { openSession } from './opened';

const trans = nullTranslator.load('jupyterlab_convect');

/** A loop over a group, decided by what was trained, and what comes after it. */
const REGIONS: IDocument = {
  convect: 1,
  parameters: { least: { type: 'number', default: 0.8 } },
  nodes: {
    train: { kind: 'notebook', path: 'train.ipynb' },
    regions: {
      kind: 'group',
      members: ['score', 'report'],
      when: '${{ nodes.train.outputs.auc >= parameters.least }}',
      for_each: {
        name: 'region',
        in: '${{ nodes.train.outputs.regions }}',
        parallel: 4
      }
    },
    score: {
      kind: 'notebook',
      path: 'score.ipynb',
      parameters: { region: '${{ each.region }}' }
    },
    report: { kind: 'notebook', path: 'report.ipynb', after: ['score'] },
    clean: {
      kind: 'command',
      command: ['rm', '${{ nodes.regions.state }}'],
      run_if: 'always'
    }
  },
  outputs: { auc: '${{ nodes.train.outputs.auc }}' }
};

function docOf(document: IDocument): PipelineDoc {
  const doc = PipelineDoc.create();
  doc.setSource(dumps(document));
  return doc;
}

describe('expressions', () => {
  it('finds every reference of a condition, and none in its texts', () => {
    expect(
      referencesIn(
        '${{ nodes.a.outputs.x >= 0.8 && "nodes.b.outputs.y" in parameters.list || !nodes.c-1.state }}'
      )
    ).toEqual([
      { kind: 'output', node: 'a', output: 'x' },
      { kind: 'parameter', name: 'list' },
      { kind: 'state', node: 'c-1' }
    ]);
    expect(
      referencesIn('${{ first(nodes.a.outputs.x, each.region.name) }}')
    ).toEqual([
      { kind: 'output', node: 'a', output: 'x' },
      { kind: 'each', name: 'region.name' }
    ]);
  });

  it('knows an output of any name that stands alone', () => {
    expect(wholeReference('${{ nodes.a.outputs.my own name }}')).toEqual({
      kind: 'output',
      node: 'a',
      output: 'my own name'
    });
    expect(wholeReference('${{ nodes.a.outputs.x > 1 }}')).toBeNull();
  });

  it('renames nodes inside of conditions and leaves the rest as it stands', () => {
    const rename = (id: string) => (id === 'a' ? 'b' : id);
    expect(
      mapNodes('${{nodes.a.outputs.x  >= 1 && "nodes.a" == each.y}}', rename)
    ).toBe('${{nodes.b.outputs.x  >= 1 && "nodes.a" == each.y}}');
    expect(mapNodes('${{ nodes.a.state }}', rename)).toBe(
      '${{ nodes.b.state }}'
    );
  });

  it('drops an expression with any of its references', () => {
    const gone = (id: string) => (id === 'a' ? null : id);
    expect(
      mapNodes('${{ first(nodes.a.outputs.x, 1) }}', gone)
    ).toBeUndefined();
    expect(mapNodes('n = ${{ nodes.a.outputs.x > 1 }}', gone)).toBe('n = ');
  });

  it('is short where a name alone tells what is meant', () => {
    expect(
      briefExpression('${{ nodes.train.outputs.auc >= parameters.least }}')
    ).toBe('auc >= least');
    expect(
      briefExpression('${{ nodes.a.outputs.auc > nodes.b.outputs.auc }}')
    ).toBe('a.auc > b.auc');
  });
});

describe('edges of groups', () => {
  it('lead to what is decided, looped over, or asked for its state', () => {
    expect(edgesOf(REGIONS).map(({ id }) => id)).toEqual([
      'train.auc>regions.when',
      'train.regions>regions.for_each.in',
      'score>report',
      'regions>clean.command'
    ]);
  });

  it('are drawn, with words for who cannot see them', () => {
    const views = new ViewMaker().make(REGIONS, edgesOf(REGIONS), {
      found: new Map(),
      problems: [],
      steps: null
    });
    const { edges, nodes } = toFlow({
      document: REGIONS,
      views,
      boxes: boxesOf(REGIONS, views),
      edges: edgesOf(REGIONS),
      selection: new Set(),
      selectedEdges: new Set(),
      trans
    });
    expect(edges.map(edge => edge.ariaLabel)).toEqual([
      '“regions” is decided by auc of “train”',
      '“regions” loops over regions of “train”',
      '“report” runs after “score”',
      '“clean” takes the state from “regions” as command'
    ]);
    expect(nodes.find(({ id }) => id === 'regions')?.ariaLabel).toBe(
      'Group regions, runs after train, runs when auc >= least, runs once for each region in regions, 4 at a time, 2 nodes'
    );
  });

  it('make a cycle when a group would wait for what waits for one of its members', () => {
    const edges = edgesOf(REGIONS);
    // The group has a rule: it waits as a whole.
    expect(cycleOf(REGIONS, edges, 'clean', 'score')).toEqual([
      'score',
      'regions',
      'clean',
      'score'
    ]);
    expect(cycleOf(REGIONS, edges, 'train', 'score')).toBeNull();
    const later = reachable(orderOf(REGIONS, edges), ['train'], 'down');
    expect([...later]).toEqual(
      expect.arrayContaining(['regions', 'score', 'report', 'clean'])
    );
  });

  it('can be made and removed like others', () => {
    const doc = docOf(REGIONS);
    connect(doc, 'train', 'regions');
    expect(doc.snapshot.nodes.regions.after).toEqual(['train']);
    const [edge] = edgesOf(doc.snapshot).filter(
      ({ path }) => path?.[0] === 'for_each'
    );
    remove(doc, [], [edge]);
    expect(doc.snapshot.nodes.regions.for_each).toBeUndefined();
    expect(doc.snapshot.nodes.regions.when).toBeDefined();
  });
});

describe('rules', () => {
  it('follow a node to its new name, also in the outputs of the pipeline', () => {
    const doc = docOf(REGIONS);
    renameNode(doc, 'train', 'fit');
    const { nodes, outputs } = doc.snapshot;
    expect(nodes.regions.when).toBe(
      '${{ nodes.fit.outputs.auc >= parameters.least }}'
    );
    expect(nodes.regions.for_each?.in).toBe('${{ nodes.fit.outputs.regions }}');
    expect(outputs).toEqual({ auc: '${{ nodes.fit.outputs.auc }}' });
  });

  it('leave a node out, or a group with all that is in it, and put it back', () => {
    const doc = docOf(REGIONS);
    const isOff = (id: string) =>
      new ViewMaker()
        .make(doc.snapshot, [], { found: new Map(), problems: [], steps: null })
        .get(id)!.isDisabled;
    expect(toggleDisabled(doc, ['train', 'regions'])).toBe(true);
    expect(['train', 'regions', 'score', 'clean'].map(isOff)).toEqual([
      true,
      true,
      true,
      false
    ]);
    expect(rulesOf(doc.snapshot.nodes.regions)[0]).toEqual({
      kind: 'disabled'
    });
    expect(toggleDisabled(doc, ['train', 'regions'])).toBe(false);
    expect(doc.snapshot.nodes).toEqual(REGIONS.nodes);
    doc.undo();
    expect(isOff('score')).toBe(true);
  });

  it('stay when what decides them is gone, so that nothing runs by chance', () => {
    const doc = docOf(REGIONS);
    remove(doc, ['train']);
    expect(doc.snapshot.nodes.regions.when).toBe(REGIONS.nodes.regions.when);
    expect(doc.snapshot.nodes.regions.for_each).toEqual(
      REGIONS.nodes.regions.for_each
    );
    const other = docOf({ convect: 1, nodes: {} });
    paste(
      other,
      {
        'convect-clip': 1,
        nodes: { regions: { ...REGIONS.nodes.regions, members: [] } },
        comments: {},
        layout: {},
        components: {}
      } as never,
      { offset: { x: 0, y: 0 } }
    );
    expect(other.snapshot.nodes.regions.when).toBe(REGIONS.nodes.regions.when);
  });

  it('are badges, with how far a loop is', () => {
    const loop: IGroup = {
      id: 'regions',
      node: 'regions',
      item: [],
      state: 'running',
      reason: null,
      started: 1,
      ended: null,
      by_rule: false,
      stopping: false,
      items: 200,
      counts: { succeeded: 34, failed: 3, running: 4, waiting: 159 }
    };
    const { regions, clean } = Object.fromEntries(
      new ViewMaker().make(REGIONS, edgesOf(REGIONS), {
        found: new Map(),
        problems: [],
        steps: {},
        groups: { regions: loop }
      })
    );
    expect(regions.rules.map(rule => ruleBadge(rule, trans))).toEqual([
      'when auc >= least',
      'for each region'
    ]);
    expect(regions.items).toMatchObject({ total: 200, done: 37 });
    expect(regions.step).toMatchObject({
      state: 'running',
      progress: { cell: 37, cells: 200 }
    });
    expect(clean.rules.map(rule => ruleSentence(rule, trans))).toEqual([
      'runs always, also after a failure or a stop'
    ]);
  });

  it('count all steps of a member, also those that a run does not show', () => {
    const loop = {
      id: 'regions',
      item: [],
      state: 'running',
      started: 1,
      ended: null,
      items: 5000,
      counts: {},
      members: { score: { failed: 1, succeeded: 3999, waiting: 1000 } }
    } as unknown as IGroup;
    const failed = stepOf({
      id: 'regions.7.score',
      node: 'score',
      item: [7],
      state: 'failed',
      reason: 'No data.'
    });
    const { score } = Object.fromEntries(
      new ViewMaker().make(REGIONS, edgesOf(REGIONS), {
        found: new Map(),
        problems: [],
        steps: { [failed.id]: failed },
        groups: { regions: loop }
      })
    );
    expect(score.step).toMatchObject({
      state: 'failed',
      reason: 'No data.',
      ended: null,
      progress: { cell: 4000, cells: 5000 }
    });
  });

  it('call a member skipped only if it was for all items', () => {
    const stateOf = (counts: object) => {
      const loop = {
        id: 'regions',
        item: [],
        state: 'succeeded',
        started: 1,
        ended: 2,
        items: 3,
        counts: {},
        members: { score: counts }
      } as unknown as IGroup;
      const { score } = Object.fromEntries(
        new ViewMaker().make(REGIONS, edgesOf(REGIONS), {
          found: new Map(),
          problems: [],
          steps: {},
          groups: { regions: loop }
        })
      );
      return score.step;
    };
    expect(stateOf({ succeeded: 1, skipped: 2 })?.state).toBe('succeeded');
    expect(stateOf({ skipped: 3 })).toMatchObject({
      state: 'skipped',
      started: null
    });
  });

  it('make room for their badges', () => {
    const make = (document: IDocument) =>
      boxesOf(
        document,
        new ViewMaker().make(document, edgesOf(document), {
          found: new Map(),
          problems: [],
          steps: null
        })
      );
    const regions = { ...REGIONS.nodes.regions };
    delete regions.when;
    const plain = { ...REGIONS, nodes: { ...REGIONS.nodes, regions } };
    expect(make(REGIONS).get('regions')!.height).toBe(
      make(plain as IDocument).get('regions')!.height + 24
    );
  });
});

describe('completion', () => {
  it('offers what is before a node, parameters, and items around it', () => {
    const { session } = openSession(REGIONS);
    expect(referencesFor(session, 'score', 'when')).toEqual([
      'nodes.train.outputs.auc',
      'nodes.train.outputs.regions',
      'parameters.least',
      'each.region'
    ]);
    expect(referencesFor(session, 'train', 'when')).toEqual([
      'parameters.least'
    ]);
    expect(referencesFor(session, 'clean', 'when')).toContain(
      'nodes.regions.state'
    );
    session.dispose();
  });

  it('offers states inside of what runs after a failure', () => {
    const { regions } = REGIONS.nodes;
    const always = { ...regions, run_if: 'always' } as IDocument['nodes'][''];
    const nodes = { ...REGIONS.nodes, regions: always };
    const { session } = openSession({ ...REGIONS, nodes });
    expect(referencesFor(session, 'score', 'when')).toContain(
      'nodes.train.state'
    );
    expect(loopAround(session.document, 'score')).toBe('regions');
    expect(loopAround(session.document, 'clean')).toBeUndefined();
    session.dispose();
  });

  it('takes the place of the word at the caret', () => {
    const names = ['nodes.train.outputs.auc', 'parameters.least', 'each.auc'];
    const text = 'parameters.least < au';
    expect(completionAt(text, text.length, names)).toEqual({
      from: 19,
      to: 21,
      options: ['nodes.train.outputs.auc', 'each.auc']
    });
    expect(completionAt('', 0, names).options).toEqual(names);
    expect(completionAt('each.auc == "nod', 16, names).options).toEqual([]);
    expect(completionAt('each.auc >= 0.', 14, names).options).toEqual([]);
    expect(completionAt('each.auc', 8, names).options).toEqual([]);
  });
});

describe('a list of items', () => {
  it('is what was typed', () => {
    expect(readList('eu, us，3, true')).toEqual(['eu', 'us', 3, true]);
    expect(readList('["a, b", {"x": 1}]')).toEqual(['a, b', { x: 1 }]);
    expect(readList('  ')).toBeUndefined();
  });
  it('is shown so that it can be typed again', () => {
    for (const list of [
      ['eu', 'us', 3],
      ['a, b'],
      ['3'],
      [{ x: 1 }, [2]],
      [' a ']
    ]) {
      expect(readList(writeList(list))).toEqual(list);
    }
  });
});
