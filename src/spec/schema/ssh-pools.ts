import { z } from 'zod';
import { anything, field, port, required, section, someText } from './kit.ts';

/** Nothing that `ssh` could take for an option, and no space. */
const word = /^[^\s-]\S*$/;

const hostName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.:%-]*$/, 'is not an address, a host name or an alias of ~/.ssh/config\nGive a user with user: NAME');
const userName = z.string().regex(/^[A-Za-z0-9_.][^\s@]*$/, 'is not the name of a user');
const jump = z.string().regex(word, 'must be HOST, USER@HOST or USER@HOST:PORT, several with commas in between');

/** How hosts are reached; given for a pool, it holds for those of its hosts that say nothing else. */
const access = {
  user: field(userName, 'User to log in as.', { words: 'as `~/.ssh/config` says' }),
  identity_file: field(someText, 'Private key. `~` is the home folder; other relative paths begin at the folder of this file.', {
    words: "the user's own keys and agent",
  }),
  port: field(port, 'Port of SSH.', { words: '22, or as `~/.ssh/config` says' }),
  proxy_jump: field(jump, 'Host to go through, as for `ssh -J`.', { words: 'none, or as `~/.ssh/config` says' }),
  hourly_usd: field(z.number().min(0).max(100_000), 'What an hour of the host costs, in US dollars, when places are compared.', 0),
  password: field(anything, 'Not supported: hosts are reached with keys. SkyPilot knows the field.', { words: 'none' }),
};

const host = section({ ip: required(hostName, 'Address, host name, or alias of `~/.ssh/config`.'), ...access });

/** One pool. */
export const poolSection = section({
  ...access,
  hosts: required(
    z
      .array(z.union([hostName, host]))
      .min(1)
      .max(1_000),
    'The hosts, by name or in detail.',
  ),
});

/** The file of pools: one entry for each, by name. */
export const sshPoolsSection = z.record(z.string().regex(word, 'is not the name of a pool: it must have no spaces'), poolSection);

export type PoolFields = z.output<typeof poolSection>;
