/** With what processes end that may not act any more, so that whoever started the controller starts it again. */
export const lostLeaseExitCode = 7;
