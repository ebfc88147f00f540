/**
 * Resolves unquoted scalars as PyYAML does, because users of similar tools write for it: YAML 1.1 with rules of its
 * own. `yes` and `on` are true, `010` is 8, `1:30` is 90, and `1e3`, having no dot, is text. Source:
 * https://github.com/yaml/pyyaml, lib/yaml/resolver.py and constructor.py, version 6.
 */

const trueWords = new Set(['yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON']);
const falseWords = new Set(['no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF']);
const nullWords = new Set(['', '~', 'null', 'Null', 'NULL']);

const integer = /^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$/;
const float =
  /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)$/;

/** The value of an unquoted scalar. Dates stay text. Integers beyond 2^53 lose digits; the text keeps them. */
export function resolvePlain(text: string): string | number | boolean | null {
  if (nullWords.has(text)) return null;
  if (trueWords.has(text)) return true;
  if (falseWords.has(text)) return false;
  // Longer text is never meant as a number, and matching it costs time.
  if (text.length > 64) return text;
  if (integer.test(text)) return toInteger(text);
  if (float.test(text)) return toFloat(text);
  if (/^[-+]?\.(?:inf|Inf|INF)$/.test(text)) return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  if (/^\.(?:nan|NaN|NAN)$/.test(text)) return Number.NaN;
  return text;
}

function toInteger(text: string): number | string {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '').replaceAll('_', '');
  if (digits.includes(':')) return sign * base60(digits);
  const radix = digits.startsWith('0b') ? 2 : digits.startsWith('0x') ? 16 : digits.length > 1 && digits.startsWith('0') ? 8 : 10;
  const value = Number.parseInt(radix === 2 || radix === 16 ? digits.slice(2) : digits, radix);
  // `0x_` has the form of a number and no digits; PyYAML fails on it.
  return Number.isNaN(value) ? text : sign * value;
}

function toFloat(text: string): number | string {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '').replaceAll('_', '');
  const value = digits.includes(':') ? base60(digits) : Number(digits);
  return Number.isNaN(value) ? text : sign * value;
}

function base60(digits: string): number {
  return digits.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}
