/** Classes of octets, as tables: 1 when the octet belongs to it. Faster than a regular expression for every octet. */

const table = (belongs: (octet: number) => boolean): Uint8Array => Uint8Array.from({ length: 256 }, (_, octet) => (belongs(octet) ? 1 : 0));

const isAlphanumeric = (octet: number): boolean =>
  (octet >= 0x30 && octet <= 0x39) || (octet >= 0x41 && octet <= 0x5a) || (octet >= 0x61 && octet <= 0x7a);

const among = (characters: string, octet: number): boolean => characters.includes(String.fromCharCode(octet));

/** `tchar` of RFC 9110, section 5.6.2: the characters of methods and field names. */
export const tokenOctets = table((octet) => isAlphanumeric(octet) || among("!#$%&'*+-.^_`|~", octet));

/** Valid octets of a field value or a reason phrase: HT, SP, visible ASCII and obs-text (RFC 9110, section 5.5). */
export const valueOctets = table((octet) => octet === 0x09 || (octet >= 0x20 && octet !== 0x7f));

/** Visible ASCII except `#`: a fragment never belongs on the wire (RFC 9112, section 3.2). */
export const targetOctets = table((octet) => octet > 0x20 && octet < 0x7f && octet !== 0x23);

/** Registered names and IPv4 addresses, without the sub-delims of RFC 3986 that no real host name has. */
export const hostOctets = table((octet) => isAlphanumeric(octet) || among('-._~%', octet));

/** The value of a hexadecimal digit, 255 for any other octet. */
export const hexValues = Uint8Array.from({ length: 256 }, (_, octet) => {
  if (octet >= 0x30 && octet <= 0x39) return octet - 0x30;
  const lower = octet | 0x20;
  return lower >= 0x61 && lower <= 0x66 && octet >= 0x41 ? lower - 0x57 : 255;
});

/** Carriage return, line feed, space, tab, colon, semicolon. */
export const CR = 0x0d;
export const LF = 0x0a;
export const SP = 0x20;
export const HT = 0x09;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;

/** Whether a text is one or more `tchar`. */
export function isToken(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    if (tokenOctets[text.charCodeAt(at)] !== 1) return false;
  }
  return text.length > 0;
}
