import { GroupBox } from './GroupBox';
import { NoteCard } from './NoteCard';
import { StepCard } from './StepCard';
import { Wire } from './Wire';

export const NODE_TYPES = { step: StepCard, frame: GroupBox, note: NoteCard };
export const EDGE_TYPES = { wire: Wire };

/** With more nodes than this only those on the screen are drawn. */
export const MANY = 200;
/** With more nodes than this there is no minimap. */
export const TOO_MANY = 500;
