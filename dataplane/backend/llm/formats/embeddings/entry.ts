import { readParams } from '../../common/params.ts'
import { listOf } from '../../common/read.ts'
import type { ClientFormatEntry } from '../../common/types.ts'

/** The Embeddings API of OpenAI: no messages to enrich, no text in responses (llm.md §3, §12). */
export const embeddingsEntry: ClientFormatEntry = {
  format: 'embeddings',
  title: 'Embeddings',
  isStreaming: () => false,
  params: readParams,
  enrich: (body) => body,
  flattenRequest: (body) => inputsOf(body['input']).map((content) => ({ role: 'user', content })),
  replaceMessages: (body, messages) => ({ ...body, input: messages.map(({ content }) => content) }),
  flattenResponse: () => [],
  replaceChoices: (body) => body,
}

/** The texts of `input`: a string or a list of strings. Lists of tokens have no text. */
export function inputsOf(input: unknown): string[] {
  return typeof input === 'string' ? [input] : listOf(input).filter((text) => typeof text === 'string')
}
