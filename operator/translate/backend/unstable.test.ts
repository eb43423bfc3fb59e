import { expect, test } from '@jest/globals'
import { findUnstableTransformations } from './unstable.ts'

const ai = (field: string, expression: string): object => ({ ai: { transformations: [{ field, expression }] } })
const backend = (policies: object): { kind: string; message: object } => ({ kind: 'backend', message: { key: 'ns/llm', ai: {}, policies } })

test('transformations of the prompt that differ with each request are named with their object, once', () => {
  const policy = {
    kind: 'policy',
    message: { key: 'k', policy: { kind: 'ProxyPolicy', namespace: 'ns', name: 'p' }, backend: ai('system', '"Request " + request.headers["x-request-id"]') },
  }
  const found = findUnstableTransformations([backend(ai('messages', 'llmRequest.messages + [{"role": "user", "content": uuid()}]')), policy, policy])
  expect([...found.keys()]).toEqual(['ProxyBackend ns/llm', 'ProxyPolicy ns/p'])
  expect(found.get('ProxyBackend ns/llm')).toEqual([expect.stringMatching(/^ai\.transformations: messages uses uuid\(\), .*\[PX1369\]$/)])
  expect(found.get('ProxyPolicy ns/p')).toHaveLength(1)
})

test('values that stay the same, and fields that the model does not read, are fine', () => {
  expect(findUnstableTransformations([backend(ai('messages', 'llmRequest.messages')), backend(ai('metadata', '{"id": uuid()}'))]).size).toBe(0)
})
