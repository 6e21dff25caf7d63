import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { MainAreaWidget } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { DisposableDelegate } from '@lumino/disposable';

import { IConvectApi, IRunsOpener } from '../tokens';

/** A text that is worth a look; it may still be full of faults. */
const JOB = /^kind:\s*["']?(PyTorchJob|TFJob|MPIJob|TrainJob)\b/m;

const jobs: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:training',
  description: 'Checks training jobs in YAML above their text, with a form.',
  autoStart: true,
  requires: [IConvectApi, IRunsOpener],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    opener: IRunsOpener,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    app.docRegistry.addWidgetExtension('Editor', {
      createNew: (widget, context) => {
        let isAbove = false;
        const look = () => {
          const isYaml = /\.ya?ml$/i.test(context.path);
          if (isAbove || !isYaml || !JOB.test(context.model.toString())) {
            return;
          }
          isAbove = true;
          void import('./above').then(({ addAbove }) =>
            addAbove(widget as MainAreaWidget, context, app, api, opener, trans)
          );
        };
        context.model.contentChanged.connect(look);
        void context.ready.then(look);
        return new DisposableDelegate(() =>
          context.model.contentChanged.disconnect(look)
        );
      }
    });
  }
};

export const trainingPlugins = [jobs];
