import { expect, test } from '@jest/globals'
import { compileExpression } from '../../expression/program.ts'
import { collectsAnswer } from './collect.ts'

const logging = (expression: string) => ({
  tokenBudgets: undefined,
  telemetry: {
    accessLog: {
      filter: undefined,
      exporter: undefined,
      changes: { hidden: new Set<string>(), added: [{ name: 'x', program: compileExpression(expression, 'log') }] },
    },
    tracing: undefined,
  },
})

test.each([
  ['llm.completion[0]', true],
  ['size(llm.toolCalls)', true],
  ['llm["completion"]', true],
  ['llm.?completion.orValue([])', true],
  ['llm', true],
  ['variables()', true],
  ['llm.inputTokens + llm.outputTokens', false],
  ['request.path', false],
])('a log field of %s keeps the text of streams: %s', (expression, expected) => {
  expect(collectsAnswer(logging(expression))).toBe(expected)
})

test('nothing is kept where nobody asks', () => {
  expect(collectsAnswer({ tokenBudgets: undefined, telemetry: undefined })).toBe(false)
})
