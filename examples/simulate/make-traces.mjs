// Writes a day of requests (day.csv) and a week of spot capacity (zones.json) to the current folder. Both are made up:
// a quiet night, a busy afternoon, two bursts, and three zones that lose their capacity for hours. The numbers are the
// same at each run.
import { writeFileSync } from 'node:fs';

let state = 7;
/** A number in [0, 1): the minimal standard generator. */
function random() {
  state = (state * 48_271) % 2_147_483_647;
  return state / 2_147_483_647;
}

/** A number of arrivals around the mean: more scattered than Poisson's, as with real users. */
function arrivals(mean) {
  const spread = Math.sqrt(mean * 2);
  const normal = random() + random() + random() + random() + random() + random() - 3;
  return Math.max(0, Math.round(mean + spread * normal * 1.4));
}

/** Mean requests per second, so many seconds after midnight. */
function rate(second) {
  const hour = second / 3_600;
  const day = 6 + 14 * Math.exp(-(((hour - 14.5) / 3.5) ** 2)) + 7 * Math.exp(-(((hour - 20.5) / 1.6) ** 2)) - 3 * Math.exp(-(((hour - 4) / 3) ** 2));
  const burst = (start, minutes, factor) => (second >= start && second < start + minutes * 60 ? factor : 1);
  return day * burst(10.5 * 3_600, 20, 1.8) * burst(17 * 3_600, 8, 2.2);
}

const counts = Array.from({ length: 86_400 }, (_, second) => arrivals(rate(second)));
writeFileSync('day.csv', `requests_per_second\n${counts.join('\n')}\n`);

const stepSeconds = 300;
const steps = (7 * 86_400) / stepSeconds;

/** A zone's room: it comes and goes, for `upHours` and `downHours` on average. */
function zone(upHours, downHours, most) {
  let room = most;
  return Array.from({ length: steps }, () => {
    const changes = random() < stepSeconds / 3_600 / (room > 0 ? upHours : downHours);
    if (changes) room = room > 0 ? 0 : Math.ceil(most * (0.5 + random() / 2));
    return room;
  });
}

const zones = { 'us-east-1a': zone(9, 5, 4), 'us-east-1b': zone(6, 4, 3), 'us-west-2a': zone(11, 9, 4) };
writeFileSync('zones.json', JSON.stringify({ name: 'a made-up week', gap_seconds: stepSeconds, zones: Object.keys(zones), capacity: Object.values(zones) }));
