const datePattern = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:\.\d+)?)(?:Z|([+-])(\d\d):?(\d\d))?$/;

/** Numbers from here on are ms since 1970: as seconds they would lie after the year 5000. */
const leastEpochMs = 1e11;

/** Numbers from here on are a date and not a time since the start of the trace: 2001, in s. */
const leastEpochSeconds = 1e9;

/** A time of a trace, s: a number of seconds, or a date (UTC unless it names an offset). Undefined when it is neither. */
export function parseTime(text: string): number | undefined {
  const number = parseNumber(text);
  if (number !== undefined) return number >= leastEpochMs ? number / 1_000 : number;
  const match = datePattern.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, sign, offsetHours = 0, offsetMinutes = 0] = match;
  const utcMs = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute));
  const offset = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60 * (sign === '-' ? -1 : 1);
  return utcMs / 1_000 + Number(second) - offset;
}

/** A time in s as wall time, ms; undefined when it counts from the start of the trace. */
export function wallTimeMs(seconds: number): number | undefined {
  return seconds >= leastEpochSeconds ? seconds * 1_000 : undefined;
}

/** A finite number that is not negative. Undefined for other text. */
export function parseNumber(text: string): number | undefined {
  const number = text === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) && number >= 0 ? number : undefined;
}
