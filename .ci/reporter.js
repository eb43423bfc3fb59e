import { appendFileSync } from 'node:fs'

/**
 * Says what failed and, at the end, how many passed and failed. JEST_TOTALS names a file that gets the two numbers, for `.ci/run`.
 */
export default class QuietReporter {
  onTestResult(_test, result) {
    if (result.failureMessage) process.stdout.write(`${result.failureMessage}\n`)
  }

  onRunComplete(_contexts, results) {
    // A file that does not even load fails once.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites
    const passed = results.numPassedTests
    const seconds = ((Date.now() - results.startTime) / 1000).toFixed(0)
    for (const { testFilePath, numFailingTests, testExecError } of results.testResults)
      if (numFailingTests > 0 || testExecError) process.stdout.write(`failed: ${testFilePath.replace(`${process.cwd()}/`, '')}\n`)
    process.stdout.write(`tests: ${passed} passed, ${failed} failed in ${results.numTotalTestSuites} files, ${seconds} s\n`)
    if (process.env.JEST_TOTALS) appendFileSync(process.env.JEST_TOTALS, `${passed} ${failed}\n`)
  }
}
