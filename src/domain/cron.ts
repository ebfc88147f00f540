import { getOrAdd } from '../shared/get-or-add.ts';
/** A parsed cron expression: the allowed values of each field. */
interface CronFields {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  /** 0 is Sunday. */
  readonly weekdays: readonly number[];
  /** With both kinds of days restricted, a day that fits either of them fits, as in every cron. */
  readonly isEitherDay: boolean;
}

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

const fieldKinds = [
  { name: 'minute', from: 0, to: 59, names: [] },
  { name: 'hour', from: 0, to: 23, names: [] },
  { name: 'day of the month', from: 1, to: 31, names: [] },
  { name: 'month', from: 1, to: 12, names: monthNames },
  { name: 'day of the week', from: 0, to: 7, names: weekdayNames },
] as const;

/** Fields of an expression with five parts, such as `0 8 * * mon-fri`; or what is wrong with it, as a sentence part. */
export function parseCron(text: string): CronFields | { readonly problem: string } {
  const parts = text.trim().toLowerCase().split(/\s+/);
  if (parts.length !== fieldKinds.length) return { problem: 'needs five fields: minute, hour, day of the month, month, day of the week' };
  const fields = fieldKinds.map((kind, index) => ({ kind, part: parts[index] ?? '', values: parseField(parts[index] ?? '', kind) }));
  const wrong = fields.find(({ values }) => values === undefined);
  if (wrong !== undefined) return { problem: `has no valid ${wrong.kind.name}: ${wrong.part}` };
  const [minutes = [], hours = [], days = [], months = [], weekdays = []] = fields.map(({ values }) => values ?? []);
  const isEitherDay = !(parts[2] ?? '').startsWith('*') && !(parts[4] ?? '').startsWith('*');
  const parsed = { minutes, hours, days, months, weekdays: weekdays.map((day) => day % 7), isEitherDay };
  return isEitherDay || days.some((day) => months.some((month) => day <= longestMonth(month)))
    ? parsed
    : { problem: 'names a day that no year has' };
}

/** Days of a month, numbered from 1; of February in a leap year. */
const longestMonth = (month: number): number => new Date(Date.UTC(2_024, month, 0)).getUTCDate();

function parseField(text: string, kind: (typeof fieldKinds)[number]): readonly number[] | undefined {
  const ranges = text.split(',').map((range) => parseRange(range, kind));
  return ranges.includes(undefined) ? undefined : ranges.flatMap((range) => range ?? []).toSorted((a, b) => a - b);
}

/** `*`, `5`, `mon`, `1-5`, with `/2` for each second value. */
function parseRange(text: string, { from, to, names }: (typeof fieldKinds)[number]): readonly number[] | undefined {
  const [, range = '', step = '1'] = /^([a-z0-9*-]+)(?:\/(\d{1,2}))?$/.exec(text) ?? [];
  const valueOf = (word: string): number => {
    const named = (names as readonly string[]).indexOf(word);
    return named >= 0 ? named + from : /^\d{1,2}$/.test(word) ? Number(word) : Number.NaN;
  };
  const [first = '', last, ...rest] = range.split('-');
  const low = first === '*' ? from : valueOf(first);
  const high = first === '*' ? to : last === undefined ? (text.includes('/') ? to : low) : valueOf(last);
  const isValid =
    rest.length === 0 && low >= from && high <= to && low <= high && Number(step) > 0 && !(first === '*' && last !== undefined);
  if (!isValid) return undefined;
  return Array.from({ length: high - low + 1 }, (_, index) => low + index).filter((value) => (value - low) % Number(step) === 0);
}

/** How far back a moment is searched: a leap day may be eight years ago. */
const searchedDays = 2_930;

const minuteMs = 60_000;

/** The last moment up to `now` (ms since the epoch) that fits the expression in a time zone; undefined for none. */
export function lastMoment(text: string, timezone: string, now: number): number | undefined {
  const cron = parseCron(text);
  if ('problem' in cron) return undefined;
  const local = now + offsetAt(timezone, now);
  const today = Math.floor(local / 86_400_000);
  for (let day = today; day > today - searchedDays; day--) {
    if (!fitsDay(cron, new Date(day * 86_400_000))) continue;
    for (const hour of cron.hours.toReversed())
      for (const minute of cron.minutes.toReversed()) {
        const moment = instantOf(day * 86_400_000 + (hour * 60 + minute) * minuteMs, timezone);
        if (moment <= now) return moment;
      }
  }
  return undefined;
}

function fitsDay({ days, months, weekdays, isEitherDay }: CronFields, date: Date): boolean {
  const [isDay, isWeekday] = [days.includes(date.getUTCDate()), weekdays.includes(date.getUTCDay())];
  return months.includes(date.getUTCMonth() + 1) && (isEitherDay ? isDay || isWeekday : isDay && isWeekday);
}

/** The instant of a local time. A time that a change of the clock skips is as late as it would have been before. */
function instantOf(local: number, timezone: string): number {
  const guess = local - offsetAt(timezone, local);
  return local - offsetAt(timezone, guess);
}

/** Local time minus UTC at an instant, ms. */
function offsetAt(timezone: string, instant: number): number {
  const parts = formatOf(timezone).formatToParts(instant);
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0] = (['year', 'month', 'day', 'hour', 'minute'] as const).map((type) =>
    Number(parts.find((part) => part.type === type)?.value),
  );
  return Date.UTC(year, month - 1, day, hour, minute) - Math.floor(instant / minuteMs) * minuteMs;
}

/** One for each time zone of the running services' files: a new one costs more than its use. */
const formats = new Map<string, Intl.DateTimeFormat>();

const formatOf = (timezone: string): Intl.DateTimeFormat => getOrAdd(formats, timezone, () => newFormat(timezone));

const newFormat = (timezone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-GB', {
    timeZone: timezone,
    calendar: 'gregory',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });

/** Whether this is the name of a time zone, such as `Europe/Berlin`. */
export function isTimezone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch {
    return false;
  }
}
