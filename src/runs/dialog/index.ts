export * from './choice';
export * from './dialog';
export * from './document';
export * from './form';
