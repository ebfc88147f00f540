import type { JobView } from '../api/contract.ts';

/** Exit codes for how a job stands, as users of this kind of tool know them: a failed job is not a failed command. */
export const jobExitCodes: Readonly<Record<JobView['status'], number>> = {
  SUCCEEDED: 0,
  FAILED: 100,
  FAILED_SETUP: 100,
  PENDING: 101,
  SETTING_UP: 101,
  RUNNING: 101,
  CANCELLED: 103,
};

/** For a job whose cluster is gone. */
export const unknownJobCode = 102;
