import { readFileSync } from 'fs';
import { join } from 'path';

import type { TranslationBundle } from '@jupyterlab/translation';
import { Gettext } from '@jupyterlab/translation/lib/gettext';

import { ConvectError, sentenceOf, translateSentences } from '../../api';
import type { Ending } from '../../runs/endings';
import { message } from '../../runs/telling';
import { learn, reasonOf, translated } from '../sentences';
import * as table from '../sentences.json';

const file = join(
  __dirname,
  '../../../jupyterlab_convect/locale/zh_CN/LC_MESSAGES/jupyterlab_convect.json'
);

function chinese(): TranslationBundle {
  const bundle = new Gettext();
  const messages = JSON.parse(readFileSync(file, 'utf8'));
  const header = { language: 'zh-CN', pluralForms: 'nplurals=1; plural=0;' };
  bundle.loadJSON({ ...messages, '': header }, 'convect');
  bundle.setLocale('zh-CN');
  bundle.setDomain('convect');
  return bundle;
}

describe('what the server says', () => {
  const trans = chinese();
  beforeAll(() => learn(table, trans));
  afterAll(() => translateSentences(sentence => sentence));

  it.each([
    ['Waiting for its turn.', '等待轮到它。'],
    [
      'Waiting for “left” and “right” to finish.',
      '等待“left” 和 “right”结束。'
    ],
    [
      'Waiting for “a”, “b”, “c” and 2 more to finish.',
      '等待“a”、“b”、“c” 以及另外 2 个结束。'
    ],
    [
      'Waiting for 2 CPUs: 3 of 4 are in use by “slow” and “it”.',
      '正在等待 2 个 CPU：4 中的 3 已被“slow” 和 “it”占用。'
    ],
    ['Skipped because “it” failed.', '已跳过，因为“it”失败。'],
    ['Cell 3 raised ValueError: a and b', '单元格 3 引发 ValueError: a and b'],
    [
      'All 2 attempts failed. The last: Cell 1 raised KeyError: 1',
      '2 次尝试全部失败。最后一次：单元格 1 引发 KeyError: 1'
    ],
    ['“right” failed: Stopped.', '“right”失败：已停止。'],
    ['score.py exited with code 3.', 'score.py 以退出码 3 退出。'],
    [
      '“g.1.score” failed: score.py exited with code 3: no data',
      '“g.1.score”失败：score.py 以退出码 3 退出：no data'
    ],
    [
      'All 2 attempts failed. The last: fit.R crashed (SIGSEGV).',
      '2 次尝试全部失败。最后一次：fit.R 崩溃（SIGSEGV）。'
    ],
    [
      'data/x.parquet changed after this run was submitted.',
      'data/x.parquet 在此运行提交之后发生了变化。'
    ],
    [
      'm.pkl was created by “b” and by “a”, which do not wait for each other; the one from “a” is used.',
      'm.pkl 由“b”和“a”生成，二者互不等待；使用“a”生成的文件。'
    ],
    [
      'Waiting for its turn: run r1 works in /p, which is too large to copy for each run.',
      '等待轮到它：运行 r1 正在 /p 中工作，该文件夹太大，无法为每次运行复制。'
    ],
    [
      'This step could only read /mnt/m.bin, which is outside the project.',
      '此步骤只能读取 /mnt/m.bin，因为它位于项目之外。'
    ],
    ['it cannot be written: permission denied', '无法写入：permission denied'],
    [
      'Waiting: needs 2 GPUs of type A100 on one node; the largest free is 1 on n1.',
      '正在等待：需要在一个节点上有 2 个 A100 类型的 GPU；空闲最多的是 n1，有 1。'
    ],
    [
      'Waiting for the quota team: it needs 2 GPUs, and 1 of 4 is left.',
      '正在等待配额 team：它需要 2 个 GPU，而 4 中还剩 1。'
    ],
    [
      'No single node has 2 cores, 1 GPU and 3 GiB of memory together.',
      '没有一个节点同时具备 2 个核、1 个 GPU 和 3 GiB 内存。'
    ],
    [
      'The kernel was killed (SIGKILL), probably because memory ran out in cell 3.',
      '内核在单元格 3 中被终止（SIGKILL），可能是因为内存不足。'
    ],
    [
      'Node “a list” must be an object, but it is a list.',
      '节点“a list”必须是对象，而它是列表。'
    ],
    [
      '“x” must be a number or a string, but it is [1, 2].',
      '“x”必须是数字或字符串，而它是[1, 2]。'
    ],
    [
      'In “a.pipeline”: the run failed: a list and more.',
      '在“a.pipeline”中：the run 失败：a list and more.'
    ]
  ])('is translated: %s', (sentence, expected) => {
    expect(translated(sentence, trans)).toBe(expected);
  });

  it('is told of an end, too', () => {
    const reason = 'Timed out after 6 s.';
    const ending = { name: 'a', state: 'failed', reason, lines: [] };
    const told = message(ending as unknown as Ending, trans);
    expect(told).toContain(translated(reason, trans));
    expect(told).not.toContain(reason);
  });

  it('names the components that are included, and leaves others alone', () => {
    expect(sentenceOf('Download file')).toBe('下载文件');
    expect(sentenceOf('Download files')).toBe('Download files');
  });

  it('stays as it is when nobody has translated it', () => {
    const said = 'The moon is full.\nSo it is.';
    expect(translated(said, trans)).toBe(said);
  });

  it.each([
    'OSError: download failed: Stopped.',
    'E: x is not installed here.'
  ])('leaves the words of programs alone: %s', words => {
    const said = `Cell 1 raised ${words}`;
    expect(translated(said, trans)).toBe(`单元格 1 引发 ${words}`);
  });

  it('does not repeat the name of the only step', () => {
    const reason = '“train” failed: Timed out after 6 s.';
    expect(reasonOf({ reason, steps_total: 1 }, trans)).toBe('6 秒后超时。');
    expect(reasonOf({ reason, steps_total: 2 }, trans)).toBe(
      '“train”失败：6 秒后超时。'
    );
    expect(reasonOf({ reason: null, steps_total: 1 }, trans)).toBeNull();
    const stopped = { reason: 'Stopped.', steps_total: 1 };
    expect(reasonOf(stopped, trans)).toBeNull();
  });
});

describe('what the server answers', () => {
  afterAll(() => translateSentences(sentence => sentence));

  it('is said in the language of the page, sentence and hint', () => {
    const refused = new ConvectError(
      'http://10.0.0.1/x is an internal address, which catalogs must not read.',
      422,
      'refused',
      'An administrator can open it with c.Convect.catalog_hosts.'
    );
    expect(sentenceOf(refused)).toContain('is an internal address');
    learn(table, chinese());
    expect(sentenceOf(refused)).toBe(
      'http://10.0.0.1/x 是内部地址，目录不得读取。 管理员可以用 c.Convect.catalog_hosts 放行。'
    );
  });

  it.each([
    [
      'The file a.txt for the input “text” does not exist.',
      '输入“text”的文件 a.txt 不存在。'
    ],
    [
      'Its results could not be copied back. You are not allowed to read logs in namespace ana: no.',
      '无法取回其结果。您无权在命名空间 ana 中执行此操作（read logs）：no。'
    ],
    ['There is no file “a.ipynb”.', '没有文件 “a.ipynb”。'],
    ['Did you mean “train”?', '您是指“train”吗？'],
    [
      'Node “fit” refers to “lod”, but there is no such node.',
      '节点“fit”引用了“lod”，但没有这个节点。'
    ],
    ['Something that nobody translated.', 'Something that nobody translated.']
  ])('says %s', (said, expected) => {
    const trans = chinese();
    learn(table, trans);
    expect(translated(said, trans)).toBe(expected);
  });
});
