import { describe, expect, test } from '@jest/globals'
import { getEncoding } from 'js-tiktoken'
import { countTokens } from './count.ts'
import { countMessages } from './tokenizer.ts'

const texts = [
  '',
  'Hello, world!',
  "It's 12345 degrees; don't    panic.\n\n\tfunction f(x) { return x ** 2 }",
  'Größe, naïve, Здравствуйте, こんにちは世界, 👩‍👩‍👧‍👦 emoji',
  '{"messages":[{"role":"user","content":"a\\nb"}]}',
]

describe('the tokenizer', () => {
  test.each([
    ['gpt-4o-mini', 'o200k_base'],
    ['claude-3', 'cl100k_base'],
  ] as const)("counts tokens for %s by the vendor's table %s", async (model, name) => {
    const encoder = getEncoding(name)
    for (const content of texts) {
      const expected = 3 + 3 + encoder.encode('user').length + encoder.encode(content).length
      await expect(countMessages(model, [{ role: 'user', content }])).resolves.toBe(expected)
    }
  })

  test('counts only the end of the prompt without messages', async () => {
    await expect(countMessages('gpt-4', [])).resolves.toBe(3)
  })

  test('takes linear time for a long run of letters', async () => {
    const started = performance.now()
    expect(await countMessages('gpt-4', [{ role: 'user', content: 'a'.repeat(200_000) }])).toBeGreaterThan(10_000)
    // Quadratic time would be many minutes.
    expect(performance.now() - started).toBeLessThan(60_000)
  })

  test('returns the same counts in the worker thread, for many requests at once', async () => {
    const message = { role: 'user', content: 'Hello, world!' }
    const expected = await countMessages('gpt-4o', [message])
    await expect(Promise.all(Array.from({ length: 5 }, () => countTokens('gpt-4o', [message])))).resolves.toEqual(Array(5).fill(expected))
  })

  test('rejects requests beyond the queue limit', async () => {
    const results = await Promise.allSettled(Array.from({ length: 300 }, () => countTokens('gpt-4o', [])))
    expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
    expect(results[0]).toEqual({ status: 'fulfilled', value: 3 })
  })
})
