import type { TranslationBundle } from '@jupyterlab/translation';

import type { IRunSummary } from '../api';

/** Marks the sentences below for those who translate them. */
const trans = { __: (sentence: string) => sentence };

/** What the server says to people, with places for what differs. */
const SENTENCES = [
  trans.__('Waits for its turn.'),
  trans.__('Waits for its turn: the sweep runs %1 at a time.'),
  trans.__('Waits to be taken up.'),
  trans.__('Waits for the runtime.'),
  trans.__('Waits for %1 and %2 more.'),
  trans.__('Waits for %1 and %2.'),
  trans.__('Waits for %1.'),
  trans.__('Waiting for %1: all are in use by %2.'),
  trans.__('Waiting for %1 of memory: %2 of %3 are in use by %4.'),
  trans.__('Waiting for %1: %2 of %3 are in use by %4.'),
  trans.__('Cell %1 raised %2'),
  trans.__('The parameters raised %1'),
  trans.__('Skipped because %1 failed.'),
  trans.__('Skipped because %1 was stopped.'),
  trans.__('Skipped because %1 was skipped.'),
  trans.__('Skipped because %1 was lost.'),
  trans.__('Not asked for.'),
  trans.__('There is no metric “%1”: what is reported is %2.'),
  trans.__('There is no metric “%1”: nothing is reported.'),
  trans.__('Stopped.'),
  trans.__('Timed out after %1.'),
  trans.__('It was stopped from outside.'),
  trans.__('It ended without leaving a result.'),
  trans.__('It could not be started: %1.'),
  trans.__('It cannot be found any more, so nobody knows how it ended.'),
  trans.__('The kernel %1 could not be started: %2.'),
  trans.__('The kernel %1 is not installed; installed are %2.'),
  trans.__('The kernel %1 is not installed here; installed are %2.'),
  trans.__('The kernel did not answer within %1 s.'),
  trans.__('%1 does not say which kernel it needs; installed are %2.'),
  trans.__('Install it, or choose one that is.'),
  trans.__('No space is left on the disk that holds the run.'),
  trans.__('Declared output %1 was not produced.'),
  trans.__('Input %1 could not be placed: %2.'),
  trans.__('Taken over from run %1: nothing has changed since.'),
  trans.__('Taken over from run %1, as asked.'),
  trans.__('Not reused: reuse is off for this step.'),
  trans.__('Not reused: reuse is off for this run.'),
  trans.__('Not reused: there is no earlier result.'),
  trans.__('%1 needs %2; this machine has %3.'),
  trans.__('%1 asks for %2; this machine has %3.'),
  trans.__('%1 asks for a GPU; this machine has none, so it runs without.'),
  trans.__('%1 needs %2, which is not installed here.'),
  trans.__('Ask for less, or run it on a cluster.'),
  trans.__('No Kubernetes cluster is configured.'),
  trans.__('The secret %1 is not known on this machine.'),
  trans.__('There is no file %1.'),
  trans.__('There is no run %1.'),
  trans.__('There is no sweep %1.'),
  trans.__('There is no executed notebook of step %1.'),
  trans.__('%1 is not a notebook: %2.'),
  trans.__('Stop it first.'),
  trans.__('Renewing leases'),
  trans.__('Watching over runs'),
  trans.__('Watching over steps'),
  trans.__('Reporting activity'),
  trans.__('Starting steps that wait'),
  trans.__('Giving runs to the points of sweeps'),
  trans.__('Recording what steps use of this machine'),
  trans.__('Writing the index of the runs'),
  trans.__('The index %1 cannot be used (%2). It is kept in memory for now.'),
  trans.__('Asking %1 about its steps'),
  trans.__('Looking for abandoned runs'),
  trans.__('Looking for runs of other processes'),
  trans.__('Deleting old runs'),
  trans.__('Refreshing catalogs'),
  trans.__('No space is left on the disk.'),
  trans.__('The disk quota is used up.'),
  trans.__('The file system is read-only.'),
  trans.__('Permission was denied.'),
  trans.__('The network file system has lost the file.'),
  trans.__('The disk reported an error.'),
  trans.__('It cannot start now: %1 Trying again.'),
  trans.__('%1 is %2 here; the last successful run used %3.'),
  trans.__('%1 is %2 here; the last successful run did not have it.'),
  trans.__('%1 is not installed here; the last successful run used %2.'),
  trans.__('The image %1 had %2 %3; here it is not installed.'),
  trans.__('The image %1 had %2 %3; here it is %4.'),
  trans.__('The image %1 did not have %2; here it is %3.'),
  trans.__(
    'The cluster has been unreachable since %1; this is the last known state.'
  ),
  trans.__('The cluster cannot be reached: %1.'),
  trans.__('The cluster does not accept your credentials.'),
  trans.__('You are not allowed to %1 in namespace %2: %3.'),
  trans.__('Its results are being copied back.'),
  trans.__('Its pod was deleted before its results were copied back.'),
  trans.__(
    'Its results were not kept, because its secrets could not be hidden in them.'
  ),
  trans.__('What came back from the pod cannot be used: %1'),
  trans.__('Its state cannot be read: %1'),
  trans.__('The node evicted the pod because it was low on %1.'),
  trans.__(
    'The node rejected the pod because the resources it needs were just taken.'
  ),
  trans.__('It exceeded its deadline.'),
  trans.__('It was preempted by a pod with a higher priority.'),
  trans.__('Its node stopped responding, so the cluster deleted the pod.'),
  trans.__('Its node is being drained.'),
  trans.__('Its node no longer exists.'),
  trans.__(
    'Its node stopped it because it is low on resources or shutting down.'
  ),
  trans.__('It ran out of memory: it used more than its limit of %1.'),
  trans.__('It ran out of memory: it used more than the node has.'),
  trans.__('It was killed (SIGKILL), probably because it ran out of memory.'),
  trans.__('Its pod was deleted before it finished.'),
  trans.__('Kubernetes marked the Job as failed.'),
  trans.__(
    'The node %1 does not respond; the step may still be running there.'
  ),
  trans.__('Its Job is no longer in the cluster, so how it ended is unknown.'),
  trans.__('Its Job was deleted from the cluster before it finished.'),
  trans.__('Waiting for the cluster to create its pod.'),
  trans.__('Waiting for a node.'),
  trans.__('Starting on %1.'),
  trans.__('Waiting: %1 steps are in the cluster already.'),
  trans.__('There is no image %1.'),
  trans.__('The registry of the image %1 cannot be reached.'),
  trans.__('The image %1 cannot be pulled.'),
  trans.__(
    'The image %1 cannot be pulled: it needs a pull secret or does not exist.'
  ),
  trans.__('There is no secret %1 in the namespace.'),
  trans.__('The secret %1 has no key %2.'),
  trans.__('Watching %1 in namespace %2'),
  trans.__('Watching step %1 of run %2'),
  trans.__('Reading the log of container %1 in pod %2'),
  trans.__('There are %1 more differences.'),
  trans.__('There is 1 more difference.'),
  trans.__('Stop it first.'),
  trans.__('The run has not ended yet.'),
  trans.__('Wait for its end, or stop it.'),
  trans.__('Works in the folder itself, together with other runs.'),
  trans.__('Works in the folder itself, together with other runs: %1.'),
  trans.__('%1 changed after this run was submitted.'),
  trans.__(
    '%1 was made by %2 and by %3, which do not wait for each other; that of %4 is used.'
  ),
  trans.__('This step could only read %1, which lies outside of the project.'),
  trans.__(
    'Waiting for its turn: run %1 works in %2, which is too large to copy for each run.'
  ),
  trans.__('it changed after the run was submitted'),
  trans.__('somebody made it after the run was submitted'),
  trans.__('somebody deleted it after the run was submitted'),
  trans.__('something in it changed after the run was submitted'),
  trans.__('it is not kept with the run any more'),
  trans.__('it cannot be written: %1')
];

/** Sentences that end in another one. */
const WRAPPERS = [
  trans.__('Attempt %1 of %2 failed: %3 The next one starts in %4 s.'),
  trans.__('All %1 attempts failed. The last: %2'),
  trans.__('%1 failed: %2'),
  trans.__('%1 was lost: %2'),
  trans.__('Its results could not be copied back. %1'),
  trans.__('%1 It is being stopped.')
];

/** A pattern of what may stand in the places, and which place each group is. */
interface IPattern {
  sentence: string;
  pattern: RegExp;
  places: number[];
  wraps: boolean;
}

let patterns: IPattern[] | null = null;

/** More sentences that the server says. */
let learnt: readonly string[] = [];

/** Know these sentences, too. */
export function learn(sentences: readonly string[]): void {
  learnt = sentences;
  patterns = null;
}

/**
 * What the server says, in the language of the page. What is not known stays as
 * it is, and so do names and the words of programs within a sentence.
 */
export function translated(text: string, bundle: TranslationBundle): string {
  patterns ??= [
    ...SENTENCES.map(sentence => patternOf(sentence, false)),
    ...WRAPPERS.map(sentence => patternOf(sentence, true)),
    ...learnt.map(sentence => patternOf(sentence, false))
  ];
  for (const { sentence, pattern, places, wraps } of patterns) {
    const found = pattern.exec(text);
    if (found) {
      const parts: string[] = [];
      places.forEach((place, index) => {
        const part = found[index + 1];
        parts[place - 1] = wraps ? translated(part, bundle) : part;
      });
      return bundle.__(sentence, ...parts);
    }
  }
  return text;
}

/** Why a run is as it is; that of a single step without its name, which is the run's. */
export function reasonOf(
  run: Pick<IRunSummary, 'reason' | 'steps_total'>,
  bundle: TranslationBundle
): string | null {
  const { reason, steps_total: steps } = run;
  const own =
    steps === 1 ? reason?.replace(/^[^ ]+ (failed|was lost): /, '') : reason;
  return own ? translated(own, bundle) : null;
}

function patternOf(sentence: string, wraps: boolean): IPattern {
  const places: number[] = [];
  const source = sentence
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/%(\d)/g, (_, place: string) => {
      places.push(Number(place));
      return '(.+?)';
    });
  return { sentence, pattern: new RegExp(`^${source}$`, 's'), places, wraps };
}
