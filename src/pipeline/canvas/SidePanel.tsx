import * as React from 'react';

import type { Session } from '../session';

export function SidePanel({ session }: { session: Session }): JSX.Element {
  return <div>{session.id}</div>;
}
