import { readFileSync } from 'fs';
import { join } from 'path';

import type { TranslationBundle } from '@jupyterlab/translation';
import { Gettext } from '@jupyterlab/translation/lib/gettext';

import { ConvectError, sentenceOf, translateSentences } from '../../api';
import { speak } from '../answers';
import { reasonOf, translated } from '../sentences';

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

  it.each([
    ['Waits for its turn.', '等待轮到它。'],
    ['Waits for left and right.', '等待 left 和 right。'],
    ['Cell 3 raised ValueError: a and b', '单元格 3 引发 ValueError: a and b'],
    [
      'All 2 attempts failed. The last: Cell 1 raised KeyError: 1',
      '2 次尝试全部失败。最后一次：单元格 1 引发 KeyError: 1'
    ],
    ['right failed: Stopped.', 'right 失败：已停止。'],
    [
      'data/x.parquet changed after this run was submitted.',
      'data/x.parquet 在此运行提交之后发生了变化。'
    ],
    [
      'm.pkl was made by b and by a, which do not wait for each other; that of a is used.',
      'm.pkl 由 b 和 a 生成，二者互不等待；使用 a 生成的文件。'
    ],
    [
      'Waiting for its turn: run r1 works in /p, which is too large to copy for each run.',
      '等待轮到它：运行 r1 正在 /p 中工作，该文件夹太大，无法为每次运行复制。'
    ],
    [
      'This step could only read /mnt/m.bin, which lies outside of the project.',
      '此步骤只能读取 /mnt/m.bin，因为它位于项目之外。'
    ],
    ['it cannot be written: permission denied', '无法写入：permission denied']
  ])('is translated: %s', (sentence, expected) => {
    expect(translated(sentence, trans)).toBe(expected);
  });

  it('stays as it is when nobody has translated it', () => {
    const said = 'The moon is full.\nSo it is.';
    expect(translated(said, trans)).toBe(said);
  });

  it('leaves the words of programs alone', () => {
    const said = 'Cell 1 raised OSError: download failed: Stopped.';
    expect(translated(said, trans)).toBe(
      '单元格 1 引发 OSError: download failed: Stopped.'
    );
  });

  it('does not repeat the name of the only step', () => {
    const reason = 'train failed: Stopped.';
    expect(reasonOf({ reason, steps_total: 1 }, trans)).toBe('已停止。');
    expect(reasonOf({ reason, steps_total: 2 }, trans)).toBe(
      'train 失败：已停止。'
    );
    expect(reasonOf({ reason: null, steps_total: 1 }, trans)).toBeNull();
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
    speak(chinese());
    expect(sentenceOf(refused)).toBe(
      'http://10.0.0.1/x 是内部地址，目录不得读取。 管理员可以用 c.Convect.catalog_hosts 放行。'
    );
  });

  it.each([
    [
      'The file a.txt for the input “text” is not there.',
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
    speak(trans);
    expect(translated(said, trans)).toBe(expected);
  });
});
