import { InputDialog, Notification } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { JSONObject } from '@lumino/coreutils';

import { sentenceOf } from '../api';
import type { Session } from './session';

/** Make the pipeline, as it is now, a version of a pipeline on the server of a runtime. */
export async function publish(session: Session): Promise<void> {
  const { api, context, trans } = session;
  try {
    const runtime = await runtimeFor(session);
    if (runtime === null) {
      return;
    }
    const { button, value: name } = await InputDialog.getText({
      title: trans.__('Publish to Kubeflow Pipelines'),
      label: trans.__('Name of the pipeline there'),
      text: PathExt.basename(context.localPath, '.pipeline'),
      okLabel: trans.__('Publish'),
      cancelLabel: trans.__('Cancel'),
      required: true
    });
    if (!button.accept || !name) {
      return;
    }
    const { page } = await api.publishPipeline(runtime, {
      name,
      path: context.localPath,
      document: session.document as unknown as JSONObject
    });
    const open = {
      label: trans.__('Open'),
      callback: () => void window.open(page, '_blank', 'noopener')
    };
    Notification.success(
      trans.__('“%1” has a new version in Kubeflow Pipelines.', name),
      { autoClose: false, actions: page ? [open] : [] }
    );
  } catch (error) {
    Notification.error(sentenceOf(error), { autoClose: false });
  }
}

/** Of the runtimes that keep pipelines the only one, or the one that is chosen. */
async function runtimeFor(session: Session): Promise<string | null> {
  const { api, trans } = session;
  const { runtimes } = await api.about();
  const known = runtimes.filter(({ features }) => features.includes('publish'));
  if (known.length < 2) {
    return known[0]?.name ?? 'kfp'; // The server says what is missing.
  }
  const { button, value } = await InputDialog.getItem({
    title: trans.__('Publish to Kubeflow Pipelines'),
    label: trans.__('Where'),
    items: known.map(({ display_name }) => display_name),
    okLabel: trans.__('Next'),
    cancelLabel: trans.__('Cancel')
  });
  const chosen = known.find(({ display_name }) => display_name === value);
  return button.accept && chosen ? chosen.name : null;
}
