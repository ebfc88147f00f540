/** Class of an error by what a caller can do. It decides the exit code, the HTTP status and whether a loop retries. */
export type ErrorKind = 'invalid-input' | 'not-found' | 'conflict' | 'unauthenticated' | 'capacity' | 'transient' | 'internal';

/** One row of the table of errors: kind, meaning, remedy. docs/reference/errors.md is generated from it. */
export interface ErrorCodeRow {
  readonly kind: ErrorKind;
  readonly meaning: string;
  readonly remedy: string;
}

const row = (kind: ErrorKind, meaning: string, remedy: string): ErrorCodeRow => ({ kind, meaning, remedy });

/** Every error that users can see, which a test checks. Codes are never renamed or used for another meaning. */
export const errorCodes = {
  // Command line and files
  SVC_USAGE: row('invalid-input', 'The command line could not be understood.', 'Run the command with --help.'),
  SVC_INVALID_TASK: row(
    'invalid-input',
    'The task or service file has problems; all of them are listed with their positions.',
    'Correct the listed lines.',
  ),
  SVC_INVALID_CONFIG: row(
    'invalid-input',
    'The configuration file has problems; all of them are listed with their positions.',
    'Correct the listed lines.',
  ),
  SVC_FILE_NOT_FOUND: row('not-found', 'A file or folder named on the command line or in a task file does not exist.', 'Check the path.'),
  SVC_FILE_UNREADABLE: row('invalid-input', 'A file exists but cannot be read.', 'Check its permissions and type.'),
  SVC_FILE_TOO_BIG: row('invalid-input', 'A task file is larger than any sensible one (1 MiB).', 'Check that it is the right file.'),
  SVC_BAD_CERTIFICATE: row(
    'invalid-input',
    'The key and the certificate that `tls` names cannot serve an endpoint.',
    'Name a private key and the certificate chain made for it, both in PEM and in force today.',
  ),
  SVC_BAD_TRACE: row(
    'invalid-input',
    'A trace of requests or of spot capacity cannot be read.',
    'Correct the named line; docs/guides/choosing-a-policy.md lists the formats.',
  ),
  SVC_MISSING_ENV: row(
    'invalid-input',
    'A variable declared without a value was not given one.',
    'Give it with --env NAME=VALUE, --env NAME, --env-file or --secret.',
  ),
  SVC_NOT_SUPPORTED: row(
    'invalid-input',
    'The file is valid but asks for something this version cannot do yet.',
    'Remove or change the named field.',
  ),
  SVC_BAD_NAME: row(
    'invalid-input',
    'A service or cluster name has characters or a length that is not allowed.',
    'Use letters, digits, dash, dot and underscore, starting with a letter.',
  ),
  SVC_CONFIRM_NEEDED: row(
    'invalid-input',
    'A command that costs money or destroys something asks first, and there is no terminal to ask on.',
    'Add --yes (-y).',
  ),
  SVC_ABORTED: row('conflict', 'The question was answered with no, or the command was interrupted.', 'Run it again when ready.'),
  // Services, replicas, clusters
  SVC_ENDPOINT_DOWN: row(
    'transient',
    'The process that serves the endpoint of a service does not answer.',
    'It is started again by itself. Run: svc serve logs NAME --load-balancer',
  ),
  SVC_NAME_IN_USE: row(
    'conflict',
    'A service or cluster of that name exists already.',
    'Choose another name, or take the old one down first.',
  ),
  SVC_SERVICE_NOT_FOUND: row('not-found', 'There is no service of that name.', 'Run: svc serve status'),
  SVC_VERSION_NOT_FOUND: row('not-found', 'The service has no such version to go back to.', 'Run: svc serve versions NAME'),
  SVC_UPDATE_CONFLICT: row(
    'conflict',
    'Another command has changed the service meanwhile, or changes it at this moment.',
    'Run: svc serve versions NAME; then the command again, if it is still right.',
  ),
  SVC_NO_UPDATE: row('not-found', 'No update of the service is in progress.', 'Run: svc serve status NAME'),
  SVC_REPLICA_NOT_FOUND: row('not-found', 'The service has no replica with that id.', 'Run: svc serve status NAME'),
  SVC_REPLICA_ENDING: row('conflict', 'The replica is already being terminated or has failed.', 'Nothing to do; add --purge to force.'),
  SVC_CLUSTER_NOT_FOUND: row('not-found', 'There is no cluster of that name.', 'Run: svc status'),
  SVC_TOO_MANY_SERVICES: row(
    'capacity',
    'The controller runs as many services as its machine allows.',
    'Take one down: svc serve down NAME',
  ),
  SVC_SERVICE_FAILED: row(
    'internal',
    'The service cannot become ready; its replicas keep failing.',
    'Read the log of a failed replica: svc serve logs NAME ID',
  ),
  SVC_NOT_HANDED_OVER: row(
    'internal',
    'The balancer of a service did not hand over to one with the new settings.',
    "The controller keeps trying. Read the balancer's log: svc serve logs NAME --load-balancer",
  ),
  SVC_CLEANUP_FAILED: row(
    'internal',
    'Something that was to go away could not be removed completely.',
    'Correct the cause and take it down again; --purge forgets it.',
  ),
  // Providers and placement
  SVC_NO_PLACE: row(
    'capacity',
    'No enabled provider can satisfy the resources.',
    'Run: svc check; then change resources or enable a provider.',
  ),
  SVC_CAPACITY: row(
    'capacity',
    'The provider has no machine of the requested type right now.',
    'The controller tries other locations, and this one again later.',
  ),
  SVC_QUOTA: row(
    'capacity',
    'The provider refuses because of a quota.',
    'Ask for more quota, then run: svc serve retry NAME. Or use another provider.',
  ),
  SVC_PRICE: row('capacity', 'The spot price is higher than the bid.', 'The controller tries other locations, and this one again later.'),
  SVC_DENIED: row(
    'unauthenticated',
    'The credentials for a provider lack a permission.',
    "Grant the permissions that the provider's page in docs/clouds lists.",
  ),
  SVC_CREDENTIALS: row(
    'unauthenticated',
    'The credentials for a provider are missing, wrong or expired.',
    'Run: svc check; it names where svc searches for them.',
  ),
  SVC_THROTTLED: row('transient', 'The provider throttles requests.', 'Nothing to do: the controller retries by itself.'),
  SVC_UNSUPPORTED_THERE: row(
    'capacity',
    'The provider does not have that machine type in that region or zone.',
    'The controller tries other locations.',
  ),
  SVC_REFUSED_THERE: row(
    'capacity',
    'The provider refuses it: something is missing there, or one of its policies forbids it.',
    'Fix what the message names; the controller retries within minutes.',
  ),
  SVC_KUBERNETES: row(
    'transient',
    "A cluster's API server did not answer, or refused for a reason of its own.",
    'It is asked again by itself; the message has its own words. Run: svc check kubernetes',
  ),
  SVC_PLACE_FAILED: row('transient', 'The provider answered with an error of its own, or not at all.', 'It is asked again by itself.'),
  SVC_CATALOG: row('invalid-input', 'A table of prices cannot be read.', 'Run: svc catalog update'),
  SVC_SSH: row('transient', 'A machine does not answer over SSH.', 'Check that it is on and reachable: ssh USER@HOST'),
  SVC_HOST_KEY: row(
    'unauthenticated',
    'A machine shows another host key than the one it had before.',
    'If the machine was reinstalled, forget its old key as the message says; otherwise someone may intercept the connection.',
  ),
  SVC_HOST_UNFIT: row('invalid-input', 'A machine lacks something that replicas need.', 'Install what the message names.'),
  SVC_BUCKET: row(
    'transient',
    'Files could not be put into or fetched from a bucket.',
    'It is tried again; check the bucket and its credentials.',
  ),
  SVC_NO_GPU: row('capacity', 'GPUs were asked for and this machine has not enough of them.', 'Use a provider that has them: svc check'),
  SVC_MACHINE_LOST: row('transient', 'The machine of a replica is gone.', 'It is replaced automatically.'),
  SVC_BOOT_FAILED: row(
    'invalid-input',
    'A machine did not come up for a reason that another one there would have too, as with an image that does not exist.',
    'Correct what the message names, such as image_id.',
  ),
  SVC_ISOLATION: row(
    'invalid-input',
    'The isolation that was forced, or that several replicas need, does not work on this machine.',
    'Unset SVC_LOCAL_ISOLATION or follow the remedy in: svc check',
  ),
  SVC_NO_SPACE: row('capacity', 'There is no disk space left.', 'Free space under SVC_HOME (~/.svc).'),
  SVC_PORT_BUSY: row('conflict', 'The port asked for the endpoint is in use.', 'Choose another port, or leave it out to get a free one.'),
  // Controller
  SVC_CONTROLLER_UNREACHABLE: row('transient', 'The controller does not answer.', 'Run: svc controller status; its log is named there.'),
  SVC_CONTROLLER_START: row('internal', 'The controller could not be started.', 'Read the log named in the message.'),
  SVC_CONTROLLER_BUSY: row(
    'conflict',
    'The controller still has services and cannot be stopped.',
    'To leave services running: svc controller stop --keep-services. To take them down first: svc serve down --all',
  ),
  SVC_CONTROLLER_RUNNING: row('conflict', 'A controller of the same home runs already.', 'Nothing to do: it is used.'),
  SVC_BACKUP_REFUSED: row(
    'conflict',
    'The state of this controller cannot be backed up, or restored, in this way.',
    'Do what the message names; docs/controller.md says which controllers can be backed up.',
  ),
  SVC_BAD_BACKUP: row(
    'invalid-input',
    'A file is no backup of svc, or it is damaged.',
    'Name a file that svc controller backup has written.',
  ),
  SVC_INSTALL_REFUSED: row(
    'invalid-input',
    'The machine cannot be set up to start the controller after a reboot.',
    'Do what the message names, then run again: svc controller install',
  ),
  SVC_CONTROLLER_KIND: row(
    'conflict',
    'There is a controller of another kind than the configuration asks for, or something else has its name.',
    'Change the configuration back, or take services and controller down first: svc serve down --all; svc controller down',
  ),
  SVC_NEEDS_KUBERNETES: row(
    'invalid-input',
    'A controller that survives its machine is asked for, and there is no Kubernetes cluster for it.',
    'Enable a cluster (svc check kubernetes), or remove high_availability from config.yaml.',
  ),
  SVC_CONTROLLER_IMMUTABLE: row(
    'conflict',
    'The configuration changes what stays as it is while the controller lives: where its state is kept, the class of its volume, or its volume to a smaller one.',
    'Write it as it was, or begin with a new controller.',
  ),
  SVC_NO_CONTROLLER_IMAGE: row(
    'invalid-input',
    'A controller that survives its machine is asked for, and no image for it is named.',
    'Build the Dockerfile, push the image, and name it in serve.controller.image.',
  ),
  SVC_VERSION_MISMATCH: row(
    'conflict',
    'The running controller is of another version than this command.',
    'Use the newer version of svc; an older controller is replaced by itself, or with: svc controller restart',
  ),
  SVC_HOME_UNUSABLE: row(
    'invalid-input',
    'The home folder of svc cannot be created or written, or is open to other users.',
    'Check SVC_HOME and its permissions.',
  ),
  SVC_STATE_CORRUPT: row(
    'internal',
    'The state database cannot be read.',
    'Restore it from a copy, or move it away to start with an empty one.',
  ),
  SVC_STATE_REPLACED: row(
    'transient',
    'The file of the state database was replaced, removed or overwritten while it was in use.',
    'Run the command again in a few seconds: the controller restarts with the present file.',
  ),
  SVC_STATE_BUSY: row(
    'transient',
    'Another process kept the state database locked for too long.',
    'Try again; a process that was stopped with the lock must go on or end.',
  ),
  SVC_NOT_LEADER: row(
    'conflict',
    'Another controller has taken over the same state, or this one cannot tell whether it still leads.',
    'Nothing to do: it ends, and is a candidate again when it is restarted.',
  ),
  SVC_DATABASE: row(
    'transient',
    'The PostgreSQL server that keeps the state does not answer.',
    'Check that it runs and that `serve.controller.database` (or SVC_DATABASE) leads to it; it is tried again by itself.',
  ),
  SVC_DATABASE_REFUSED: row(
    'unauthenticated',
    'The PostgreSQL server that is to keep the state answers, and refuses.',
    'Correct what the message names: user, password, database, its rights or its encoding, or how TLS is to be used.',
  ),
  SVC_BAD_REQUEST: row('invalid-input', 'A request to the control API does not fit its contract.', 'See docs/reference/api.md.'),
  SVC_ROUTE_NOT_FOUND: row('not-found', 'The control API has no such route.', 'See docs/reference/api.md.'),
  SVC_INTERNAL: row('internal', 'Something unexpected happened: a bug in svc.', 'Report it with the command and the log.'),
} as const satisfies Record<`SVC_${Uppercase<string>}`, ErrorCodeRow>;

/** A stable error code, as printed and documented. */
export type ErrorCode = keyof typeof errorCodes;

/** Exit codes by kind; documented in docs/reference/cli.md. 70 and 75 follow sysexits.h (EX_SOFTWARE, EX_TEMPFAIL). */
export const exitCodes: Readonly<Record<ErrorKind, number>> = {
  'invalid-input': 2,
  'not-found': 3,
  conflict: 4,
  unauthenticated: 5,
  capacity: 6,
  transient: 75,
  internal: 70,
};

/** HTTP statuses of the control API by kind. */
export const httpStatuses = {
  'invalid-input': 400,
  'not-found': 404,
  conflict: 409,
  unauthenticated: 401,
  capacity: 503,
  transient: 503,
  internal: 500,
} as const satisfies Record<ErrorKind, number>;
