export type { IConvectApi } from '../tokens';
export * from './client';
export * from './clock';
export * from './error';
export * from './numbers';
export type * from './types';
export { RUN_EVENT, stepOf, SWEEP_EVENT } from './types';
