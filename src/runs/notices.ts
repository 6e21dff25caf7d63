import { Notification } from '@jupyterlab/apputils';
import type { ReadonlyJSONValue } from '@lumino/coreutils';

type Type = 'info' | 'success' | 'error';

/** The last notice of each run or sweep. */
const shown = new Map<string, string>();

/** Say something of a run or a sweep; what was said of it before makes way. */
export function notice(
  subject: string,
  message: string,
  type: Type,
  open: { label: string; callback: () => void }
): void {
  const options: Notification.IOptions<ReadonlyJSONValue> = {
    autoClose: type === 'error' ? 15000 : 6000,
    actions: [open]
  };
  const before = shown.get(subject);
  if (
    !before ||
    !Notification.update({ id: before, message, type, ...options })
  ) {
    shown.set(subject, Notification.emit(message, type, options));
  }
}

/** Take back what was said of it. */
export function withdrawNotice(subject: string): void {
  const before = shown.get(subject);
  if (before) {
    shown.delete(subject);
    Notification.dismiss(before);
  }
}
