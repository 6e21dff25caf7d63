import type { TranslationBundle } from '@jupyterlab/translation';

import { translateSentences } from '../api';
import { learn, translated } from './sentences';

/** Marks the sentences below for those who translate them. */
const trans = { __: (sentence: string) => sentence };

/**
 * What the server answers when it cannot do what was asked, and why steps wait
 * or fail: the longest first, so that no short one takes a long one for its own.
 * Only a page in another language than English loads it.
 */
const ANSWERS = [
  trans.__(
    'There is no podman or docker here. Approve the component in its preview, or with `convect component approve %1`.'
  ),
  trans.__(
    'Notebooks need papermill and ipykernel, which are not installed where the step runs: the module %1 is missing.'
  ),
  trans.__(
    'The runner was killed before it could write the result, by someone or because memory or disk space ran out.'
  ),
  trans.__(
    "Set `image`, for the step, in the pipeline's defaults, or as c.KubernetesRuntime.image for all."
  ),
  trans.__(
    '%1 changed after this run was submitted, and the run works in its folder itself. Run it again.'
  ),
  trans.__(
    'Put it into the keyring (service %1, user %2) or into the environment variable %3 of the server.'
  ),
  trans.__(
    '%1 asks for a GPU of type %2, but nothing says which label of a node holds the type of its %3.'
  ),
  trans.__(
    'The image runs as root, which is not allowed here; use one with a user of its own.'
  ),
  trans.__(
    'Put them on a volume, and name it in `volumes` or in c.KubernetesRuntime.volumes.'
  ),
  trans.__(
    'Name it in c.KubernetesRuntime.volumes, or allow files to be sent with the run.'
  ),
  trans.__(
    'There is no known way to run %1: it is no .py, .R or .sh file and not executable.'
  ),
  trans.__(
    'When it would start is unknown: you are not allowed to list the pods of others.'
  ),
  trans.__(
    'The files of %1 are too large to be sent with the run: %2 of at most %3 compressed.'
  ),
  trans.__(
    'The image %1 is not on the node, and the pull policy does not allow pulling it.'
  ),
  trans.__(
    "Whether it fits is unknown: you are not allowed to list the cluster's nodes."
  ),
  trans.__(
    "The environment variable %1, which holds the catalog's secret, is not set."
  ),
  trans.__(
    'Whether queue %1 admits it is unknown: you are not allowed to list queues.'
  ),
  trans.__(
    '%1 needs an image with Python beside its own, for its files and secrets.'
  ),
  trans.__(
    'The results are too large to be copied back without a shared volume: %1%2.'
  ),
  trans.__(
    'Kubernetes cannot be used: the package `kubernetes` is not installed.'
  ),
  trans.__(
    'The result of “%1” is taken over from run %2: nothing has changed since.'
  ),
  trans.__(
    'There is no queue %1 in the namespace, so that it would wait for ever.'
  ),
  trans.__(
    'A catalog needs a name, and its addresses and categories are texts.'
  ),
  trans.__(
    'For example [1, 2], {from: 1, to: 9, step: 2} or {min: 0, max: 1}.'
  ),
  trans.__(
    'Set c.KubernetesRuntime.image, or share a volume with the cluster.'
  ),
  trans.__('Set KUBECONFIG, or c.KubernetesRuntime.config_file and .context.'),
  trans.__(
    'The sweep %1 belongs to another user, and only they can change it.'
  ),
  trans.__(
    '%1 has notebook format %2, which is newer than 4, the newest known.'
  ),
  trans.__(
    'A catalog can be read again every %1 seconds at most, not every %2.'
  ),
  trans.__('No more user namespaces are allowed (user.max_user_namespaces).'),
  trans.__('There is no folder in which the step could keep what it writes.'),
  trans.__('%1 is known to the proxy only, so it may be an internal address.'),
  trans.__('It needs %1 on one node; at the moment none is free on any node.'),
  trans.__('The run %1 belongs to another user, and only they can change it.'),
  trans.__('The secret “%1” cannot be looked up without the package keyring.'),
  trans.__('The catalog “%1” would send its secret over an open connection.'),
  trans.__('The folder of step %1 of run %2 is a link, which is not followed.'),
  trans.__('The type has to be as the label of the nodes has it, in full.'),
  trans.__('Choose another with CONVECT_RUNS_DIR or c.Convect.runs_dir.'),
  trans.__('There is no earlier run whose failed steps could run again.'),
  trans.__('Too large to be sent to the pod, so the step did not see: %1.'),
  trans.__('An administrator can open it with c.Convect.catalog_hosts.'),
  trans.__('Not reused: the result of run %1 is not complete any more.'),
  trans.__('Make room there, or choose another folder for the runs.'),
  trans.__('The node %1 does not confirm that the pod has terminated.'),
  trans.__('%1 is an internal address, which catalogs must not read.'),
  trans.__('Give a path relative to the root folder, without `..`.'),
  trans.__('The values of %1 are not a list, a range or an interval.'),
  trans.__('A random sweep needs a number of samples, at least 1.'),
  trans.__('It names the queue %1, but the namespace has no queues.'),
  trans.__('Set `type_label` in c.KubernetesRuntime.gpu_profiles.'),
  trans.__("The namespace's security rules%1 do not allow this pod."),
  trans.__('The pattern of metric %1 is not a regular expression: %2.'),
  trans.__('The runtime %1 does not know what there is and is free.'),
  trans.__('Waiting: a volume claim is not bound to a volume yet.'),
  trans.__('“implementation” has neither “container” nor “graph”.'),
  trans.__('It needs %1 on one node, but the largest node (%2) has %3.'),
  trans.__('The process that should drive the run did not start.'),
  trans.__('%1 comes compressed, although that was not asked for.'),
  trans.__('An earlier step deleted the file %1 for the input “%2”.'),
  trans.__('At least one run of a sweep has to go on at a time.'),
  trans.__('It could not begin: its folder cannot be written, %1.'),
  trans.__('The files of the earlier result cannot be copied: %1.'),
  trans.__('The path of a catalog contains a control character.'),
  trans.__('%1 lies outside of %2, so that the pod cannot have it.'),
  trans.__('The step %1 needs the result of %2, and there is none.'),
  trans.__('%1 holds more than %2 files that could be components.'),
  trans.__('Install keyring, or name an environment variable.'),
  trans.__('Install podman or docker, or run it on a cluster.'),
  trans.__('It ran on %1, or before this machine was restarted.'),
  trans.__('The cluster does not allow its pod to be created.'),
  trans.__('At the moment no single node has %1 free together.'),
  trans.__('In a list, every parameter has as many values: %1.'),
  trans.__('It needs %1 on one node; the largest free is %2 on %3.'),
  trans.__('The address of %1 holds a user name or a password.'),
  trans.__('The pod cannot write into the folder of the run.'),
  trans.__("%1 is not a path inside the server's root folder."),
  trans.__('The sources of this run are not there any more.'),
  trans.__('The configuration of the catalog is malformed.'),
  trans.__('The kernel %1 is run by %2, not as a process here.'),
  trans.__('The quota %1 wants every pod to have a %2; set it.'),
  trans.__('The runner ended before it began; see the log.'),
  trans.__('There is no service account %1 in the namespace.'),
  trans.__("Waiting to be admitted by the cluster's queue."),
  trans.__('The keyring has no secret “%1” with the key “%2”.'),
  trans.__('The secret of the catalog holds a line break.'),
  trans.__('What is searched for has at most %1 characters.'),
  trans.__('AppArmor forbids the use of user namespaces.'),
  trans.__('For example max:accuracy, min:loss, or none.'),
  trans.__("The catalog's secret needs a name and a key."),
  trans.__('The result in run %1 is not complete any more.'),
  trans.__('The sources of the run cannot be kept in %1: %2.'),
  trans.__("%1 is a link out of the server's root folder."),
  trans.__('It needs %1 on one node, but no node has any.'),
  trans.__('Of the nodes that suit it none is ready (%1).'),
  trans.__('Put them into a secret and name the secret.'),
  trans.__('The catalogs of kind “%1” cannot be loaded: %2.'),
  trans.__('The step is not running in the cluster now.'),
  trans.__('There is no volume claim %1 in the namespace.'),
  trans.__('%1 is of type %2, which cannot be a component.'),
  trans.__('A sweep is a grid, random or a list, not %1.'),
  trans.__('It lies outside of the folder of its list.'),
  trans.__('The included components cannot be changed.'),
  trans.__('The queue %1 lets nobody in at the moment: %2.'),
  trans.__('It needs %1, but the quota %2 allows %3 in all.'),
  trans.__('It would wait until such a node is added.'),
  trans.__('Say which pipeline: `path` or `document`.'),
  trans.__('The approval of “%1” cannot be withdrawn: %2.'),
  trans.__('A search has at most %1 words and %2 labels.'),
  trans.__('Put data into a file, and give its path.'),
  trans.__('The file %1 for the input “%2” is not there.'),
  trans.__('The kernel allows overlays to root only.'),
  trans.__('There is no volume claim %1 in namespace %2.'),
  trans.__('“%1” runs only in its container, because %2.'),
  trans.__('Ask for the rights in deploy/role.yaml.'),
  trans.__('The runtime %1 does not run single steps.'),
  trans.__('There is more than one component in it.'),
  trans.__('“%1” is the name of several components: %2.'),
  trans.__('%1 does not say which kernel it needs; %2.'),
  trans.__('%1 was not copied back: the log was cut.'),
  trans.__('A label is given as `key=value`, not %1.'),
  trans.__('A sweep needs a parameter that varies.'),
  trans.__('It would wait: %1 in the queue %2 already.'),
  trans.__('No Kubernetes cluster is configured: %1.'),
  trans.__('Say what to run: `path` or `document`.'),
  trans.__('Say what to run: a file or a pipeline.'),
  trans.__('The graph contains itself, by way of %1.'),
  trans.__('The interval of %1 needs a random sweep.'),
  trans.__('The kernel has no overlay file system.'),
  trans.__('The parameters could not be written: %1.'),
  trans.__('You are not allowed to %1 in namespace %2.'),
  trans.__('%1 is damaged: it is not a JSON object.'),
  trans.__('At most %1 runs can be asked for by id.'),
  trans.__('Declared output %1 could not be kept: %2.'),
  trans.__('Delete it, or put its run.json right.'),
  trans.__('It cannot go on: %1. It is tried again.'),
  trans.__('The archive unpacks to more than %1 MB.'),
  trans.__('The quota of namespace %1 is used up: %2.'),
  trans.__('The result of %1 is not there any more.'),
  trans.__('The working folder %1 cannot be made: %2.'),
  trans.__('User namespaces are not allowed here.'),
  trans.__('Waiting because its Job is suspended.'),
  trans.__('%1 does not say which run is the best.'),
  trans.__('Give the digest of the one you mean.'),
  trans.__('It unfolds to more than %1 components.'),
  trans.__('The kernel %1 is not installed here; %2.'),
  trans.__('The parameters are larger than %1 MiB.'),
  trans.__('The range of %1 never gets to its end.'),
  trans.__('Waiting for a node that can take it.'),
  trans.__('It begins with https:// or http://.'),
  trans.__('None of the %1 nodes suits it: each %2.'),
  trans.__('The cluster has no priority class %1.'),
  trans.__('The node %1 cannot start the pod yet.'),
  trans.__('The smallest %1 is above the largest.'),
  trans.__('The source “%1” has a wrong schema: %2.'),
  trans.__('The volume claim %1 is being deleted.'),
  trans.__('A sweep has at most %1 points, not %2.'),
  trans.__('It is no record of an environment.'),
  trans.__('The kernel has no user namespaces.'),
  trans.__('The result could not be written: %1.'),
  trans.__('The runs folder %1 cannot be made: %2.'),
  trans.__('The sweep cannot be written to %1: %2.'),
  trans.__('There is no secret %1 in namespace %2.'),
  trans.__('A catalog has at most %1 addresses.'),
  trans.__('A logarithmic %1 has to be above 0.'),
  trans.__('Name a secret that holds a token.'),
  trans.__('Not reused: %1 %2 changed since run %3.'),
  trans.__('References are not followed here.'),
  trans.__('The pod was stopped from outside.'),
  trans.__('The source of step %1 was not kept.'),
  trans.__('There are no catalogs of kind “%1”.'),
  trans.__('This disk cannot hold an overlay.'),
  trans.__('%1 is a web page, not a component.'),
  trans.__('Another runner has this attempt.'),
  trans.__('Graphs refer to graphs too deep.'),
  trans.__('No volume of the cluster holds %1.'),
  trans.__('One name is a file and a folder.'),
  trans.__('The catalog took longer than %1 s.'),
  trans.__('The index of the runs is closed.'),
  trans.__('The view of the step cannot be entered.'),
  trans.__('The log of the server says more.'),
  trans.__('The node %1 lost track of the pod.'),
  trans.__('The request is larger than %1 MiB.'),
  trans.__('The run %1 is not shared with you.'),
  trans.__('The run cannot be written to %1: %2.'),
  trans.__('The runtime %1 cannot be loaded: %2.'),
  trans.__('Use the address of the raw file.'),
  trans.__('`%1` must be a whole number, not %2.'),
  trans.__('`%1` needs a `node` to start from.'),
  trans.__('A volume cannot be mounted yet.'),
  trans.__('It holds more than %1 components.'),
  trans.__('The folder %1 cannot be copied: %2.'),
  trans.__('The inputs cannot be written: %1.'),
  trans.__('The kernel %1 is not installed; %2.'),
  trans.__('The options of “%1” do not fit%2: %3.'),
  trans.__('The queue %1 reclaimed its quota.'),
  trans.__('The sweep %1 cannot be changed: %2.'),
  trans.__('“%1” did not write its output “%2”.'),
  trans.__('None of the %1 nodes suits it: %2.'),
  trans.__('Run everything up to %1 instead.'),
  trans.__('Step %1 of run %2 has no attempt %3.'),
  trans.__('The catalog “%1” has no address.'),
  trans.__('The index of the runs is busy.'),
  trans.__('There is a catalog “%1” already.'),
  trans.__('Waiting in the queue %1: %2, and %3.'),
  trans.__('%1 is not the name of an image.'),
  trans.__('%1 lists more than %2 components.'),
  trans.__('It failed and gave no reason.'),
  trans.__('No single node has %1 together.'),
  trans.__('The parameter %1 has no values.'),
  trans.__('The run %1 cannot be changed: %2.'),
  trans.__('The run %1 cannot be deleted: %2.'),
  trans.__('%1 leads away from https, to %2.'),
  trans.__('A sweep has at most %1 points.'),
  trans.__('Mounts are not allowed here.'),
  trans.__('The cluster evicted the pod.'),
  trans.__('The run %1 cannot be driven: %2.'),
  trans.__('There is no component in it.'),
  trans.__('%1 is not a valid notebook: %2.'),
  trans.__('The system refused it (%1: %2).'),
  trans.__('It ended without a reason.'),
  trans.__('Its result cannot be read.'),
  trans.__('Runs cannot be sorted by %1.'),
  trans.__('The catalog “%1” is damaged.'),
  trans.__('The cluster refuses to %1: %2.'),
  trans.__('The pipeline has no node %1.'),
  trans.__('The request is not JSON: %1.'),
  trans.__('`%1` must be a number, not %2.'),
  trans.__('%1 cannot be started in %2: %3.'),
  trans.__('Remove %1 and add it again.'),
  trans.__('The archive is damaged: %1.'),
  trans.__('The cluster refuses it: %1.'),
  trans.__('The node evicted the pod.'),
  trans.__('There is no component “%1”.'),
  trans.__('%1 could not be started: %2.'),
  trans.__('%1 is too long for a path.'),
  trans.__('%1 needs authorization (%2).'),
  trans.__('Give a replacement for %1.'),
  trans.__('It left an error behind.'),
  trans.__('Only Linux has overlays.'),
  trans.__('The cluster has no node.'),
  trans.__('The sweep %1 is damaged: %2.'),
  trans.__('There is a run %1 already.'),
  trans.__('There is no such update.'),
  trans.__('Waiting in the queue %1: %2.'),
  trans.__('%1 is not installed here.'),
  trans.__('Say which file: `path`.'),
  trans.__('The image %1 cannot run %2.'),
  trans.__('The request is wrong: %1.'),
  trans.__('There is no catalog “%1”.'),
  trans.__('There is no component %1.'),
  trans.__('There is no configmap %1.'),
  trans.__('There is no namespace %1.'),
  trans.__('Waiting for room on %1: %2.'),
  trans.__('`%1` of %2 is not a number.'),
  trans.__('%1 is not a web address.'),
  trans.__('It is nested too deep.'),
  trans.__('The run %1 has no step %2.'),
  trans.__('Waiting in the queue %1.'),
  trans.__('%1 cannot be reached: %2.'),
  trans.__('%1 cannot be trusted: %2.'),
  trans.__('%1 cannot be written: %2.'),
  trans.__('%1 redirects too often.'),
  trans.__('%1 took longer than %2 s.'),
  trans.__('It was never started.'),
  trans.__('Run %1 has no notebook.'),
  trans.__('The sweep %1 is still %2.'),
  trans.__('There is no runtime %1.'),
  trans.__('There is no text of %1.'),
  trans.__('%1 is larger than %2 MB.'),
  trans.__('It cannot be read: %1.'),
  trans.__('The image %1 has no %2%3.'),
  trans.__('The run %1 is still %2.'),
  trans.__('There is no state %1.'),
  trans.__('“%1” is not a digest.'),
  trans.__('%1 cannot be read: %2.'),
  trans.__('Run %1 has no step %2.'),
  trans.__('There is no host %1.'),
  trans.__('%1 is not there (%2).'),
  trans.__('%1 answered with %2.'),
  trans.__('%1 cannot be read.'),
  trans.__('It is not there.'),
  trans.__('Sort by one of %1.'),
  trans.__('%1 was not found.'),
  trans.__('The pod failed.'),
  trans.__('%1 has no image.'),
  trans.__('%1 is damaged: %2.'),
  trans.__('%1 is not there.'),
  trans.__('The run %1 is %2.'),
  trans.__('%1 is missing.')
];

/** Show whatever the server says in the language of the page. */
export function speak(bundle: TranslationBundle): void {
  learn(ANSWERS);
  translateSentences(sentence => translated(sentence, bundle));
}
