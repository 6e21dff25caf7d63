import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import * as path from 'node:path';

import type { Locator } from '@playwright/test';
import type axe from 'axe-core';

import { expect, speakChinese, test } from './helpers';
import { TOURS } from './tour';

declare global {
  interface Window {
    axe: typeof axe;
  }
}

const AXE = require.resolve('axe-core');
const CHINESE = JSON.parse(
  readFileSync(
    path.resolve(
      __dirname,
      '../../jupyterlab_convect/locale/zh_CN/LC_MESSAGES/jupyterlab_convect.json'
    ),
    'utf-8'
  )
) as Record<string, string[]>;

/** What keeps people from using a screen, as axe sees it. */
async function barriers(screen: Locator): Promise<string[]> {
  const page = screen.page();
  if (!(await page.evaluate(() => 'axe' in window))) {
    // Not as a tag: a page may forbid those.
    await page.evaluate(readFileSync(AXE, 'utf-8'));
  }
  const results = await screen.evaluate(element =>
    window.axe.run(element, {
      // A part of a page has no landmarks.
      rules: { region: { enabled: false } }
    })
  );
  return results.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes
        // The buttons of JupyterLab's toolbars are its own.
        .filter(({ html }) => !html.startsWith('<jp-button'))
        .map(({ html }) => `${id}: ${html.slice(0, 160)}`)
    );
}

/** Names of things, and words that people wrote themselves: they are the same in all languages. */
const NAMES =
  /^(side|panel|content|section|source|isolated|shared|ctrl|depth|markdown|registry|image|tag|convect|jupyterlab|jupyter|python3?|ipykernel|kubernetes|kubeflow|cpu|gpu|gpus|url|csv|json|sql|id|ids|git|nvidia|com|react|flow|s|b|kb|mb|gb|mi|gi|m|lr|loss|rows|step|report|failing|first|second|gone|all|ipynb|pipeline|true|out|bad|valueerror|too|large|raise|traceback|most|recent|call|last|cell|in|line|root|local|number|string|import|sys|from|metric|output|for|range|print|file|stderr|sha256|linux|x86|64|aarch64|cpython|ansi|log|html|md|txt|yaml|zip|http|https|tensorboard|torchrun|mpi|mpirun|plain|rank|stop|team|webhook|slack|nobody|name|key|false|pipelines|pod|github|gitlab|gitea|cron|authorization|bearer|often|args|operator|job|pytorchjob|trainjob|mpijob|kueue|none|auto|master|worker|schedule|keep|detach|utc|tiny|dask|gateway|environment|value|options|huge|gib|mib|clusterrole)$/i;

/** Words in Latin letters that stand between others, not in code. */
async function latinWords(screen: Locator): Promise<string[]> {
  const texts = await screen.evaluate(root => {
    const skipped =
      'code, pre, kbd, script, style, .cm-editor, .jp-Cell, [contenteditable], .jp-Convect-rowName, .jp-Convect-title h2, .jp-Convect-facts, .jp-Convect-ownWords, .jp-Convect-packages, .jp-Convect-preview, .jp-Convect-list .jp-mod-component, .jp-Convect-cardName, .jp-Convect-cardPath, .react-flow__attribution';
    const found: string[] = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (parent && !parent.closest(skipped) && parent.offsetParent) {
        found.push(node.textContent ?? '');
      }
    }
    root
      .querySelectorAll('[placeholder], [aria-label], [title]')
      .forEach(each => {
        if (!each.closest(skipped)) {
          for (const name of ['placeholder', 'aria-label', 'title']) {
            found.push(each.getAttribute(name) ?? '');
          }
        }
      });
    return found;
  });
  return texts.filter(text =>
    (text.replaceAll(hostname(), '').match(/(?<![\w./-])[A-Za-z]{3,}(?![\w./-])/g) ?? []).some(
      word => !NAMES.test(word)
    )
  );
}

for (const [name, screens] of Object.entries(TOURS)) {
  test(`no screen of ${name} has a serious barrier`, async ({
    page,
    tmpPath
  }) => {
    test.slow();
    const found = new Set<string>();
    const say = (english: string) => english;
    for await (const [where, screen] of screens({ page, folder: tmpPath, say })) {
      for (const barrier of await barriers(screen)) {
        found.add(`${where}: ${barrier}`);
      }
    }
    expect([...found]).toEqual([]);
  });

  test(`no English is left on the Chinese pages of ${name}`, async ({
    page,
    tmpPath
  }) => {
    test.slow();
    await speakChinese(page);
    const found = new Set<string>();
    const say = (english: string) => CHINESE[english][0];
    for await (const [where, screen] of screens({ page, folder: tmpPath, say })) {
      for (const text of await latinWords(screen)) {
        found.add(`${where}: ${text.trim().slice(0, 120)}`);
      }
    }
    expect([...found]).toEqual([]);
  });
}
