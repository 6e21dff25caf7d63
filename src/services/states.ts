import type { IDaskCluster, IService, State } from '../api';

/** As which state of a run the state of what stays up is drawn: being up is good. */
export function pictureOf(
  state: IService['state'] | IDaskCluster['state']
): State {
  switch (state) {
    case 'pending':
    case 'starting':
      return 'starting';
    case 'ready':
    case 'running':
      return 'succeeded';
    case 'stopping':
    case 'stopped':
      return 'cancelled';
    case 'failed':
    case 'lost':
      return state;
  }
}
