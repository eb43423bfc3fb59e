import { appendFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'

const LINES = 16

/** What a test says of its failure: its first lines, without the stack. */
function summarize(message) {
  const lines = stripVTControlCharacters(message).split('\n')
  return lines.filter((line) => line.trim() !== '' && !line.startsWith('    at ')).slice(0, LINES)
}

/**
 * Says what failed and, at the end, how many passed and failed. For `.ci/run`: JEST_TOTALS names a file that gets the two numbers,
 * JEST_FAILURES one that gets the failures in short, so that they stand together at the end of a long output.
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
    const failures = results.testResults.flatMap(({ testFilePath, testResults, testExecError }) => {
      const file = testFilePath.replace(`${process.cwd()}/`, '')
      const ofTests = testResults
        .filter(({ status }) => status === 'failed')
        .map((test) => ({ outcome: 'failed', name: test.fullName, messages: [...(test.retryReasons ?? []), ...test.failureMessages] }))
      const ofRetries = testResults
        .filter(({ status, invocations }) => status === 'passed' && invocations > 1)
        .map((test) => ({ outcome: 'passed at its second try', name: test.fullName, messages: test.retryReasons ?? [] }))
      const ofFile = testExecError ? [{ outcome: 'failed', name: 'the file itself', messages: [testExecError.stack ?? testExecError.message] }] : []
      return [...ofFile, ...ofTests, ...ofRetries].map((failure) => ({ file, ...failure }))
    })
    for (const { file, outcome, name } of failures) process.stdout.write(`${outcome}: ${file}: ${name}\n`)
    process.stdout.write(`tests: ${passed} passed, ${failed} failed in ${results.numTotalTestSuites} files, ${seconds} s\n`)
    if (process.env.JEST_TOTALS) appendFileSync(process.env.JEST_TOTALS, `${passed} ${failed}\n`)
    if (!process.env.JEST_FAILURES) return
    for (const { file, outcome, name, messages } of failures)
      appendFileSync(process.env.JEST_FAILURES, [`-- ${outcome}: ${file}: ${name}`, ...messages.flatMap(summarize)].join('\n').concat('\n'))
  }
}
