import type { Reporter, TestModule } from 'vitest/node';

/** A vitest reporter of skipped tests with the reason: in the name (`with python3 > …`), or passed to `skip()`. */
class SkippedTests implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = modules.flatMap((file) =>
      [...file.children.allTests('skipped')].map((test) => {
        const result = test.result();
        const note = result.state === 'skipped' && result.note !== undefined ? ` [${result.note}]` : '';
        return `  ${file.relativeModuleId} > ${test.fullName}${note}`;
      }),
    );
    // A filter by name skips nearly all tests on purpose.
    if (lines.length > 0 && lines.length <= mostNamed) process.stdout.write(`\nSkipped:\n${lines.join('\n')}\n`);
  }
}

/** More tests than are skipped on a machine without any of the programs in test/support/needs.ts. */
const mostNamed = 200;

// oxlint-disable-next-line import/no-default-export -- vitest takes a reporter by its module
export default SkippedTests;
