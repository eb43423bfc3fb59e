import { describe, expect, test } from '@jest/globals'
import { readAnyUsage, toUsage } from './raw.ts'

describe('a usage object of any format', () => {
  test.each([
    ['chat completions', { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }, { inputTokens: 1, outputTokens: 2 }],
    ['messages', { input_tokens: 1, output_tokens: 2, cache_read_input_tokens: 3 }, { inputTokens: 4, outputTokens: 2, cachedInputTokens: 3 }],
    ['responses', { input_tokens: 4, output_tokens: 2, total_tokens: 6, input_tokens_details: { cached_tokens: 3 } }, { inputTokens: 4, cachedInputTokens: 3 }],
    ['Converse', { inputTokens: 1, outputTokens: 2, totalTokens: 9, cacheWriteInputTokens: 6 }, { inputTokens: 7, outputTokens: 2, providerTotalTokens: 9 }],
    ['Gemini', { promptTokenCount: 1, candidatesTokenCount: 2, thoughtsTokenCount: 3 }, { inputTokens: 1, outputTokens: 5, reasoningTokens: 3 }],
    ['thinking that only the total has', { prompt_tokens: 5, completion_tokens: 10, total_tokens: 50 }, { inputTokens: 5, outputTokens: 45 }],
    ['rankings that have a total only', { total_tokens: 50 }, { inputTokens: 50, totalTokens: 50 }],
    ['embeddings', { prompt_tokens: 5, total_tokens: 5 }, { inputTokens: 5, totalTokens: 5 }],
    [
      'Gemini with tools of its own',
      { promptTokenCount: 10, toolUsePromptTokenCount: 90, candidatesTokenCount: 5, totalTokenCount: 105 },
      { inputTokens: 100, outputTokens: 5, totalTokens: 105 },
    ],
    ['images', { input_tokens: 1, output_tokens: 2, total_tokens: 3, input_tokens_details: { image_tokens: 1 } }, { inputTokens: 1, inputImageTokens: 1 }],
  ])('of %s is read', (_name, usage, expected) => {
    const raw = readAnyUsage(usage)
    expect(raw && toUsage(raw)).toMatchObject(expected)
  })

  test.each([{}, { usage: 1 }, { input_tokens: '5' }])('without counts is undefined: %j', (usage) => {
    expect(readAnyUsage(usage)).toBeUndefined()
  })
})
