import { isValidAuthority } from './authority.ts';

/** What a request is aimed at. */
export interface RequestTarget {
  /** Origin-form or `*`: how the replica gets it. */
  readonly path: string;
  /** Of an absolute-form target. */
  readonly authority: string | undefined;
}

const schemes = ['http://', 'https://'] as const;

/** Reads the target of a request; undefined when it is none of origin-form, absolute-form and `*` with OPTIONS (RFC 9112, section 3.2). */
export function readTarget(method: string, target: string): RequestTarget | undefined {
  if (target.startsWith('/')) return { path: target, authority: undefined };
  if (target === '*') return method === 'OPTIONS' ? { path: '*', authority: undefined } : undefined;
  const lower = target.slice(0, 8).toLowerCase();
  const scheme = schemes.find((candidate) => lower.startsWith(candidate));
  if (scheme === undefined) return undefined;
  const pathStart = endOfAuthority(target, scheme.length);
  const authority = target.slice(scheme.length, pathStart);
  if (!isValidAuthority(authority)) return undefined;
  const path = target.slice(pathStart);
  // An absolute URL without a path is the root; with OPTIONS it means the server itself (RFC 9112, section 3.2.4).
  if (path === '') return { path: method === 'OPTIONS' ? '*' : '/', authority };
  return { path: path.startsWith('?') ? `/${path}` : path, authority };
}

function endOfAuthority(target: string, from: number): number {
  for (let at = from; at < target.length; at += 1) {
    const character = target.charAt(at);
    if (character === '/' || character === '?') return at;
  }
  return target.length;
}
