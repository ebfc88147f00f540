import type { TreeEntry } from './scan.ts';

/** A member of an archive; files include their content. */
export type TarMember =
  | Exclude<TreeEntry, { readonly kind: 'file' }>
  | (Extract<TreeEntry, { readonly kind: 'file' }> & { readonly content: Buffer });

const blockSize = 512;
/** A longer name precedes its member in an extra member, as in GNU tar; the tars of busybox and BSD read this too. */
const shortName = 100;
const types = { file: '0', link: '2', folder: '5', longTarget: 'K', longName: 'L' } as const;

/** Two blocks of zeros. */
export const tarEnd = Buffer.alloc(2 * blockSize);

/** Encodes a member in GNU's format, without an owner: the unpacking user owns the files. */
export function tarMember(member: TarMember): Buffer {
  const { path, kind } = member;
  const name = Buffer.from(kind === 'folder' ? `./${path}${path === '' ? '' : '/'}` : path);
  const target = Buffer.from(kind === 'link' ? member.target : '');
  const content = kind === 'file' ? member.content : Buffer.alloc(0);
  const header = blockOf({
    name,
    target,
    type: types[kind],
    mode: kind === 'link' ? 0o777 : member.mode,
    size: content.length,
    mtime: kind === 'link' ? 0 : member.mtime,
  });
  const parts = [...longText(types.longTarget, target), ...longText(types.longName, name), header, content, padding(content.length)];
  return Buffer.concat(parts);
}

function longText(type: string, text: Buffer): readonly Buffer[] {
  if (text.length <= shortName) return [];
  const content = Buffer.concat([text, Buffer.alloc(1)]);
  const name = Buffer.from('././@LongLink');
  const header = blockOf({ name, target: Buffer.alloc(0), type, mode: 0, size: content.length, mtime: 0 });
  return [header, content, padding(content.length)];
}

interface Header {
  readonly name: Buffer;
  readonly target: Buffer;
  readonly type: string;
  readonly mode: number;
  readonly size: number;
  readonly mtime: number;
}

/** Fields and offsets as in GNU tar's manual, "Basic Tar Format". */
function blockOf({ name, target, type, mode, size, mtime }: Header): Buffer {
  const block = Buffer.alloc(blockSize);
  name.copy(block, 0, 0, shortName);
  block.write(octal(mode, 7), 100, 'latin1');
  block.write(octal(0, 7), 108, 'latin1');
  block.write(octal(0, 7), 116, 'latin1');
  block.write(octal(size, 11), 124, 'latin1');
  block.write(octal(mtime, 11), 136, 'latin1');
  // The checksum is computed with spaces in its own field.
  block.write(' '.repeat(8), 148, 'latin1');
  block.write(type, 156, 'latin1');
  target.copy(block, 157, 0, shortName);
  block.write('ustar  ', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148, 'latin1');
  return block;
}

const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');

function padding(size: number): Buffer {
  return Buffer.alloc((blockSize - (size % blockSize)) % blockSize);
}
