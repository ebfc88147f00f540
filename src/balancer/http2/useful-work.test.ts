import { expect, test } from 'vitest';
import { UsefulWork } from './useful-work.ts';

test('a connection with requests and bodies is never wasted, at any volume', () => {
  const work = new UsefulWork(0);
  let read = 0;
  for (let second = 1; second <= 100; second += 1) {
    for (let request = 0; request < 100; request += 1) {
      work.request(400);
      // The head, packed, with its frame; ten pieces of a body; a WINDOW_UPDATE for each piece of the answer, and one
      // for the connection.
      read += 200 + 9;
      for (let piece = 0; piece < 10; piece += 1) {
        work.piece(20);
        read += 20 + 9;
        work.answer(10);
        read += 2 * 13;
      }
    }
    expect(work.isWasted(read, 0, second * 1_000)).toBe(false);
  }
});

test('a long answer allows its WINDOW_UPDATE frames, and an idle client its pings', () => {
  const work = new UsefulWork(0);
  let read = 0;
  for (let second = 1; second <= 100; second += 1) {
    work.answer(16_384 * 1_000);
    read += 1_000 * 2 * 13;
    expect(work.isWasted(read, 0, second * 1_000)).toBe(false);
  }
  for (let second = 101; second <= 200; second += 1) {
    read += 17;
    expect(work.isWasted(read, 0, second * 1_000)).toBe(false);
  }
});

test('many useless bytes are noticed at once, fewer of them later', () => {
  expect(new UsefulWork(0).isWasted(60_000, 0, 0)).toBe(false);
  expect(new UsefulWork(0).isWasted(70_000, 0, 0)).toBe(true);
  const slow = new UsefulWork(0);
  let seconds = 0;
  while (!slow.isWasted(seconds * 8_192, 0, seconds * 1_000)) seconds += 1;
  expect(seconds).toBeGreaterThan(10);
  expect(seconds).toBeLessThan(20);
});

test('allowance from a busy time is not saved for a flood', () => {
  const work = new UsefulWork(0);
  for (let request = 0; request < 10_000; request += 1) work.request(1_000);
  expect(work.isWasted(100_000, 0, 1_000)).toBe(false);
  expect(work.isWasted(100_000 + 70_000, 0, 1_000)).toBe(true);
});

test('bodies that no replica takes are not wasted while they wait or later', () => {
  const work = new UsefulWork(0);
  const [uploads, pieces, bytes] = [100, 4, 16_384];
  for (let upload = 0; upload < uploads; upload += 1) work.request(400);
  const held = uploads * pieces * bytes;
  const read = uploads * 209 + held + uploads * pieces * 9;
  for (let second = 1; second <= 10; second += 1) expect(work.isWasted(read, held, second * 1_000)).toBe(false);
  for (let piece = 0; piece < uploads * pieces; piece += 1) work.piece(bytes);
  expect(work.isWasted(read, 0, 11_000)).toBe(false);
  expect(work.isWasted(read + 70_000, 0, 11_000)).toBe(true);
});

test('many small frames of a body are not wasted, but a parallel flood is', () => {
  const work = new UsefulWork(0);
  work.request(400);
  const [pieces, bytes] = [10_000, 9];
  const [held, read] = [pieces * bytes, 209 + pieces * (bytes + 9)];
  expect(work.isWasted(read, held, 0)).toBe(false);
  expect(work.isWasted(read + 170_000, held, 0)).toBe(true);
});
