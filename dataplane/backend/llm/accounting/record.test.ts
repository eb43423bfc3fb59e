import { expect, test } from '@jest/globals'
import { environments } from '#api/cel/index.ts'
import { createRegistry } from '../../../observe/telemetry/metrics/registry.ts'
import { testExchange } from '../../../testing/exchange.ts'
import { LlmRecord, viewKeys } from './record.ts'

test('the texts of a response are read once, and only if an expression reads them', () => {
  const record = new LlmRecord(testExchange(), createRegistry())
  let reads = 0
  record.finish(undefined, 'complete', () => {
    reads++
    return { completion: ['masked'], toolCalls: [] }
  })
  expect([record.get('outputTokens'), reads]).toEqual([undefined, 0])
  expect([record.get('completion'), record.get('toolCalls'), reads]).toEqual([['masked'], [], 1])
})

test('each member of llm is in the table of the expression language, and no other', () => {
  expect([...(environments.log.members?.get('llm') ?? [])].toSorted()).toEqual(viewKeys.toSorted())
})
