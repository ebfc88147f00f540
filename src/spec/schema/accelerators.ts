import { z } from 'zod';
import type { Accelerator, Resources } from '../../domain/task.ts';
import { bytesPerGb, parseSize } from '../../shared/units.ts';
import { reading, type Reading } from './kit.ts';

type AcceleratorMemory = NonNullable<Resources['acceleratorMemory']>;

/** One alternative of `accelerators`. */
export type AcceleratorAlternative =
  | { readonly kind: 'named'; readonly accelerator: Accelerator }
  | { readonly kind: 'memory'; readonly memory: AcceleratorMemory };

/** The alternatives of `accelerators`, in any of its forms. */
export interface AcceleratorChoice {
  readonly order: 'any' | 'ordered';
  readonly alternatives: readonly AcceleratorAlternative[];
}

/** The name of an accelerator: `A100-80GB`, `RTX_4090`, `l4`, `tpu-v5e-8`. */
const acceleratorName = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

const form = 'must be NAME or NAME:COUNT\nWrite for instance: accelerators: L4 or accelerators: A100-80GB:8';
const empty = 'must not be empty\nLeave accelerators out when none is needed.';
const countHelp = 'the count must be greater than 0\nLeave accelerators out when none is needed.';

/** `T4`, `T4:4`, `T4:0.5`, `80GB`, `80GB+`, `80GB:2`, `NVIDIA:80GB:2`. */
export function readAccelerator(text: string): Reading<AcceleratorAlternative> {
  const parts = text.split(':').map((part) => part.trim());
  const memory = readMemoryForm(parts);
  if (memory !== undefined) return memory;
  const [name = '', count, ...rest] = parts;
  if (rest.length > 0 || !acceleratorName.test(name)) return { problem: form };
  const number = readCount(count);
  return number === undefined ? { problem: /^-?\d/.test(count ?? '') ? countHelp : form } : named(name, number);
}

function readMemoryForm(parts: readonly string[]): Reading<AcceleratorAlternative> | undefined {
  const memoryIndex = isMemory(parts[0]) ? 0 : isMemory(parts[1]) ? 1 : undefined;
  if (memoryIndex === undefined) return undefined;
  const text = parts[memoryIndex] ?? '';
  const count = readCount(parts[memoryIndex + 1]);
  if (count === undefined || parts.length > memoryIndex + 2) return { problem: parts.length > memoryIndex + 2 ? form : countHelp };
  const atLeast = text.endsWith('+');
  const bytes = parseSize(atLeast ? text.slice(0, -1) : text, 'GB') ?? 0;
  if (bytes <= 0) return { problem: countHelp };
  return {
    ok: { kind: 'memory', memory: { value: bytes / bytesPerGb, atLeast, count, manufacturer: memoryIndex === 1 ? parts[0] : undefined } },
  };
}

function isMemory(text: string | undefined): boolean {
  return text !== undefined && /^\d+(\.\d+)?(kb|mb|gb|tb)\+?$/i.test(text);
}

function readCount(text: string | undefined): number | undefined {
  if (text === undefined) return 1;
  const count = /^\d{1,6}(\.\d{1,6})?$/.test(text) ? Number(text) : 0;
  return count > 0 ? count : undefined;
}

function named(name: string, count: number): Reading<AcceleratorAlternative> {
  return { ok: { kind: 'named', accelerator: { name, count } } };
}

const oneText = reading(z.string(), readAccelerator);

/** `{T4: 1}`, several keys for alternatives, and the set form `{L4:8, A10g:8}` whose values are empty. */
const mapForm = reading(z.record(z.string(), z.number().nullable()), (value): Reading<AcceleratorChoice> => {
  const alternatives: AcceleratorAlternative[] = [];
  for (const [key, count] of Object.entries(value)) {
    const alternative = readAccelerator(count === null ? key : `${key}:${count}`);
    if ('problem' in alternative) return alternative;
    alternatives.push(alternative.ok);
  }
  if (alternatives.length > 100) return { problem: 'must not have more than 100 entries' };
  return alternatives.length === 0 ? { problem: empty } : { ok: { order: 'any', alternatives } };
});

const listForm = reading(z.array(oneText).max(100), (alternatives): Reading<AcceleratorChoice> => {
  return alternatives.length === 0 ? { problem: empty } : { ok: { order: 'ordered', alternatives } };
});

const textForm = reading(oneText, (alternative): Reading<AcceleratorChoice> => ({ ok: { order: 'any', alternatives: [alternative] } }));

/** Every form of `accelerators`. */
export const accelerators = z.union([textForm, mapForm, listForm]);
