export * from './client';
export * from './clock';
export * from './error';
export * from './numbers';
export type * from './types';
export { RUN_EVENT, SWEEP_EVENT } from './types';
