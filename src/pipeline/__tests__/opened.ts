import type { Contents } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';

import type { IConvectApi } from '../../api';
import { FakeServer } from '../../runs/__tests__/server';
import { PipelineModel } from '../documentmodel';
import type { IDocument } from '../schema';
import { dumps } from '../serialize';
import type { ISessionOptions } from '../session';
import { Session } from '../session';

/** An editor's session over a document, with a server of which only the answers are made up. */
export function openSession(
  document: IDocument,
  answers: {
    api?: Partial<IConvectApi>;
    contents?: Partial<Contents.IModel>;
  } = {}
): { session: Session; contentsModel: Partial<Contents.IModel> } {
  const model = new PipelineModel();
  model.fromString(dumps(document));
  const owner = {};
  const contentsModel = { writable: true, hash: 'first', ...answers.contents };
  const session = new Session({
    api: {
      validate: async () => ({ problems: [] }),
      discoverChanged: async () => ({ files: {} }),
      profiles: async () => ({ profiles: [], images: [], registries: [] }),
      ...answers.api
    },
    runs: new FakeServer().store,
    docManager: {},
    contents: {
      fileChanged: new Signal(owner),
      localPath: (path: string) => path,
      get: async () => contentsModel
    },
    context: {
      model,
      contentsModel,
      path: 'work/a.pipeline',
      localPath: 'work/a.pipeline',
      ready: Promise.resolve(),
      isReady: true,
      pathChanged: new Signal(owner),
      fileChanged: new Signal(owner),
      revert: async () => undefined
    },
    trans: nullTranslator.load('jupyterlab_convect'),
    images: () => [],
    openStep: () => undefined,
    offerNodes: () => undefined
  } as unknown as ISessionOptions);
  return { session, contentsModel };
}
