/** Ports that svc gives to programs: below the ranges for ephemeral ports and for svc's endpoints. */
export const programPorts = { first: 20_000, count: 9_000 } as const;
