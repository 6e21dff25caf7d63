export * from './client';
export * from './error';
export type * from './types';
export { RUN_EVENT, SWEEP_EVENT } from './types';
