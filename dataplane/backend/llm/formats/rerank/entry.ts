import { isObject } from '../../common/json.ts'
import { listOf, textOf } from '../../common/read.ts'
import type { ClientFormatEntry, JsonObject } from '../../common/types.ts'

/** Documents of one search unit (pricing of Cohere). */
const DOCUMENTS_PER_UNIT = 100

/** Rankings of documents, as Cohere, Jina, Voyage, Together and vLLM have them: no messages to enrich, no text in responses (llm.md §7.17). */
export const rerankEntry: ClientFormatEntry = {
  format: 'rerank',
  title: 'Rerank',
  isStreaming: () => false,
  params: () => ({}),
  units: ({ documents }) => ({ searches: Math.max(1, Math.ceil(listOf(documents).length / DOCUMENTS_PER_UNIT)) }),
  enrich: (body) => body,
  flattenRequest: (body) => [body['query'], ...listOf(body['documents']).map(textIn)].map((text) => ({ role: 'user', content: textOf(text) ?? '' })),
  replaceMessages(body, messages) {
    const [query, ...texts] = messages.map(({ content }) => content)
    const documents = listOf(body['documents']).map((document, nth) => replaceText(document, texts[nth]))
    return { ...body, ...(typeof body['query'] === 'string' && { query }), documents }
  },
  flattenResponse: () => [],
  replaceChoices: (body) => body,
}

const textIn = (document: unknown): unknown => (isObject(document) ? document['text'] : document)

/** A document with another text. One without a text that the gateway reads stays. */
function replaceText(document: unknown, text: string | undefined): unknown {
  if (text === undefined || typeof textIn(document) !== 'string') return document
  return isObject(document) ? ({ ...document, text } satisfies JsonObject) : text
}
