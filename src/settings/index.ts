export * from './context';
export * from './Field';
export * from './fields';
export * from './Form';
export * from './formschema';
export * from './Row';
export * from './lists';
