import { expect, test } from '@jest/globals'
import { compileExpression } from '../../../request/expression/program.ts'
import { gatewayTelemetry } from '../../../observe/telemetry/gateway.ts'
import { recordsText } from './collect.ts'

function logging(expression: string): Parameters<typeof recordsText>[0] {
  const exchange = { slots: undefined }
  const changes = { hidden: new Set<string>(), added: [{ name: 'x', program: compileExpression(expression, 'log') }] }
  gatewayTelemetry.set(exchange, { accessLog: { filter: undefined, exporter: undefined, changes }, tracing: undefined })
  return exchange
}

test.each([
  ['llm.completion[0]', true],
  ['size(llm.toolCalls)', true],
  ['llm["completion"]', true],
  ['llm.?completion.orValue([])', true],
  ['llm', true],
  ['variables()', true],
  ['llm.inputTokens + llm.outputTokens', false],
  ['request.path', false],
])('whether a log field of %s collects the text of streams is %s', (expression, expected) => {
  expect(recordsText(logging(expression))).toBe(expected)
})

test('text is not collected without log fields', () => {
  expect(recordsText({ slots: undefined })).toBe(false)
})
