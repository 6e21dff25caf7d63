import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';

import {
  execute,
  frontPage,
  notebook,
  openFile,
  pytorchJob,
  showRuns,
  upload
} from './helpers';

/** What a person can have before them, one after the other, each with its name. */
type Screens = AsyncGenerator<[string, Locator]>;

interface ITour {
  page: IJupyterLabPageFixture;
  folder: string;
  /** Our words in the language of the page. */
  say: (english: string) => string;
}

async function press(place: Locator, name: string): Promise<void> {
  await place.getByRole('button', { name, exact: true }).first().click();
}

const API = '/jupyterlab-convect/api/v1';

/** Remove what this tour or another one has made. */
async function forget(
  page: IJupyterLabPageFixture,
  ...resources: ('schedules' | 'notifications' | 'endpoints' | 'services')[]
): Promise<void> {
  for (const resource of resources) {
    const list = await page.request.get(`${API}/${resource}`);
    for (const { id } of (await list.json())[resource] as { id: string }[]) {
      if (resource === 'services') {
        await page.request.post(`${API}/services/${id}/stop`, { data: {} });
      }
      await page.request.delete(`${API}/${resource}/${id}`);
    }
  }
}

async function closed(dialog: Locator): Promise<void> {
  await dialog.waitFor({ state: 'detached' });
}

const SOURCE = notebook(
  { source: 'lr = 0.1', tags: ['parameters'] },
  [
    'import sys',
    'from jupyterlab_convect import metric, output',
    'for step in range(5):',
    '    metric("loss", lr / (step + 1), step=step)',
    'print("out")',
    'print("bad", file=sys.stderr)',
    'output("rows", 3)'
  ].join('\n')
);

const FAILING = notebook('raise ValueError("too large")');

const PIPELINE = JSON.stringify({
  convect: 1,
  nodes: {
    first: { kind: 'notebook', path: 'report.ipynb' },
    second: { kind: 'command', command: ['true'], after: ['first'] },
    gone: { kind: 'notebook', path: 'gone.ipynb', after: ['first'] }
  }
});

async function* runs({ page, folder, say }: ITour): Screens {
  const run = frontPage(page);
  const panel = await showRuns(page);
  await panel.locator('.jp-Convect-empty').waitFor();
  yield ['no runs', panel];

  await upload(page, `${folder}/report.ipynb`, SOURCE);
  await upload(page, `${folder}/failing.ipynb`, FAILING);
  await upload(page, `${folder}/all.pipeline`, PIPELINE);
  const dialog = page.locator('.jp-Convect-runDialog');
  const start = async (file: string) => {
    await openFile(page, `${folder}/${file}`);
    await page
      .locator('.jp-NotebookPanel:visible')
      .getByText(say('Run as pipeline'))
      .click();
    await dialog.locator('.jp-Convect-summary').waitFor();
  };
  await start('report.ipynb');
  const folded = dialog.locator('[aria-expanded="false"]');
  for (let left = await folded.count(); left > 0; left -= 1) {
    await folded.first().click();
  }
  yield ['the run dialog', dialog.locator('.jp-Dialog-content')];
  await press(dialog, say('Run'));
  await dialog.waitFor({ state: 'detached' });
  const done = run.locator('.jp-Convect-titleState[data-state="succeeded"]');
  await done.waitFor();
  for (const tab of await run.getByRole('tab').all()) {
    await tab.click();
    await run.getByRole('tabpanel').locator('> *').first().waitFor();
    yield [`a run, ${await tab.textContent()}`, run];
  }
  await start('failing.ipynb');
  await press(dialog, say('Run'));
  await run.locator('.jp-Convect-failure').waitFor();
  yield ['a run that failed', run];
  yield ['the runs', panel];

  const ids = await panel
    .locator('[data-run]')
    .evaluateAll(rows => rows.map(row => (row as HTMLElement).dataset.run!));
  await execute(page, 'convect:compare-runs', { runs: ids });
  await run.locator('.jp-Convect-compare tbody').first().waitFor();
  yield ['runs compared', run];

  await start('report.ipynb');
  await dialog
    .getByRole('textbox', { name: 'lr' })
    .first()
    .fill('0.1, 0.2');
  await dialog.getByText('× 2').waitFor();
  yield ['the dialog of a sweep', dialog.locator('.jp-Dialog-content')];
  await press(dialog, say('Run'));
  await dialog.waitFor({ state: 'detached' });
  await run.locator('.jp-Convect-gridRow').nth(1).waitFor();
  yield ['a sweep', run];

  await page.sidebar.openTab('jp-convect-components');
  const catalog = page.locator('#jp-convect-components');
  await catalog.locator('[data-digest]').first().click();
  await catalog.locator('.jp-Convect-preview h2').waitFor();
  yield ['the components', catalog];

  await openFile(page, `${folder}/all.pipeline`);
  const editor = page.locator('.jp-Convect-editor:visible');
  await editor.locator('.jp-Convect-card').nth(2).waitFor();
  await editor.locator('.jp-Convect-card').first().dblclick();
  await editor.locator('.jp-Convect-properties').waitFor();
  yield ['the editor', editor];
}


async function* schedules({ page, folder, say }: ITour): Screens {
  await forget(page, 'schedules');
  const front = frontPage(page);
  await execute(page, 'convect:show-schedules', {});
  await front.locator('.jp-Convect-empty').waitFor();
  yield ['no schedules', front];

  const path = `${folder}/report.ipynb`;
  await upload(page, path, SOURCE);
  await openFile(page, path);
  void execute(page, 'convect:schedule', { path });
  const dialog = page.locator('.jp-Convect-dialog');
  const content = dialog.locator('.jp-Dialog-content');
  const kind = dialog.getByLabel(say('Runs'), { exact: true });
  await kind.waitFor();
  const rules = dialog.getByRole('button', { name: say('Rules') });
  await rules.click();
  for (const value of ['every', 'file', 'run', 'call', 'cron']) {
    await kind.selectOption(value);
    yield [`the dialog of a schedule, ${value}`, content];
  }
  await dialog.getByLabel(say('Cron')).fill('61 * * * *');
  await dialog.locator('[aria-invalid="true"]').first().waitFor();
  yield ['a schedule that is not one', content];
  await dialog.getByLabel(say('Cron')).fill('30 2 * * *');
  await dialog.getByLabel(say('Time zone')).fill('Europe/Berlin');
  await dialog.locator('.jp-Convect-nextTimes li').nth(4).waitFor();
  await dialog
    .getByLabel(say('Make up for what was missed'))
    .selectOption('all');
  yield ['a schedule with its times', content];
  const several = dialog.locator('.jp-Convect-several').first();
  await several.click();
  await dialog.locator('.jp-Convect-summary').waitFor();
  yield ['a schedule of a sweep', content];
  await several.click();
  await press(dialog, say('Schedule'));
  await closed(dialog);
  await front.locator('.jp-Convect-scheduleFacts').first().waitFor();
  yield ['a schedule', front];

  await press(front, say('Backfill…'));
  await content.waitFor();
  yield ['a backfill', content];
  await dialog.getByLabel(say('From'), { exact: true }).fill('some day');
  await press(dialog, say('Run'));
  await dialog.getByRole('alert').waitFor();
  yield ['a backfill of no date', content];
  await press(dialog, say('Cancel'));
  await closed(dialog);

  await press(front, say('Run now'));
  await front.locator('[data-state="succeeded"]').first().waitFor();
  const data = {
    request: { path, parameters: { lr: 0.2 } },
    clock: { every: 1 },
    trigger: { call: {} },
    name: 'often',
    pinned: true
  };
  const made = await page.request.post(`${API}/schedules`, { data });
  const { id } = (await made.json()) as { id: string };
  await upload(page, path, FAILING);
  await execute(page, 'convect:open-schedule', { schedule: id });
  await front.locator('.jp-Convect-ledger tbody tr').first().waitFor();
  await press(front, say('Pause'));
  await press(front, say('Show the address and the token'));
  await press(front, say('Show the difference'));
  await front.getByLabel(say('Before')).first().waitFor();
  yield ['a pinned schedule with its ledger', front];

  await press(front, say('Remove…'));
  const question = page.locator('.jp-Dialog-content');
  await question.waitFor();
  yield ['whether to remove a schedule', question];
  await press(question, say('Cancel'));
  await closed(question);
  await execute(page, 'convect:show-schedules', {});
  await front.locator('tbody tr').nth(1).waitFor();
  yield ['the schedules', front];
  await forget(page, 'schedules');
}

async function* notifications({ page, say }: ITour): Screens {
  await forget(page, 'schedules', 'notifications');
  const front = frontPage(page);
  await execute(page, 'convect:show-schedules', {});
  await press(front, say('Notifications'));
  await front.locator('.jp-Convect-empty').waitFor();
  yield ['no notifications', front];

  await press(front, say('Add…'));
  const dialog = page.locator('.jp-Convect-dialog');
  const content = dialog.locator('.jp-Dialog-content');
  const kind = dialog.getByLabel(say('By'), { exact: true });
  await kind.waitFor();
  for (const box of await dialog.getByRole('checkbox').all()) {
    await box.check();
  }
  for (const value of ['slack', 'feishu', 'webhook', 'mail']) {
    await kind.selectOption(value);
    yield [`the dialog of a notification, ${value}`, content];
  }
  await dialog.getByLabel(say('Addresses')).fill('nobody');
  await press(dialog, say('Test'));
  await dialog.getByRole('alert').waitFor();
  yield ['a notification to nobody', content];
  await kind.selectOption('slack');
  await dialog.getByLabel(say('Secret with the address')).fill('team/url');
  await press(dialog, say('Add'));
  await closed(dialog);
  await press(front.locator('tbody tr'), say('Test'));
  await front.getByText('team/url').nth(1).waitFor();
  yield ['the notifications', front];
  await forget(page, 'notifications');
}

async function* services({ page, folder, say }: ITour): Screens {
  await forget(page, 'endpoints', 'services');
  const front = frontPage(page);
  await execute(page, 'convect:show-endpoints', {});
  await front.locator('.jp-Convect-empty').waitFor();
  yield ['no endpoints', front];

  const path = `${folder}/report.ipynb`;
  await upload(page, path, SOURCE);
  const question = page.locator('.jp-Dialog-content');
  void execute(page, 'convect:make-callable', { path });
  await question.getByRole('textbox').first().waitFor();
  yield ['what an endpoint is asked for', question];
  await press(question, say('Make Callable'));
  await question.getByLabel(say('Token')).waitFor();
  yield ['the token of an endpoint', question];
  const token = await question.getByLabel(say('Token')).inputValue();
  const address = await question.getByLabel(say('Address')).inputValue();
  await press(question, say('Done'));
  await closed(question);
  void execute(page, 'convect:make-callable', { path });
  await press(question, say('Make Callable'));
  await question.getByRole('alert').waitFor();
  yield ['an endpoint whose name is taken', question];
  await press(question, say('Cancel'));
  await closed(question);

  await execute(page, 'convect:show-endpoints', {});
  await front.locator('[data-endpoint]').waitFor();
  await press(front, say('New Token…'));
  await question.waitFor();
  yield ['one more token', question];
  await press(question, say('Cancel'));
  await closed(question);
  await press(front, say('Remove…'));
  await question.waitFor();
  yield ['whether to remove an endpoint', question];
  await press(question, say('Cancel'));
  await closed(question);

  const command = ['python', '-m', 'http.server', '{port}'];
  for (const options of [
    { command: [...command, '--bind', '127.0.0.1'], folder },
    { command: ['false', '{port}'], folder }
  ]) {
    await page.request.post(`${API}/services`, {
      data: { kind: 'app', options }
    });
  }
  await page.request.post(`${API}/services`, {
    data: { kind: 'tensorboard', options: { path: folder } }
  });
  const up = front.locator('[data-service]', { hasText: say('Ready') });
  await up.first().waitFor();
  await front
    .locator('[data-service]', { hasText: say('Failed') })
    .locator('[data-state="failed"]')
    .first()
    .waitFor();
  yield ['endpoints and services', front];
  await press(front.locator('[data-service]').first(), say('Log'));
  await question.waitFor();
  yield ['the log of a service', question];
  await press(question, say('Done'));
  await closed(question);

  // It speaks the language of the browser.
  const locale = say('Token') === 'Token' ? 'en-US' : 'zh-CN';
  const context = await page.context().browser()!.newContext({ locale });
  const form = await context.newPage();
  await form.goto(address);
  yield ['the page of an endpoint', form.locator('body')];
  await form.locator('#sign-in input').fill(token);
  await form.keyboard.press('Enter');
  await form.locator('#call button').first().click();
  await form.locator('#output').waitFor();
  yield ['the page of an endpoint that was called', form.locator('body')];
  await context.close();

  await forget(page, 'endpoints', 'services');
}

async function* training({ page, folder, say }: ITour): Screens {
  const path = `${folder}/report.yaml`;
  await upload(page, path, pytorchJob('report', 'registry/image:tag', '--step'));
  await openFile(page, path);
  const above = page.locator('.jp-Convect-training:visible');
  await above.getByRole('list', { name: say('Problems') }).waitFor();
  yield ['a faulty training job', above];
  await above.getByRole('toolbar').getByRole('button').first().click();
  await above.getByText(say('No problems')).waitFor();
  await press(above, say('Form'));
  await above.getByRole('textbox').first().waitFor();
  yield ['a training job and its form', above];
  await press(above, say('To a pipeline'));
  await page.locator('.jp-Convect-editor:visible').waitFor();
  await openFile(page, path);
  yield ['a training job that became a pipeline', above];
}

/** With a Kubeflow Pipelines server that is not there. */
async function* kubeflow({ page, folder, say }: ITour): Screens {
  const path = `${folder}/report.ipynb`;
  await upload(page, path, SOURCE);
  void execute(page, 'convect:run-as-pipeline', { path });
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByLabel(say('Where')).selectOption('team');
  const folded = dialog.locator('[aria-expanded="false"]');
  for (let left = await folded.count(); left > 0; left -= 1) {
    await folded.first().click();
  }
  await press(dialog, say('Test Connection'));
  await dialog.locator('.jp-Convect-connection [data-ok="false"]').waitFor();
  await dialog.locator('.jp-Convect-summary').waitFor();
  yield ['the run dialog of Kubeflow Pipelines', dialog.locator('.jp-Dialog-content')];
  await press(dialog, say('Cancel'));
  await closed(dialog);
  await execute(page, 'convect:show-others-runs', { runtime: 'team' });
  const front = frontPage(page);
  await front.getByRole('alert').waitFor();
  yield ['the runs that were made elsewhere', front];
}

/** What an account with few rights is told of a cluster with shared GPUs and a queue. */
const OVERVIEW = {
  namespace: 'team',
  nodes: [
    {
      name: 'node-1',
      ready: false,
      type: 'T4-16',
      closed: 'The node does not accept pods at the moment.',
      resources: [
        { name: 'cpu', total: 8, free: 2, used: null },
        { name: 'memory', total: 2 ** 34, free: null, used: null },
        { name: 'nvidia.com/gpu', total: 4, free: 0, used: null }
      ]
    },
    {
      name: 'node-2',
      ready: true,
      type: null,
      closed: null,
      resources: [{ name: 'cpu', total: 8, free: 8, used: null }]
    }
  ],
  gpus: [
    {
      resource: 'nvidia.com/gpu',
      type: 'T4-16',
      total: 4,
      free: 1,
      largest_free: 1,
      largest_node: 'node-1',
      sharing: {
        kind: 'time-slicing',
        cards: 1,
        sentence:
          'Several pods take turns on a GPU; its memory is not divided between them.'
      },
      use: 0.5
    }
  ],
  quotas: [{ name: 'own', resource: 'requests.cpu', used: 3, total: 4 }],
  queues: [
    {
      name: 'queue-1',
      waiting: 2,
      admitted: 1,
      closed: null,
      group: 'group-1',
      cohort: 'cohort-1',
      limits: [
        {
          flavor: 'flavor-1',
          resource: 'cpu',
          used: 3,
          total: 4,
          mine: 1,
          borrowing: 2
        }
      ],
      workloads: [
        {
          name: 'workload-1',
          run: null,
          position: 1,
          reason: null,
          wait: { shortest: 60, longest: 120, samples: 5 }
        }
      ],
      wait: { shortest: 60, longest: 120, samples: 5 }
    }
  ],
  holders: [
    {
      kind: 'training',
      name: 'train-1',
      namespace: 'team',
      node: 'node-1',
      resources: [{ name: 'nvidia.com/gpu', amount: 1 }],
      owner: null,
      mine: false,
      run: null,
      step: null,
      id: null,
      count: 1,
      idle: 600,
      gpu_use: 0
    },
    {
      kind: 'other',
      name: '',
      namespace: 'team',
      node: null,
      resources: [{ name: 'cpu', amount: 4 }],
      owner: null,
      mine: false,
      run: null,
      step: null,
      id: null,
      count: 12,
      idle: null,
      gpu_use: null
    }
  ],
  offers: [
    {
      profile: null,
      title: 'CPU only',
      settings: { resources: { cpu: 8, memory: '4Gi', gpu: 1 } },
      now: null,
      count: 1,
      node: 'node-2',
      sentence: '2 workloads wait in the queue queue-1 already.',
      notes: ''
    }
  ],
  hidden: [
    {
      part: 'pods',
      sentence:
        'You are not allowed to list the pods of other users, so what is free is unknown.',
      rule: '- apiGroups: [""]\n  resources: [pods]\n  verbs: [list, watch]\n',
      scope: 'cluster'
    }
  ],
  notes: [],
  reading: true
};

async function* cluster({ page }: ITour): Screens {
  await page.route(/runtimes\/kubernetes\/top/, route =>
    route.fulfill({ json: OVERVIEW })
  );
  const front = frontPage(page);
  await execute(page, 'convect:show-cluster', {});
  await front.locator('[data-node="node-1"]').waitFor();
  await front.locator('details').first().evaluate(each => {
    (each as HTMLDetailsElement).open = true;
  });
  yield ['the cluster', front];
}

async function* dask({ page, say }: ITour): Screens {
  const front = frontPage(page);
  const question = page.locator('.jp-Dialog-content');
  await execute(page, 'convect:show-dask', {});
  await front.locator('.jp-Convect-empty, .jp-Convect-message').first().waitFor();
  yield ['no Dask clusters', front];
  const asked = await page.request.post(`${API}/dask/options`, { data: {} });
  if (!asked.ok()) {
    return; // Dask is not installed.
  }
  await press(front, say('New Dask Cluster…'));
  await question.getByRole('textbox').first().waitFor();
  yield ['what a Dask cluster is asked for', question];
  await press(question, say('Create'));
  await closed(question);
  const long = { timeout: 300_000 };
  await front.locator('.jp-Convect-daskWorkers').waitFor(long);
  await front.locator('.jp-Convect-daskCurves canvas').first().waitFor(long);
  yield ['a Dask cluster', front];
  await press(front, say('Scale…'));
  await question.waitFor();
  yield ['how many workers', question];
  await press(question, say('Cancel'));
  await closed(question);
  await press(front, say('Stop All…'));
  await question.waitFor();
  yield ['whether to stop all clusters', question];
  await press(question, say('Stop All'));
  await closed(question);
  await front.locator('.jp-Convect-empty').waitFor(long);
}

export const TOURS = {
  cluster,
  dask,
  runs,
  schedules,
  notifications,
  services,
  training,
  kubeflow
};
