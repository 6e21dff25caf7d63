import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import { ABCWidgetFactory } from '@jupyterlab/docregistry';
import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IConvectApi, IRunStore } from '../tokens';
import type { PipelineModel } from './documentmodel';
import { PipelineEditor } from './editor';
import { pipelineIcon } from './icons';
import type { ISessionOptions, ISessionState } from './session';
import { Session } from './session';
import { PipelineWidget } from './widget';

export interface IEditorServices {
  api: IConvectApi;
  runs: IRunStore;
  docManager: IDocumentManager;
  rendermime: IRenderMimeRegistry;
  trans: TranslationBundle;
  images: ISessionOptions['images'];
  /** What the user's settings say about new editors. */
  preferences: Partial<ISessionState>;
  openStep: ISessionOptions['openStep'];
  offerNodes: ISessionOptions['offerNodes'];
}

export class PipelineWidgetFactory extends ABCWidgetFactory<
  PipelineWidget,
  PipelineModel
> {
  constructor(
    options: DocumentRegistry.IWidgetFactoryOptions<PipelineWidget>,
    private readonly services: IEditorServices
  ) {
    super(options);
  }

  protected override createNewWidget(
    context: DocumentRegistry.IContext<PipelineModel>
  ): PipelineWidget {
    const session = new Session({
      ...this.services,
      context,
      contents: this.services.docManager.services.contents
    });
    session.state.update(this.services.preferences);
    const content = new PipelineEditor(session, this.services.rendermime);
    const widget = new PipelineWidget({
      content,
      context,
      reveal: content.ready
    });
    widget.title.icon = pipelineIcon;
    return widget;
  }
}
