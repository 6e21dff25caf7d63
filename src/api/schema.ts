// Generated from jupyterlab_convect/routes/openapi.yaml by scripts/generate_api.mjs.
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { JSONSchema7 } from 'json-schema';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { AnyNumber } from './numbers';
import type { IDefinition, IRequest, Space } from './types';

export type Components = {
    schemas: {
        Error: {
            /** @description Stable, for programs. */
            code: string;
            /** @description One sentence for people. */
            message: string;
            /** @description What to do about it. */
            hint: string | null;
        };
        Problem: {
            /** @enum {string} */
            severity: "error" | "warning" | "info";
            code: string;
            message: string;
            node?: string | null;
            path?: (string | number)[];
            hint?: string | null;
        };
        TrainingBody: {
            text: string;
        };
        TrainingChangeBody: {
            text: string;
            paths: Components["schemas"]["TrainingPath"][];
            /** @description The new value; null takes it out. */
            value: JSONValue;
        };
        /** @description The number of the document, and the keys and indexes below it. */
        TrainingPath: (string | number)[];
        TrainingCheck: {
            faults: Components["schemas"]["TrainingFault"][];
            /** @description The text without the faults that have one remedy; null when there are none. */
            mended: string | null;
            jobs: Components["schemas"]["TrainingJob"][];
        };
        TrainingFault: {
            /** @description From 1. */
            line: number;
            message: string;
            hint: string | null;
            /** @description `mended` is without it. */
            is_mended: boolean;
        };
        TrainingJob: {
            /** @enum {string} */
            kind: "PyTorchJob" | "TFJob" | "MPIJob" | "TrainJob";
            name: string;
            fields: Components["schemas"]["TrainingField"][];
        };
        TrainingField: {
            name: string;
            /** @enum {string} */
            kind: "text" | "whole" | "amount" | "list" | "choice";
            value: JSONValue;
            /** @description Where it stands; at several places when it is the same for several roles. */
            paths: Components["schemas"]["TrainingPath"][];
            roles: string[];
            choices: string[];
        };
        About: {
            version: string;
            default_runtime: string;
            /** @description Where `convect`, the command line, is. */
            command: string;
            runtimes: {
                name: string;
                display_name: string;
                features: string[];
                /** @description Why it cannot be used. */
                problem: string | null;
            }[];
            /** @description What does not work now and is tried again; empty when all is well. */
            health: Components["schemas"]["Trouble"][];
            /** @description The version of each package that matters, null when it is not there. */
            installed: {
                [key: string]: string | null;
            };
        };
        ConnectionTest: {
            ok: boolean;
            steps: {
                /** @enum {string} */
                step: "address" | "sign-in" | "namespace";
                ok: boolean;
                message: string;
                hint: string | null;
            }[];
        };
        OthersRun: {
            id: string;
            name: string;
            state: Components["schemas"]["State"];
            reason: string | null;
            /** @description In seconds since 1970. */
            created: number | null;
            ended: number | null;
            /** @description The name of its pipeline, if that is known. */
            pipeline: string | null;
            /** @description The program that made the pipeline, such as `kfp-2.14.3`. */
            made_by: string | null;
            /** @description The id of the run, where another server of ours made it. */
            convect_run: string | null;
        };
        OthersRunView: {
            id: string;
            name: string;
            state: Components["schemas"]["State"];
            reason: string | null;
            /** @description In seconds since 1970. */
            created: number | null;
            ended: number | null;
            /** @description The name of its pipeline, if that is known. */
            pipeline: string | null;
            /** @description The program that made the pipeline, such as `kfp-2.14.3`. */
            made_by: string | null;
            /** @description The id of the run, where another server of ours made it. */
            convect_run: string | null;
            parameters: JSONObject;
            steps: {
                id: string;
                name: string;
                state: Components["schemas"]["State"];
                group: string | null;
                after: string[];
                /** @description Its condition, in CEL. */
                when: string | null;
                /** @description Whether it runs once per item of a list. */
                loops: boolean;
                image: string;
            }[];
            groups: {
                id: string;
                name: string;
                state: Components["schemas"]["State"];
                group: string | null;
                after: string[];
                /** @description Its condition, in CEL. */
                when: string | null;
                /** @description Whether it runs once per item of a list. */
                loops: boolean;
            }[];
            /** @description Where the server shows it; empty if that is not known. */
            page: string;
        };
        Trouble: {
            /** @description What does not work, such as `Renewing leases`. */
            name: string;
            /** @description When it failed for the first time, in seconds since 1970. */
            since: number;
            /** @description How the last try failed. */
            sentence: string;
            tries: number;
        };
        /** @description What is known of the numbers that something reports, before it runs. */
        Metrics: {
            names: Components["schemas"]["Texts"];
            /** @description Nothing else can be reported. */
            complete: boolean;
            /** @description By what a sweep tells the best run when nobody says: `max:accuracy`. */
            best: string | null;
        };
        Runtime: {
            name: string;
            display_name: string;
            features: string[];
            /** Format: json-schema */
            options_schema: JSONSchema7;
            /** @description Why it cannot be used. */
            problem: string | null;
        };
        Overview: {
            namespace: string | null;
            nodes: Components["schemas"]["NodeOverview"][] | null;
            /** @description By type. A step has to fit on one node. */
            gpus: Components["schemas"]["GpuOverview"][] | null;
            /** @description Of the namespace. */
            quotas: {
                name: string;
                resource: string;
                used: number;
                total: number;
            }[] | null;
            queues: Components["schemas"]["QueueOverview"][] | null;
            holders: Components["schemas"]["Holder"][];
            /** @description What could start now, for each profile. */
            offers: Components["schemas"]["Offer"][];
            /** @description What this account must not see, and the rule that would let it. */
            hidden: {
                /** @enum {string} */
                part: "nodes" | "pods" | "own-pods" | "quotas" | "queues" | "limits" | "workloads";
                sentence: string;
                /** @description A rule of a Role, as YAML. */
                rule: string;
                /** @enum {string} */
                scope: "cluster" | "namespace";
            }[];
            notes: string[];
            /** @description All pods are being read for the first time; what is free is not known yet. */
            reading: boolean;
        };
        NodeOverview: {
            name: string;
            ready: boolean;
            /** @description Of its GPUs. */
            type: string | null;
            /** @description Why pods do not start on it, or which do. */
            closed: string | null;
            resources: {
                /** @description `cpu`, `memory` (bytes), or a device. */
                name: string;
                total: number;
                /** @description Not held by anybody. */
                free: number | null;
                /** @description In use, as it was measured. */
                used: number | null;
            }[];
        };
        GpuOverview: {
            resource: string;
            type: string | null;
            total: number;
            free: number | null;
            largest_free: number | null;
            largest_node: string;
            /** @description How one GPU becomes several things to ask for; null when it does not. */
            sharing: {
                /** @enum {string} */
                kind: "time-slicing" | "mps" | "mig" | "hami" | "vcuda" | "memory";
                /** @description How many GPUs there are. */
                cards: number | null;
                sentence: string;
            } | null;
            /** @description How busy they are on average, from 0 to 1. */
            use: number | null;
        };
        /** @description An estimate in seconds, from so many admissions; null with too few. */
        WaitRange: {
            shortest: number;
            longest: number;
            samples: number;
        } | null;
        QueueOverview: {
            name: string;
            waiting: number;
            admitted: number;
            /** @description Why it lets nobody in. */
            closed: string | null;
            /** @description The ClusterQueue that it draws from. */
            group: string | null;
            cohort: string | null;
            /** @description What the group shares. */
            limits: {
                flavor: string;
                resource: string;
                used: number;
                total: number;
                /** @description What is admitted through this queue. */
                mine: number;
                /** @description How much more can be borrowed; null is as much as there is. */
                borrowing: number | null;
            }[] | null;
            /** @description Those that wait in it. */
            workloads: {
                name: string;
                /** @description The run, when it is one of ours. */
                run: string | null;
                /** @description From 1. */
                position: number;
                reason: string | null;
                wait: Components["schemas"]["WaitRange"];
            }[] | null;
            wait: Components["schemas"]["WaitRange"];
        };
        Holder: {
            /** @enum {string} */
            kind: "run" | "service" | "kernel" | "server" | "dask" | "training" | "pipeline" | "other";
            name: string;
            namespace: string;
            node: string | null;
            resources: {
                name: string;
                amount: number;
            }[];
            owner: string | null;
            /** @description It can be given back. */
            mine: boolean;
            run: string | null;
            step: string | null;
            /** @description Of the service or the kernel. */
            id: string | null;
            /** @description How many pods are told as one. */
            count: number;
            /** @description Seconds since it was used. */
            idle: number | null;
            /** @description From 0 to 1. */
            gpu_use: number | null;
        };
        Offer: {
            profile: string | null;
            title: string;
            /** @description Of a run, for the largest request; empty when nothing would start. */
            settings: JSONObject;
            /** @description Null where that is not known. */
            now: boolean | null;
            /** @description How many times what the profile asks for. */
            count: number;
            node: string | null;
            sentence: string | null;
            notes: string;
        };
        GiveBackBody: {
            /** @enum {string} */
            kind: "run" | "service" | "kernel" | "dask";
            id: string;
        };
        Offering: {
            profiles: {
                name: string;
                notes: string;
                namespaces: string[];
                /** @description Image and resources. */
                settings: JSONObject;
            }[];
            images: {
                image: string;
                notes: string;
            }[];
            registries: string[];
        };
        /** @enum {string} */
        State: "waiting" | "queued" | "starting" | "running" | "succeeded" | "failed" | "cancelled" | "skipped" | "cached" | "lost";
        Labels: {
            [key: string]: string;
        };
        /** @description What to run. One of `path` and `document` is needed. */
        RequestBody: {
            path?: string | null;
            document?: JSONObject | null;
            runtime?: string;
            options?: JSONObject;
            name?: string | null;
            parameters?: JSONObject;
            settings?: JSONObject;
            labels?: Components["schemas"]["Labels"];
            select?: Components["schemas"]["Selection"];
            use_cache?: boolean;
            of?: string | null;
        };
        Selection: {
            /** @enum {string} */
            mode?: "all" | "only" | "from" | "upto" | "failed";
            node?: string | null;
        };
        EditBody: {
            name?: string;
            labels?: Components["schemas"]["Labels"];
            note?: string;
        };
        /** @description 0 is no limit. */
        PruneBody: {
            keep_days?: number;
            keep_runs?: number;
            keep_bytes?: number;
            /** @description Delete nothing. */
            dry_run?: boolean;
        };
        StopBody: {
            step?: string | null;
        };
        RerunBody: {
            /** @enum {string} */
            mode?: "all" | "only" | "from" | "upto" | "failed";
            node?: string | null;
            use_cache?: boolean;
            /**
             * @description Which files are executed: as they are now (the default), or as that run executed them.
             * @enum {string}
             */
            version?: "today" | "run";
        };
        Evaluated: {
            value: JSONValue;
            /** @description By the short name of each reference, as far as there is a value. */
            values: JSONObject;
            /** @description In a loop, how many items there were, for how many it was true, and how long the lists that it gave were in all. */
            items?: {
                total: number;
                true: number;
                length: number;
            };
        };
        PutBody: {
            /**
             * @description Also over files that changed since the submit.
             * @default false
             */
            replace: boolean;
        };
        SourceChanges: {
            changes: Components["schemas"]["SourceChange"][];
        };
        SourceChange: {
            /** @description Relative to the project folder. */
            path: string;
            /** @description What the run executed, or the schedule executes; of a notebook, what its cells say. */
            before: string | null;
            /** @description The file as it is now. */
            after: string | null;
        };
        MadeFiles: {
            /** @description The folder that the paths start from. */
            project: string | null;
            files: Components["schemas"]["MadeFile"][];
            /** @description How many files there are in all. */
            total: number;
            /** @description How many of them could be put into the project. */
            to_put: number;
            /** @description The paths that are in the project as the run left them, since its end or since somebody asked. */
            put: string[];
            /** @description The paths that stayed with the run only, each with the reason. */
            kept: {
                [key: string]: string;
            };
            /** @description How many of `put` were deleted in the project. */
            deleted: number;
        };
        MadeFile: {
            path: string;
            /**
             * @description Null for a declared output that is not known to have changed.
             * @enum {string|null}
             */
            change: "created" | "changed" | "deleted" | null;
            size?: number;
            digest?: string | null;
            mode?: number;
            step: string;
            state: Components["schemas"]["State"];
            /** @description The later step that made the same path. */
            replaced_by: string | null;
            attempt: number;
            /** @description Whether its content is still with the run. */
            kept: boolean;
            /** @description Where its content is served, below `runs/{run}/steps/{step}/{attempt}/`; null when it is no regular file, or not kept. */
            file: string | null;
        };
        /** @description What came of putting the files that a run made into the project. */
        PutFiles: {
            put: Components["schemas"]["Texts"];
            kept: {
                [key: string]: string;
            };
        } | null;
        /** @description One of `path` and `document` is needed; with both, `path` says where the document lies. */
        PipelineBody: {
            path?: string | null;
            document?: JSONObject | null;
            parameters?: JSONObject;
        };
        /** @description One of `path` and `document` is needed; with both, `path` says where the document lies. */
        ExportBody: {
            /**
             * @description `kfp`: IR of Kubeflow Pipelines as YAML.
             * @enum {string}
             */
            to: "kfp";
            path?: string | null;
            document?: JSONObject | null;
            parameters?: JSONObject;
            /** @description The image of steps that name none. */
            image?: string;
        };
        /** @description One of `path` and `document` is needed; with both, `path` says where the document lies. */
        PublishBody: {
            /** @description What the pipeline is called there; it is made if there is none. */
            name: string;
            /** @description The version's name; the time if it is not given. */
            version?: string;
            path?: string | null;
            document?: JSONObject | null;
            parameters?: JSONObject;
        };
        DiscoverBody: {
            /** @description Paths, each with the stamp that is known of it, or null. */
            files: {
                [key: string]: string | null;
            };
        };
        ImportBody: {
            path: string;
        };
        EndpointBody: {
            path: string;
            /** @description Its part of the address; without it like the file. */
            id?: string | null;
            name?: string | null;
            runtime?: string | null;
            options?: JSONObject | null;
            settings?: JSONObject | null;
            /** @description Parameters that callers cannot choose. */
            parameters?: JSONObject | null;
            labels?: {
                [key: string]: string;
            } | null;
            use_cache?: boolean | null;
            /** @description Calls that run at the same time. */
            concurrency?: number | null;
            /** @description Calls that may wait beside those. */
            queue?: number | null;
            /** @description Calls per minute; 0 is no limit. */
            rate?: number | null;
            /** @description Seconds without a call after which its worker is stopped; 0 is never. */
            idle?: number | null;
        };
        EndpointEditBody: {
            name?: string;
            concurrency?: number;
            queue?: number;
            rate?: number;
            idle?: number;
            paused?: boolean;
        };
        TokenBody: {
            name: string;
        };
        EndpointView: {
            id: string;
            name: string;
            created: number;
            /** @description What a call runs, as it can be sent again. */
            request: JSONObject;
            concurrency: number;
            queue: number;
            rate: number;
            idle: number;
            paused: boolean;
            tokens: {
                name: string;
                created: number;
            }[];
            /** @description A token that was just made; nobody can tell it again. */
            token?: string;
        };
        ServiceBody: {
            kind: string;
            /** @description What the kind wants to know. */
            options?: JSONObject | null;
            name?: string | null;
            /** @description Seconds without a request after which it is stopped; 0 is never. */
            idle?: number | null;
        };
        ServiceView: {
            id: string;
            kind: string;
            name: string;
            created: number;
            options: JSONObject;
            /** @description Seconds without a request after which it is stopped. */
            idle: number;
            /** @enum {string} */
            state: "starting" | "ready" | "stopped" | "failed" | "lost";
            reason: string | null;
            started: number;
            ended: number | null;
            /** @description When somebody used it last. */
            used: number;
            /** @description The machine on which it runs. */
            host: string | null;
            /** @description Where it is on this server, with a slash at the end. */
            path: string;
        };
        DaskClusterBody: {
            /** @description Options of the gateway. */
            options?: JSONObject | null;
            workers?: number | null;
        };
        /** @description Either `workers`, or `minimum` and `maximum`. */
        DaskScaleBody: {
            workers?: number;
            minimum?: number;
            maximum?: number;
        };
        DaskTestBody: {
            /** @description Versions by package, and that of `python`, of a kernel that is to use it. */
            kernel?: {
                [key: string]: string | null;
            } | null;
        };
        DaskOption: {
            field: string;
            label: string;
            /** @description The value if none is chosen. */
            default: JSONValue;
            spec: {
                /** @enum {string} */
                type: "int" | "float" | "string" | "bool" | "select" | "mapping";
                min?: number | null;
                max?: number | null;
                options?: string[];
            };
        };
        DaskOverview: {
            gateway: {
                /** @description Whether it makes clusters on this machine. */
                is_own: boolean;
                /** @description That of Dask's configuration. */
                address: string | null;
                /** @enum {string} */
                state: "starting" | "ready" | "stopped" | "failed" | "lost";
                reason: string | null;
                /** @description The service that it is. */
                service: string | null;
            };
            clusters: Components["schemas"]["DaskCluster"][];
        };
        DaskCluster: {
            /** @description The first 16 hexadecimal digits of the SHA-256 of the name, which is a secret. */
            id: string;
            /** @description The step of a run that it was made for; null for any other. */
            step: {
                run: string;
                step: string;
            } | null;
            /** @enum {string} */
            state: "pending" | "running" | "stopping" | "stopped" | "failed";
            started: number;
            options: JSONObject;
            /** @description What is wrong with it. */
            reason: string | null;
            /** @description Whether its scheduler tells the numbers. */
            is_known: boolean;
            workers: number;
            /** @description How many workers this server has told it to have, if it has. */
            wanted: number | null;
            threads: number;
            /** @description Bytes that the workers use. */
            memory: number;
            memory_limit: number;
            /** @description Percent of one CPU that the workers use together, if it is known. */
            cpu: number | null;
            /** @description Programs that are connected. */
            clients: number;
            /** @description Tasks that are computed. */
            processing: number;
            /** @description Tasks that wait. */
            waiting: number;
            /** @description Results that are kept. */
            in_memory: number;
            /** @description Tasks that failed. */
            erred: number;
            each_worker: {
                name: string;
                host: string;
                state: string;
                threads: number;
                cpu: number | null;
                memory: number;
                memory_limit: number;
                processing: number;
            }[];
            /** @description Seconds for which this server has seen it do nothing. */
            idle: number | null;
            /** @description Whether nobody uses it and it does nothing. */
            orphan: boolean;
        };
        CallView: {
            id: string;
            state: Components["schemas"]["State"];
            reason: string | null;
            created: number;
            ended: number | null;
            parameters: JSONObject;
            outputs: JSONObject;
            metrics: JSONObject;
            files: {
                step: string;
                path: string;
                size: number | null;
            }[];
            /** @description Whether there is an executed notebook. */
            notebook: boolean;
        };
        SweepBody: {
            request: Components["schemas"]["RequestBody"];
            space: Components["schemas"]["Space"];
            mode?: Components["schemas"]["SweepMode"];
            samples?: number | null;
            seed?: number;
            concurrency?: number | null;
            /** @description Which run is the best: `max:accuracy`, `min:loss`, or `none`. Without it, the best is told by itself where the declared metrics make that plain. */
            select?: string | null;
        };
        /** @description When something is due; `cron` or `every` is given, or neither beside a trigger. */
        ClockBody: {
            /** @description Five fields, or `@daily` and its like. */
            cron?: string | null;
            /** @description A name such as Europe/Berlin. */
            zone?: string;
            /** @description Seconds from one due time to the next. */
            every?: number | null;
            /** @description From which `every` is counted; without it from now on. */
            anchor?: number;
            start?: number | null;
            end?: number | null;
            /** @description Seconds by which a run is put off at most. */
            jitter?: number;
        };
        ScheduleBody: {
            request: Components["schemas"]["RequestBody"];
            clock?: Components["schemas"]["ClockBody"];
            trigger?: Components["schemas"]["TriggerBody"];
            name?: string | null;
            sweep?: Components["schemas"]["ScheduledSweep"];
            overlap?: Components["schemas"]["Overlap"];
            /** @description Runs of it at the same time. */
            concurrency?: number;
            missed?: Components["schemas"]["MissedRule"];
            /** @description Seconds within which a missed due time is made up for. */
            deadline?: number;
            /** @description Always run the files as they are now. */
            pinned?: boolean;
            kept_by?: Components["schemas"]["KeptBy"];
            paused?: boolean;
        };
        /** @description What makes a schedule due beside its clock; `{}` is nothing. */
        TriggerBody: {
            file?: {
                /** @description Files of the project, as in `data/*.csv`. */
                pattern: string;
                /** @description Seconds for which a file has not changed. */
                settle?: number;
                /** @description A file that has changed counts again. */
                changed?: boolean;
            } | null;
            run?: {
                /** @description The file whose runs count. */
                path?: string | null;
                /** @description The name of the runs; `*` matches anything. */
                name?: string | null;
                /** @description In which a run has ended. */
                states?: string[];
            } | null;
            /** @description A call with the token of the schedule, or signed with it. */
            call?: {
                /** @description Which of its tokens is valid. It is kept when the schedule is edited. */
                generation?: number;
            } | null;
        };
        NotificationBody: {
            /** @enum {string} */
            kind: "mail" | "webhook" | "slack" | "teams" | "feishu" | "dingtalk" | "wecom";
            name?: string | null;
            events?: ("success" | "failure" | "missed" | "longer")[];
            /** @description The addresses of a mail. */
            to?: string[];
            /** @description Where it is sent, if that is no secret. */
            url?: string | null;
            /** @description The secret that holds the address, as `name/key`. */
            secret?: string | null;
            /** @description The secret that messages are signed with, as `name/key`. */
            sign?: string | null;
            /** @description Seconds after which a run that goes on is told about. */
            longer?: number | null;
            /** @description About this schedule alone, by its id. */
            schedule?: string | null;
            /** @description About runs of this file alone. */
            path?: string | null;
            /** @description About this run alone. */
            run?: string | null;
        };
        TestNotificationBody: Record<string, never>;
        NotificationView: {
            id: string;
            created: number;
            /** @description What was sent last. */
            last: {
                title: string;
                time: number;
                sent: boolean;
                tries: number;
                /** @description Why it was not sent. */
                reason: string | null;
            } | null;
            /** @enum {string} */
            kind: "mail" | "webhook" | "slack" | "teams" | "feishu" | "dingtalk" | "wecom";
            name: string;
            events: ("success" | "failure" | "missed" | "longer")[];
            to: string[];
            url: string | null;
            secret: string | null;
            sign: string | null;
            longer: number | null;
            schedule: string | null;
            path: string | null;
            run: string | null;
        };
        RenewTokenBody: Record<string, never>;
        ScheduleEditBody: {
            request?: Components["schemas"]["RequestBody"];
            clock?: Components["schemas"]["ClockBody"];
            trigger?: Components["schemas"]["TriggerBody"];
            name?: string | null;
            sweep?: Components["schemas"]["ScheduledSweep"];
            overlap?: Components["schemas"]["Overlap"];
            /** @description Runs of it at the same time. */
            concurrency?: number;
            missed?: Components["schemas"]["MissedRule"];
            /** @description Seconds within which a missed due time is made up for. */
            deadline?: number;
            /** @description Always run the files as they are now. */
            pinned?: boolean;
            kept_by?: Components["schemas"]["KeptBy"];
            paused?: boolean;
        };
        /** @description What each due time makes a sweep of; null when it makes a run. */
        ScheduledSweep: {
            space: Components["schemas"]["Space"];
            mode?: Components["schemas"]["SweepMode"];
            samples?: number | null;
            seed?: number;
            concurrency?: number | null;
            select?: string | null;
        } | null;
        /**
         * @description What becomes of a due time while as many runs as may go on: it is skipped, it waits, or the oldest of the runs is stopped for it.
         * @enum {string}
         */
        Overlap: "skip" | "queue" | "stop";
        /**
         * @description Which due times are made up for when nobody kept the clock.
         * @enum {string}
         */
        MissedRule: "none" | "last" | "all";
        /**
         * @description Who keeps the clock: a server or a process of its own, or the runtime: Kubernetes with a CronJob, Kubeflow Pipelines with a recurring run, which pins the files.
         * @enum {string}
         */
        KeptBy: "here" | "runtime";
        ImportSchedulesBody: Record<string, never>;
        ScheduleRunBody: {
            /** @description The due time that its parameters see. */
            due?: number | null;
        };
        BackfillBody: {
            begin: number;
            end: number;
            /**
             * @description Due times without a run, those and the ones whose runs failed, or all.
             * @enum {string}
             */
            which?: "missing" | "failed" | "all";
            /** @description The parameter that has the date of each. */
            parameter?: string | null;
            /** @description The last first. */
            backwards?: boolean;
            concurrency?: number | null;
        };
        SweepEditBody: {
            name?: string;
            /** @description `max:accuracy`, or null for none */
            select?: string | null;
        };
        PointsBody: {
            space: Components["schemas"]["Space"];
            mode?: Components["schemas"]["SweepMode"];
            samples?: number | null;
            seed?: number;
        };
        /** @enum {string} */
        SweepMode: "grid" | "random" | "list";
        /** @description Values of each parameter: a list, `{from, to, step}`, or (random) `{min, max, log, type}`. */
        Space: Space;
        Discovery: {
            /** @enum {string} */
            kind: "notebook" | "script" | "pipeline";
            language: string | null;
            kernel: string | null;
            /** @description Null when they cannot be known. */
            parameters: Components["schemas"]["Parameter"][] | null;
            outputs: string[] | null;
            env: string[];
            modules: string[];
        };
        Parameter: {
            name: string;
            /**
             * @description Null when it cannot be known.
             * @enum {string|null}
             */
            type: "string" | "integer" | "number" | "boolean" | "array" | "object" | null;
            default: JSONValue;
            /** @description The default as it stands in the file, null when there is none. */
            source: string | null;
            help: string | null;
            choices: JSONValue[];
            required: boolean;
        };
        Description: {
            name: string | null;
            description: string | null;
            kinds: {
                [key: string]: number;
            };
            parameters: {
                [key: string]: JSONObject;
            };
            files: {
                path: string;
                /** @enum {string} */
                role: "source" | "input" | "dependency";
                nodes: string[];
                exists: boolean | null;
            }[];
            images: Components["schemas"]["UsedBy"];
            components: Components["schemas"]["UsedBy"];
            kernels: Components["schemas"]["UsedBy"];
            outputs: Components["schemas"]["UsedBy"];
            secrets: JSONObject[];
            volumes: JSONObject[];
            resources: JSONObject;
            /** @description When and how often nodes run, by node; as the pipeline has it. */
            rules: {
                [key: string]: JSONObject;
            };
            /** @description What it gives to a pipeline that it is a node of, by name. */
            gives: {
                [key: string]: string;
            };
        };
        /** @description Names, each with the nodes that use it. */
        UsedBy: {
            [key: string]: string[];
        };
        /** @description A number. JSON has no NaN and no infinities, which are an object with their name; so they are in parameters and outputs too, however deep. */
        Number: AnyNumber;
        RunSummary: {
            id: string;
            name: string;
            path: string | null;
            runtime: string;
            state: Components["schemas"]["State"];
            /** @description Why it waits or failed. */
            reason: string | null;
            created: number;
            started: number | null;
            ended: number | null;
            user: string | null;
            /** @description Those in effect, defaults included; of a pipeline, its own. */
            parameters: JSONObject;
            /** @description Parameters that nobody gave a value. */
            defaults: string[];
            /** @description Code behind defaults whose values are not known. */
            computed: {
                [key: string]: string;
            };
            metrics: {
                [key: string]: Components["schemas"]["Number"];
            };
            labels: Components["schemas"]["Labels"];
            note: string;
            sweep: string | null;
            steps_total: number;
            steps_done: number;
            progress: number;
            /** @description Grows with every change. */
            seq: number;
        };
        RunPage: {
            runs: Components["schemas"]["RunSummary"][];
            total: number;
            /** @description False when there are more than were counted. */
            exact: boolean;
            counts: {
                [key: string]: number;
            };
        };
        RunView: Components["schemas"]["RunSummary"] & {
            stopping: boolean;
            /** @description The address at which the runtime itself shows the run, if there is one. */
            page?: string | null;
            /** @description Whether each of its metrics is to be large or small, as far as its name says that. */
            goals: {
                [key: string]: "max" | "min";
            };
            files?: Components["schemas"]["PutFiles"];
            loop?: Components["schemas"]["LoopItems"];
            plan: Components["schemas"]["Plan"];
            /**
             * Format: request
             * @description What was asked, enough to ask for it again.
             */
            request: IRequest;
            git: Components["schemas"]["Git"];
            /** @description The environments in which steps that have ended were executed, each with its steps. One that is seen for the first time comes shortly after the step's end. */
            environments: {
                steps: string[];
                digest: string | null;
                python: string | null;
                /** @description How many. */
                packages: number | null;
                /** @description Where it is no Python. */
                language: string | null;
                /** @description The machine or the node. */
                host: string | null;
                /** @description As the node resolved it. */
                image: string | null;
            }[];
            /** @description By id. Of loops with more than 200 steps those that matter most, the failed ones first; all are in `/runs/{run}/items/{loop}`. */
            steps: {
                [key: string]: Components["schemas"]["StepState"];
            };
            /** @description The groups that have a rule, inner pipelines, loops, and items of loops over groups. */
            groups?: {
                [key: string]: Components["schemas"]["GroupState"];
            };
        };
        Git: {
            commit: string;
            branch: string | null;
            /** @description Null where it took too long to tell. */
            dirty: boolean | null;
            /** @description The digest under which the difference is kept. */
            difference: string | null;
        } | null;
        GroupState: {
            /** @description By path: `regions`, `regions.3`, `regions.3.inner`. */
            id: string;
            /** @description The node of the pipeline. */
            node: string;
            /** @description Which item of each loop around it, from 0; with its own for an item of a loop. */
            item: number[];
            state: Components["schemas"]["State"];
            reason: string | null;
            started: number | null;
            ended: number | null;
            /** @description It was skipped by a rule. */
            by_rule: boolean;
            /** @description How many items a loop has; null until its list is known. */
            items: number | null;
            /** @description How many items of a loop are in each state. */
            counts: {
                [key: string]: number;
            };
            stopping: boolean;
            /** @description Of a loop that is in no other, how many steps of each node in it are in each state. */
            members?: {
                [key: string]: {
                    [key: string]: number;
                };
            };
        };
        LoopItems: Components["schemas"]["GroupState"] & {
            /** @description How many items are in the states asked for. */
            matched: number;
            offset: number;
            page: {
                /** @description From 0. */
                index: number;
                /** @description The item itself. */
                value: JSONValue;
                id: string;
                state: Components["schemas"]["State"];
                reason: string | null;
                started: number | null;
                ended: number | null;
                steps: {
                    [key: string]: Components["schemas"]["StepState"];
                };
            }[];
        };
        RunEnvironment: {
            git: {
                commit: string;
                branch: string | null;
                /** @description Null where it took too long to tell. */
                dirty: boolean | null;
                difference: Components["schemas"]["GitDifference"];
            } | null;
            steps: {
                [key: string]: Components["schemas"]["StepEnvironment"];
            };
            /** @description By digest. */
            environments: {
                [key: string]: Components["schemas"]["Environment"];
            };
        };
        GitDifference: {
            /** @description As `git diff HEAD` prints it. */
            text: string;
            /** @description It was too long to be kept whole. */
            cut: boolean;
            /** @description Source files that git does not know. */
            untracked: string[];
            untracked_cut: boolean;
        } | null;
        StepEnvironment: {
            digest: string | null;
            interpreter: string | null;
            kernel: string | null;
            /** @description Where it is no Python. */
            language: string | null;
            host: {
                name?: string;
                system?: string;
                machine?: string;
                cpus?: number | null;
                memory?: number;
                gpus?: string[];
            };
            /** @description As the node resolved it. */
            image: string | null;
            node: string | null;
        };
        /** @description Python and all that is installed there. */
        Environment: {
            python: string;
            implementation: string;
            platform: string;
            /** @description The version by the name; with `@` and its origin if it is from no index. */
            packages: {
                [key: string]: string;
            };
        };
        Plan: {
            name: string;
            path?: string | null;
            parameters?: JSONObject;
            components?: JSONObject;
            steps: Components["schemas"]["PlanStep"][];
            /** @description Groups that have a rule, and inner pipelines; outer ones before inner ones. */
            groups?: {
                id: string;
                name: string;
                after?: string[];
                weak?: string[];
                group?: string;
                /** @description True, false, or an expression. */
                when?: JSONValue;
                /** @enum {string} */
                run_if?: "succeeded" | "failed" | "always";
                for_each?: Components["schemas"]["ForEach"];
                outputs?: JSONObject;
                /** @description The inner pipeline. */
                path?: string;
                digest?: string;
            }[];
        };
        ForEach: {
            name: string;
            /** @description A list, or an expression. */
            items: JSONValue;
            parallel?: number;
        };
        /** @description What has its default is left out. */
        PlanStep: {
            id: string;
            /** @enum {string} */
            kind: "notebook" | "script" | "command" | "component";
            name: string;
            path?: string;
            after?: Components["schemas"]["Texts"];
            digest?: string | null;
            command?: Components["schemas"]["Texts"];
            component?: string | null;
            /** @description Those that it is given. */
            parameters?: JSONObject;
            /** @description What its source says for those that it is not. */
            defaults?: JSONObject;
            computed?: {
                [key: string]: string;
            };
            env?: {
                [key: string]: string;
            };
            image?: string | null;
            kernel?: string | null;
            resources?: JSONObject;
            outputs?: Components["schemas"]["Texts"];
            timeout?: number | null;
            cache?: boolean;
            weak?: Components["schemas"]["Texts"];
            /** @description The group that it is in. */
            group?: string;
            /** @description True, false, or an expression. */
            when?: JSONValue;
            /** @enum {string} */
            run_if?: "succeeded" | "failed" | "always";
            for_each?: Components["schemas"]["ForEach"];
            /** @description The processes that together are the step. */
            distributed?: JSONObject;
            /** @description The Dask cluster that each attempt gets. */
            dask?: JSONObject;
        } & {
            [key: string]: unknown;
        };
        StepState: {
            id: string;
            state: Components["schemas"]["State"];
            reason: string | null;
            started: number | null;
            ended: number | null;
            attempts: Components["schemas"]["AttemptState"][];
            progress: Components["schemas"]["Progress"];
            /** @description Those in effect, defaults included. */
            parameters: JSONObject;
            outputs: JSONObject;
            metrics: {
                [key: string]: Components["schemas"]["Number"];
            };
            /** @description Why a result was reused or not. */
            cache: string | null;
            /** @description `<run id>/<attempt>` of the result that was reused. */
            source: string | null;
            stopping?: boolean;
            /** @description What a reader of the result should know, a sentence each. */
            notices?: string[];
            /** @description How many files it created, changed or deleted. */
            made?: number;
            /** @description The step of the plan; another than `id` in a loop. */
            node?: string;
            /** @description Which item of each loop around it, from 0. */
            item?: number[];
            /** @description It was skipped by a rule, not because of a failure. */
            by_rule?: boolean;
        };
        Progress: {
            cell: number;
            cells: number;
            elapsed: number;
            expected: number | null;
        } | null;
        AttemptState: {
            attempt: number;
            state: Components["schemas"]["State"];
            reason: string | null;
            detail: string | null;
            started: number | null;
            ended: number | null;
            /** @enum {string|null} */
            stopping?: "asked" | "timeout" | null;
            /** @description Since when it runs. */
            running?: number | null;
        };
        SweepSummary: {
            id: string;
            name: string;
            path: string | null;
            runtime: string;
            state: Components["schemas"]["State"];
            created: number;
            ended: number | null;
            mode: Components["schemas"]["SweepMode"];
            space: Components["schemas"]["Space"];
            concurrency: number | null;
            select: string | null;
            /** @description How many points there are. */
            total: number;
            done: number;
            counts: {
                [key: string]: number;
            };
            /** @description The id of the best run. */
            best: string | null;
        };
        SweepView: Components["schemas"]["SweepSummary"] & {
            /** Format: request */
            request: IRequest;
            /** @description Sources that are not what they were when the sweep was submitted, its own first. All runs of a sweep, also those of points that are added, take those of then. */
            changed: string[];
            points: {
                parameters: JSONObject;
                run: string | null;
            }[];
            /** @description The last run of each point. */
            runs: Components["schemas"]["RunSummary"][];
        };
        /** @description Who keeps the clock now; null when nobody does. */
        ScheduleKeeper: {
            /** @enum {string} */
            kind: "server" | "process";
            host: string;
            process: number;
            since: number;
            /** @description When the clock was looked at for certain. */
            looked: number;
            /** @description A process of its own takes over when the server stops. */
            standby?: boolean;
        } | null;
        Upcoming: {
            next: number[];
            /** @description Due times of the coming year on nights when clocks change. */
            shifts: {
                /** @enum {string} */
                kind: "twice" | "moved";
                /** @description The time as the expression has it: 2026-03-29T02:30. */
                wall: string;
                due: number;
            }[];
        };
        CalendarDay: {
            /** @description In the zone of the schedule: 2026-05-01. */
            day: string;
            /** @description How many due times came to what: an outcome of the ledger, `failed` for runs that ended without success, `due` for those that are still to come. */
            counts: {
                [key: string]: number;
            };
        };
        LedgerLine: {
            due: number;
            /** @enum {string} */
            outcome: "ran" | "queued" | "skipped" | "missed" | "paused" | "refused" | "waiting";
            /** @description The id of the run or sweep that it made. */
            run: string | null;
            /** @description Its state, or `deleted`. */
            state: string | null;
            reason: string | null;
            /** @description What made it due, if not the clock. */
            happening: {
                /** @enum {string} */
                cause: "file" | "run" | "call";
                /** @description What parameters refer to. */
                values?: JSONObject;
            } | null;
            /** @description From when to when nobody kept the clock. */
            gone: number[] | null;
            /** @description Runs that people made of it afterwards. */
            asked: {
                run: string;
                state: string;
            }[];
        };
        ScheduleSummary: {
            id: string;
            name: string;
            path: string | null;
            runtime: string;
            is_sweep: boolean;
            created: number;
            clock: Components["schemas"]["ClockBody"];
            /** @description What makes it due beside the clock, a `TriggerBody`. */
            trigger: JSONObject | null;
            pinned: boolean;
            kept_by: Components["schemas"]["KeptBy"];
            /** @description Since when. */
            paused: number | null;
            /** @description When it is due next. */
            due: number | null;
            /** @description The last line of the ledger, a `LedgerLine`. */
            last: JSONObject | null;
        };
        ScheduleView: Components["schemas"]["ScheduleSummary"] & Components["schemas"]["Upcoming"] & {
            request: JSONObject;
            sweep: JSONObject | null;
            overlap: Components["schemas"]["Overlap"];
            concurrency: number;
            missed: Components["schemas"]["MissedRule"];
            deadline: number;
            user: string | null;
            /** @description Pinned sources that are not what they were. */
            changed: string[];
            counts: {
                [key: string]: number;
            };
        };
        Replica: {
            rank: number;
            state: Components["schemas"]["State"];
            reason: string | null;
            /** @description The machine of the cluster where it runs. */
            node: string | null;
            /** @description The GPU that its local rank counts. */
            gpu: string | null;
            exit_code: number | null;
            started: number | null;
            ended: number | null;
            /** @description The cores that it used in the last sample. */
            cpu: number | null;
            /** @description The bytes that it used in the last sample. */
            memory: number | null;
            /** @description The load of its GPU in percent. */
            gpu_load: number | null;
            /** @description The bytes in use on its GPU. */
            gpu_memory: number | null;
            /** @description The last rate that it printed, as in `12.5 it/s`. */
            rate: string | null;
            /** @description What it printed last. */
            line: string;
        };
        LogChunk: {
            text: string;
            /** @description Where to go on reading, in bytes. */
            offset: number;
            /** @description True when the attempt has ended and this is its end. */
            complete: boolean;
        };
        EventChunk: {
            events: Components["schemas"]["StepEvent"][];
            offset: number;
            complete: boolean;
        };
        /** @description What a step did; `docs/run-folder.md` has the types. */
        StepEvent: {
            time: number;
            type: string;
        } & {
            [key: string]: unknown;
        };
        Manifest: {
            manifest: JSONObject | null;
            /** @description What the cluster knew of the pod, once it ran; its events in order. */
            cluster: {
                pod: string;
                node: string | null;
                image?: string | null;
                status: JSONObject | null;
                events: {
                    time: string;
                    type: string | null;
                    reason: string | null;
                    words: string | null;
                    count: number;
                }[];
            } | null;
        };
        Notebook: INotebookContent;
        File: {
            path: string;
            size: number;
            digest?: string | null;
        };
        Texts: string[];
        /** @description Names the secret that is sent as `Authorization`; its value is never here. */
        Auth: {
            /** @description An environment variable of the server. */
            env?: string | null;
            /** @description A keyring service. */
            name?: string | null;
            /** @description A keyring user. */
            key?: string | null;
            /** @description `Bearer` unless told otherwise. */
            scheme?: string;
        } | null;
        CatalogBody: {
            name: string;
            /** @description `url`, `file`, `folder`, or a third party's. */
            kind?: string;
            urls?: Components["schemas"]["Texts"];
            /** @description A file or folder in the root folder. */
            path?: string | null;
            categories?: Components["schemas"]["Texts"];
            auth?: Components["schemas"]["Auth"];
            replacements?: {
                [key: string]: string;
            };
            options?: JSONObject;
            refresh?: Components["schemas"]["Refresh"];
        };
        CatalogChange: {
            name?: string;
            urls?: Components["schemas"]["Texts"];
            path?: string | null;
            categories?: Components["schemas"]["Texts"];
            auth?: Components["schemas"]["Auth"];
            replacements?: {
                [key: string]: string;
            };
            options?: JSONObject;
            refresh?: Components["schemas"]["Refresh"];
        };
        /** @description Seconds between two looks for changes; null, only when somebody asks. */
        Refresh: number | null;
        Catalogs: {
            catalogs: Components["schemas"]["CatalogView"][];
            kinds: Components["schemas"]["Texts"];
            /** @description JSON Schema of the options of each third party's kind. */
            schemas: {
                [key: string]: JSONSchema7;
            };
        };
        CatalogView: {
            id: string;
            name: string;
            kind: string;
            urls: Components["schemas"]["Texts"];
            path: string | null;
            categories: Components["schemas"]["Texts"];
            auth: Components["schemas"]["Auth"];
            replacements: {
                [key: string]: string;
            };
            options: JSONObject;
            refresh: Components["schemas"]["Refresh"];
            refreshed: number | null;
            error: Components["schemas"]["ReadingError"];
            progress: {
                done: number;
                total: number;
            } | null;
            counts: {
                components: number;
                errors: number;
                updates: number;
            };
        };
        TakeBody: {
            /** @description Digests of the newer texts; all when there is none. */
            digests?: string[] | null;
        };
        ComponentSummary: {
            catalog: string;
            source: string;
            /** @description Which one it is in a file of several. */
            part: number;
            /** @description Empty when it could not be read. */
            digest: string;
            name: string;
            description: string;
            format: string;
            image: string;
            inputs: Components["schemas"]["Texts"];
            outputs: Components["schemas"]["Texts"];
            categories: Components["schemas"]["Texts"];
            /** @description The digest of a newer text. */
            update: string | null;
            /** @description Whether it is no longer where it came from. */
            gone: boolean;
            error: Components["schemas"]["ReadingError"];
        };
        /** @description What was wrong when a source was read the last time. */
        ReadingError: {
            file?: string;
            /** @description From 1; 0 is the file as a whole. */
            line?: number;
            message: string;
            hint?: string | null;
        } | null;
        ComponentEnd: {
            name: string;
            /** @description As the component names it, empty when it does not. */
            type: string;
            /** @description What kind of value it is; null for data that only files can hold. */
            kind: string | null;
            description: string;
            /** @enum {string} */
            passed: "value" | "file";
            default?: JSONValue;
            required?: boolean;
        };
        ComponentView: {
            name: string;
            digest: string;
            description: string;
            /** @enum {string} */
            format: "v1" | "graph" | "ir";
            source: string;
            inputs: Components["schemas"]["ComponentEnd"][];
            outputs: Components["schemas"]["ComponentEnd"][];
            image: string | null;
            command: Components["schemas"]["Texts"];
            env: {
                [key: string]: string;
            };
            tasks: {
                name: string;
                component: string;
                image: string | null;
                after: Components["schemas"]["Texts"];
                unsupported: string | null;
                /** @description Where its component was read. */
                source: string;
                /** @description The address that the graph names, when it was read elsewhere and its digest was not checked. */
                replaces: string | null;
            }[];
            /** @description What keeps it from running outside of Kubeflow. */
            unsupported: string[];
            packages: Components["schemas"]["Texts"];
            /**
             * Format: component
             * @description What a pipeline embeds under `components`.
             */
            definition: IDefinition;
            /** @description Whether it may run without a container. */
            approved: boolean;
            /** @description Whether this machine can run containers. */
            contained: boolean;
            text?: string;
        };
        DefinitionBody: {
            /** Format: component */
            definition: IDefinition;
        };
        ApproveBody: {
            /** Format: component */
            definition: IDefinition;
            /** @description True unless told otherwise. */
            approved?: boolean;
        };
    };
    parameters: {
        /** @description Only items in one of these states. */
        itemState: Components["schemas"]["State"][];
        itemLimit: number;
        itemOffset: number;
        /** @description The items that failed come before all others. */
        worstFirst: boolean;
        run: string;
        step: string;
        attempt: number;
        sweep: string;
        endpoint: string;
        daskCluster: string;
        service: string;
        /** @description Seconds to wait for the end, up to 60. */
        wait: number;
        notification: string;
        schedule: string;
        catalog: string;
        digest: string;
    };
};

/** The REST interface, one method per verb. */
export interface IOperations {
    /** Version, runtimes with their features, what is installed */
    about(): Promise<Components["schemas"]["About"]>;
    /** This document */
    openapi(): Promise<JSONObject>;
    /** The runtimes */
    runtimes(): Promise<{
    runtimes: Components["schemas"]["Runtime"][];
}>;
    /** Would this run there? Nothing is started. */
    check(name: string, body: Components["schemas"]["RequestBody"]): Promise<{
    problems: Components["schemas"]["Problem"][];
    metrics: Components["schemas"]["Metrics"];
}>;
    /** Go to the server of a runtime step by step, and name the step that fails */
    testConnection(name: string): Promise<Components["schemas"]["ConnectionTest"]>;
    /** Make a version of a pipeline on the server of a runtime, which people start there */
    publishPipeline(name: string, body: Components["schemas"]["PublishBody"]): Promise<{
    /** @description The id of the pipeline. */
    pipeline: string;
    /** @description The id of the version. */
    version: string;
    /** @description Where the server shows it; empty where that is not known. */
    page: string;
    problems: Components["schemas"]["Problem"][];
}>;
    /** Runs there that were made elsewhere, newest first */
    othersRuns(name: string, query?: {
    limit?: number;
    /** @description The `next` of the page before. */
    after?: string;
}): Promise<{
    runs: Components["schemas"]["OthersRun"][];
    /** @description Where the next page begins. */
    next: string | null;
}>;
    /** One of them, with its parameters and its graph */
    othersRun(path: {
    name: string;
    id: string;
}): Promise<Components["schemas"]["OthersRunView"]>;
    /** What there is, what of it is free, and who holds the rest */
    top(name: string): Promise<Components["schemas"]["Overview"]>;
    /** Profiles, images and registries that an administrator has configured */
    profiles(query?: {
    /** @description Only what is offered in the namespace of this runtime. */
    runtime?: string;
}): Promise<Components["schemas"]["Offering"]>;
    /** Stop a run, a service or a kernel of this user that holds something */
    giveBack(body: Components["schemas"]["GiveBackBody"]): Promise<void>;
    /** What a notebook or script is and takes */
    discover(query: {
    path: string;
}): Promise<Components["schemas"]["Discovery"]>;
    /** What of many notebooks and scripts has changed */
    discoverChanged(body: Components["schemas"]["DiscoverBody"]): Promise<{
    files: {
        [key: string]: {
            /** @description Changes when the file does. */
            stamp: string;
            found?: Components["schemas"]["Discovery"];
            error?: Components["schemas"]["Error"];
        };
    };
}>;
    /** What is wrong with a pipeline */
    validate(body: Components["schemas"]["PipelineBody"]): Promise<{
    problems: Components["schemas"]["Problem"][];
}>;
    /** What a run of a pipeline needs */
    describe(body: Components["schemas"]["PipelineBody"]): Promise<Components["schemas"]["Description"]>;
    /** A pipeline of another tool as one of ours; nothing is written */
    importPipeline(body: Components["schemas"]["ImportBody"]): Promise<{
    document: JSONObject;
    report: Components["schemas"]["Problem"][];
}>;
    /** A pipeline, notebook or script as a pipeline of another tool; nothing is written */
    exportPipeline(body: Components["schemas"]["ExportBody"]): Promise<{
    text: string;
    problems: Components["schemas"]["Problem"][];
}>;
    /** What is wrong with a training job of Kubeflow in YAML, and what a form shows of it */
    checkTraining(body: Components["schemas"]["TrainingBody"]): Promise<Components["schemas"]["TrainingCheck"]>;
    /** A training job in YAML with one value changed, and nothing else */
    changeTraining(body: Components["schemas"]["TrainingChangeBody"]): Promise<{
    text: string;
}>;
    /** A PyTorchJob or MPIJob in YAML as a TrainJob */
    convertTraining(body: Components["schemas"]["TrainingBody"]): Promise<{
    text: string;
    report: Components["schemas"]["Problem"][];
}>;
    /** Runs, filtered, sorted and paged */
    listRuns(query?: {
    /** @description Repeat it for several. */
    state?: Components["schemas"]["State"][];
    /** @description A part of the name. */
    name?: string;
    runtime?: string;
    /** @description `key=value`; repeat it for several, all must match. */
    label?: string[];
    /** @description Found in any text of the run. */
    text?: string;
    path?: string;
    sweep?: string;
    since?: number;
    until?: number;
    /** @description A field, with `-` before it for the other direction. */
    sort?: string;
    limit?: number;
    offset?: number;
    /** @description These runs alone, at most 200, whatever else is asked; the counts are those of all runs. */
    id?: string[];
}): Promise<Components["schemas"]["RunPage"]>;
    /** Start a run */
    submit(body: Components["schemas"]["RequestBody"]): Promise<Components["schemas"]["RunView"]>;
    /** Delete ended runs, the oldest first, until all limits hold; pinned runs stay */
    pruneRuns(body: Components["schemas"]["PruneBody"]): Promise<{
    runs: Components["schemas"]["Texts"];
}>;
    /** A run with its steps, and a page of the items of one of its loops */
    run(run: Components["parameters"]["run"], query?: {
    /** @description The loop whose items come with it as `loop`, once there is one; the others of these parameters say which. */
    loop?: string;
    /** @description Only items in one of these states. */
    state?: Components["parameters"]["itemState"];
    limit?: Components["parameters"]["itemLimit"];
    offset?: Components["parameters"]["itemOffset"];
    /** @description The items that failed come before all others. */
    worst_first?: Components["parameters"]["worstFirst"];
}): Promise<Components["schemas"]["RunView"]>;
    /** Rename, label or annotate a run */
    updateRun(run: Components["parameters"]["run"], body: Components["schemas"]["EditBody"]): Promise<Components["schemas"]["RunView"]>;
    /** Delete a run that has ended */
    deleteRun(run: Components["parameters"]["run"]): Promise<void>;
    /** Stop a run, or one step of it */
    stopRun(run: Components["parameters"]["run"], body?: Components["schemas"]["StopBody"]): Promise<Components["schemas"]["RunView"]>;
    /** Run it again, whole or in part, as a new run */
    rerun(run: Components["parameters"]["run"], body?: Components["schemas"]["RerunBody"]): Promise<Components["schemas"]["RunView"]>;
    /** How the sources that a run executed differ from the files as they are now */
    changes(run: Components["parameters"]["run"]): Promise<Components["schemas"]["SourceChanges"]>;
    /** What an expression would have come to with the values of a run */
    evaluate(run: Components["parameters"]["run"], query: {
    expression: string;
    /** @description The loop that it stands in; what differs from item to item is counted in `items`. */
    loop?: string;
    /** @description Whether it stands in what runs after a failure, where an output that does not exist is null. */
    runs_anyway?: boolean;
}): Promise<Components["schemas"]["Evaluated"]>;
    /** A page of the items of a loop, in their order */
    items(path: {
    run: Components["parameters"]["run"];
    /** @description The id of a loop, a key of `groups` of the run, such as `regions` or `outer.3.inner`. */
    loop: string;
}, query?: {
    /** @description Only items in one of these states. */
    state?: Components["parameters"]["itemState"];
    limit?: Components["parameters"]["itemLimit"];
    offset?: Components["parameters"]["itemOffset"];
    /** @description The items that failed come before all others. */
    worst_first?: Components["parameters"]["worstFirst"];
}): Promise<Components["schemas"]["LoopItems"]>;
    /** A page of the files that a run created, changed, deleted or declared as outputs */
    made(run: Components["parameters"]["run"], query?: {
    /** @description The step whose files come first. */
    step?: string;
    /** @description Only the files that putting them into the project is about. */
    to_put?: boolean;
    limit?: number;
    offset?: number;
}): Promise<Components["schemas"]["MadeFiles"]>;
    /** Put these files into the project, except where it changed since the submit */
    putFiles(run: Components["parameters"]["run"], body?: Components["schemas"]["PutBody"]): Promise<Components["schemas"]["MadeFiles"]>;
    /** What a run was executed with, and how its files differed from the commit */
    environment(run: Components["parameters"]["run"]): Promise<Components["schemas"]["RunEnvironment"]>;
    /** Everything a run left behind, as a zip */
    archive(run: Components["parameters"]["run"]): Promise<Blob>;
    /** The log of an attempt, from a byte on */
    log(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}, query?: {
    offset?: number;
    /** @description How many bytes at most. */
    limit?: number;
    /** @description Only so many bytes from the end, whatever the offset. */
    last?: number;
    /** @description Of a distributed step, only what the replica of this rank printed. */
    replica?: number;
    /** @description The whole log as a file. */
    download?: string;
}): Promise<Components["schemas"]["LogChunk"]>;
    /** The replicas of a distributed step; none of another */
    replicas(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}): Promise<{
    replicas: Components["schemas"]["Replica"][];
    complete: boolean;
}>;
    /** What an attempt did, from a byte on */
    events(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}, query?: {
    offset?: number;
    /** @description How many bytes at most, up to the end of a line. */
    limit?: number;
    /** @description Of a distributed step, only how the state of the replica of this rank changed. */
    replica?: number;
}): Promise<Components["schemas"]["EventChunk"]>;
    /** The executed notebook, as far as it is */
    notebook(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}, query?: {
    /** @description The notebook as it was before it ran. */
    source?: string;
    /** @description As a file to keep. */
    download?: string;
}): Promise<Components["schemas"]["Notebook"]>;
    /** The script as it was when the attempt began */
    source(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}): Promise<{
    text: string;
}>;
    /** What the runtime was asked for, in its own words */
    manifest(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}): Promise<Components["schemas"]["Manifest"]>;
    /** The files an attempt left behind */
    files(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
}): Promise<{
    files: Components["schemas"]["File"][];
}>;
    /**
 * One file
 * @description Always as an attachment without a type that a browser would show, so that
 *     what a notebook wrote never runs as a page of this server.
 */
    file(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
    path: string;
}): Promise<Blob>;
    /**
 * One file that the step made, declared or not
 * @description Always as an attachment without a type that a browser would show, so that
 *     what a notebook wrote never runs as a page of this server.
 */
    madeFile(path: {
    run: Components["parameters"]["run"];
    step: Components["parameters"]["step"];
    attempt: Components["parameters"]["attempt"];
    path: string;
}): Promise<Blob>;
    /** Sweeps, the newest first */
    listSweeps(query?: {
    limit?: number;
    offset?: number;
}): Promise<{
    sweeps: Components["schemas"]["SweepSummary"][];
    total: number;
}>;
    /** Run over several values of parameters */
    startSweep(body: Components["schemas"]["SweepBody"]): Promise<Components["schemas"]["SweepView"]>;
    /** A sweep with its runs and the best of them */
    sweep(sweep: Components["parameters"]["sweep"]): Promise<Components["schemas"]["SweepView"]>;
    /** Rename a sweep, or choose anew which run is the best */
    updateSweep(sweep: Components["parameters"]["sweep"], body: Components["schemas"]["SweepEditBody"]): Promise<Components["schemas"]["SweepView"]>;
    /** Stop all its runs */
    stopSweep(sweep: Components["parameters"]["sweep"]): Promise<Components["schemas"]["SweepView"]>;
    /** Run the failed points again */
    rerunSweep(sweep: Components["parameters"]["sweep"]): Promise<Components["schemas"]["SweepView"]>;
    /** Add points */
    addPoints(sweep: Components["parameters"]["sweep"], body: Components["schemas"]["PointsBody"]): Promise<Components["schemas"]["SweepView"]>;
    /** Schedules, the newest first, and who keeps the clock */
    listSchedules(): Promise<{
    schedules: Components["schemas"]["ScheduleSummary"][];
    keeper: Components["schemas"]["ScheduleKeeper"];
}>;
    /** Run something again and again, by the clock */
    addSchedule(body: Components["schemas"]["ScheduleBody"]): Promise<Components["schemas"]["ScheduleView"]>;
    /** When a clock is due next; nothing is written */
    nextTimes(body: Components["schemas"]["ClockBody"]): Promise<Components["schemas"]["Upcoming"]>;
    /**
 * Make schedules of the job definitions of jupyter-scheduler
 * @description Their files are looked for below the server's root folder, by name.
 */
    importSchedules(body?: Components["schemas"]["ImportSchedulesBody"]): Promise<{
    definitions: {
        name: string;
        /** @description Its id. */
        schedule: string | null;
        /** @description Why there is none. */
        reason: string | null;
    }[];
}>;
    /** A schedule */
    schedule(schedule: Components["parameters"]["schedule"]): Promise<Components["schemas"]["ScheduleView"]>;
    /** Edit, pause or resume it */
    updateSchedule(schedule: Components["parameters"]["schedule"], body: Components["schemas"]["ScheduleEditBody"]): Promise<Components["schemas"]["ScheduleView"]>;
    /** Remove it with its ledger; its runs stay */
    deleteSchedule(schedule: Components["parameters"]["schedule"]): Promise<void>;
    /** One line per due time, the last first */
    ledger(schedule: Components["parameters"]["schedule"], query?: {
    limit?: number;
    /** @description Due times before this one. */
    before?: number;
}): Promise<{
    lines: Components["schemas"]["LedgerLine"][];
}>;
    /** How the files that a schedule has pinned differ from the files as they are now */
    scheduleChanges(schedule: Components["parameters"]["schedule"]): Promise<Components["schemas"]["SourceChanges"]>;
    /** The days of the last months and the coming weeks, with what became of their due times */
    calendar(schedule: Components["parameters"]["schedule"]): Promise<{
    days: Components["schemas"]["CalendarDay"][];
}>;
    /** Run it now, as at a due time if one is given */
    runSchedule(schedule: Components["parameters"]["schedule"], body?: Components["schemas"]["ScheduleRunBody"]): Promise<{
    /** @description The id of the run. */
    run: string | null;
    /** @description The id of the sweep, if it is one. */
    sweep: string | null;
}>;
    /** Run it for the due times between two moments, as a sweep */
    backfill(schedule: Components["parameters"]["schedule"], body: Components["schemas"]["BackfillBody"]): Promise<{
    /** @description The id of the run. */
    run: string | null;
    /** @description The id of the sweep, if it is one. */
    sweep: string | null;
}>;
    /** How to call a schedule that calls make due */
    hook(schedule: Components["parameters"]["schedule"]): Promise<{
    /** @description The path on this server. */
    address: string;
    token: string;
}>;
    /** Give it another token; the one before is not valid any more */
    renewToken(schedule: Components["parameters"]["schedule"], body?: Components["schemas"]["RenewTokenBody"]): Promise<{
    /** @description The path on this server. */
    address: string;
    token: string;
}>;
    /**
 * Make a schedule due, with its token or a signature
 * @description Without a login to Jupyter: the token of the schedule is sent as `Authorization: Bearer` or `X-Gitlab-Token`, or the body is signed with it, in `X-Hub-Signature-256`. A call that is sent again with the same `X-GitHub-Delivery`, `X-Gitlab-Event-UUID` or `Idempotency-Key` counts once.
 */
    callSchedule(schedule: Components["parameters"]["schedule"], body?: unknown): Promise<{
    schedule: string;
    /** @description Its line of the ledger. */
    due: number | null;
}>;
    /** Whom to tell about runs and schedules, the newest first */
    listNotifications(): Promise<{
    notifications: Components["schemas"]["NotificationView"][];
}>;
    /** Make a notification */
    addNotification(body: Components["schemas"]["NotificationBody"]): Promise<Components["schemas"]["NotificationView"]>;
    /** Send a message of a notification that is not saved */
    tryNotification(body: Components["schemas"]["NotificationBody"]): Promise<{
    sent: boolean;
}>;
    /** Tell nobody any more */
    deleteNotification(notification: Components["parameters"]["notification"]): Promise<void>;
    /** Send a message now */
    testNotification(notification: Components["parameters"]["notification"], body?: Components["schemas"]["TestNotificationBody"]): Promise<{
    sent: boolean;
}>;
    /** What can be called */
    endpoints(): Promise<{
    endpoints: Components["schemas"]["EndpointView"][];
}>;
    /** Make a notebook, script or pipeline callable */
    addEndpoint(body: Components["schemas"]["EndpointBody"]): Promise<Components["schemas"]["EndpointView"]>;
    /** One endpoint */
    endpoint(endpoint: Components["parameters"]["endpoint"]): Promise<Components["schemas"]["EndpointView"]>;
    /** Change its name and limits, or pause it */
    editEndpoint(endpoint: Components["parameters"]["endpoint"], body: Components["schemas"]["EndpointEditBody"]): Promise<Components["schemas"]["EndpointView"]>;
    /** Nobody can call it any more; its runs stay */
    deleteEndpoint(endpoint: Components["parameters"]["endpoint"]): Promise<void>;
    /** Make another token, which the answer tells once */
    addToken(endpoint: Components["parameters"]["endpoint"], body: Components["schemas"]["TokenBody"]): Promise<Components["schemas"]["EndpointView"]>;
    /** Who has this token cannot call any more */
    deleteToken(path: {
    endpoint: Components["parameters"]["endpoint"];
    name: string;
}): Promise<Components["schemas"]["EndpointView"]>;
    /** What stays up and has an address */
    services(): Promise<{
    services: Components["schemas"]["ServiceView"][];
}>;
    /** Start a service; if one with the same options is up, that one is meant */
    startService(body: Components["schemas"]["ServiceBody"]): Promise<Components["schemas"]["ServiceView"]>;
    /** One service */
    service(service: Components["parameters"]["service"]): Promise<Components["schemas"]["ServiceView"]>;
    /** Forget a service that has ended */
    removeService(service: Components["parameters"]["service"]): Promise<void>;
    /** Stop a service, wherever it runs */
    stopService(service: Components["parameters"]["service"]): Promise<Components["schemas"]["ServiceView"]>;
    /** Start a service that has ended, as it was asked for */
    restartService(service: Components["parameters"]["service"]): Promise<Components["schemas"]["ServiceView"]>;
    /** The end of what a service has printed */
    serviceLog(service: Components["parameters"]["service"]): Promise<{
    text: string;
}>;
    /** The Dask gateway, and the clusters of this user on it; starts nothing */
    dask(): Promise<Components["schemas"]["DaskOverview"]>;
    /** What one can choose for a new cluster; starts the gateway if it is one's own */
    daskOptions(): Promise<{
    options: Components["schemas"]["DaskOption"][];
}>;
    /** Make a Dask cluster */
    newDaskCluster(body: Components["schemas"]["DaskClusterBody"]): Promise<Components["schemas"]["DaskCluster"]>;
    /** Stop all Dask clusters of this user */
    stopDaskClusters(): Promise<{
    stopped: number;
}>;
    /** One Dask cluster */
    daskCluster(cluster: Components["parameters"]["daskCluster"]): Promise<Components["schemas"]["DaskCluster"]>;
    /** Stop a Dask cluster */
    stopDaskCluster(cluster: Components["parameters"]["daskCluster"]): Promise<void>;
    /** Have a number of workers, or let the work decide between two numbers */
    scaleDaskCluster(cluster: Components["parameters"]["daskCluster"], body: Components["schemas"]["DaskScaleBody"]): Promise<{
    /** @description What the gateway says if it allows fewer workers. */
    message: string | null;
}>;
    /** Compute something on every worker, and compare what is installed there */
    testDaskCluster(cluster: Components["parameters"]["daskCluster"], body: Components["schemas"]["DaskTestBody"]): Promise<{
    /** @description How many have computed it. */
    workers: number;
    seconds: number;
    /** @description Sentences about versions that do not fit. */
    differences: string[];
}>;
    /** The panes of a cluster's dashboard */
    daskPlots(cluster: Components["parameters"]["daskCluster"]): Promise<{
    plots: {
        title: string;
        path: string;
    }[];
}>;
    /** The catalogs of components */
    catalogs(): Promise<Components["schemas"]["Catalogs"]>;
    /** Add a catalog, which is then read in the background */
    addCatalog(body: Components["schemas"]["CatalogBody"]): Promise<Components["schemas"]["CatalogView"]>;
    /** A catalog, with the progress of a refresh */
    catalog(catalog: Components["parameters"]["catalog"]): Promise<Components["schemas"]["CatalogView"]>;
    /** Configure a catalog, which is then read again in the background */
    updateCatalog(catalog: Components["parameters"]["catalog"], body: Components["schemas"]["CatalogChange"]): Promise<Components["schemas"]["CatalogView"]>;
    /** Remove a catalog; pipelines keep what they use */
    deleteCatalog(catalog: Components["parameters"]["catalog"]): Promise<void>;
    /** Read the catalog's source again, in the background */
    refreshCatalog(catalog: Components["parameters"]["catalog"]): Promise<Components["schemas"]["CatalogView"]>;
    /** Pin newer versions */
    takeUpdates(catalog: Components["parameters"]["catalog"], body?: Components["schemas"]["TakeBody"]): Promise<Components["schemas"]["CatalogView"]>;
    /** Find components */
    listComponents(query?: {
    /** @description Words in name, description, inputs and categories. */
    text?: string;
    catalog?: string;
    category?: string;
    limit?: number;
    offset?: number;
}): Promise<{
    components: Components["schemas"]["ComponentSummary"][];
    total: number;
    categories: Components["schemas"]["Texts"];
}>;
    /** Describe a definition that a pipeline brings along */
    previewComponent(body: Components["schemas"]["DefinitionBody"]): Promise<Components["schemas"]["ComponentView"]>;
    /** Let a component's commands run on this machine without a container, or no longer */
    approveComponent(body: Components["schemas"]["ApproveBody"]): Promise<Components["schemas"]["ComponentView"]>;
    /** A component with its definition and its text */
    component(digest: Components["parameters"]["digest"]): Promise<Components["schemas"]["ComponentView"]>;
    /** What changes between two versions */
    difference(path: {
    digest: Components["parameters"]["digest"];
    other: string;
}): Promise<{
    difference: string;
}>;
}

/** Where each of them is; BLOB for a file. */
export const OPERATIONS: Record<keyof IOperations, string> = {
    about: 'GET about',
    openapi: 'GET openapi',
    runtimes: 'GET runtimes',
    check: 'POST runtimes/{name}/check',
    testConnection: 'POST runtimes/{name}/connection',
    publishPipeline: 'POST runtimes/{name}/pipelines',
    othersRuns: 'GET runtimes/{name}/runs',
    othersRun: 'GET runtimes/{name}/runs/{id}',
    top: 'GET runtimes/{name}/top',
    profiles: 'GET profiles',
    giveBack: 'POST give-back',
    discover: 'GET discover',
    discoverChanged: 'POST discover',
    validate: 'POST pipelines/validate',
    describe: 'POST pipelines/describe',
    importPipeline: 'POST pipelines/import',
    exportPipeline: 'POST pipelines/export',
    checkTraining: 'POST training/check',
    changeTraining: 'POST training/change',
    convertTraining: 'POST training/convert',
    listRuns: 'GET runs',
    submit: 'POST runs',
    pruneRuns: 'POST runs/prune',
    run: 'GET runs/{run}',
    updateRun: 'PATCH runs/{run}',
    deleteRun: 'DELETE runs/{run}',
    stopRun: 'POST runs/{run}/stop',
    rerun: 'POST runs/{run}/rerun',
    changes: 'GET runs/{run}/changes',
    evaluate: 'GET runs/{run}/evaluate',
    items: 'GET runs/{run}/items/{loop}',
    made: 'GET runs/{run}/made',
    putFiles: 'POST runs/{run}/made',
    environment: 'GET runs/{run}/environment',
    archive: 'BLOB runs/{run}/archive',
    log: 'GET runs/{run}/steps/{step}/{attempt}/log',
    replicas: 'GET runs/{run}/steps/{step}/{attempt}/replicas',
    events: 'GET runs/{run}/steps/{step}/{attempt}/events',
    notebook: 'GET runs/{run}/steps/{step}/{attempt}/notebook',
    source: 'GET runs/{run}/steps/{step}/{attempt}/source',
    manifest: 'GET runs/{run}/steps/{step}/{attempt}/manifest',
    files: 'GET runs/{run}/steps/{step}/{attempt}/files',
    file: 'BLOB runs/{run}/steps/{step}/{attempt}/files/{path}',
    madeFile: 'BLOB runs/{run}/steps/{step}/{attempt}/made/{path}',
    listSweeps: 'GET sweeps',
    startSweep: 'POST sweeps',
    sweep: 'GET sweeps/{sweep}',
    updateSweep: 'PATCH sweeps/{sweep}',
    stopSweep: 'POST sweeps/{sweep}/stop',
    rerunSweep: 'POST sweeps/{sweep}/rerun',
    addPoints: 'POST sweeps/{sweep}/points',
    listSchedules: 'GET schedules',
    addSchedule: 'POST schedules',
    nextTimes: 'POST schedules/next',
    importSchedules: 'POST schedules/import',
    schedule: 'GET schedules/{schedule}',
    updateSchedule: 'PATCH schedules/{schedule}',
    deleteSchedule: 'DELETE schedules/{schedule}',
    ledger: 'GET schedules/{schedule}/ledger',
    scheduleChanges: 'GET schedules/{schedule}/changes',
    calendar: 'GET schedules/{schedule}/calendar',
    runSchedule: 'POST schedules/{schedule}/run',
    backfill: 'POST schedules/{schedule}/backfill',
    hook: 'GET schedules/{schedule}/hook',
    renewToken: 'POST schedules/{schedule}/hook',
    callSchedule: 'POST hooks/{schedule}',
    listNotifications: 'GET notifications',
    addNotification: 'POST notifications',
    tryNotification: 'POST notifications/test',
    deleteNotification: 'DELETE notifications/{notification}',
    testNotification: 'POST notifications/{notification}/test',
    endpoints: 'GET endpoints',
    addEndpoint: 'POST endpoints',
    endpoint: 'GET endpoints/{endpoint}',
    editEndpoint: 'PATCH endpoints/{endpoint}',
    deleteEndpoint: 'DELETE endpoints/{endpoint}',
    addToken: 'POST endpoints/{endpoint}/tokens',
    deleteToken: 'DELETE endpoints/{endpoint}/tokens/{name}',
    services: 'GET services',
    startService: 'POST services',
    service: 'GET services/{service}',
    removeService: 'DELETE services/{service}',
    stopService: 'POST services/{service}/stop',
    restartService: 'POST services/{service}/start',
    serviceLog: 'GET services/{service}/log',
    dask: 'GET dask',
    daskOptions: 'POST dask/options',
    newDaskCluster: 'POST dask/clusters',
    stopDaskClusters: 'DELETE dask/clusters',
    daskCluster: 'GET dask/clusters/{cluster}',
    stopDaskCluster: 'DELETE dask/clusters/{cluster}',
    scaleDaskCluster: 'POST dask/clusters/{cluster}/scale',
    testDaskCluster: 'POST dask/clusters/{cluster}/test',
    daskPlots: 'GET dask/clusters/{cluster}/plots',
    catalogs: 'GET catalogs',
    addCatalog: 'POST catalogs',
    catalog: 'GET catalogs/{catalog}',
    updateCatalog: 'PATCH catalogs/{catalog}',
    deleteCatalog: 'DELETE catalogs/{catalog}',
    refreshCatalog: 'POST catalogs/{catalog}/refresh',
    takeUpdates: 'POST catalogs/{catalog}/take',
    listComponents: 'GET components',
    previewComponent: 'POST components/preview',
    approveComponent: 'POST components/approve',
    component: 'GET components/{digest}',
    difference: 'GET components/{digest}/difference/{other}',
};
