/** The one job of a replica's machine. */
export const jobName = 'main';
