import type { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';

import type { IProblem } from '../api';
import { CommandIDs } from '../commands';
import type { IRunsOpener } from '../tokens';
import { freePath } from '../ui/freepath';
import type { TrainingModel } from './model';

/** What can be made of a training job; each says what the result leaves out. */
export class TrainingActions {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly opener: IRunsOpener,
    private readonly model: TrainingModel
  ) {}

  /** Create it in the cluster as it is; a run follows it to its end. */
  async run(): Promise<readonly IProblem[]> {
    const { api } = this.model;
    const path = await this.saved();
    const { command } = await api.about();
    const file = PathExt.basename(path);
    const train = {
      kind: 'command',
      command: [command, 'training', 'run', file]
    };
    const name = PathExt.basename(file, PathExt.extname(file));
    const document = { convect: 1, name, nodes: { train } };
    const run = await api.submit({ path, document, runtime: 'local', name });
    await this.opener.showBegun({ kind: 'run', id: run.id, name });
    return [];
  }

  /** A pipeline of one node, beside the file. */
  async toPipeline(): Promise<readonly IProblem[]> {
    const { api } = this.model;
    const path = await this.saved();
    const { document, report } = await api.importPipeline({ path });
    await this.app.commands.execute(CommandIDs.createPipeline, {
      path: await this.beside('.pipeline'),
      document: JSON.stringify(document)
    });
    return report;
  }

  /** A TrainJob, beside the file. */
  async toTrainJob(): Promise<readonly IProblem[]> {
    const { api, text } = this.model;
    const { text: content, report } = await api.convertTraining({ text });
    const path = await this.beside('-trainjob.yaml');
    await this.app.serviceManager.contents.save(path, {
      ...{ type: 'file', format: 'text', content }
    });
    await this.app.commands.execute('docmanager:open', { path });
    return report;
  }

  private async saved(): Promise<string> {
    const { context } = this.model;
    if (context.model.dirty) {
      await context.save();
    }
    return context.localPath;
  }

  private async beside(ending: string): Promise<string> {
    const { path } = this.model.context;
    const stem = path.slice(0, path.length - PathExt.extname(path).length);
    const { contents } = this.app.serviceManager;
    return freePath(contents, `${stem}${ending}`);
  }
}
