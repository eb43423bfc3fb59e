import { appendFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'

const LINES = 16

/** The first lines of a failure message, without the stack. */
function summarize(message) {
  const lines = stripVTControlCharacters(message).split('\n')
  return lines.filter((line) => line.trim() !== '' && !line.startsWith('    at ')).slice(0, LINES)
}

/**
 * Prints failures and, at the end, the numbers of passed and failed tests. For `.ci/run`: appends the two numbers to the file JEST_TOTALS and a summary of each
 * failure to the file JEST_FAILURES, so that `.ci/run` can print all failures at the end.
 */
export default class QuietReporter {
  onTestResult(_test, result) {
    if (result.failureMessage) process.stdout.write(`${result.failureMessage}\n`)
  }

  onRunComplete(_contexts, results) {
    // A file that cannot be loaded counts as one failure.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites
    const passed = results.numPassedTests
    const seconds = ((Date.now() - results.startTime) / 1000).toFixed(0)
    const failures = results.testResults.flatMap(({ testFilePath, testResults, testExecError }) => {
      const file = testFilePath.replace(`${process.cwd()}/`, '')
      const failedTests = testResults
        .filter(({ status }) => status === 'failed')
        .map((test) => ({ outcome: 'failed', name: test.fullName, messages: [...(test.retryReasons ?? []), ...test.failureMessages] }))
      const retriedTests = testResults
        .filter(({ status, invocations }) => status === 'passed' && invocations > 1)
        .map((test) => ({ outcome: 'passed on retry', name: test.fullName, messages: test.retryReasons ?? [] }))
      const loadErrors = testExecError
        ? [{ outcome: 'failed', name: 'the file cannot be loaded', messages: [testExecError.stack ?? testExecError.message] }]
        : []
      return [...loadErrors, ...failedTests, ...retriedTests].map((failure) => ({ file, ...failure }))
    })
    for (const { file, outcome, name } of failures) process.stdout.write(`${outcome}: ${file}: ${name}\n`)
    process.stdout.write(`tests: ${passed} passed, ${failed} failed in ${results.numTotalTestSuites} files, ${seconds} s\n`)
    if (process.env.JEST_TOTALS) appendFileSync(process.env.JEST_TOTALS, `${passed} ${failed}\n`)
    if (!process.env.JEST_FAILURES) return
    for (const { file, outcome, name, messages } of failures)
      appendFileSync(process.env.JEST_FAILURES, [`-- ${outcome}: ${file}: ${name}`, ...messages.flatMap(summarize)].join('\n').concat('\n'))
  }
}
