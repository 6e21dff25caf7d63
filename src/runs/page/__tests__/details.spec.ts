import type { IRequest, IRunView } from '../../../api';
import { commandOf } from '../details';

const of = (request: IRequest) => commandOf({ request } as IRunView);

describe('the command line that asks for the same', () => {
  it('names file, parameters and runtime', () => {
    expect(
      of({
        path: 'my work/train.ipynb',
        runtime: 'kubernetes',
        parameters: { lr: 0.1, name: "it's", layers: [1, 2] }
      })
    ).toBe(
      "convect run 'my work/train.ipynb' -p lr=0.1 -p 'name=it'\\''s' -p 'layers=[1,2]' --runtime kubernetes"
    );
    expect(of({ path: 'a.py', runtime: 'local' })).toBe('convect run a.py');
  });

  it('is not there when it would not be the same', () => {
    expect(of({ document: {} })).toBeNull();
    expect(of({ path: 'a.py', settings: { timeout: '1h' } })).toBeNull();
  });
});
