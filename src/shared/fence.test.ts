import { expect, test } from 'vitest';
import { fenced, noFence, type Fence } from './fence.ts';

/** Has private state, as providers do. */
class Counter {
  #count = 0;
  readonly name = 'counter';

  get count(): number {
    return this.#count;
  }

  add(by: number): number {
    this.#count += by;
    return this.#count;
  }

  describe(): string {
    return `${this.name}: ${this.#count}`;
  }

  child(): Counter {
    return new Counter();
  }
}

class Gate implements Fence {
  isOpen = true;

  check(): void {
    if (!this.isOpen) throw new Error('closed');
  }
}

test('methods throw after the fence closed, except those that call no provider', () => {
  const counter = new Counter();
  const gate = new Gate();
  const behind = fenced(counter, gate, { free: ['describe'], wrap: { child: (child) => fenced(child, gate) } });
  const child = behind.child();
  expect(behind.add(2)).toBe(2);
  expect(child.add(1)).toBe(1);

  gate.isOpen = false;

  expect(() => behind.add(1)).toThrow('closed');
  expect(() => child.add(1)).toThrow('closed');
  expect(counter.count).toBe(2);
  expect(behind.describe()).toBe('counter: 2');
  expect(behind).toBeInstanceOf(Counter);
});

test('noFence returns the object itself', () => {
  const counter = new Counter();
  expect(fenced(counter, noFence)).toBe(counter);
});
