import { expect, test } from 'vitest';
import { someFindings } from '../../../test/support/findings.ts';
import { renderReport } from './report.ts';

/** Names of elements that have no end. */
const voidElements = new Set(['meta', 'path', 'rect', 'circle']);

/** Elements that are open after the whole document; throws at an end without its start. */
function openElements(html: string): readonly string[] {
  const open: string[] = [];
  for (const [, end, name = '', rest = ''] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/g)) {
    if (end === '/') {
      const last = open.pop();
      if (last !== name) throw new Error(`</${name}> ends <${last}>`);
    } else if (!rest.endsWith('/') && !voidElements.has(name)) open.push(name);
  }
  return open;
}

test('every element of the report is closed, and ids are unique', () => {
  const html = renderReport(someFindings());
  expect(html.startsWith('<!doctype html>')).toBe(true);
  expect(openElements(html)).toEqual([]);
  const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
  expect(ids.length).toBeGreaterThan(10);
  expect(new Set(ids).size).toBe(ids.length);
});

test('the report loads nothing and runs nothing', () => {
  const html = renderReport(someFindings());
  expect(html).not.toMatch(/https?:|\bsrc=|\bhref=|@import|url\(|<script|<link|\bon[a-z]+="/);
});

test('each chart has a title and a description, and each policy a row', () => {
  const html = renderReport(someFindings());
  const figures = html.split('<figure>').slice(1);
  expect(figures.length).toBe(2 + 2 + 2 + 2 + 3 + 2);
  for (const figure of figures)
    expect(figure).toMatch(/role="img" aria-labelledby="(\S+) (\S+)">\n<title id="\1">[^<]+<\/title><desc id="\2">[^<]+</);
  for (const name of ['file', 'knative', 'bound', 'round_robin', 'on_demand', 'file\\+hedge'])
    expect(html).toMatch(new RegExp(`<th scope="row"[^>]*>${name}</th>`));
});

test('no coordinate of a chart is missing or infinite', () => {
  expect(renderReport(someFindings())).not.toMatch(/NaN|Infinity|undefined/);
});

test('names from files cannot become markup', () => {
  const name = '<img onerror="x">&';
  const html = renderReport(someFindings({ service: name, zone: name }));
  expect(html).not.toContain('<img');
  expect(html).toContain('&lt;img onerror=&quot;x&quot;&gt;&amp;');
});

test('a trace of ten days stays below 1 MB', () => {
  expect(renderReport(someFindings({ days: 10 })).length).toBeLessThan(1_000_000);
});
