import { expect, test } from '@jest/globals'
import { methodOfPath } from './path.ts'

test.each([
  ['POST', '/tasks/1:cancel', 'CancelTask'],
  ['POST', '/v1/tasks/1%3Acancel', 'CancelTask'],
  ['POST', '/tasks/1:CANCEL/', 'CancelTask'],
  ['GET', '/tasks/1:cancel', undefined],
  ['GET', '/tasks/%zz', 'GetTask'],
  ['HEAD', '/.well-known/agent.json', 'GetAgentCard'],
  ['GET', `/${'x'.repeat(3000)}/tasks`, undefined],
  ['POST', '/rpc', undefined],
])('%s %s has the method %s', (http, path, method) => {
  expect(methodOfPath(http, path)?.method).toBe(method)
})

test('a gRPC path is that of gRPC', () => {
  expect(methodOfPath('POST', '/lf.a2a.v1.A2AService/SendMessage')).toEqual({ method: 'SendMessage', isGrpc: true })
})
